package lease

import (
	"iter"
	"slices"

	"gridnode/grid"
	"gridnode/internal/lrms"
)

// round is one attempt to lease what a job lacks, all of it or nothing; when it has
// succeeded, it is what the job runs on. Meanwhile the job keeps its place in the queue,
// and the idle processors of its own site that it needs besides are held for it, so that
// what was lacking when partners were asked is what lacks when they have answered.
//
// The partners are asked one after the other for all that lacks: at most one of them
// grants in vain. If none has so many, and they have them together as they said when they
// refused, those with any are asked for what they have. What is granted is claimed when
// nothing lacks any more, and released if that does not come about.
type round struct {
	own      int64       // processors of this site
	held     grid.TaskID // as which the cluster counts them until the job starts; zero: there are none
	lacks    int64       // processors that nobody has granted yet
	partners []partner   // in the order in which they are asked
	next     int         // of them
	pieces   bool        // they are asked for what each has
	parts    []uint64    // numbers of leases: granted, but for the one that is open
	open     uint64      // of them: asked for, and not answered; 0: none
	broken   bool        // a lease that the job runs on is over
	claiming int         // parts whose claim is not confirmed; they are claimed together
}

// partner is a site that is asked in a round.
type partner struct {
	site grid.SiteID
	free int64 // as it said when it refused
}

// partnersMax bounds whom one round asks.
const partnersMax = 16

// taskHeld names what is held of a site's own processors for the round of a job.
func taskHeld(sequence uint64) grid.TaskID {
	const mark = 0x726f756e64 // "round"
	return grid.TaskID{Job: grid.JobID{Hi: mark, Lo: sequence}}
}

// situation returns what policies know of the site.
func (m *Matchmaker) situation(now grid.Time) Situation {
	return Situation{Now: now, Processors: m.cluster.Processors(), Idle: m.cluster.Idle(now), Wanted: m.cluster.Demand() + m.asideSum}
}

// candidate returns a request as policies see it.
func (d *demand) candidate() Candidate {
	return Candidate{Task: d.ID, Processors: d.processors, Estimate: d.Estimate, Born: d.born, Unit: d.unit, Rounds: d.rounds}
}

// queue yields the own jobs behind a place in the order of submission that wait and that
// nothing is asked for yet.
func (m *Matchmaker) queue(behind uint64) iter.Seq[Candidate] {
	return func(yield func(Candidate) bool) {
		for r := range m.cluster.Waiting {
			d := m.demands[r.ID]
			if d != nil && d.sequence > behind && d.from == (ID{}) && d.round == nil && d.out == 0 && !yield(d.candidate()) {
				return
			}
		}
	}
}

// consult asks the resource delegation policy, if there is one, and does as it wishes. d
// is nil for OnCycle.
func (m *Matchmaker) consult(now grid.Time, on Occasion, d *demand, out *grid.Outbox) {
	if m.delegateBy == nil {
		return
	}
	var of Candidate
	behind := uint64(0)
	if d != nil {
		of = d.candidate()
	}
	if on == OnGain {
		behind = d.sequence
	}
	for _, w := range m.delegateBy(on, m.situation(now), of, m.queue(behind)) {
		if d := m.demands[w.Task]; d != nil && d.from == (ID{}) && d.round == nil && d.out == 0 {
			m.seek(now, d, w.Processors, out)
		}
	}
}

// seek begins a round for a job that waits.
func (m *Matchmaker) seek(now grid.Time, d *demand, lacks int64, out *grid.Outbox) {
	if own := d.processors - lacks; d.ttl < 1 || !d.kept(now, d.Estimate) || lacks < 1 || own < 0 || own%d.unit != 0 || own > m.cluster.Idle(now) {
		return
	}
	r := &round{lacks: lacks, own: d.processors - lacks}
	for _, t := range m.targetsOf(now, d, lacks) {
		if len(r.partners) < partnersMax {
			r.partners = append(r.partners, partner{site: t.Site})
		}
	}
	if len(r.partners) == 0 {
		return
	}
	if r.own > 0 {
		r.held = taskHeld(d.sequence)
		if m.cluster.Lend(now, lrms.Request{ID: r.held, Processors: r.own, Estimate: d.Estimate}) != nil {
			r.held, r.own, r.lacks = grid.TaskID{}, 0, d.processors // they are promised to others: all are leased
		}
	}
	d.round = r
	if !m.askPartner(now, d, out) {
		m.giveUp(now, d, out)
	}
}

// askPartner asks the next partner of a round, and reports whether there was one.
func (m *Matchmaker) askPartner(now grid.Time, d *demand, out *grid.Outbox) bool {
	r := d.round
	for ; r.next < len(r.partners); r.next++ {
		p := &r.partners[r.next]
		processors := r.lacks
		if r.pieces {
			if processors = min(processors, p.free/d.unit*d.unit); processors < 1 {
				continue
			}
		}
		id, err := m.book.Request(now, p.site, Want{
			Processors: processors, Span: m.span(d), Subject: roundOf(d.ID, d.rounds), Sink: d.sink, Age: max(now-d.born, 0),
		}, out)
		if err != nil {
			return false // the book is full
		}
		m.hearsay.place(now, p.site, processors)
		r.open = id.Number
		r.parts = append(r.parts, id.Number)
		m.asking[id.Number] = d
		m.Delegations.Asked++
		return true
	}
	var offered int64
	for i := range r.partners {
		offered += r.partners[i].free / d.unit * d.unit
	}
	if r.pieces || offered < r.lacks {
		return false
	}
	r.pieces, r.next = true, 0
	return m.askPartner(now, d, out)
}

// partGranted says that a partner has set processors aside.
func (m *Matchmaker) partGranted(now grid.Time, d *demand, in *Granted, out *grid.Outbox) {
	r := d.round
	if r.open != in.Number {
		return
	}
	r.open = 0
	r.next++
	if r.lacks -= in.Processors; r.lacks > 0 {
		if !m.askPartner(now, d, out) {
			m.giveUp(now, d, out)
		}
		return
	}
	r.claiming = len(r.parts)
	for _, number := range slices.Clone(r.parts) {
		_ = m.book.Claim(now, ID{m.book.Site(), number}, out) // ErrUnknown: the hold has just run out, and Ended follows
	}
}

// partRefused says that a partner has not what it was asked for.
func (m *Matchmaker) partRefused(now grid.Time, d *demand, in *Refused, out *grid.Outbox) {
	r := d.round
	delete(m.asking, in.Number)
	r.parts = slices.DeleteFunc(r.parts, func(number uint64) bool { return number == in.Number })
	r.open = 0
	m.Delegations.Refused++
	p := &r.partners[r.next]
	p.free = 0
	if (in.Reason == Busy || in.Reason == TooWide) && !r.pieces && in.Free < in.Processors { // else it has them, and keeps them for others
		p.free = in.Free
	}
	m.shun(now, in)
	r.next++
	if !m.askPartner(now, d, out) {
		m.giveUp(now, d, out)
	}
}

// shun keeps a partner from being asked for a while that has refused for a reason that
// will last.
func (m *Matchmaker) shun(now grid.Time, in *Refused) {
	switch in.Reason {
	case Denied, Full, Unreachable, Silent, Unpaid, Dear:
		m.recalled(now, in.Lease, in.Reason)
	}
}

// partClaimed says that processors of a partner are here. With the last of them the job
// starts.
func (m *Matchmaker) partClaimed(now grid.Time, d *demand, in *Claimed, out *grid.Outbox) {
	r := d.round
	if r.claiming--; r.claiming > 0 || d.brought {
		return
	}
	m.letGo(now, r)
	brought := &Brought{Task: d.ID, Own: r.own}
	for i, number := range r.parts {
		l, _ := m.book.Get(ID{m.book.Site(), number})
		m.Delegations.Hops += int64(l.Hops)
		if i == 0 {
			brought.Lease = l
		}
		if d.apart {
			brought.Leases = append(brought.Leases, l)
		}
	}
	// "the job is prioritized for direct execution"
	if r.own == 0 {
		must(m.cluster.Borrow(now, d.Request))
	} else {
		m.cluster.Cancel(now, d.ID)
		must(m.cluster.Adopt(now, lrms.Request{ID: d.ID, Processors: r.own, Estimate: d.Estimate}, now))
	}
	if brought.Leases == nil { // from now on it is as one that was delegated
		d.out, d.round = r.parts[0], nil
	}
	d.brought, d.away, d.since = true, true, now
	d.rounds++
	m.Delegations.Brought++
	out.Local(brought)
	m.consult(now, OnGain, d, out)
}

// must panics if processors cannot be taken that were held for that.
func must(err error) {
	if err != nil {
		panic("lease: processors that a job has leased, or that are held for it, cannot be taken: " + err.Error())
	}
}

// letGo gives back what is held of the site's own processors.
func (m *Matchmaker) letGo(now grid.Time, r *round) {
	if r.held != (grid.TaskID{}) {
		m.cluster.Ended(now, r.held)
		r.held = grid.TaskID{}
	}
}

// giveUp ends a round, or what has come of it, and releases all that was granted. A job
// that waits goes on waiting.
func (m *Matchmaker) giveUp(now grid.Time, d *demand, out *grid.Outbox) {
	r := d.round
	d.round = nil
	m.letGo(now, r)
	for _, number := range r.parts {
		delete(m.asking, number)
		_ = m.book.Release(now, ID{m.book.Site(), number}, out) // ErrUnknown: it is what has ended
	}
	if !d.brought {
		d.rounds++ // the next attempt is another request
	}
}

// partEnded says that a lease of a round is over: one that was granted and not claimed
// in time, or that could not be confirmed, or processors that the job runs on.
func (m *Matchmaker) partEnded(now grid.Time, d *demand, in *Ended, out *grid.Outbox) {
	r := d.round
	if !d.brought {
		m.giveUp(now, d, out)
		return
	}
	delete(m.asking, in.Number)
	r.parts = slices.DeleteFunc(r.parts, func(number uint64) bool { return number == in.Number })
	if in.Cause == Revoked {
		m.recalled(now, in.Lease, Accepted)
	}
	r.broken = true
	gone := in.Gone // and what runs on the others is ended, too
	for _, number := range r.parts {
		gone = max(gone, m.book.Gone(ID{m.book.Site(), number}))
	}
	out.Local(&Lost{Task: d.ID, Cause: in.Cause, Gone: gone, Rest: true})
}
