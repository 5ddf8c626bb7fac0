//go:build manpages

package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manVerb writes the manual's pages into a directory. It is for `make dist` only, so that
// what users get does not carry what writes them.
const manVerb = "manpages"

func init() {
	extraVerbs = append(extraVerbs, func() *cobra.Command {
		return &cobra.Command{
			Use: manVerb + " DIRECTORY", Short: "Write a page of the manual for each verb", Hidden: true,
			Args: exactArgs(1, "a directory"),
			RunE: func(cmd *cobra.Command, args []string) error {
				seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
				if err != nil {
					return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
				}
				date := time.Unix(seconds, 0).UTC()
				root := cmd.Root()
				root.DisableAutoGenTag = true
				return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Date: &date, Source: "gridnode " + version, Manual: "gridnode"}, args[0])
			},
		}
	})
}
