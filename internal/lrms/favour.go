package lrms

import (
	"slices"

	"gridnode/grid"
)

// favour is what Favour works with.
type favour struct {
	places []int      // of the jobs in the queue
	jobs   [][]waiter // of each owner, in order
	owners []int32    // that have any, by their first job
	order  []waiter
}

// Favour puts the queue in an order by whose the jobs are: those of the owner that compare
// puts first go before all others, in the order in which they stand. Owners whom it says to
// be equal go by their first jobs. It does so only if there is room to start any; Schedule
// is to follow. TITAN has an order of its own, and nothing happens. Owners are small numbers,
// 0 or more. It takes O(n) time for n jobs that wait.
func (c *Cluster) Favour(now grid.Time, owner func(grid.TaskID) int32, compare func(a, b int32) int) {
	c.advance(now)
	if c.planner != nil || c.queue.size < 2 || c.profile.free <= 0 {
		return
	}
	f := &c.favour
	f.sort(c, owner)
	if len(f.owners) < 2 {
		return
	}
	slices.SortStableFunc(f.owners, compare)
	f.order = f.order[:0]
	for _, o := range f.owners {
		f.order = append(f.order, f.jobs[o]...)
	}
	for i, at := range f.places {
		e := f.order[i]
		if c.queue.entries[at].task == e.task {
			continue
		}
		c.liftPlan()
		c.queue.replace(at, e)
		c.tasks.slab[e.task].link = int32(at)
		c.changes++ // another head, other jobs behind it
	}
}

// sort finds out who has jobs in the queue.
func (f *favour) sort(c *Cluster, owner func(grid.TaskID) int32) {
	for _, o := range f.owners {
		f.jobs[o] = f.jobs[o][:0]
	}
	f.places, f.owners = f.places[:0], f.owners[:0]
	for at := c.queue.head; at < len(c.queue.entries); at++ {
		e := c.queue.entries[at]
		if e.processors <= 0 {
			continue
		}
		o := owner(c.tasks.slab[e.task].ID)
		for int(o) >= len(f.jobs) {
			f.jobs = append(f.jobs, nil)
		}
		if len(f.jobs[o]) == 0 {
			f.owners = append(f.owners, o)
		}
		f.jobs[o] = append(f.jobs[o], e)
		f.places = append(f.places, at)
	}
}
