package site

import (
	"testing"

	"gridnode/coalloc"
	"gridnode/directory"
	"gridnode/grid"
)

// together makes a bench's site one of a federation.
func together(c *Config) {
	c.Parts = Everything
	c.Directory = directory.Config{Federation: "test"}
}

// TestWaitAtHome: what a divided job would wait for at home is until what runs there
// ends, so that it is not divided where it would be done sooner whole.
func TestWaitAtHome(t *testing.T) {
	b := newBench(t, together)
	running := b.job(1, 3)
	b.step(&Submit{Job: running})
	b.now += grid.Second
	b.step()
	b.site.gangs.refresh(b.now, &b.out)
	home := &b.site.gangs.coord.View().Sites[0]
	left := running.EstimateAt(b.cfg.Rating) - grid.Second
	for processors, want := range map[int64]grid.Time{1: 0, 2: left, 4: left, 5: grid.Never} {
		if got := home.Wait(processors); got != want {
			t.Errorf("%d processors are waited for %v, want %v", processors, got, want)
		}
	}
	if home.Free != 1 {
		t.Errorf("%d processors are idle, want 1", home.Free)
	}
}

// TestRadius: sites are divided into latency groups if the owner says how wide.
func TestRadius(t *testing.T) {
	for radius, want := range map[grid.Time]int{0: 1, grid.Second: 2} {
		b := newBench(t, func(c *Config) {
			together(c)
			c.Radius = radius
		})
		view := b.site.gangs.coord.View()
		view.Put(coalloc.Site{ID: "near", Processors: 2})
		view.Put(coalloc.Site{ID: "far", Processors: 1})
		for _, id := range []grid.SiteID{"near", "far"} {
			b.step(&grid.Delivery{From: id, Message: &coalloc.LatencyReport{Site: id, Sequence: 1, Within: 50, Coordinate: coalloc.Coordinate{Error: 1000}}})
		}
		for range 5 {
			b.now += grid.Second
			b.step(&grid.Probed{To: "near", RoundTrip: grid.Millisecond}, &grid.Probed{To: "far", RoundTrip: 5 * grid.Second})
		}
		b.site.gangs.scout.looked = b.now
		b.site.gangs.scout.setNetwork()
		groups := make(map[int32]bool)
		for _, s := range view.Sites {
			groups[s.Group] = true
		}
		if len(groups) != want || view.Sites[0].Group != view.Sites[1].Group {
			t.Errorf("radius %v: groups of %+v, want %d", radius, view.Sites, want)
		}
	}
}
