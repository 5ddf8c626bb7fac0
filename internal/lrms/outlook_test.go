package lrms

import (
	"testing"

	"gridnode/grid"
)

// TestOutlook: by the estimates of those before it, a job starts when it was foretold, and a
// promise is told as one.
func TestOutlook(t *testing.T) {
	c, err := New(Config{Processors: 4, Discipline: FCFS})
	if err != nil {
		t.Fatal(err)
	}
	id := func(n uint64) grid.TaskID { return grid.TaskID{Job: grid.JobID{Lo: n}, Epoch: 1} }
	jobs := []Request{{ID: id(1), Processors: 3, Estimate: 10}, {ID: id(2), Processors: 2, Estimate: 20}, {ID: id(3), Processors: 4, Estimate: 5}, {ID: id(4), Processors: 1, Estimate: 5}}
	for _, r := range jobs {
		if err := c.Submit(0, r); err != nil {
			t.Fatal(err)
		}
	}
	if started := c.Schedule(0, nil); len(started) != 1 {
		t.Fatalf("%d started", len(started))
	}
	want := map[uint64]Outlook{2: {0, 10, false}, 3: {1, 30, false}, 4: {2, 35, false}}
	for n, w := range want {
		if got, ok := c.Outlook(id(n)); !ok || got != w {
			t.Errorf("job %d: %+v, %v, want %+v", n, got, ok, w)
		}
	}
	for _, n := range []uint64{1, 9} {
		if got, ok := c.Outlook(id(n)); ok {
			t.Errorf("job %d, which does not wait: %+v", n, got)
		}
	}
	starts := map[uint64]grid.Time{}
	for at, ends := grid.Time(0), map[grid.TaskID]grid.Time{id(1): 10}; at <= 60; at++ {
		for task, end := range ends {
			if end == at {
				c.Ended(at, task)
				delete(ends, task)
			}
		}
		for _, r := range c.Schedule(at, nil) {
			starts[r.ID.Job.Lo], ends[r.ID] = at, at+r.Estimate
		}
	}
	for n, w := range want {
		if starts[n] != w.Start {
			t.Errorf("job %d starts at %d, foretold was %d", n, starts[n], w.Start)
		}
	}
	start, err := c.Reserve(61, Request{ID: id(7), Processors: 2, Estimate: 5}, grid.Never)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := c.Outlook(id(7)); !ok || !got.Promised || got.Start != start || got.Before != 0 {
		t.Errorf("%+v, %v, want the promise of %d", got, ok, start)
	}
}
