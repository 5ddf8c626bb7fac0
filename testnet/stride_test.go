package testnet

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"gridnode/grid"
	"gridnode/testnet/draw"
)

// crowd is a run of many toy sites in several lanes: what observers are told of it, its hash and
// how much happened. Much of it happens at the same instants.
func crowd(t *testing.T, seed uint64, workers int) (told []string, n *Network) {
	t.Helper()
	const sites = 5 << blockBits
	n, err := New(Config{Seed: seed, Durable: true, Inputs: toyInputs, Workers: workers, Link: Link{
		LatencyMin: 50 * grid.Millisecond, LatencyMax: 300 * grid.Millisecond,
		Loss: 50_000, Duplicate: 50_000, Reorder: 50_000, ReorderMax: grid.Second,
	}})
	if err != nil {
		t.Fatal(err)
	}
	name := func(i uint64) grid.SiteID { return grid.SiteID(fmt.Sprint("s", i)) }
	for i := range sites {
		if _, err := n.Add(Member{ID: name(uint64(i)), New: func(int) (Site, error) { return &toySite{timer: grid.Never}, nil }}); err != nil {
			t.Fatal(err)
		}
	}
	tell := func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }
	n.Observe(Observer{
		Event:  func(now grid.Time, site int, e *grid.Event) { tell("%d event %d %v %v", now, site, e.Kind, e.Job.ID) },
		Answer: func(now grid.Time, site int, a grid.Answer) { tell("%d answer %d %d", now, site, a.Token) },
		Send: func(now grid.Time, from int, to grid.SiteID, m grid.Message) {
			tell("%d send %d %s %v", now, from, to, m)
		},
		Start: func(now grid.Time, x *Execution) { tell("%d start %d %v", now, x.Site, x.ID) },
		End:   func(now grid.Time, x *Execution) { tell("%d end %d %v", now, x.Site, x.ID) },
		Turn:  func(now grid.Time, site int) { tell("%d turn %d", now, site) },
		Fault: func(now grid.Time, f *Fault) { tell("%d fault %v %v", now, f.Kind, f.Sites) },
	})
	pcg := draw.PCG(seed, "", draw.ForFaults)
	// A tenth of a second has ten instants.
	drawn := func(span grid.Time) grid.Time {
		return grid.Time(draw.Uniform(pcg, uint64(span/(10*grid.Millisecond)))) * 10 * grid.Millisecond
	}
	site := func() int { return int(draw.Uniform(pcg, sites)) }
	for i := range 8000 {
		n.Inject(drawn(10*grid.Second), site(), &toySend{name(uint64(site())), i})
	}
	for i := range 10 {
		kind := []FaultKind{FaultDaemon, FaultMachine, FaultPartition, FaultSlow}[i%4]
		if err := n.Schedule(Fault{Kind: kind, At: drawn(10 * grid.Second), For: 1 + drawn(3*grid.Second), Sites: []int{site()}}); err != nil {
			t.Fatal(err)
		}
	}
	n.Call(5*grid.Second, 7, func() { n.Step(7, &toySend{name(200), 1}) })
	var jobs toyJobs
	for i := range 2000 {
		jobs = append(jobs, toyJob{
			&grid.Job{ID: grid.JobID{Lo: uint64(i)}, Submit: grid.Time(i/20) * 100 * grid.Millisecond, RunTime: 1 + drawn(2*grid.Second), Deadline: grid.Never}, site(),
		})
	}
	n.Feed(&jobs)
	for _, until := range []grid.Time{3 * grid.Second, 3*grid.Second + 25*grid.Millisecond, grid.Minute} {
		if err := n.Run(context.Background(), until, nil); err != nil {
			t.Fatal(err)
		}
		if n.Now() != until {
			t.Fatalf("%d workers: it is %v after a run until %v", workers, n.Now(), until)
		}
	}
	return told, n
}

// TestWorkersChangeNothing: with any number of workers the same happens, in the same order.
func TestWorkersChangeNothing(t *testing.T) {
	for seed := range uint64(3) {
		want, one := crowd(t, seed, 1)
		if one.Strides() > 0 || len(want) < 10_000 {
			t.Fatalf("seed %d: one worker went through %d strides, %d things were told", seed, one.Strides(), len(want))
		}
		for _, workers := range []int{2, 4, 7, 8} {
			told, n := crowd(t, seed, workers)
			if n.Strides() < 10 {
				t.Errorf("seed %d: %d workers went through %d strides", seed, workers, n.Strides())
			}
			if n.TraceHash() != one.TraceHash() || n.Events() != one.Events() || n.Lost() != one.Lost() || n.inserted != one.inserted {
				t.Errorf("seed %d: %d workers make %d events, lose %d messages, hash %x; one %d, %d, %x",
					seed, workers, n.Events(), n.Lost(), n.TraceHash(), one.Events(), one.Lost(), one.TraceHash())
			}
			if !slices.Equal(told, want) {
				for i := range min(len(told), len(want)) {
					if told[i] != want[i] {
						t.Fatalf("seed %d: with %d workers observers are told as number %d %q, with one %q", seed, workers, i, told[i], want[i])
					}
				}
				t.Fatalf("seed %d: with %d workers observers are told %d things, with one %d", seed, workers, len(told), len(want))
			}
			for site := range n.Len() {
				if *n.Counter(site) != *one.Counter(site) {
					t.Fatalf("seed %d: with %d workers the counts of site %d differ", seed, workers, site)
				}
			}
		}
	}
}

// TestNoStrides: where what happens at a site may depend at once on what happens at another,
// there are no strides.
func TestNoStrides(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no latency":      func(c *Config) { c.Link.LatencyMin = 0 },
		"latencies given": func(c *Config) { c.Link.Latency = func(int, int) grid.Time { return 1 } },
		"coincidence":     func(c *Config) { c.Link.Coincide = 1 },
		"a check":         func(c *Config) { c.Check = func(grid.Time) error { return nil } },
		"torn steps":      func(c *Config) { c.Tear = func(grid.Time, int, *grid.Outbox, bool) (t Tear) { return t } },
		"fast dials":      func(c *Config) { c.DialTimeout = 1 },
		"one worker":      func(c *Config) { c.Workers = 1 },
		"one lane":        func(c *Config) {},
		"all well":        func(c *Config) {},
	} {
		cfg := Config{Workers: 2, Link: Link{LatencyMin: grid.Second, LatencyMax: grid.Second}}
		change(&cfg)
		n, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		sites := 1<<blockBits + 1
		if name == "one lane" {
			sites--
		}
		for i := range sites {
			if _, err := n.Add(Member{ID: grid.SiteID(fmt.Sprint(i)), New: func(int) (Site, error) { return &toySite{timer: grid.Never}, nil }}); err != nil {
				t.Fatal(err)
			}
		}
		crew := n.engage(nil)
		if there := crew != nil; there != (name == "all well") {
			t.Errorf("%s: there are strides: %t", name, there)
		}
		crew.dismiss()
	}
}
