package main

import (
	"cmp"
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
said, too, if only the first part of what they have written is kept.

States: placing (a site is being looked for), queued (here), awarded (accepted by
another site), running, cancelling, done (exit code 0), failed, cancelled, refused.`,
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
	flags.StringVarP(&f.sort, "sort", "S", "submitted", "order by `KEY`: "+strings.Join(sortKeyNames(), ", ")+"; a dash before it reverses it")
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
	less, err := sortKey(f.sort)
	if err != nil {
		return usagef("--sort: %w", err)
	}
	client := root.client()
	if f.watch {
		return f.follow(cmd, client, query)
	}
	reply, err := client.Jobs(cmd.Context(), query)
	if err != nil {
		return apiError(err)
	}
	if reply.Trouble != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "gridnode: the cluster of this site does not answer, so what is listed may be old: %s\n", reply.Trouble)
	}
	sayWhoseJobs(cmd, client)
	for i := range reply.Jobs {
		if j := &reply.Jobs[i]; len(j.Cut) > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "job %s:%s\n", shortID(j.ID), strings.TrimPrefix(cutText(j), ";"))
		}
	}
	slices.SortStableFunc(reply.Jobs, less)
	return printList(cmd.OutOrStdout(), f.listing, jobColumns, reply.Jobs)
}

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

// sortKeys are what listings of jobs can be ordered by.
var sortKeys = []struct {
	name string
	cmp  func(a, b *api.Job) int
}{
	{"submitted", func(a, b *api.Job) int { return cmp.Compare(a.Submitted, b.Submitted) }},
	{"id", func(a, b *api.Job) int { return cmp.Compare(a.ID, b.ID) }},
	{"name", func(a, b *api.Job) int { return cmp.Compare(a.Name, b.Name) }},
	{"user", func(a, b *api.Job) int { return cmp.Compare(a.User, b.User) }},
	{"state", func(a, b *api.Job) int { return cmp.Compare(a.State, b.State) }},
	{"site", func(a, b *api.Job) int { return cmp.Compare(siteOf(*a), siteOf(*b)) }},
	{"cpus", func(a, b *api.Job) int { return cmp.Compare(a.Processors, b.Processors) }},
	{"start", func(a, b *api.Job) int { return cmp.Compare(a.Start, b.Start) }},
	{"end", func(a, b *api.Job) int { return cmp.Compare(a.End, b.End) }},
	{"late", func(a, b *api.Job) int { return cmp.Compare(a.Late, b.Late) }},
	{"cost", func(a, b *api.Job) int { return cmp.Compare(a.Cost, b.Cost) }},
}

func sortKeyNames() []string {
	names := make([]string, len(sortKeys))
	for i := range sortKeys {
		names[i] = sortKeys[i].name
	}
	return names
}

// sortKey returns the order called name; ties are in the order of IDs.
func sortKey(name string) (func(a, b api.Job) int, error) {
	sign := 1
	if rest, reversed := strings.CutPrefix(name, "-"); reversed {
		sign, name = -1, rest
	}
	for i := range sortKeys {
		if sortKeys[i].name == name {
			return func(a, b api.Job) int {
				return cmp.Or(sign*sortKeys[i].cmp(&a, &b), cmp.Compare(a.ID, b.ID))
			}, nil
		}
	}
	return nil, errors.New(name + " is no order: want " + strings.Join(sortKeyNames(), ", ") + didYouMean("", name, sortKeyNames()))
}
