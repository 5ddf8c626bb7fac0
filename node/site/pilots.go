package site

import (
	"gridnode/grid"
	"gridnode/lease"
)

// pilots is the part that keeps lent processors for those who have leased them: an
// executor's pilot runs what the borrower sends, until the lease is over.
type pilots struct {
	*base
	book    *lease.Book
	byEpoch map[uint64]pilot
}

// pilot is a lent lease whose processors a pilot keeps.
type pilot struct {
	id  lease.ID
	end grid.Time // as the executor was last told
}

func (*pilots) takes(b *board) {
	take(b, func(s *Site) *pilots { return s.pilots }, (*pilots).activated)
}

// activated: somebody has claimed processors of this site.
func (ps *pilots) activated(now grid.Time, in *lease.Activated, out *grid.Outbox) {
	ps.keep(now, in.Lease, out)
}

// keep has a pilot keep the processors of a lent lease until its end.
func (ps *pilots) keep(now grid.Time, l lease.Lease, out *grid.Outbox) {
	if !l.Lent || l.State != lease.Active || l.Via != 0 || l.End <= now || ps.byEpoch[l.Epoch].end >= l.End {
		return
	}
	ps.byEpoch[l.Epoch] = pilot{id: l.ID, end: l.End}
	out.Start(grid.Task{ID: lease.TaskOf(l.Epoch), Limit: l.End - now, Pilot: grid.Pilot{Site: l.Sink, Key: l.Epoch}})
}

// takeBack ends what runs on processors that were lent.
func (ps *pilots) takeBack(_ grid.Time, in *lease.Ended, out *grid.Outbox) {
	if in.State == lease.Requested || in.Via != 0 {
		return
	}
	if _, kept := ps.byEpoch[in.Epoch]; kept || in.State == lease.Active || in.State == lease.Ending {
		ps.byEpoch[in.Epoch] = pilot{id: in.ID, end: grid.Never}
		out.Kill(grid.Task{ID: lease.TaskOf(in.Epoch), Cause: "the lease is over: " + in.Cause.String(), Pilot: grid.Pilot{Site: in.Sink, Key: in.Epoch}})
	}
}

// taskEnded implements watcher: a pilot and everything it started is gone.
func (ps *pilots) taskEnded(now grid.Time, in *grid.TaskEnded, out *grid.Outbox) bool {
	epoch, yes := IsPilot(in.ID)
	p, known := ps.byEpoch[epoch]
	if !yes || !known {
		return yes
	}
	delete(ps.byEpoch, epoch)
	if ps.book.Vacated(now, p.id, out) == nil {
		return true
	}
	// It died while the lease goes on: what ran there is lost, and the borrower has to
	// know. Taking the lease back tells it so.
	if ps.book.Revoke(now, p.id, true, out) == nil {
		ps.byEpoch[epoch] = pilot{id: p.id, end: grid.Never}
	}
	return true
}

// adopted implements watcher.
func (ps *pilots) adopted(in *Adopted, out *grid.Outbox) bool {
	epoch, yes := IsPilot(in.ID)
	if _, kept := ps.byEpoch[epoch]; yes && !kept {
		out.Kill(grid.Task{ID: in.ID, Cause: "its lease is over"})
	}
	return yes
}

// minds implements watcher: nobody waits for a pilot in limbo.
func (*pilots) minds(grid.TaskID) bool { return false }

// recovered keeps the processors that were lent before a restart.
func (ps *pilots) recovered(now grid.Time, out *grid.Outbox) {
	for _, l := range ps.book.Leases() {
		ps.keep(now, l, out)
	}
}

// of returns the active lease by which another site uses processors of this one.
func (ps *pilots) of(from grid.SiteID, key uint64) (lease.Lease, bool) {
	p, known := ps.byEpoch[key]
	if !known {
		return lease.Lease{}, false
	}
	l, there := ps.book.Get(p.id)
	return l, there && l.State == lease.Active && l.Sink == from && l.Epoch == key
}

// IsPilot returns the epoch of the lease whose pilot a task is.
func IsPilot(id grid.TaskID) (epoch uint64, yes bool) {
	return id.Job.Lo, id == lease.TaskOf(id.Job.Lo)
}
