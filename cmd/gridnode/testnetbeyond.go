//go:build !client

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gridnode/grid"
	"gridnode/node/api"
	"gridnode/testnet/sweep"
	"gridnode/testnet/sweep/away"
)

// beyond is the flags of a sweep whose runs are done beyond this machine.
type beyond struct {
	on, work     string
	time, policy string
	part, file   string // of a run of somebody else's sweep
}

// Where runs are done.
const (
	onFederation = "federation"
	onSlurm      = "slurm"
)

func (b *beyond) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&b.on, "on", "", "have each run done as a job: of the `FEDERATION` of the daemon here (federation), or of a cluster, by sbatch (slurm)")
	f.StringVar(&b.work, "work", "", "with --on, `DIRECTORY` that keeps what has come of runs; the same command again does what is missing. For slurm all nodes have to see it")
	f.StringVar(&b.time, "part-time", "", "with --on, `SPAN` that bounds each run (default: job.time of the settings, or the partition's)")
	f.StringVar(&b.policy, "part-policy", "spill", "with --on federation, `POLICY` of the jobs, as of submit")
	f.StringVar(&b.part, "part", "", "do one run of a sweep")
	f.StringVar(&b.file, "part-out", "", "where to write what comes of it")
	_ = f.MarkHidden("part")
	_ = f.MarkHidden("part-out")
	_ = cmd.MarkFlagDirname("work")
	_ = cmd.RegisterFlagCompletionFunc("on", cobra.FixedCompletions([]string{onFederation, onSlurm}, cobra.ShellCompDirectiveNoFileComp))
}

// away returns who does the runs of a sweep: nobody else (nil), another process for each, or this
// one if it is such a process. words are arguments, and traces those that name logs, as --trace does.
func (b *beyond) away(cmd *cobra.Command, root *options, words, traces []string) (sweep.Away, error) {
	if b.part != "" {
		p, err := away.ParsePart(b.part)
		switch {
		case err != nil:
			return nil, usagef("--part: %w", err)
		case b.on != "" || b.file == "":
			return nil, usagef("--part goes with --part-out, and without --on")
		}
		return p.Do(b.file), nil
	}
	for _, name := range []string{"work", "part-time", "part-policy", "part-out"} {
		if b.on == "" && cmd.Flags().Changed(name) {
			return nil, usagef("--%s goes with --on federation or --on slurm", name)
		}
	}
	switch {
	case b.on == "":
		return nil, nil
	case b.on != onFederation && b.on != onSlurm:
		return nil, usagef("--on: %q: want federation or slurm", b.on)
	case b.work == "":
		return nil, usagef("--on %s wants --work DIRECTORY, which keeps what has come of runs", b.on)
	case cmd.Flags().Changed("jobs"):
		return nil, usagef("--jobs is of runs on this machine: leave it out with --on")
	}
	var span grid.Time
	if b.time != "" {
		var err error
		if span, err = parseSpan(b.time); err != nil {
			return nil, usagef("--part-time: %w", err)
		}
	}
	s := &away.Sweep{Dir: b.work, Say: func(text string) { cmd.PrintErrln(text) }, Again: "the same command again"}
	if b.on == onSlurm {
		if cmd.Flags().Changed("part-policy") {
			return nil, usagef("--part-policy goes with --on federation")
		}
		s.Way = &away.Slurm{Minutes: int64((span + grid.Minute - 1) / grid.Minute)}
	} else {
		if root.remote != "" {
			return nil, usagef("--on federation wants a daemon on this machine, which brings files to --work: leave out --remote")
		}
		client := root.client()
		s.Way = &away.Federation{Client: client, Time: api.Seconds(span), Policy: b.policy, Tree: func(ctx context.Context, dir string) (string, error) {
			l := luggage{workdir: dir}
			if err := l.pack(ctx, nil); err != nil {
				return "", err
			}
			return l.tree(ctx, client)
		}}
	}
	var err error
	if s.Program, err = os.Executable(); err != nil {
		return nil, err
	}
	if err := describe(cmd, words, traces, s); err != nil {
		return nil, err
	}
	return func(ctx context.Context, runs []sweep.Run, o sweep.Options) error {
		err := s.Do(ctx, runs, o)
		if errors.Is(err, away.ErrWork) {
			return usagef("--work: %w", err)
		}
		return apiError(err)
	}, nil
}

// ofThisCall are the flags that do not change what a run gives: they are of the call that prints.
var ofThisCall = []string{"on", "work", "part-time", "part-policy", "output", "no-headers", "out", "jobs-csv", "home", "socket"}

// ofInputs are the flags that name what runs read.
var ofInputs = []string{"trace", "traces"}

// describe gives a sweep the command that makes it, and the files that its runs read.
func describe(cmd *cobra.Command, words, traces []string, s *away.Sweep) (err error) {
	s.Args = append(strings.Fields(cmd.CommandPath())[1:], words...)
	for _, from := range traces {
		name, failed := input(s, from)
		err = errors.Join(err, failed)
		s.Args = append(s.Args, "--trace="+name)
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		switch {
		case slices.Contains(ofThisCall, f.Name), f.Name == "failures" && values[0] != "":
			return
		}
		for _, value := range values {
			if slices.Contains(ofInputs, f.Name) {
				var failed error
				value, failed = input(s, value)
				err = errors.Join(err, failed)
			}
			s.Args = append(s.Args, "--"+f.Name+"="+value)
		}
	})
	s.Args = append(s.Args, "--home=.") // a job may have no home, and needs none
	return err
}

// input enters a file that runs read, or those of a directory, and returns what it is called there.
func input(s *away.Sweep, from string) (string, error) {
	name := path.Join(fmt.Sprintf("input%d", len(s.Inputs)+1), filepath.Base(filepath.Clean(from)))
	info, err := os.Stat(from)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		s.Inputs = append(s.Inputs, away.Input{Name: name, From: from})
		return name, nil
	}
	return name, filepath.WalkDir(from, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
			return err
		}
		below, err := filepath.Rel(from, file)
		s.Inputs = append(s.Inputs, away.Input{Name: path.Join(name, filepath.ToSlash(below)), From: file})
		return err
	})
}
