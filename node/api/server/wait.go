package server

import (
	"context"
	"errors"
	"sync"

	"gridnode/grid"
	"gridnode/node"
	"gridnode/node/site"
)

// waiters lets requests wait for jobs. They are woken by the events of the host's
// loop, so nothing is asked twice while nothing happens.
type waiters struct {
	mu   sync.Mutex
	jobs map[grid.JobID][]*waiter
}

// waiter waits for several jobs to be placed or to be over.
type waiter struct {
	placed  bool // placed, or anything later, is enough
	pending map[grid.JobID]bool
	done    chan struct{} // closed once pending is empty
}

func (w *waiters) init() {
	w.jobs = make(map[grid.JobID][]*waiter)
}

// follow passes the host's events on until the host stops or ctx ends.
func (a *Server) follow(ctx context.Context, events *node.Subscription) {
	for {
		list, err := events.Next(ctx)
		a.waiters.events(list)
		a.changes.Note(list)
		switch {
		case errors.Is(err, node.ErrLagged):
			events = a.host.Subscribe()
			a.changes.Missed()
			a.lookAgain(ctx)
		case err != nil:
			return
		}
	}
}

// lookAgain settles whatever the events that were missed would have settled.
func (a *Server) lookAgain(ctx context.Context) {
	_ = a.host.Do(ctx, func(s *site.Site) { // the host stops if this fails, and everybody is told
		a.waiters.lookAgain(func(id grid.JobID) site.State {
			v, known := s.Glance(id)
			if !known {
				return site.Done // and forgotten since
			}
			return v.State
		})
	})
}

func (w *waiters) lookAgain(state func(grid.JobID) site.State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.jobs {
		now := state(id)
		w.reached(id, now != site.Placing, now.Terminal())
	}
}

// events takes what the host tells, once it is durable.
func (w *waiters) events(list []grid.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range list {
		id := list[i].Job.ID
		switch list[i].Kind {
		case grid.JobFinished, grid.JobRefused, grid.JobCancelled:
			w.reached(id, true, true)
		case grid.JobPlaced, grid.JobStarted, grid.JobAwaits:
			w.reached(id, true, false)
		}
	}
}

// reached tells waiters how far a job has come.
func (w *waiters) reached(id grid.JobID, placed, over bool) {
	list := w.jobs[id]
	kept := list[:0]
	for _, waiter := range list {
		if over || placed && waiter.placed {
			waiter.settle(id)
		} else {
			kept = append(kept, waiter)
		}
	}
	w.put(id, kept)
}

func (w *waiters) put(id grid.JobID, list []*waiter) {
	if len(list) == 0 {
		delete(w.jobs, id)
		return
	}
	w.jobs[id] = list
}

// settle takes id off the list of what is waited for.
func (w *waiter) settle(id grid.JobID) {
	if !w.pending[id] {
		return
	}
	if delete(w.pending, id); len(w.pending) == 0 {
		close(w.done)
	}
}

// add begins to wait for jobs. remove must follow.
func (w *waiters) add(ids []grid.JobID, placed bool) *waiter {
	waiter := &waiter{placed: placed, pending: make(map[grid.JobID]bool, len(ids)), done: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		if !waiter.pending[id] {
			waiter.pending[id] = true
			w.jobs[id] = append(w.jobs[id], waiter)
		}
	}
	if len(ids) == 0 {
		close(waiter.done)
	}
	return waiter
}

// settled tells waiter about jobs whose state was looked up after add.
func (w *waiters) settled(waiter *waiter, ids []grid.JobID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		waiter.settle(id)
	}
}

func (w *waiters) remove(waiter *waiter, ids []grid.JobID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		list := w.jobs[id]
		kept := list[:0]
		for _, other := range list {
			if other != waiter {
				kept = append(kept, other)
			}
		}
		w.put(id, kept)
	}
}

// await returns once every job is over and its output in the files that its owner named, or
// placed if that is enough, with ctx's error if it ends first, or with ErrStopped.
func (a *Server) await(ctx context.Context, ids []grid.JobID, placed bool) error {
	waiter := a.waiters.add(ids, placed)
	defer a.waiters.remove(waiter, ids)
	var settled []grid.JobID
	err := a.host.DoTold(context.WithoutCancel(ctx), func(s *site.Site) { // for what is over nobody waits too short
		for _, id := range ids {
			v, known := s.Glance(id)
			if !known || v.State.Terminal() || placed && (v.State != site.Placing || v.Waits) {
				settled = append(settled, id)
			}
		}
	})
	if err != nil {
		return err
	}
	a.waiters.settled(waiter, settled)
	select {
	case <-waiter.done:
	default:
		select {
		case <-waiter.done:
		case <-ctx.Done():
			return ctx.Err()
		case <-a.stopping.Done():
			return node.ErrStopped
		}
	}
	if !placed {
		node.AwaitOutputs(ctx, a.host, ids)
	}
	return nil
}
