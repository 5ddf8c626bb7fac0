package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gridnode/cmd/gridnode/slurm"
	"gridnode/node/api"
)

var controlOptions = append(slurm.Options{
	{Long: "oneliner", Short: 'o'}, {Long: "clusters", Short: 'M', Value: slurm.Required}, {Long: "cluster", Value: slurm.Required},
}, ignored("adhQvF    ", "all", "details", "hide", "quiet", "verbose", "future", "local", "federation", "sibling")...)

// scontrol shows, holds, releases and requeues jobs, and takes lists of hosts apart.
func scontrol(cmd *cobra.Command, root *options, args []string) error {
	given, args, err := controlOptions.All(args)
	if err != nil {
		return err
	}
	var c chosen
	one := false
	for _, g := range given {
		one = one || g.Name == "oneliner"
		c.take(g)
	}
	if len(args) < 2 {
		args = append(args, "", "")
	}
	switch verb, what := args[0], strings.ToLower(args[1]); {
	case slices.Contains([]string{"hold", "uhold", "release", "requeue"}, verb) && what != "":
		var ids []string
		for _, a := range args[1:] {
			ids = append(ids, splitJobs(a)...)
		}
		_, err := root.client().Change(cmd.Context(), strings.TrimPrefix(verb, "u"), api.IDsRequest{IDs: ids})
		return unknownID(err)
	case verb == "show" && strings.HasPrefix("hostnames", what) && len(what) > 4:
		list := os.Getenv("SLURM_JOB_NODELIST")
		if len(args) > 2 {
			list = args[2]
		}
		names, err := slurm.Hosts(list)
		for _, name := range names {
			fmt.Fprintln(cmd.OutOrStdout(), name)
		}
		return err
	case verb == "show" && strings.HasPrefix("jobs", what) && what != "":
		for _, a := range args[2:] {
			c.jobs = append(c.jobs, splitJobs(a)...)
		}
		jobs, err := c.list(cmd, root)
		if err != nil {
			return unknownID(err)
		}
		for i := range jobs {
			fmt.Fprintln(cmd.OutOrStdout(), slurm.Record(&jobs[i], one, time.Now()))
		}
		return nil
	}
	return errors.New("gridnode knows show job [JOB], show hostnames LIST, hold, release and requeue JOB")
}
