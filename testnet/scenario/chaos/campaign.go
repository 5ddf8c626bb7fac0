package chaos

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
	"gridnode/testnet/sweep"
)

// Campaign is what many runs have seen together, one for each of the seeds from Config.Seed on.
type Campaign struct {
	Scenario string `json:"scenario"`
	First    uint64 `json:"seed"`
	Seeds    int    `json:"seeds"` // that were run
	Swarm    bool   `json:"swarm"`
	Config   Config `json:"config"`

	SiteHours float64          `json:"siteHours"` // of virtual time, until everything was over
	Events    int64            `json:"events"`
	Jobs      int64            `json:"jobs"` // that were acknowledged
	Messages  int64            `json:"messagesLost"`
	Faults    map[string]int64 `json:"faults"` // that happened, by kind
	Points    []PointCount     `json:"points"` // where a fault can strike, in order of their names

	Violations []Finding `json:"violations"`
	Processor  float64   `json:"processorSeconds"`
}

// PointCount is a place where a fault can strike: a step that saves or sends something, or a
// message on its way.
type PointCount struct {
	Name string `json:"name"`
	Seen int64  `json:"seen"` // how often a fault could have struck there
	Hit  int64  `json:"hit"`  // how often one has
}

// Finding is a violation, and how to see it again.
type Finding struct {
	Seed    uint64 `json:"seed"`
	Text    string `json:"text"`
	Script  string `json:"script,omitempty"` // the smallest replay file; empty: none was written
	Command string `json:"command"`
}

// outcome is what came of one seed.
type outcome struct {
	seed   uint64
	trial  *trial
	report *chaosReport // nil: the run was violated
	err    error
	events int64
	now    grid.Time
	wall   time.Duration
	sites  int
}

// RunSeeds runs so many seeds, from cfg.Seed on, each with the mixture of faults and features
// that it draws if swarm. All processors are used. Each is told to cfg.Say in a line, in order
// of the seeds. A violation ends its own run only. The error is ctx's, or about cfg.
func RunSeeds(ctx context.Context, cfg Config, seeds int, swarm bool) (*Campaign, error) {
	if seeds < 1 {
		return nil, scenario.ConfigError("seeds", "%d: want 1 at least", seeds)
	}
	script := &Script{Format: formatScript, Seed: cfg.Seed, Config: cfg}
	if err := script.validate(); err != nil {
		return nil, err
	}
	c := &Campaign{Scenario: "chaos", First: cfg.Seed, Swarm: swarm, Config: cfg, Faults: make(map[string]int64)}
	points := make(map[string]*PointCount)
	ordered := make([]chan outcome, seeds)
	runs := make([]sweep.Run, seeds)
	for i := range runs {
		ordered[i] = make(chan outcome, 1)
		runs[i].Do = func(ctx context.Context, _ func(int64)) error {
			ordered[i] <- one(ctx, cfg, cfg.Seed+uint64(i), swarm)
			return nil
		}
	}
	begun := processorTime()
	var added sync.WaitGroup
	added.Go(func() {
		for i := range seeds {
			select {
			case o := <-ordered[i]:
				if ctx.Err() == nil {
					c.add(&o, points)
					if cfg.Say != nil {
						cfg.Say(o.String())
					}
				}
			case <-ctx.Done():
				return
			}
		}
	})
	_ = sweep.Do(ctx, runs, sweep.Options{}) // the error is ctx's
	added.Wait()
	c.Processor = (processorTime() - begun).Seconds()
	for _, name := range slices.Sorted(maps.Keys(points)) {
		c.Points = append(c.Points, *points[name])
	}
	return c, ctx.Err()
}

// processorTime is how long this process has had processors.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// one runs a seed.
func one(ctx context.Context, cfg Config, seed uint64, swarm bool) outcome {
	begun := time.Now()
	if cfg.Seed = seed; swarm {
		cfg = cfg.Swarmed()
	}
	cfg.Say, cfg.Progress, cfg.Out = nil, nil, ""
	o := outcome{seed: seed, sites: cfg.Sites, trial: &trial{script: &Script{Format: formatScript, Seed: seed, Config: cfg}}}
	result, err := o.trial.play(ctx, fmt.Sprintf("chaos-%d", seed), "")
	if o.err = err; result != nil {
		o.report = result.Config.(*chaosReport)
	}
	if n := o.trial.n; n != nil {
		o.events, o.now = n.Events(), n.Now()
	}
	o.wall = time.Since(begun)
	return o
}

// String says what came of a seed, in a line.
func (o *outcome) String() string {
	text := fmt.Sprintf("seed %d: %d events, %.3g site-hours in %.2g s", o.seed, o.events, o.siteHours(), o.wall.Seconds())
	if o.err != nil {
		what, _, _ := strings.Cut(o.err.Error(), "\n")
		return text + ": " + what
	}
	faults := int64(0)
	for _, count := range o.report.Injected {
		faults += count
	}
	return fmt.Sprintf("%s, %d jobs, %d faults, %d messages lost", text, o.report.Acked, faults, o.report.Lost)
}

// siteHours is the virtual time of all sites together.
func (o *outcome) siteHours() float64 { return float64(o.sites) * o.now.Seconds() / 3600 }

// add counts what came of a seed.
func (c *Campaign) add(o *outcome, points map[string]*PointCount) {
	c.Seeds++
	c.SiteHours += o.siteHours()
	c.Events += o.events
	if o.err != nil {
		c.Violations = append(c.Violations, findingOf(o))
	}
	if o.report != nil {
		c.Jobs += int64(o.report.Acked)
		c.Messages += o.report.Lost
		for kind, count := range o.report.Injected {
			c.Faults[kind] += count
		}
	}
	for _, p := range o.trial.coverage() {
		if points[p.Name] == nil {
			points[p.Name] = &PointCount{Name: p.Name}
		}
		points[p.Name].Seen += p.Seen
		points[p.Name].Hit += p.Hit
	}
}

// findingOf returns the violation of a seed.
func findingOf(o *outcome) Finding {
	text, _, _ := strings.Cut(o.err.Error(), "\n")
	f := Finding{Seed: o.seed, Text: text, Command: o.trial.script.command()}
	var v *Violation
	if errors.As(o.err, &v) {
		f.Script, f.Command = cmp.Or(v.Small, v.Script), v.Command
	}
	return f
}

// coverage returns where faults could strike, and how often they did.
func (t *trial) coverage() (list []PointCount) {
	if t.points == nil || t.n == nil {
		return nil
	}
	t.points.sum() // so that steps which save nothing are there, too
	for name, seen := range t.points.seen {
		list = append(list, PointCount{name, max(seen, t.points.hit[name]), t.points.hit[name]})
	}
	var total testnet.Counter
	for site := range t.n.Len() {
		total.Add(t.n.Counter(site))
	}
	for kind := range grid.Kind(wire.KindMax) {
		if sent := total.SentOf(kind).Messages; sent > 0 {
			struck := testnet.StruckBy(t.n, kind)
			list = append(list, PointCount{wire.KindName(kind) + " on its way", sent, struck.Any()})
		}
	}
	return list
}

// often is how often a point has to be hit to count as tried.
const often = 100

// hit counts the points that were hit so often at least.
func (c *Campaign) hit(least int64) (count int) {
	for _, p := range c.Points {
		if p.Hit >= least {
			count++
		}
	}
	return count
}

// Write prints it as "table", for people, or as "json" or "csv": the points.
func (c *Campaign) Write(w io.Writer, format string) error {
	switch format {
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(c)
	case "csv":
		if _, err := fmt.Fprintln(w, "point,seen,hit"); err != nil {
			return err
		}
		for _, p := range c.Points {
			if _, err := fmt.Fprintf(w, "%q,%d,%d\n", p.Name, p.Seen, p.Hit); err != nil {
				return err
			}
		}
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(t, "seeds\t%d, from %d on\n", c.Seeds, c.First)
	fmt.Fprintf(t, "virtual time\t%.0f site-hours, %.0f a second of one processor\n", c.SiteHours, c.SiteHours/max(c.Processor, 1e-3))
	fmt.Fprintf(t, "events\t%d\n", c.Events)
	fmt.Fprintf(t, "jobs\t%d\n", c.Jobs)
	fmt.Fprintf(t, "messages lost\t%d\n", c.Messages)
	for _, kind := range slices.Sorted(maps.Keys(c.Faults)) {
		fmt.Fprintf(t, "faults: %s\t%d\n", kind, c.Faults[kind])
	}
	fmt.Fprintf(t, "fault points\t%d, hit %d, %d times or more %d\n", len(c.Points), c.hit(1), often, c.hit(often))
	fmt.Fprintf(t, "violations\t%d\n", len(c.Violations))
	for _, v := range c.Violations {
		fmt.Fprintf(t, "  seed %d\t%s\n\t%s\n", v.Seed, v.Text, v.Command)
	}
	return t.Flush()
}
