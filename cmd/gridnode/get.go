//go:build !client

package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/spf13/cobra"

	"gridnode/node/api"
	"gridnode/node/content"
)

func newGet(root *options) *cobra.Command {
	var dir string
	var l listing
	cmd := &cobra.Command{
		Use:   "get JOB [NAME...]",
		Short: "Bring the files that a job has left here",
		Long: `Bring the files that a job has left in its directory here, or those of them whose names
or patterns are given, into the current directory or --out-dir. They are kept at the
job's home as long as the job is, unless room is needed for others. It waits until the
job is over and they are there. Files of the same names are replaced.`,
		Example: `  gridnode get 7q3k
  gridnode get 7q3k 'plots/*.png' --out-dir results`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 {
				return usagef("wants the ID of a job, or a unique prefix of it")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			reply, err := getFiles(cmd, root.client(), args[0], args[1:], dir)
			switch {
			case err != nil:
				return err
			case l.format == formatTable:
				fmt.Fprintf(cmd.ErrOrStderr(), "%s brought to %s\n", plural(int64(countFiles(reply.Files)), "file"), dir)
				return nil
			case l.format == formatJSON:
				return printJSON(cmd.OutOrStdout(), reply)
			}
			return printList(cmd.OutOrStdout(), l, jobFileColumns, reply.Files)
		},
	}
	addActFlags(cmd, &l)
	cmd.Flags().StringVar(&dir, "out-dir", ".", "bring them to `DIR`, which is made if it is not there")
	_ = cmd.MarkFlagDirname("out-dir")
	return cmd
}

// getFiles brings files of a job into a directory, and returns which those were.
func getFiles(cmd *cobra.Command, client *api.Client, job string, names []string, dir string) (*api.JobFilesReply, error) {
	for _, name := range names {
		if err := content.CheckPattern(name); err != nil {
			return nil, usagef("%w", err)
		}
	}
	reply, err := client.JobFiles(cmd.Context(), job, true)
	if err != nil {
		return nil, apiError(err)
	}
	if reply.Files == nil && reply.Count > 0 {
		return nil, failf(exitNotFound, "the files of job %s are not kept any more; they were brought to %s", shortID(reply.ID), reply.Dir)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	brought := reply.Files[:0]
	for _, f := range reply.Files {
		if err := content.CheckName(f.Path()); err != nil {
			return nil, err
		}
		if !named(names, f.Path()) {
			continue
		}
		if err := getFile(cmd, client, reply.ID, root, &f); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		brought = append(brought, f)
	}
	if reply.Files = brought; countFiles(brought) == 0 && len(names) > 0 {
		return nil, failf(exitNotFound, "job %s has left no such file; 'gridnode ls %s' lists those that it has", shortID(reply.ID), shortID(reply.ID))
	}
	return reply, nil
}

// countFiles returns how many of them are files, rather than folders and links.
func countFiles(list []api.JobFile) (n int) {
	for i := range list {
		if list[i].Kind == "file" {
			n++
		}
	}
	return n
}

// named reports whether a name, or a folder that it lies in, is among patterns; all are if
// there are none.
func named(patterns []string, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(pattern string) bool {
		for at := name; at != "."; at = path.Dir(at) {
			if ok, _ := doublestar.Match(path.Clean(pattern), at); ok {
				return true
			}
		}
		return false
	})
}

// getFile brings one entry.
func getFile(cmd *cobra.Command, client *api.Client, job string, root *os.Root, f *api.JobFile) error {
	name := f.Path()
	if err := root.MkdirAll(path.Dir(name), 0o777); err != nil {
		return err
	}
	switch f.Kind {
	case "folder":
		return root.MkdirAll(name, 0o777)
	case "link":
		if !content.Inside(name, f.Target) {
			return fmt.Errorf("it is a link that leads out of the folder, to %q", f.Target)
		}
		_ = root.Remove(name)
		return root.Symlink(f.Target, name)
	}
	part := name + ".gridnode-part"
	file, err := root.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, fs.FileMode(f.Mode).Perm()|0o200)
	if err != nil {
		return err
	}
	defer root.Remove(part)
	if err := client.JobFile(cmd.Context(), job, name, io.Writer(file)); err != nil {
		file.Close()
		return apiError(err)
	}
	if err := file.Close(); err != nil {
		return err
	}
	at := time.UnixMicro(int64(f.Time))
	if err := root.Chtimes(part, at, at); err != nil {
		return err
	}
	return root.Rename(part, name)
}
