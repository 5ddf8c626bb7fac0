package coalloc

import (
	"flag"
	"fmt"
	"testing"

	"gridnode/grid"
)

var (
	seedFirst = flag.Uint64("seed", 0, "first seed of the simulations")
	seedCount = flag.Uint64("seeds", 12, "seeds per simulation")
)

// simulate runs one simulation per seed; a failure names its seed.
func simulate(t *testing.T, coordinators int, run func(w *world)) {
	for seed := *seedFirst; seed < *seedFirst+*seedCount; seed++ {
		done := false
		func() {
			defer func() {
				if !done {
					t.Logf("replay with: go test ./coalloc -run '^%s$' -seed %d -seeds 1", t.Name(), seed)
				}
			}()
			run(newWorld(t, seed, coordinators))
			done = true
		}()
	}
}

// Two and ten co-allocators that want the same sites: all of their jobs run.
func TestCompetitorsMakeProgress(t *testing.T) {
	for _, coordinators := range []int{2, 10} {
		t.Run(fmt.Sprint(coordinators), func(t *testing.T) {
			simulate(t, coordinators, func(w *world) {
				w.submitAll(40, 10*grid.Second)
				w.heal()
			})
		})
	}
}

// Loss, repetition, reordering, partitions and crashes of co-allocators and sites: no
// job starts in part, nothing is left behind, and once all is well every job runs.
func TestAllOrNothingUnderFaults(t *testing.T) {
	for _, coordinators := range []int{2, 10} {
		t.Run(fmt.Sprint(coordinators), func(t *testing.T) {
			simulate(t, coordinators, func(w *world) {
				w.faulty = true
				const span = 20 * grid.Minute
				w.submitAll(30, span)
				for range 6 {
					n := w.nodes[w.order[w.rng.IntN(len(w.order))]]
					w.after(grid.Time(w.rng.Int64N(int64(span))), func() {
						if n.up {
							w.crash(n)
						}
					})
				}
				for range 2 {
					begin := grid.Time(w.rng.Int64N(int64(span)))
					w.after(begin, func() {
						clear(w.island)
						for _, id := range w.order {
							w.island[id] = w.rng.IntN(2) == 0
						}
					})
					w.after(begin+grid.Time(w.rng.Int64N(int64(3*grid.Minute))), func() { clear(w.island) })
				}
				w.run(w.now+span, nil)
				w.heal()
			})
		})
	}
}

// TestMessages: placing a job takes two messages for each chosen site, claiming it two
// more, and giving it back two.
func TestMessages(t *testing.T) {
	w := newWorld(t, 1, 1)
	for i := range simLenders {
		w.nodes[grid.SiteID(rune('a'+i))].size = 10
	}
	for _, id := range w.order {
		w.nodes[id].up = false
		w.boot(w.nodes[id])
	}
	w.jobs = append(w.jobs, &simJob{task: grid.TaskID{Job: grid.JobID{Hi: 9, Lo: 1}, Epoch: 1}, request: &Request{Processors: 40}, home: "home0", run: 10 * grid.Second})
	w.submit(w.jobs[0])
	w.heal()
	total := 0
	for _, n := range w.sent {
		total += n
	}
	if want := 4 * (2 + 2 + 2); total != want {
		t.Errorf("%d messages for a job on 4 sites, want %d: %v", total, want, w.sent)
	}
}
