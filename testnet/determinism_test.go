package testnet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"gridnode/grid"
	"gridnode/testnet/draw"
)

// chatter is a random run of toy sites: pings, jobs, kills and faults of all kinds.
func chatter(t *testing.T, seed uint64, sites int) *Network {
	t.Helper()
	n, err := New(Config{Seed: seed, Durable: true, Inputs: toyInputs, Link: Link{
		LatencyMin: grid.Millisecond, LatencyMax: 300 * grid.Millisecond,
		Loss: 50_000, Duplicate: 50_000, Reorder: 50_000, ReorderMax: grid.Second,
	}})
	if err != nil {
		t.Fatal(err)
	}
	name := func(i uint64) grid.SiteID { return grid.SiteID(fmt.Sprint("s", i)) }
	for i := range sites {
		id := name(uint64(i))
		pcg := draw.PCG(seed, id, draw.ForClock)
		if _, err := n.Add(Member{
			ID: id, Clock: Clock{Offset: grid.Time(draw.Uniform(pcg, 1000)), Drift: int64(draw.Uniform(pcg, 200)) - 100},
			New: func(int) (Site, error) { return &toySite{timer: grid.Never}, nil },
		}); err != nil {
			t.Fatal(err)
		}
	}
	pcg := draw.PCG(seed, "", draw.ForFaults)
	drawn := func(span grid.Time) grid.Time { return grid.Time(draw.Uniform(pcg, uint64(span))) }
	for i := range 200 {
		s := int(draw.Uniform(pcg, uint64(sites)))
		n.Inject(drawn(grid.Minute), s, &toySend{name(draw.Uniform(pcg, uint64(sites))), i})
		if i%10 == 0 {
			if err := n.Schedule(Fault{Kind: FaultKind(i / 10 % 4), At: drawn(grid.Minute), For: 1 + drawn(10*grid.Second), Sites: []int{s}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	var jobs toyJobs
	for i := range 100 {
		jobs = append(jobs, toyJob{
			&grid.Job{ID: grid.JobID{Lo: uint64(i)}, Submit: grid.Time(i) * grid.Second / 2, RunTime: 1 + drawn(20*grid.Second), Deadline: grid.Never},
			int(draw.Uniform(pcg, uint64(sites))),
		})
	}
	n.Feed(&jobs)
	if err := n.Run(context.Background(), grid.Hour, nil); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestSameSeedSameTrace: the seed determines everything.
func TestSameSeedSameTrace(t *testing.T) {
	hashes := map[uint64]uint64{}
	for seed := range uint64(5) {
		first, second := chatter(t, seed, 7), chatter(t, seed, 7)
		if first.TraceHash() != second.TraceHash() || first.Events() != second.Events() {
			t.Errorf("seed %d: %d events with hash %x, then %d with %x", seed, first.Events(), first.TraceHash(), second.Events(), second.TraceHash())
		}
		if other, taken := hashes[first.TraceHash()]; taken {
			t.Errorf("seeds %d and %d give the same trace", seed, other)
		}
		hashes[first.TraceHash()] = seed
		if first.Alive() != 0 || first.Unanswered() != 0 {
			t.Errorf("seed %d: %d executions and %d unanswered users left after healing", seed, first.Alive(), first.Unanswered())
		}
	}
}

// TestTraceHashIsTheSameEverywhere pins one hash: it must not depend on machine,
// race detector or compiler.
func TestTraceHashIsTheSameEverywhere(t *testing.T) {
	const want = 0xa6d2611feffad46e
	if got := chatter(t, 42, 5).TraceHash(); got != want {
		t.Errorf("trace hash %#x, want %#x (if the engine's rules have changed on purpose, change it here)", got, uint64(want))
	}
}

// TestNeighboursKeepTheirDraws: a site's draws depend on its name, not on who else is there.
func TestNeighboursKeepTheirDraws(t *testing.T) {
	draws := func(id grid.SiteID, p draw.Purpose, seed uint64) (v []uint64) {
		pcg := draw.PCG(seed, id, p)
		for range 4 {
			v = append(v, draw.Uniform(pcg, 1000))
		}
		return v
	}
	base := draws("a", draw.ForLinks, 1)
	for _, other := range [][]uint64{draws("b", draw.ForLinks, 1), draws("a", draw.ForClock, 1), draws("a", draw.ForLinks, 2)} {
		if slices.Equal(base, other) {
			t.Errorf("another site, purpose or seed draws the same: %v", other)
		}
	}
	// Messages between a and b take the same time whether c and d are there or not.
	times := func(sites ...string) (at []grid.Time) {
		n, err := New(Config{Seed: 9, Link: Link{LatencyMin: 1, LatencyMax: grid.Second}})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range sites {
			if _, err := n.Add(Member{ID: grid.SiteID(name), New: func(int) (Site, error) { return &toySite{timer: grid.Never}, nil }}); err != nil {
				t.Fatal(err)
			}
		}
		n.Observe(Observer{Turn: func(now grid.Time, site int) {
			if n.members[site].ID == "b" {
				at = append(at, now)
			}
		}})
		for i := range 5 {
			a, _ := n.Index("a")
			n.Inject(grid.Time(i)*grid.Minute, a, &toySend{"b", i})
			if c, ok := n.Index("c"); ok {
				n.Inject(grid.Time(i)*grid.Minute, c, &toySend{"d", i})
			}
		}
		if err := n.Run(context.Background(), grid.Never, nil); err != nil {
			t.Fatal(err)
		}
		return at
	}
	if alone, together := times("a", "b"), times("c", "a", "d", "b"); !slices.Equal(alone, together) {
		t.Errorf("b hears from a at %v, and with c there at %v", alone, together)
	}
}

// TestRunStops: a run ends at its bound, at the caller's wish, when its context is
// cancelled and at the first violated check, and can go on after the first two.
func TestRunStops(t *testing.T) {
	violation := errors.New("violated")
	var check error
	n, err := New(Config{Check: func(grid.Time) error { return check }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Add(Member{ID: "a", New: func(int) (Site, error) { return &toySite{timer: grid.Never}, nil }}); err != nil {
		t.Fatal(err)
	}
	for i := range 10_000 {
		n.Inject(grid.Time(i)*grid.Second, 0, &toyTimer{grid.Never})
	}
	if err := n.Run(context.Background(), 100*grid.Second, nil); err != nil || n.Now() != 100*grid.Second || n.Events() != 101 {
		t.Errorf("until 100 s: %v at %v after %d events", err, n.Now(), n.Events())
	}
	if err := n.Run(context.Background(), grid.Hour, func() bool { return n.Events() == 200 }); err != nil || n.Now() != 199*grid.Second {
		t.Errorf("until 200 events: %v at %v", err, n.Now())
	}
	check = violation
	if err := n.Run(context.Background(), grid.Never, nil); !errors.Is(err, violation) || n.Events() != 201 {
		t.Errorf("violated check: %v after %d events", err, n.Events())
	}
	check = nil
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := n.Run(ctx, grid.Never, nil); !errors.Is(err, context.Canceled) || n.Events() > 5000 {
		t.Errorf("cancelled: %v after %d events", err, n.Events())
	}
}

// restlessSite wants a Tick ten seconds after each, or when it is told.
type restlessSite struct{ timer grid.Time }

func (s *restlessSite) NextTimer() grid.Time { return s.timer }

func (s *restlessSite) Step(now grid.Time, in grid.Input, _ *grid.Outbox) {
	if in, ok := in.(*toyTimer); ok {
		s.timer = in.at
	}
	if s.timer <= now {
		s.timer = now + 10*grid.Second
	}
}

// TestTimersDoNotPileUp: a timer event that came too late, as the site had moved its
// timer to an earlier instant, is dropped and not put off for ever.
func TestTimersDoNotPileUp(t *testing.T) {
	n, err := New(Config{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Add(Member{ID: "a", New: func(int) (Site, error) { return &restlessSite{}, nil }}); err != nil {
		t.Fatal(err)
	}
	const moves = 1000
	for i := range moves {
		at := grid.Time(i) * 7 * grid.Second
		n.Inject(at, 0, &toyTimer{at + grid.Second})
	}
	if err := n.Run(context.Background(), 7*moves*grid.Second, nil); err != nil {
		t.Fatal(err)
	}
	if n.Events() > 3*moves+10 || n.Pending() > 2 {
		t.Errorf("%d moves made %d events, %d are left", moves, n.Events(), n.Pending())
	}
}
