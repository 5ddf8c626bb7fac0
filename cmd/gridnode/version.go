package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the build (-ldflags "-X main.version=…") for a release.
var version = "devel"

// build says which program this is.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"` // of the revision, RFC 3339
	Modified bool   `json:"modified"`       // built from a tree with changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func thisBuild() build {
	b := build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func newVersion() *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print which version this is",
		Example: "  gridnode version\n  gridnode version -o json",
		Args:    exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := thisBuild()
			if l.format == formatJSON {
				return printJSON(cmd.OutOrStdout(), b)
			}
			text := "gridnode " + b.Version
			if b.Revision != "" {
				text += " " + b.Revision[:min(len(b.Revision), 12)]
			}
			if b.Modified {
				text += "+changes"
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %s %s\n", text, b.Go, b.Platform)
			return err
		},
	}
	addListingFlags(cmd, &l, formatTable, formatJSON)
	return cmd
}
