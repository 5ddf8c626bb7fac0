package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gridnode/cmd/gridnode/slurm"
	"gridnode/node/api"
)

var accountOptions = append(slurm.Options{
	{Long: "parsable2", Short: 'P'}, {Long: "parsable", Short: 'p'}, {Long: "noheader", Short: 'n'}, {Long: "delimiter", Value: slurm.Required},
	{Long: "format", Short: 'o', Value: slurm.Required}, {Long: "brief", Short: 'b'}, {Long: "helpformat", Short: 'e'},
	{Long: "jobs", Short: 'j', Value: slurm.Required}, {Long: "allocations", Short: 'X'}, {Long: "starttime", Short: 'S', Value: slurm.Required},
	{Long: "endtime", Short: 'E', Value: slurm.Required}, {Long: "user", Short: 'u', Value: slurm.Required}, {Long: "state", Short: 's', Value: slurm.Required},
	{Long: "name", Value: slurm.Required}, {Long: "partition", Short: 'r', Value: slurm.Required}, {Long: "uid", Value: slurm.Required},
	{Long: "cluster", Short: 'M', Value: slurm.Required}, {Long: "clusters", Value: slurm.Required}, {Long: "accounts", Short: 'A', Value: slurm.Required},
	{Long: "qos", Short: 'q', Value: slurm.Required}, {Long: "units", Value: slurm.Required}, {Long: "noconvert"},
}, ignored("aLlDT v", "allusers", "allclusters", "long", "duplicates", "truncate", "array", "verbose")...)

// accounting is the options of sacct.
type accounting struct {
	chosen
	format             *slurm.Account
	head, steps        bool
	since, until       time.Time
	between            string
	parsable, trailing bool
}

// sacct lists jobs, also those that are over, as long as they are kept.
func sacct(cmd *cobra.Command, root *options, args []string) error {
	given, rest, err := accountOptions.All(args)
	if err != nil || len(rest) > 0 {
		return orUnexpected(err, rest)
	}
	now := time.Now()
	a := accounting{head: true, steps: true, between: "|"}
	a.format, _ = slurm.ParseAccount(slurm.AccountFormat)
	for _, g := range given {
		if g.Name == "helpformat" {
			fmt.Fprintln(cmd.OutOrStdout(), strings.Join(slurm.AccountFields(), " "))
			return nil
		}
		if err := a.option(g, now); err != nil {
			return err
		}
	}
	if a.since.IsZero() && len(a.jobs) == 0 {
		a.since = time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.Local)
	}
	if a.parsable {
		a.format.Between, a.format.Closed = a.between, a.trailing
	}
	jobs, err := a.list(cmd, root)
	if err != nil && exitCode(apiError(err)) != exitNotFound { // sacct knows nothing of some jobs, and says nothing
		return err
	}
	a.print(cmd, jobs, now)
	return nil
}

func (a *accounting) option(g slurm.Given, now time.Time) (err error) {
	switch g.Name {
	case "parsable2":
		a.parsable = true
	case "parsable":
		a.parsable, a.trailing = true, true
	case "delimiter":
		a.between = g.Value
	case "noheader":
		a.head = false
	case "allocations":
		a.steps = false
	case "format":
		a.format, err = slurm.ParseAccount(g.Value)
	case "brief":
		a.format, err = slurm.ParseAccount(slurm.BriefFormat)
	case "starttime":
		a.since, err = parsePast(g.Value, now)
	case "endtime":
		a.until, err = parsePast(g.Value, now)
	default:
		a.take(g)
	}
	return err
}

func (a *accounting) print(cmd *cobra.Command, jobs []api.Job, now time.Time) {
	if a.head {
		for _, line := range a.format.Head() {
			fmt.Fprintln(cmd.OutOrStdout(), line)
		}
	}
	for i := range jobs {
		j := &jobs[i]
		if !a.since.IsZero() && j.End != 0 && j.End.Time().Before(a.since) || !a.until.IsZero() && j.Submitted.Time().After(a.until) {
			continue
		}
		fmt.Fprintln(cmd.OutOrStdout(), a.format.Line(j, "", now))
		if a.steps && j.Start != 0 && j.Start != j.End {
			fmt.Fprintln(cmd.OutOrStdout(), a.format.Line(j, "batch", now))
		}
	}
}

// parsePast reads an instant as sacct does: as parseBegin, and now-2hours.
func parsePast(s string, now time.Time) (time.Time, error) {
	if rest, before := strings.CutPrefix(s, "now-"); before {
		at, err := parseBegin("now+"+rest, now)
		return now.Add(-at.Sub(now)), err
	}
	at, err := parseBegin(s, now)
	if err == nil && at.After(now) && !strings.ContainsAny(s, "-+") { // a time of day: today's, or yesterday's
		at = at.AddDate(0, 0, -1)
	}
	return at, err
}
