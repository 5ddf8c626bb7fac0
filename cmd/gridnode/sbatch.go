package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gridnode/cmd/gridnode/slurm"
	"gridnode/grid"
	"gridnode/node/api"
)

// lenientVariable says, for Slurm's commands, what --lenient says for submit.
const lenientVariable = "GRIDNODE_SLURM_LENIENT"

// sbatch submits a script as Slurm's sbatch does.
func sbatch(cmd *cobra.Command, root *options, args []string) error {
	given, rest, err := slurm.Batch().Parse(args)
	if err != nil {
		return err
	}
	s, flags := newBatch(cmd)
	s.batch = true
	script, lines, err := batchScript(cmd, given, rest)
	if err != nil {
		return err
	}
	for _, g := range given {
		lines = append(lines, slurm.Line{Given: g})
	}
	r, err := s.take(flags, script.path, lines)
	if err != nil {
		return err
	}
	if !flags.Flags().Changed("stdout") {
		s.terms.stdout = "slurm-%j.out"
		if s.array != "" {
			s.terms.stdout = "slurm-%A_%a.out"
		}
	}
	line, err := script.command(rest[min(len(rest), 1):])
	if err != nil {
		return err
	}
	if r.Wrap != "" {
		script.path = "wrap"
	}
	named := s.site
	if err := s.chooseCluster(flags, root, line, script.name()); err != nil {
		return err
	}
	switch {
	case s.parsable && named != "":
		s.suffix = ";" + s.site
	case !s.parsable:
		s.prefix = "Submitted batch job "
		if named != "" {
			s.suffix = " on cluster " + s.site
		}
	}
	if r.Test {
		return s.test(flags, root, line, script.name())
	}
	return s.send(flags, root, line, script.name())
}

// chooseCluster has a job for which several sites are named run at the one where it would be
// done first.
func (s *submission) chooseCluster(flags *cobra.Command, root *options, line []string, name string) error {
	names := strings.Split(s.site, ",")
	if strings.EqualFold(s.site, "all") {
		s.site = ""
	}
	if len(names) < 2 {
		return nil
	}
	s.site = ""
	spec, err := s.spec(line, name, time.Now())
	if err != nil {
		return err
	}
	reply, err := root.client().Preview(flags.Context(), spec)
	if err != nil {
		return apiError(err)
	}
	first := api.Instant(math.MaxInt64)
	for _, v := range reply.Verdicts {
		if slices.Contains(names, v.SiteName) && v.Finish != 0 && v.Finish < first {
			s.site, first = v.SiteName, v.Finish
		}
	}
	if s.site == "" {
		return fmt.Errorf("no site of %s would have this job%s", strings.Join(names, ", "), bestOf(reply))
	}
	return nil
}

// newBatch returns a submission with sbatch's defaults, and a command that has its flags.
func newBatch(cmd *cobra.Command) (*submission, *cobra.Command) {
	s := &submission{numbers: true}
	flags := &cobra.Command{Use: "sbatch"}
	s.flags(flags)
	s.export, s.numbers, s.ttl = "ALL", true, math.MinInt64
	flags.SetContext(cmd.Context())
	flags.SetIn(cmd.InOrStdin())
	flags.SetOut(cmd.OutOrStdout())
	flags.SetErr(cmd.ErrOrStderr())
	return s, flags
}

// dependent is a job, or a word, in the value of --dependency.
var dependent = regexp.MustCompile(`[^:,?]+`)

// take sets the flags that options of Slurm mean.
func (s *submission) take(flags *cobra.Command, path string, lines []slurm.Line) (*slurm.Request, error) {
	r := slurm.Translate(lines, func(l slurm.Line) string {
		if l.Number == 0 {
			return ""
		}
		return fmt.Sprintf("%s:%d: ", path, l.Number)
	})
	warn := flags.ErrOrStderr()
	if slices.ContainsFunc(lines, func(l slurm.Line) bool { return l.Name == "quiet" || l.Name == "parsable" }) {
		warn = io.Discard
	}
	lenient := os.Getenv(lenientVariable) != "" && os.Getenv(lenientVariable) != "0"
	for i := range r.Flags {
		if f := &r.Flags[i]; f.Name == "dependency" {
			f.Value = dependent.ReplaceAllStringFunc(f.Value, jobHere)
		}
	}
	err := setSlurm(r, flags.Flags(), nil, lenient, lenientVariable+"=1", warn)
	if host, e := os.Hostname(); e == nil {
		s.env = append(s.env, "SLURM_SUBMIT_HOST="+host)
	}
	return r, err
}

// batchScript returns the script of a command line: a file, standard input, or --wrap.
func batchScript(cmd *cobra.Command, given []slurm.Given, rest []string) (*script, []slurm.Line, error) {
	for _, g := range given {
		if g.Name == "wrap" {
			if len(rest) > 0 {
				return nil, nil, errors.New("script arguments not permitted with --wrap option")
			}
			text := "#!/bin/sh\n# This script was made by sbatch --wrap.\n\n" + g.Value + "\n"
			return &script{path: "wrap", interpreter: []string{"/bin/sh"}, text: text}, nil, nil
		}
	}
	path := "-"
	if len(rest) > 0 {
		path = rest[0]
	}
	s, err := readScript(path, cmd.InOrStdin())
	if err != nil {
		return nil, nil, fmt.Errorf("unable to open file %s: %w", path, err)
	}
	return s, slurm.Script(s.text, splitWords), nil
}

// test says when a job could start, and submits nothing.
func (s *submission) test(cmd *cobra.Command, root *options, line []string, name string) error {
	spec, err := s.spec(line, name, time.Now())
	if err != nil {
		return err
	}
	client := root.client()
	if err := s.choosePartition(cmd, client, &spec); err != nil {
		return err
	}
	reply, err := client.Preview(cmd.Context(), spec)
	if err != nil {
		return apiError(err)
	}
	at, where := time.Now(), "this site"
	for i := range reply.Verdicts {
		if v := &reply.Verdicts[i]; v.Outcome == "chosen" {
			where = v.SiteName
			if v.Finish != 0 {
				at = v.Finish.Time().Add(-grid.Time(reply.Job.Time).Duration())
			}
		}
	}
	if !reply.Feasible && len(reply.Verdicts) > 0 {
		return fmt.Errorf("allocation failure: no site would have this job%s", bestOf(reply))
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "sbatch: Job 0 to start at %s using %d processors on nodes %s in partition %s\n",
		slurm.Instant(api.InstantOf(at), "now"), s.tasks*s.cpus, where, where)
	return nil
}
