package server

import (
	"context"
	"errors"
	"slices"
	"testing"

	"gridnode/grid"
	"gridnode/node/api"
	"gridnode/node/site"
)

func settled(w *waiter) bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

func TestWaiters(t *testing.T) {
	var w waiters
	w.init()
	a, b := &grid.Job{ID: grid.JobID{Lo: 1}}, &grid.Job{ID: grid.JobID{Lo: 2}}
	ids := []grid.JobID{a.ID, b.ID, a.ID} // one named twice counts once
	place, end := w.add(ids, true), w.add(ids, false)
	look := w.add([]grid.JobID{b.ID}, false)

	w.events([]grid.Event{{Kind: grid.JobSubmitted, Job: a}, {Kind: grid.JobPlaced, Job: a}, {Kind: grid.JobSubmitted, Job: b}})
	if settled(place) || settled(end) {
		t.Fatal("settled before b is placed")
	}
	w.events([]grid.Event{{Kind: grid.JobStarted, Job: b}, {Kind: grid.JobReplaced, Job: b}, {Kind: grid.JobEnded, Job: b}})
	if !settled(place) || settled(end) {
		t.Fatalf("both are placed and none is over: placed %v, over %v", settled(place), settled(end))
	}
	w.events([]grid.Event{{Kind: grid.JobRefused, Job: a}})
	w.remove(look, []grid.JobID{b.ID})
	w.lookAgain(func(grid.JobID) site.State { return site.Cancelling })
	if settled(end) {
		t.Fatal("settled before b is over")
	}
	w.lookAgain(func(id grid.JobID) site.State {
		if id != b.ID {
			t.Errorf("job %s is waited for still", id)
		}
		return site.Failed
	})
	if !settled(end) || settled(look) {
		t.Errorf("after another look: over %v, want it; removed %v, want it untouched", settled(end), settled(look))
	}
	w.remove(place, ids)
	w.remove(end, ids)
	if len(w.jobs) != 0 {
		t.Errorf("left behind: %d jobs", len(w.jobs))
	}
	if none := w.add(nil, false); !settled(none) {
		t.Error("waiting for nothing does not end")
	}
}

// Whoever asks how a job ended is told, however short he waits.
func TestWaitingForWhatIsOver(t *testing.T) {
	b := newAPIBench(t, t.TempDir())
	idOf := func(j api.Job) []grid.JobID {
		id, err := grid.ParseJobID(j.ID)
		if err != nil {
			t.Fatal(err)
		}
		return []grid.JobID{id}
	}
	over, waits := idOf(b.submit(true, exits(0))[0]), idOf(b.submit(false, holds)[0])
	ended, cancel := context.WithCancel(b.Context())
	cancel()
	for range 20 {
		if err := b.api.await(ended, over, false); err != nil {
			t.Fatalf("a job that is over: %v", err)
		}
	}
	if err := b.api.await(ended, waits, false); !errors.Is(err, context.Canceled) {
		t.Errorf("a job that is not over: %v", err)
	}
}

// Who waits for all jobs of a long queue wants no estimate of when each begins: each walks
// along the queue.
func TestWaitingForAQueueIsCheap(t *testing.T) {
	const jobs = 400
	b := newAPIBenchFor(t, t.TempDir(), Config{}, site.Limits{Jobs: jobs, PerUser: jobs, Finished: 10, Retention: grid.Hour})
	var ids []grid.JobID
	for _, j := range b.submit(false, slices.Repeat([]api.JobSpec{holds}, jobs)...) {
		id, err := grid.ParseJobID(j.ID)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	made := testing.AllocsPerRun(1, func() {
		if err := b.api.await(b.Context(), ids, true); err != nil {
			t.Fatal(err)
		}
	})
	if made > 50*jobs {
		t.Errorf("waiting for %d jobs allocates %.0f times", jobs, made)
	}
}
