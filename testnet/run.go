package testnet

import (
	"context"
	"errors"
	"fmt"
	"io"

	"gridnode/grid"
)

// arrival is a job that the source has named.
type arrival struct {
	job   *grid.Job
	site  int32
	token uint64 // of its user
}

// Run lets time pass until the instant until (included), until nothing is left to
// happen, or until stop, asked after each instant, returns true; stop may be nil.
// It returns ctx's error if that ends first, a fault of the source, of a restart
// or of a check, and otherwise nil. It may be called again with a later until.
func (n *Network) Run(ctx context.Context, until grid.Time, stop func() bool) error {
	const patience = 1 << 12 // events between two looks at ctx
	look := n.events + patience
	n.settle()
	crew := n.engage(stop)
	defer crew.dismiss()
	for n.err == nil {
		if err := n.fetch(); err != nil {
			return err
		}
		at := n.next()
		if at == grid.Never || at > until {
			break
		}
		var err error
		if end := n.strideEnd(at, until); crew.pays(n) && end > at {
			err = n.throughStride(crew, end)
		} else {
			n.enter(at)
			err = n.instant()
		}
		if err != nil {
			return err
		}
		if n.events >= look {
			look = n.events + patience
			if n.cfg.Pulse != nil {
				n.cfg.Pulse()
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if stop != nil && stop() {
			return n.err
		}
	}
	if n.err == nil && until != grid.Never {
		n.enter(until)
	}
	return n.err
}

// next returns when something happens next, grid.Never if nothing does.
func (n *Network) next() grid.Time {
	_, at := n.first()
	if n.arrival.job != nil {
		at = min(at, n.arrival.job.Submit)
	}
	return at
}

// enter makes an instant the present one, unless it is past.
func (n *Network) enter(at grid.Time) {
	n.now = max(n.now, at)
	for _, l := range n.lanes {
		l.now = n.now
	}
}

// instant lets everything of the present instant happen: the events, ends of
// executions first; then submissions, in the order of the source; then one Tick
// for each site concerned. What a Tick causes at once belongs to the same instant.
func (n *Network) instant() error {
	for n.err == nil {
		switch q, at := n.first(); {
		case at <= n.now:
			_, e := q.pop()
			n.laneOf(e.to).happen(e)
		case n.arrival.job != nil && n.arrival.job.Submit <= n.now:
			a := n.arrival
			n.arrival = arrival{}
			n.laneOf(a.site).submit(a)
			if err := n.fetch(); err != nil {
				return err
			}
		case len(n.turns) > 0:
			n.settle()
			continue
		default:
			return n.err
		}
		n.events++
		if n.cfg.Check != nil && (n.cfg.CheckEvery <= 1 || n.events%n.cfg.CheckEvery == 0) {
			if err := n.cfg.Check(n.now); err != nil {
				return fmt.Errorf("at %v after %d events: %w", n.now, n.events, err)
			}
		}
	}
	return n.err
}

// first returns the queue of the event that comes first, and when it does.
func (n *Network) first() (queue *eventQueue, at grid.Time) {
	queue, first := &n.common, n.common.first()
	for _, l := range n.lanes {
		if p := l.queue.first(); p.before(first) {
			queue, first = &l.queue, p
		}
	}
	return queue, first.at
}

// settle gives every site that had an input its Tick and sets its timer.
func (n *Network) settle() {
	for i := 0; i < len(n.turns); i++ {
		n.laneOf(n.turns[i]).tick(n.turns[i])
	}
	n.turns = n.turns[:0]
}

// order inserts an event in a queue.
func (n *Network) order(q *eventQueue, at grid.Time, class uint64, e event) {
	n.inserted++
	q.push(at, class|n.inserted, e)
}

// fetch makes arrival the next job of the source, unless it is known already.
func (n *Network) fetch() error {
	if n.arrival.job != nil || n.source == nil {
		return nil
	}
	job, site, err := n.source.Next()
	if errors.Is(err, io.EOF) {
		n.source = nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("read jobs: %w", err)
	}
	if site < 0 || site >= len(n.members) {
		panic(fmt.Sprintf("testnet: job %s is for site %d of %d", job.ID, site, len(n.members)))
	}
	if job.Submit < n.now {
		return fmt.Errorf("read jobs: job %s is submitted at %v, after one submitted at %v: sort the trace by submit time", job.Name, job.Submit, n.now)
	}
	n.arrival = arrival{job: job, site: int32(site)}
	if n.cfg.Durable {
		n.token++
		n.arrival.token = n.token
	}
	return nil
}
