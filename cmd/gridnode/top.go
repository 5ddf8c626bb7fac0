//go:build !client

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"gridnode/node/api"
)

// Bounds of how often top looks, and how long it waits for an answer.
const (
	topDelayMin = 500 * time.Millisecond
	topDelayMax = time.Hour
	topPatience = 10 * time.Second
)

func newTop(root *options) *cobra.Command {
	var l listing
	var rounds int
	delay := "2s"
	me := false
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show sites and jobs in a table that keeps up to date",
		Long: `Show the sites of the federation and the jobs of this site in a table that keeps up to
date: jobs that run first, then those that wait, then those that ended within the last
hour. Arrows and Page Up and Down move through the jobs, o leaves out those that are over,
r looks at once, q ends.

With -n 1, or where the output is no terminal, the table is printed once.`,
		Example: `  gridnode top
  gridnode top --me -d 5s
  gridnode top -n 1
  gridnode top -o json | jq '.jobs | length'`,
		Args: exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			span, err := parseSpan(delay)
			every := span.Duration()
			switch {
			case err != nil:
				return usagef("--delay: %w", err)
			case every < topDelayMin || every > topDelayMax:
				return usagef("--delay: %s: want %v to %v", delay, topDelayMin, topDelayMax)
			case rounds < 0:
				return usagef("--rounds: %d: want 1 or more", rounds)
			}
			filter := jobFilter{me: me}
			query, err := filter.query(nil)
			if err != nil {
				return err
			}
			take := func() (*overview, error) { return takeOverview(cmd.Context(), root.client(), query) }
			file, yes := cmd.OutOrStdout().(*os.File)
			if yes && rounds != 1 && l.format == formatTable && term.IsTerminal(int(file.Fd())) {
				return showTop(cmd, &topScreen{take: take, every: every, rounds: rounds})
			}
			return printTop(cmd, l, take, every, max(rounds, 1))
		},
	}
	addListingFlags(cmd, &l, formatTable, formatJSON)
	cmd.Flags().IntVarP(&rounds, "rounds", "n", 0, "end after looking `COUNT` times (default: on a terminal at q, else 1)")
	cmd.Flags().Lookup("rounds").DefValue = "0" // the help says it
	cmd.Flags().StringVarP(&delay, "delay", "d", delay, "look again after this `SPAN`")
	cmd.Flags().BoolVar(&me, "me", false, "only my jobs")
	return cmd
}

// overview is how it stands with sites and jobs at one moment.
type overview struct {
	At      api.Instant    `json:"at"`
	Site    string         `json:"site"` // name of the one that was asked
	Sites   []api.SiteInfo `json:"sites"`
	Certain bool           `json:"certain"` // no site is missing, as far as is known
	Jobs    []api.Job      `json:"jobs"`    // that run, that wait, that are over; each by age, the youngest first
	Trouble string         `json:"trouble,omitempty"`
}

// takeOverview asks the daemon.
func takeOverview(ctx context.Context, client *api.Client, query url.Values) (*overview, error) {
	ctx, cancel := context.WithTimeout(ctx, topPatience)
	defer cancel()
	node, err := client.Node(ctx)
	if err != nil {
		return nil, apiError(err)
	}
	sites, err := client.Sites(ctx)
	if err != nil {
		return nil, apiError(err)
	}
	jobs, err := client.Jobs(ctx, query)
	if err != nil {
		return nil, apiError(err)
	}
	o := &overview{At: api.InstantOf(time.Now()), Site: node.Name, Sites: sites.Sites, Certain: sites.Certain, Jobs: jobs.Jobs, Trouble: jobs.Trouble}
	o.sort()
	return o, nil
}

func (o *overview) sort() {
	slices.SortFunc(o.Sites, func(a, b api.SiteInfo) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(o.Jobs, func(a, b api.Job) int {
		return cmp.Or(cmp.Compare(stage(&a), stage(&b)), cmp.Compare(b.End, a.End), cmp.Compare(b.Submitted, a.Submitted), cmp.Compare(a.ID, b.ID))
	})
}

// stage returns 0 for a job that runs, 1 for one that waits, 2 for one that is over.
func stage(j *api.Job) int {
	switch {
	case j.Over():
		return 2
	case j.State == "running" || j.State == "cancelling":
		return 0
	}
	return 1
}

// topColumns are the columns of jobs in top: those that change.
func topColumns() []column[api.Job] {
	var some []column[api.Job]
	for _, head := range []string{"ID", "NAME", "USER", "STATE", "SITE", "CPUS", "ELAPSED", "COST", "REASON"} {
		i := slices.IndexFunc(jobColumns, func(c column[api.Job]) bool { return c.head == head })
		c := jobColumns[i]
		c.wide = false
		some = append(some, c)
	}
	return some
}

// headline says how it stands in one line.
func (o *overview) headline() string {
	var processors, free int64
	for i := range o.Sites {
		processors, free = processors+o.Sites[i].Processors, free+o.Sites[i].Free
	}
	var count [3]int
	for i := range o.Jobs {
		count[stage(&o.Jobs[i])]++
	}
	missing := ""
	if !o.Certain {
		missing = " (some may be missing)"
	}
	return fmt.Sprintf("%s  %s  %s%s, %d of %d processors free  jobs: %d run, %d wait, %d over",
		cellText(o.Site), o.At.Time().Local().Format(time.TimeOnly), plural(int64(len(o.Sites)), "site"), missing, free, processors, count[0], count[1], count[2])
}

// printTop prints how it stands, rounds times.
func printTop(cmd *cobra.Command, l listing, take func() (*overview, error), every time.Duration, rounds int) error {
	for i := range rounds {
		if i > 0 {
			select {
			case <-time.After(every):
			case <-cmd.Context().Done():
				return cmd.Context().Err()
			}
		}
		o, err := take()
		if err != nil {
			return err
		}
		if err := o.print(cmd.OutOrStdout(), l); err != nil {
			return err
		}
		if o.Trouble != "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "gridnode: %s\n", o.Trouble)
		}
	}
	return nil
}

func (o *overview) print(w io.Writer, l listing) error {
	if l.format == formatJSON {
		if o.Jobs == nil {
			o.Jobs = []api.Job{} // an empty list is [] and never null
		}
		return printJSON(w, o)
	}
	fmt.Fprintf(w, "%s\n\n", o.headline())
	if err := printList(w, l, siteColumns(o.At.Time(), o.Sites), o.Sites); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return printList(w, l, topColumns(), o.Jobs)
}
