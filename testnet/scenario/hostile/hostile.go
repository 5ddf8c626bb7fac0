package hostile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"gridnode/grid"
	"gridnode/testnet"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/federation"
)

// Config is the scenario "hostile".
type Config struct {
	scenario.Common

	Sites int     `json:"sites"` // 10 to 500
	Hours float64 `json:"hours"` // how long jobs are submitted and lies are told; more than 0, at most 1000
	Share float64 `json:"share"` // of the members that are hostile, 0 to 0.5

	// Revoke is how many of these have their certificates taken back halfway. They submit no jobs.
	Revoke int `json:"revoke"`
}

// Default is what the command line starts from.
func Default() Config {
	return Config{Common: scenario.Common{Seed: 1}, Sites: 40, Hours: 0.5, Share: 0.2, Revoke: 2}
}

// FoundLeast is which share of the live quotes honest sites must find, in percent.
const FoundLeast = 99

// patience is how long after the last lie every job must have ended.
const patience = 14 * grid.Day

// Report is the configuration as a result shows it, with what was measured.
type Report struct {
	Config
	Hostile int            `json:"hostile"` // members
	Lies    map[string]int `json:"lies"`    // members by what they do as holders

	Questions int64 `json:"questions"` // that honest sites have asked the directory
	Live      int64 `json:"live"`      // quotes of honest sites that were to be found, over all questions
	Found     int64 `json:"found"`     // of them
	Gone      int64 `json:"gone"`      // microseconds after a revocation in which some answer had a quote of the member; at most a minute
	Stale     int64 `json:"stale"`     // in answers, with a price of long ago

	Forged   map[string]Forgeries `json:"forged"`   // by what was forged
	Sent     int64                `json:"sent"`     // forged messages
	Refused  int64                `json:"refused"`  // of them, by the decoders of honest sites
	Accepted int64                `json:"accepted"` // times that one had an effect, which ends a run with an error

	Checked  int64 `json:"eventsChecked"`
	Paid     int64 `json:"paid"` // micro-credits that banks have moved for jobs
	Jobs     int64 `json:"paidJobs"`
	Losses   int64 `json:"losses"`   // times that money was lost, which ends a run with an error
	Unsigned int64 `json:"unsigned"` // bills of hostile homes, which have not signed them
	Denied   int64 `json:"denied"`   // requests that banks have refused
}

// Forgeries counts messages of one sort.
type Forgeries struct {
	Sent    int64 `json:"sent"`
	Refused int64 `json:"refused"` // by decoders; the others were heard, and changed nothing
}

// Run runs the scenario. A forged message that has an effect, money that is lost, and too few
// quotes found are errors.
func Run(ctx context.Context, cfg Config) (*measure.Result, error) {
	switch {
	case cfg.Sites < 10 || cfg.Sites > 500:
		return nil, scenario.ConfigError("sites", "%d: want 10 to 500", cfg.Sites)
	case !(cfg.Hours > 0 && cfg.Hours <= 1000):
		return nil, scenario.ConfigError("hours", "%v: want more than 0 and at most 1000", cfg.Hours)
	case !(cfg.Share >= 0 && cfg.Share <= 0.5):
		return nil, scenario.ConfigError("share", "%v: want 0 to 0.5", cfg.Share)
	}
	t, err := newTown(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.Revoke < 0 || cfg.Revoke > len(t.liars) && len(t.liars) > 0 {
		return nil, scenario.ConfigError("revoke", "%d: want 0 to %d, which are hostile", cfg.Revoke, len(t.liars))
	}
	var watch *testnet.Checker
	t.Builder.Check = func(now grid.Time) error { return watch.Violation(now) }
	n, err := t.Build()
	if err != nil {
		return nil, err
	}
	t.n = n
	watch = testnet.Check(n, t.Processors(), scenario.Submission)
	t.watch = watch
	found, effects, money := takeCensus(t), watchEffects(t), watchMoney(t)
	t.revoke()
	for at := range t.forgers {
		t.forgers[at].begin(at)
	}
	jobs, err := t.feed()
	if err != nil {
		return nil, err
	}
	n.Feed(jobs)
	report := &Report{Config: cfg, Hostile: len(t.liars), Lies: make(map[string]int), Forged: t.forged}
	for _, l := range t.liars {
		report.Lies[l]++
	}
	r := scenario.Run{
		Common: cfg.Common, Scenario: "hostile", Config: report, Network: n, Sites: t.Described(),
		Begin: federation.Warmup, Window: grid.Never, Read: func() int64 { return jobs.Read },
		Least: t.end(), Most: t.end() + patience,
		Quiet:  money.quiet,
		AtRest: func() error { return errors.Join(watch.AtRest(), effects.atRest(), money.atRest(), found.enough()) },
		Inspect: func(*measure.Result) {
			report.Questions, report.Live, report.Found, report.Stale = found.questions, found.live, found.found, found.stale
			report.Gone = int64(found.gone)
			for _, f := range t.forged {
				report.Sent += f.Sent
				report.Refused += f.Refused
			}
			report.Checked, report.Paid, report.Jobs, report.Denied = n.Events(), int64(money.moved), money.count, money.refused()
			report.Accepted, report.Losses, report.Unsigned = t.effects, money.losses, money.unsigned()
		},
	}
	result, err := r.Do(ctx)
	if result != nil {
		result.Table = report.table
	}
	return result, err
}

// table prints what was measured.
func (r *Report) table(w io.Writer, result *measure.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d members, %d of them hostile; as holders of the directory they:", r.Sites, r.Hostile)
	for i, lie := range lies {
		if r.Lies[lie] > 0 {
			fmt.Fprintf(&b, "%s %s (%d)", [...]string{"", ","}[min(i, 1)], lie, r.Lies[lie])
		}
	}
	fmt.Fprintf(&b, "\n\nlive quotes found  %d of %d (%.2f %%) in %d questions, %d of them stale\n", r.Found, r.Live,
		100*float64(r.Found)/float64(max(r.Live, 1)), r.Questions, r.Stale)
	if r.Revoke > 0 {
		fmt.Fprintf(&b, "revoked members    %d of the hostile ones; their quotes were gone after %v\n", min(r.Revoke, r.Hostile), grid.Time(r.Gone).Duration())
	}
	fmt.Fprintf(&b, "forged messages    %d sent, %d refused by decoders, %d had an effect\n", r.Sent, r.Refused, r.Accepted)
	fmt.Fprintf(&b, "money              %v paid for %d jobs, %d losses; hostile homes have not signed %d bills; banks refused %d requests\n\n",
		grid.Credits(r.Paid), r.Jobs, r.Losses, r.Unsigned, r.Denied)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "forged\tsent\trefused by decoders\t")
	var names []string
	for name := range r.Forged {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(t, "%s\t%d\t%d\t\n", name, r.Forged[name].Sent, r.Forged[name].Refused)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s run, seed %d, trace hash %s: %d events, %v s in %v s\n", result.Mode, result.Seed, result.TraceHash,
		result.Events, result.VirtualSeconds, result.WallSeconds)
	return err
}
