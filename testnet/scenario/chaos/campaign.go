package chaos

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/chaos/point"
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

// PointCount is a place where a fault can strike: in a daemon, as package point says, or a message on its way.
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

// outcome is what came of one seed, as far as a campaign tells it: data that another process can
// have left.
type outcome struct {
	Seed      uint64
	Sites     int
	Events    int64
	Now       grid.Time
	Wall      time.Duration
	Processor time.Duration // that the whole process had meanwhile
	Points    []PointCount

	// Of a run that ended well.
	Jobs     int64
	Messages int64
	Faults   map[string]int64

	Finding *Finding          // nil: nothing was violated
	Files   map[string][]byte // that a violation has left where another process ran it, by name
}

// RunSeeds runs so many seeds, from cfg.Seed on, each with the mixture of faults and features
// that it draws if swarm. All processors are used. Each is told to cfg.Say in a line, in order
// of the seeds. A violation ends its own run only. The error is ctx's, or about cfg.
func RunSeeds(ctx context.Context, cfg Config, seeds int, swarm bool) (*Campaign, error) {
	if seeds < 1 {
		return nil, scenario.ConfigError("seeds", "%d: want 1 at least", seeds)
	}
	script := scriptOf(cfg)
	if err := script.validate(); err != nil {
		return nil, err
	}
	c := &Campaign{Scenario: "chaos", First: cfg.Seed, Swarm: swarm, Config: cfg, Faults: make(map[string]int64)}
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	points := make(map[string]*PointCount)
	outcomes := make([]*outcome, seeds)
	runs := make([]sweep.Run, seeds)
	for i := range runs {
		seed := cfg.Seed + uint64(i)
		runs[i] = sweep.Run{Name: fmt.Sprintf("seed %d", seed), Result: &outcomes[i], Do: func(ctx context.Context, _ func(int64)) (err error) {
			outcomes[i], err = one(ctx, cfg, seed, swarm)
			return err
		}}
	}
	begun, elsewhere := processorTime(), time.Duration(0)
	var failed error
	err := sweep.Do(ctx, runs, sweep.Options{Away: cfg.Away, Over: func(i int) {
		o := outcomes[i]
		outcomes[i] = nil
		elsewhere += o.Processor
		failed = errors.Join(failed, c.add(o, points))
		if cfg.Say != nil {
			cfg.Say(o.String())
		}
	}})
	if c.Processor = (processorTime() - begun).Seconds(); cfg.Away != nil {
		c.Processor = elsewhere.Seconds()
	}
	for _, name := range point.Missing(maps.Keys(points)) {
		points[name] = &PointCount{Name: name}
	}
	for _, name := range slices.Sorted(maps.Keys(points)) {
		c.Points = append(c.Points, *points[name])
	}
	return c, cmp.Or(err, failed)
}

// gcPercent is GOGC of campaigns: a run needs little memory, of fifty sites a quarter of a gigabyte with this, and much of
// its time is short-lived values.
const gcPercent = 800

// processorTime is how long this process has had processors.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// one runs a seed. The error is ctx's, or that files cannot be made.
func one(ctx context.Context, cfg Config, seed uint64, swarm bool) (_ *outcome, err error) {
	begun, busy := time.Now(), processorTime()
	part := cfg.Away != nil // this process runs a seed of somebody else's campaign
	if cfg.Seed = seed; swarm {
		cfg = cfg.Swarmed()
	}
	cfg.Say, cfg.Progress, cfg.Out, cfg.Away = nil, nil, "", nil
	if part && cfg.Failures != "" {
		if cfg.Failures, err = os.MkdirTemp("", "chaos-*"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(cfg.Failures)
	}
	o := &outcome{Seed: seed, Sites: cfg.Sites}
	t := &trial{script: scriptOf(cfg)}
	result, violated := t.play(ctx, fmt.Sprintf("chaos-%d", seed), "")
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if violated != nil {
		o.Finding = findingOf(t, violated)
	}
	if result != nil {
		report := result.Config.(*chaosReport)
		o.Jobs, o.Messages, o.Faults = int64(report.Acked), report.Lost, report.Injected
	}
	if t.n != nil {
		o.Events, o.Now = t.n.Events(), t.n.Now()
	}
	o.Points = t.coverage()
	if part && cfg.Failures != "" {
		if o.Files, err = filesIn(cfg.Failures); err != nil {
			return nil, err
		}
	}
	o.Wall, o.Processor = time.Since(begun), processorTime()-busy
	return o, nil
}

// filesIn reads the files of a folder.
func filesIn(dir string) (map[string][]byte, error) {
	entries, err := os.ReadDir(dir)
	files := make(map[string][]byte)
	for _, e := range entries {
		text, failed := os.ReadFile(filepath.Join(dir, e.Name()))
		files[e.Name()], err = text, errors.Join(err, failed)
	}
	return files, err
}

// unpack writes the files that a violation has left elsewhere, and has it name them as they are here.
func (o *outcome) unpack(dir string) error {
	if len(o.Files) == 0 {
		return nil
	}
	err := os.MkdirAll(dir, 0o755)
	for name, text := range o.Files {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, filepath.Base(name)), text, 0o644))
	}
	if f := o.Finding; f != nil && f.Script != "" {
		f.Script = filepath.Join(dir, filepath.Base(f.Script))
		f.Command = replayCommand(f.Script)
	}
	return err
}

// String says what came of a seed, in a line.
func (o *outcome) String() string {
	text := fmt.Sprintf("seed %d: %d events, %.3g site-hours in %.2g s", o.Seed, o.Events, o.siteHours(), o.Wall.Seconds())
	if o.Finding != nil {
		return text + ": " + o.Finding.Text
	}
	faults := int64(0)
	for _, count := range o.Faults {
		faults += count
	}
	return fmt.Sprintf("%s, %d jobs, %d faults, %d messages lost", text, o.Jobs, faults, o.Messages)
}

// siteHours is the virtual time of all sites together.
func (o *outcome) siteHours() float64 { return float64(o.Sites) * o.Now.Seconds() / 3600 }

// add counts what came of a seed. The error is about files of a violation.
func (c *Campaign) add(o *outcome, points map[string]*PointCount) error {
	c.Seeds++
	c.SiteHours += o.siteHours()
	c.Events += o.Events
	err := o.unpack(c.Config.Failures)
	if o.Finding != nil {
		c.Violations = append(c.Violations, *o.Finding)
	}
	c.Jobs += o.Jobs
	c.Messages += o.Messages
	for kind, count := range o.Faults {
		c.Faults[kind] += count
	}
	for _, p := range o.Points {
		if points[p.Name] == nil {
			points[p.Name] = &PointCount{Name: p.Name}
		}
		points[p.Name].Seen += p.Seen
		points[p.Name].Hit += p.Hit
	}
	return err
}

// findingOf returns the violation that a trial has ended with.
func findingOf(t *trial, err error) *Finding {
	text, _, _ := strings.Cut(err.Error(), "\n")
	f := &Finding{Seed: t.script.Seed, Text: text, Command: t.script.command()}
	var v *Violation
	if errors.As(err, &v) {
		f.Script, f.Command = cmp.Or(v.Small, v.Script), v.Command
	}
	return f
}

// coverage returns where faults could strike, and how often they did.
func (t *trial) coverage() (list []PointCount) {
	if t.points == nil || t.n == nil {
		return nil
	}
	for _, p := range t.points.counts.All() {
		list = append(list, PointCount(p))
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

// came counts the points at which a fault could have struck.
func (c *Campaign) came() (count int) {
	for _, p := range c.Points {
		if p.Seen > 0 {
			count++
		}
	}
	return count
}

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
	fmt.Fprintf(t, "fault points\t%d, of which %d came, hit %d, %d times or more %d\n", len(c.Points), c.came(), c.hit(1), often, c.hit(often))
	fmt.Fprintf(t, "violations\t%d\n", len(c.Violations))
	for _, v := range c.Violations {
		fmt.Fprintf(t, "  seed %d\t%s\n\t%s\n", v.Seed, v.Text, v.Command)
	}
	return t.Flush()
}
