package chaos

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/scenario/chaos/forge"
	"gridnode/testnet/sweep"
	"gridnode/testnet/sweep/away"
)

// TestSeeds: many seeds are run, each is told in its turn, what they have seen is added up, and
// a violation ends its own run only and can be seen again.
func TestSeeds(t *testing.T) {
	cfg := Default()
	cfg.Seed, cfg.Sites, cfg.Hours, cfg.Failures = 10, 4, 0.5, t.TempDir()
	cfg.Watch = func(n *testnet.Network, c *testnet.Checker) {
		if n.Seed() == 12 {
			n.Observe(testnet.Observer{Start: func(grid.Time, *testnet.Execution) { c.Violated("nothing may start") }})
		}
	}
	var told []string
	cfg.Say = func(text string) { told = append(told, text) }
	c, err := RunSeeds(t.Context(), cfg, 4, true)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range told {
		if want := "seed 1" + string(rune('0'+i)) + ": "; !strings.HasPrefix(text, want) {
			t.Errorf("told %q, want %s…", text, want)
		}
	}
	if len(told) != 4 || c.Seeds != 4 || c.SiteHours < 4*0.5*4 || c.Events == 0 || c.Jobs == 0 {
		t.Errorf("told of %d seeds, and %+v", len(told), c)
	}
	if len(c.Violations) != 1 || c.Violations[0].Seed != 12 || !strings.Contains(c.Violations[0].Text, "nothing may start") || c.Violations[0].Script == "" {
		t.Errorf("violations %+v, want one of seed 12", c.Violations)
	}
	faults := int64(0)
	for _, count := range c.Faults {
		faults += count
	}
	if faults == 0 || c.hit(1) == 0 || c.hit(1) >= len(c.Points) {
		t.Errorf("%d faults, %d of %d points hit", faults, c.hit(1), len(c.Points))
	}
	unmet := func(p PointCount) bool { return p.Seen == 0 && p.Hit == 0 }
	if c.came() >= len(c.Points) || c.came() < c.hit(1) || !slices.ContainsFunc(c.Points, unmet) {
		t.Errorf("%d of %d points came: what no seed has met is to be told, too", c.came(), len(c.Points))
	}
	for _, format := range []string{"table", "json", "csv"} {
		var b bytes.Buffer
		if err := c.Write(&b, format); err != nil || !strings.Contains(b.String(), map[string]string{"csv": "market.reply on its way", "json": "market.reply on its way", "table": "nothing may start"}[format]) {
			t.Errorf("%s: %v\n%s", format, err, b.String())
		}
	}
}

// TestSeedsElsewhere: what seeds have left that other processes have run adds up to the same, and
// the files of a violation are where they would be.
func TestSeedsElsewhere(t *testing.T) {
	cfg := Default()
	cfg.Seed, cfg.Sites, cfg.Hours = 10, 4, 0.5
	cfg.Watch = func(n *testnet.Network, c *testnet.Checker) {
		if n.Seed() == 12 {
			n.Observe(testnet.Observer{Start: func(grid.Time, *testnet.Execution) { c.Violated("nothing may start") }})
		}
	}
	run := func(dir string, elsewhere sweep.Away) (c *Campaign, files []string) {
		cfg := cfg
		cfg.Failures, cfg.Away = dir, elsewhere
		c, err := RunSeeds(t.Context(), cfg, 4, true)
		if err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		for _, e := range entries {
			files = append(files, e.Name())
		}
		if err != nil || c.Processor <= 0 {
			t.Fatalf("%v, %v s", err, c.Processor)
		}
		c.Processor, c.Config.Watch, c.Config.Away = 0, nil, nil
		return c, files
	}
	dir := t.TempDir()
	here, files := run(dir, nil)
	for _, name := range files {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	there, brought := run(dir, func(ctx context.Context, runs []sweep.Run, o sweep.Options) error {
		for i := range runs {
			p, path := away.Part{Run: i, Runs: len(runs)}, filepath.Join(t.TempDir(), "part")
			if err := p.Do(path)(ctx, runs, o); !errors.Is(err, away.ErrPart) {
				return err
			}
			*runs[i].Result.(**outcome) = nil
			if err := p.Take(path, &runs[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if !reflect.DeepEqual(here, there) {
		t.Errorf("elsewhere it is\n%+v, here\n%+v", there, here)
	}
	if len(files) == 0 || !slices.Equal(files, brought) || len(there.Violations) != 1 || filepath.Dir(there.Violations[0].Script) != dir {
		t.Errorf("a violation leaves %v, want %v; %+v", brought, files, there.Violations)
	}
}

// TestForgeries: what is forged reaches sites and changes nothing; of sites that take it for
// true that is seen.
func TestForgeries(t *testing.T) {
	cfg := Default()
	cfg.Seed, cfg.Sites, cfg.Hours, cfg.Faults, cfg.Features = 7, 5, 2, "loss", "forge=60,oracle,gossip"
	run := ran(t, scriptOf(cfg))
	if n := run.forger.Count(); n < 100 {
		t.Errorf("%d words were forged", n)
	}
	for kind := range forge.Kinds {
		for one, count := range run.forger.Counts(kind) {
			if count == 0 {
				t.Errorf("none of forgery %d of kind %d", one, kind)
			}
		}
	}
	run = &trial{script: scriptOf(cfg)}
	run.wrap = func(_ grid.SiteID, s *site.Site) testnet.Site { return &trusting{Site: s} }
	if _, err := run.run(t.Context()); err == nil || !strings.Contains(err.Error(), "believes what is forged") {
		t.Errorf("%v, want a violation", err)
	}
	if believed.Load() == 0 {
		t.Error("nothing was to be believed")
	}
}

// trusting is a site that takes whatever epoch a release has.
type trusting struct{ *site.Site }

var believed atomic.Int64

// Core returns the site itself.
func (t *trusting) Core() *site.Site { return t.Site }

// Step implements testnet.Site.
func (t *trusting) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	if d, ok := in.(*grid.Delivery); ok {
		if m, ok := d.Message.(*lease.Release); ok {
			believed.Add(1)
			in = &grid.Delivery{From: d.From, Message: &lease.Release{Number: m.Number}}
		}
	}
	t.Site.Step(now, in, out)
}
