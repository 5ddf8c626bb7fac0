package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"gridnode/cmd/gridnode/slurm"
	"gridnode/node/api"
)

var cancelOptions = append(slurm.Options{
	{Long: "signal", Short: 's', Value: slurm.Required}, {Long: "name", Short: 'n', Value: slurm.Required}, {Long: "jobname", Value: slurm.Required},
	{Long: "user", Short: 'u', Value: slurm.Required}, {Long: "me"}, {Long: "state", Short: 't', Value: slurm.Required},
	{Long: "partition", Short: 'p', Value: slurm.Required}, {Long: "clusters", Short: 'M', Value: slurm.Required},
	{Long: "account", Short: 'A', Value: slurm.Required}, {Long: "qos", Short: 'q', Value: slurm.Required}, {Long: "nodelist", Short: 'w', Value: slurm.Required},
	{Long: "reservation", Short: 'R', Value: slurm.Required}, {Long: "wckey", Value: slurm.Required}, {Long: "interactive", Short: 'i'},
}, ignored("QvbfH   ", "quiet", "verbose", "batch", "full", "hurry", "ctld", "sibling", "cron")...)

// scancel ends jobs. Those that are over are left alone without a word, as in Slurm.
func scancel(cmd *cobra.Command, root *options, args []string) error {
	given, rest, err := cancelOptions.All(args)
	if err != nil {
		return err
	}
	var c chosen
	restricted := false
	for _, g := range given {
		switch g.Name {
		case "signal":
			if s := strings.TrimPrefix(strings.ToUpper(g.Value), "SIG"); s != "TERM" && s != "KILL" && s != "INT" && s != "9" && s != "15" && s != "2" {
				return fmt.Errorf("--signal=%s: a running job can be ended (TERM, KILL, INT), and no other signal be sent: see --signal of sbatch", g.Value)
			}
		case "jobname":
			g.Name = "name"
			restricted = c.take(g)
		case "interactive":
			return errors.New("--interactive: gridnode asks nobody: list the jobs with squeue first")
		case "account", "qos": // every job here has those that squeue shows
			c.none = c.none || g.Value != map[string]string{"account": "", "qos": "normal"}[g.Name]
			restricted = true
		default:
			restricted = c.take(g) || restricted
		}
	}
	for _, word := range rest {
		c.jobs = append(c.jobs, splitJobs(word)...)
	}
	if len(c.jobs) == 0 && !restricted {
		return errors.New("no job identification provided")
	}
	client := root.client()
	all := c
	all.jobs = nil
	var failed []error
	for _, id := range append(c.jobs, "") {
		if id == "" && len(c.jobs) > 0 {
			break
		}
		one := all
		if id != "" {
			one.jobs = []string{id}
		}
		jobs, err := one.list(cmd, root)
		if err != nil {
			failed = append(failed, fmt.Errorf("kill job error on job id %s: %w", id, unknownID(err)))
			continue
		}
		var ids []string
		for i := range jobs {
			if !slurm.StateOf(&jobs[i]).Over() {
				ids = append(ids, jobs[i].ID)
			}
		}
		if len(ids) > 0 {
			_, err := client.Cancel(cmd.Context(), api.IDsRequest{IDs: ids})
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
