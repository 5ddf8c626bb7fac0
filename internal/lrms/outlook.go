package lrms

import (
	"container/heap"
	"slices"

	"gridnode/grid"
)

// Outlook is how a task stands that waits.
type Outlook struct {
	Before   int       // jobs before it in the queue
	Start    grid.Time // when it starts, or may at the latest; grid.Never if that cannot be told
	Promised bool      // Start is promised; else it is estimated, by the estimates of all that has processors before it
}

// release is when processors become free.
type release struct {
	at         grid.Time
	processors int64
}

// releases is a heap of them, the earliest first.
type releases []release

func (r releases) Len() int           { return len(r) }
func (r releases) Less(i, j int) bool { return r[i].at < r[j].at }
func (r releases) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *releases) Push(x any)        { *r = append(*r, x.(release)) }
func (r *releases) Pop() any {
	last := len(*r) - 1
	x := (*r)[last]
	*r = (*r)[:last]
	return x
}

// Outlook returns how a task stands, and false if it does not wait, or keeps its place only
// (Park). An estimate has nobody overtake anybody and every job take as long as it may, so
// most start earlier; jobs of others that are promised a start meanwhile may delay it.
// It takes O(n log n) time for n jobs.
func (c *Cluster) Outlook(id grid.TaskID) (Outlook, bool) {
	i, ok := c.tasks.index[id]
	if !ok {
		return Outlook{}, false
	}
	switch t := &c.tasks.slab[i]; t.state {
	case reserved, due:
		return Outlook{Start: max(c.agenda.promises[t.link].start, c.now), Promised: true}, true
	case queued:
		return c.estimated(id), true
	case lined:
		return Outlook{Before: slices.Index(c.line, i), Start: grid.Never}, true
	}
	return Outlook{}, false
}

// estimated returns the outlook of a job of the queue.
func (c *Cluster) estimated(id grid.TaskID) Outlook {
	free := c.cfg.Processors
	var ends releases
	for _, i := range c.tasks.index {
		switch t := &c.tasks.slab[i]; t.state {
		case running:
			free -= t.Processors
			ends = append(ends, release{max(t.end, c.now), t.Processors})
		case reserved, due: // as if they had begun: theirs is a later end
			p := &c.agenda.promises[t.link]
			free -= t.Processors
			ends = append(ends, release{max(p.start.Add(t.Estimate), c.now), t.Processors})
		}
	}
	heap.Init(&ends)
	out := Outlook{Start: grid.Never}
	at := c.now
	for r := range c.Waiting {
		for free < r.Processors && len(ends) > 0 {
			e := heap.Pop(&ends).(release)
			at, free = max(at, e.at), free+e.processors
		}
		if free < r.Processors {
			return out // lent processors are missing, and nobody knows until when
		}
		if r.ID == id {
			out.Start = at
			return out
		}
		out.Before++
		free -= r.Processors
		heap.Push(&ends, release{at.Add(r.Estimate), r.Processors})
	}
	return out
}
