package main

import (
	"cmp"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"gridnode/grid"
	"gridnode/node/api"
)

var historyColumns = []column[api.HistoryLine]{
	{head: "ID", text: func(l api.HistoryLine) string { return shortLine(&l) }, full: func(l api.HistoryLine) string { return l.ID }},
	{head: "SEQ", wide: true, text: func(l api.HistoryLine) string { return strconv.FormatUint(l.Seq, 10) }},
	{head: "END", text: func(l api.HistoryLine) string { return formatInstant(l.End) }},
	{head: "ORIGIN", text: func(l api.HistoryLine) string { return l.Origin }},
	{head: "KIND", wide: true, text: func(l api.HistoryLine) string { return l.Kind }},
	{head: "USER", text: func(l api.HistoryLine) string { return l.User }},
	{head: "NAME", wide: true, text: func(l api.HistoryLine) string { return l.Name }},
	{head: "HOME", text: func(l api.HistoryLine) string { return cmp.Or(l.HomeName, l.Home) }},
	{head: "HOME-ID", wide: true, text: func(l api.HistoryLine) string { return l.Home }},
	{head: "SITE", text: func(l api.HistoryLine) string { return siteOfLine(&l) }},
	{head: "SITE-ID", wide: true, text: func(l api.HistoryLine) string { return l.Site }},
	{head: "ORG", wide: true, text: func(l api.HistoryLine) string { return l.Organisation }},
	{head: "CPUS", text: func(l api.HistoryLine) string { return strconv.FormatInt(l.Processors, 10) }},
	{head: "GPUS", wide: true, text: func(l api.HistoryLine) string { return strconv.FormatInt(l.GPUs, 10) }},
	{head: "SUBMITTED", wide: true, text: func(l api.HistoryLine) string { return formatInstant(l.Submitted) }},
	{head: "START", wide: true, text: func(l api.HistoryLine) string { return formatInstant(l.Start) }},
	{head: "CPU-TIME", text: func(l api.HistoryLine) string { return formatSpan(grid.Time(l.Used)) },
		full: func(l api.HistoryLine) string { return strconv.FormatFloat(grid.Time(l.Used).Seconds(), 'f', -1, 64) }},
	{head: "PRICE", wide: true, text: func(l api.HistoryLine) string { return l.Price.String() }},
	{head: "COST", text: func(l api.HistoryLine) string { return l.Cost.String() }},
	{head: "BANK", wide: true, text: func(l api.HistoryLine) string { return cmp.Or(l.BankName, l.Bank) }},
	{head: "BANK-ID", wide: true, text: func(l api.HistoryLine) string { return l.Bank }},
	{head: "STATE", text: func(l api.HistoryLine) string { return l.State }},
	{head: "EXIT", text: func(l api.HistoryLine) string { return strconv.FormatInt(int64(l.ExitCode), 10) }},
	{head: "REASON", text: func(l api.HistoryLine) string { return l.Reason }},
}

func shortLine(l *api.HistoryLine) string {
	if l.Kind == "job" {
		return shortID(l.ID)
	}
	return l.ID
}

func siteOfLine(l *api.HistoryLine) string {
	if len(l.Sites) > 0 {
		return strconv.Itoa(len(l.Sites)) + " parts"
	}
	return cmp.Or(l.SiteName, l.Site)
}

// historyAsked is the flags of history.
type historyAsked struct {
	own, foreign, leases bool
	since, until         string
	site, org, user, job string
	last                 int
}

func newHistory(root *options) *cobra.Command {
	var l listing
	var asked historyAsked
	cmd := &cobra.Command{
		Use:   "history",
		Short: "List what has ended: the job log, for accounting",
		Long: `List the job log of this site, oldest first: a line for each job that has ended, of this
site wherever it ran and of other sites here, and for each lease that was lent; with the
processor time it took, what it cost, and why it ended. The log is in files of the home,
as large and as many as history.size and history.files say, so it goes back further than
'gridnode status' does. --since and --until take a time (2006-01-02T15:04), or how long
ago (12h, 7d).`,
		Example: `  gridnode history --since 1d
  gridnode history --foreign --org 'Institute of Physics' --since 30d --until 1d -o csv
  gridnode history --job 7q3k -o json`,
		Args: exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			query, err := asked.query(time.Now())
			if err != nil {
				return err
			}
			lines := []api.HistoryLine{}
			err = root.client().History(cmd.Context(), query, func(line api.HistoryLine) error {
				lines = append(lines, line)
				if n := asked.last; n > 0 && len(lines) >= 2*n {
					lines = append(lines[:0], lines[len(lines)-n:]...)
				}
				return nil
			})
			if err != nil {
				return apiError(err)
			}
			if n := asked.last; n > 0 && len(lines) > n {
				lines = lines[len(lines)-n:]
			}
			return printList(cmd.OutOrStdout(), l, historyColumns, lines)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&asked.own, "own", false, "jobs of this site only")
	f.BoolVar(&asked.foreign, "foreign", false, "what other sites had here only")
	f.BoolVar(&asked.leases, "leases", false, "leases only")
	f.StringVar(&asked.since, "since", "", "what ended at or after this time, or so long ago at most")
	f.StringVar(&asked.until, "until", "", "what ended before this time, or so long ago at least")
	f.StringVar(&asked.site, "site", "", "what had to do with another site: its name or ID")
	f.StringVar(&asked.org, "org", "", "the same of the sites of an organisation, by their certificates")
	f.StringVarP(&asked.user, "user", "u", "", "jobs of a user")
	f.StringVarP(&asked.job, "job", "j", "", "a job: its ID or the beginning, number or name")
	f.IntVar(&asked.last, "last", 0, "only so many, the latest; 0: all")
	addListingFlags(cmd, &l)
	return cmd
}

// query turns flags into parameters of the API.
func (a *historyAsked) query(now time.Time) (url.Values, error) {
	q := url.Values{}
	set := func(key, value string) {
		if value != "" {
			q.Set(key, value)
		}
	}
	switch {
	case a.own && (a.foreign || a.leases):
		return nil, usagef("--own excludes --foreign and --leases")
	case a.last < 0:
		return nil, usagef("--last: %d: want 0 or more", a.last)
	case a.own:
		set("origin", "own")
	case a.foreign:
		set("origin", "foreign")
	}
	if a.leases {
		set("kind", "lease")
	}
	for name, text := range map[string]string{"since": a.since, "until": a.until} {
		if text == "" {
			continue
		}
		at, err := instantOrAgo(text, now)
		if err != nil {
			return nil, usagef("--%s: %v", name, err)
		}
		set(name, at.UTC().Format(time.RFC3339Nano))
	}
	set("site", a.site)
	set("org", a.org)
	set("user", a.user)
	set("job", a.job)
	return q, nil
}

// instantOrAgo reads a time, or how long ago it is.
func instantOrAgo(text string, now time.Time) (time.Time, error) {
	if span, ok := unitSpan(text); ok && span >= 0 {
		return now.Add(-span.Duration()), nil
	}
	return parsePast(text, now)
}
