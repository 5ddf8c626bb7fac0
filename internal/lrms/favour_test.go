package lrms

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
)

// order returns the numbers of the jobs that wait, in order, and checks that each is where it
// says that it is.
func (c *Cluster) order(t interface{ Fatalf(string, ...any) }) (ids []uint64) {
	for at, e := range c.queue.entries {
		if e.processors <= 0 {
			continue
		}
		if task := &c.tasks.slab[e.task]; int(task.link) != at || task.Estimate != e.estimate || task.state != queued {
			t.Fatalf("the job at %d is %+v", at, task)
		}
		ids = append(ids, c.tasks.slab[e.task].ID.Job.Lo)
	}
	return ids
}

// TestFavourAgainstNaive: the queue is sorted by owner, stably, when there is room, and else
// stays; whatever happens no job is lost, and the same start as in a queue that came so.
func TestFavourAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{Processors: 8, Discipline: rapid.SampledFrom([]Discipline{EASY, FCFS}).Draw(t, "discipline")}
		c, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		requests, now := map[uint64]Request{}, grid.Time(0)
		whose, begun := map[uint64]int32{}, map[uint64]grid.Time{}
		var running []Request
		for n := range uint64(rapid.IntRange(1, 40).Draw(t, "steps")) {
			now += grid.Time(rapid.Int64Range(0, 20).Draw(t, "pause"))
			if rapid.Bool().Draw(t, "ends") && len(running) > 0 {
				at := rapid.IntRange(0, len(running)-1).Draw(t, "which")
				c.Ended(now, running[at].ID)
				running = slices.Delete(running, at, at+1)
			}
			r := Request{
				ID: grid.TaskID{Job: grid.JobID{Lo: n + 1}}, Processors: rapid.Int64Range(1, 8).Draw(t, "processors"),
				Estimate: grid.Time(rapid.Int64Range(1, 100).Draw(t, "estimate")),
			}
			requests[n+1], whose[n+1] = r, rapid.Int32Range(0, 3).Draw(t, "owner")
			if err := c.Submit(now, r); err != nil {
				t.Fatal(err)
			}
			ranks := rapid.SliceOfN(rapid.IntRange(0, 2), 4, 4).Draw(t, "ranks")
			want, room := c.order(t), c.profile.free > 0
			owners := map[int32]int{}
			for i, id := range want {
				if _, seen := owners[whose[id]]; !seen {
					owners[whose[id]] = i
				}
			}
			if room {
				slices.SortStableFunc(want, func(a, b uint64) int {
					x, y := whose[a], whose[b]
					return cmp.Or(cmp.Compare(ranks[x], ranks[y]), cmp.Compare(owners[x], owners[y]))
				})
			}
			c.Favour(now, func(id grid.TaskID) int32 { return whose[id.Job.Lo] }, func(a, b int32) int { return cmp.Compare(ranks[a], ranks[b]) })
			if got := c.order(t); !slices.Equal(got, want) {
				t.Fatalf("the queue is %v, want %v", got, want)
			}
			other := replica(t, cfg, now, running, begun, want, requests)
			started, same := c.Schedule(now, nil), other.Schedule(now, nil)
			if room && !slices.Equal(started, same) {
				t.Fatalf("%v start, and in a queue that came so %v", started, same)
			}
			for _, r := range started {
				begun[r.ID.Job.Lo] = now
			}
			running = append(running, started...)
		}
	})
}

// replica returns a cluster in whose queue jobs came in an order.
func replica(t *rapid.T, cfg Config, now grid.Time, running []Request, begun map[uint64]grid.Time, order []uint64, requests map[uint64]Request) *Cluster {
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range running {
		if err := c.Adopt(now, r, begun[r.ID.Job.Lo]); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range order {
		if err := c.Submit(now, requests[id]); err != nil {
			t.Fatal(err)
		}
	}
	return c
}
