package site

import (
	"cmp"
	"fmt"
	"slices"

	"gridnode/grid"
	"gridnode/lease"
)

// pools is the processors that a site has borrowed, by lease. They run jobs of its
// queue as its own do; a job is either on own processors or on those of one lease.
type pools struct {
	list   []*pool               // in order of their leases
	guests map[grid.TaskID]*pool // jobs that run there
}

// pool is the processors of one borrowed lease.
type pool struct {
	id    lease.ID
	used  int64
	tasks []guest // in order of their IDs
	over  bool    // no job is started there any more

	matched bool // the matchmaker borrowed it for one job, and releases it
}

// guest is a job of this site that runs on borrowed processors.
type guest struct {
	id         grid.TaskID
	processors int64
}

func newPools() pools { return pools{guests: make(map[grid.TaskID]*pool)} }

// comparePools orders pools by their leases: roughly by age.
func comparePools(a, b *pool) int {
	return cmp.Or(a.id.Compare(b.id), cmp.Compare(a.id.Borrower, b.id.Borrower))
}

// compareGuests orders the tasks of a pool.
func compareGuests(a, b guest) int { return a.id.Compare(b.id) }

// of returns the borrowed processors of a lease, or nil.
func (ps *pools) of(id lease.ID) *pool {
	at, found := slices.BinarySearchFunc(ps.list, &pool{id: id}, comparePools)
	if !found {
		return nil
	}
	return ps.list[at]
}

// open enters the processors of a lease.
func (ps *pools) open(id lease.ID) *pool {
	p := &pool{id: id}
	at, _ := slices.BinarySearchFunc(ps.list, p, comparePools)
	ps.list = slices.Insert(ps.list, at, p)
	return p
}

// close forgets a pool, but not what runs there.
func (ps *pools) close(p *pool) {
	ps.list = slices.DeleteFunc(ps.list, func(q *pool) bool { return q == p })
}

// enter notes that a task runs in a pool.
func (ps *pools) enter(p *pool, g guest) {
	p.used += g.processors
	at, _ := slices.BinarySearchFunc(p.tasks, g, compareGuests)
	p.tasks = slices.Insert(p.tasks, at, g)
	ps.guests[g.id] = p
}

// leave frees the borrowed processors of a task that has ended, and returns the pool
// that they are in; nil if it had none.
func (ps *pools) leave(id grid.TaskID) *pool {
	p := ps.guests[id]
	if p == nil {
		return nil
	}
	delete(ps.guests, id)
	at, found := slices.BinarySearchFunc(p.tasks, guest{id: id}, compareGuests)
	if !found {
		panic(fmt.Sprintf("site: task %v is not on lease %v", id, p.id))
	}
	p.used -= p.tasks[at].processors
	p.tasks = slices.Delete(p.tasks, at, at+1)
	return p
}
