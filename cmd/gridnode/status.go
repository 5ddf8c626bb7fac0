package main

import (
	"errors"
	"fmt"
	"net/url"
	"os/user"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gridnode/node/api"
)

// jobFilter is the flags of status that choose and order jobs.
type jobFilter struct {
	states, user, site, name, sort string
	me, all, watch                 bool
	listing                        listing
}

func newStatus(root *options) *cobra.Command {
	var f jobFilter
	cmd := &cobra.Command{
		Use:     "status [JOB...]",
		Aliases: []string{"queue"},
		Short:   "List jobs, wherever they run",
		Long: `List the jobs of this site, wherever they run, and other sites' jobs that run here:
those that are not over and those that ended within the last hour, or with --all all
that are still kept. With JOB, a full ID or a unique prefix, only those; of these it is
said, too, if only the first part of what they have written is kept, or some is lost.

States: placing (a site is being looked for), queued (here), awarded (accepted by
another site), running, cancelling, done (exit code 0), failed, cancelled, refused,
returned (another site's, given back to it after losses).`,
		Example: `  gridnode status
  gridnode status -t running,queued --site physics
  gridnode status --all --sort -cost -o csv
  gridnode status --watch
  gridnode status 7q3k -o json`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, root, args) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.states, "states", "t", "", "only these `STATES`, separated by commas; Slurm's PD, R, CD, F, CA will do; all: whatever is kept")
	flags.StringVarP(&f.user, "user", "u", "", "only jobs of this `USER`")
	flags.BoolVar(&f.me, "me", false, "only my jobs")
	flags.StringVar(&f.site, "site", "", "only jobs at this `SITE` (name or ID)")
	flags.StringVarP(&f.name, "name", "n", "", "only jobs of this `NAME`, or of the array of this name")
	flags.BoolVar(&f.all, "all", false, "all jobs that are kept, however long they have been over")
	flags.StringVarP(&f.sort, "sort", "S", sortDefault, "order by `KEY`: "+strings.Join(api.JobOrders(), ", ")+"; a dash before it reverses it")
	flags.BoolVar(&f.watch, "watch", false, "go on with a line for every change, until interrupted")
	addListingFlags(cmd, &f.listing)
	_ = cmd.RegisterFlagCompletionFunc("states", cobra.FixedCompletions(jobStates, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *jobFilter) run(cmd *cobra.Command, root *options, args []string) error {
	query, err := f.query(args)
	if err != nil {
		return err
	}
	if _, err := api.ParseJobOrder(f.sort); err != nil {
		return usagef("--sort: %w%s", err, didYouMean("", strings.TrimPrefix(f.sort, "-"), api.JobOrders()))
	}
	if query.Set("sort", f.sort); f.sort == sortDefault {
		query.Del("sort")
	}
	client := root.client()
	if f.watch {
		query.Del("sort")
		return f.follow(cmd, client, query)
	}
	sayWhoseJobs(cmd, client)
	rows := newRoll(cmd.OutOrStdout(), f.listing, jobColumns)
	trouble, err := api.ListJobs(cmd.Context(), client, query, func(j *api.Job) error { return rows.print(*j) })
	if err := errors.Join(apiError(err), rows.close(err == nil)); err != nil {
		return err
	}
	if trouble != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "gridnode: the cluster of this site does not answer, so what is listed may be old: %s\n", trouble)
	}
	return nil
}

// sortDefault is the order of listings of jobs unless another is asked for.
const sortDefault = "submitted"

// sayWhoseJobs tells somebody whose jobs would not run here that they would not.
func sayWhoseJobs(cmd *cobra.Command, client *api.Client) {
	info, err := client.Node(cmd.Context())
	if err == nil && info.Runs == "own" && info.Caller != info.Account {
		fmt.Fprintf(cmd.ErrOrStderr(), "this site runs jobs of account %s only, as its daemon is not root\n", cellText(info.Account))
	}
}

// follow prints the jobs as they are and a line for every change, until interrupted.
func (f *jobFilter) follow(cmd *cobra.Command, client *api.Client, query url.Values) error {
	rows := growing[api.Job]{listing: f.listing, columns: jobColumns}
	err := client.Watch(cmd.Context(), query, func(j api.Job) error { return rows.print(cmd.OutOrStdout(), j) })
	return apiError(err)
}

// query turns the flags into the parameters of GET /v1/jobs.
func (f *jobFilter) query(ids []string) (url.Values, error) {
	query := url.Values{"id": ids}
	if f.states == "all" {
		f.states, f.all = "", true
	}
	if f.states != "" {
		for name := range strings.SplitSeq(f.states, ",") {
			states, err := parseState(name)
			if err != nil {
				return nil, usagef("--states: %w", err)
			}
			query["state"] = append(query["state"], states...)
		}
	}
	if f.me {
		me, err := user.Current()
		switch {
		case err != nil:
			return nil, fmt.Errorf("--me: %w", err)
		case f.user != "" && f.user != me.Username:
			return nil, usagef("--me and --user %s exclude each other", f.user)
		}
		f.user = me.Username
	}
	for _, p := range []struct{ key, value string }{{"user", f.user}, {"site", f.site}, {"name", f.name}} {
		if p.value != "" {
			query.Set(p.key, p.value)
		}
	}
	if f.all {
		query.Set("all", "true")
	}
	return query, nil
}

// slurmStates are the states that Slurm's short names stand for.
var slurmStates = map[string][]string{
	"PD": {"waiting", "placing", "queued", "awarded"}, "R": {"running"}, "CG": {"cancelling"},
	"CD": {"done"}, "F": {"failed"}, "CA": {"cancelled", "cancelling"},
}

// parseState reads the name of a state, in either case, or Slurm's short name.
func parseState(name string) ([]string, error) {
	if states, ok := slurmStates[strings.ToUpper(name)]; ok {
		return states, nil
	}
	lower := strings.ToLower(name)
	if !slices.Contains(jobStates, lower) {
		return nil, fmt.Errorf("no state is called %q: want %s", name, strings.Join(jobStates, ", "))
	}
	return []string{lower}, nil
}
