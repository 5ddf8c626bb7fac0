package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

func newManual(*options) *cobra.Command {
	var l listing
	var open bool
	cmd := &cobra.Command{
		Use:   "manual [PAGE]",
		Short: "Say where the manual is, to be read in a browser",
		Long: `Print the file with which the manual begins, or that of one of its pages. It is read in a
browser, and searched there, without a network. Packages bring it; 'make docs' makes it beside
a program that was built from the sources.`,
		Example: `  gridnode manual
  gridnode manual --open
  gridnode manual howto/join
  gridnode manual -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("takes one page only, got %q as well", args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			program, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			page, err := manualPage(manualFolders(program), append(args, "index")[0])
			if err != nil {
				return err
			}
			err = l.act(cmd.OutOrStdout(), map[string]string{"path": page}, []fact{{"path", page}}, func() { fmt.Fprintln(cmd.OutOrStdout(), page) })
			if err != nil || !open {
				return err
			}
			if err := exec.CommandContext(cmd.Context(), "xdg-open", page).Run(); err != nil {
				return fmt.Errorf("no browser could be opened: %w: open the file yourself", err)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&open, "open", false, "open it in a browser, too")
	addActFlags(cmd, &l)
	return cmd
}

// manualFolders returns where the manual of a program may be: where packages put it, wherever
// they are installed, and where 'make docs' does.
func manualFolders(program string) []string {
	dir := filepath.Dir(program)
	const below = "share/doc/gridnode/html"
	return []string{
		filepath.Join(dir, "..", below),       // of bin/gridnode
		filepath.Join(dir, "..", "..", below), // of libexec/gridnode/gridnoded
		filepath.Join(dir, "docs"),
	}
}

// manualPage returns the file of a page in the first of the folders that has a manual.
func manualPage(folders []string, page string) (string, error) {
	name := filepath.FromSlash(strings.TrimSuffix(strings.TrimSuffix(page, ".html"), ".md") + ".html")
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(folder, "index.html")); err != nil {
			continue
		}
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); err != nil || info.IsDir() || !filepath.IsLocal(name) {
			return "", failf(exitNotFound, "the manual in %s has no page %q", folder, page)
		}
		return path, nil
	}
	return "", failf(exitNotFound, "there is no manual beside this program: packages bring it to /usr/share/doc/gridnode/html, and 'make docs' makes it in bin/docs")
}
