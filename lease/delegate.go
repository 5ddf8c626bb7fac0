package lease

import (
	"cmp"
	"fmt"
	"slices"

	"gridnode/grid"
)

// wanted returns the processors in use and waited for, which over those of the site are
// its load.
func (m *Matchmaker) wanted(now grid.Time) int64 {
	return m.cluster.Processors() - m.cluster.Idle(now) + m.cluster.Demand() + m.asideSum
}

// delegateLoad is the delegation algorithm (§4.4): requests are delegated in the
// order of the policy "until the local load gets below the threshold that triggered
// the delegation alarm". Those that are wider than the site always are.
func (m *Matchmaker) delegateLoad(now grid.Time, out *grid.Outbox) {
	excess := m.wanted(now)*1000 - m.cfg.Threshold*m.cluster.Processors() // thousandths of processors
	own := m.cfg.Rules.Select != nil
	m.list = m.list[:0]
	var late []*demand // no lease keeps their deadlines any more
	for _, d := range m.aside {
		if _, intime := d.within(now); d.out == 0 && d.ttl > 0 && d.wide && !intime && d.from == (ID{}) {
			late = append(late, d)
		} else if d.out == 0 && d.ttl > 0 && d.retry <= now && (d.wide || excess > 0 || own) {
			m.list = append(m.list, d)
		}
	}
	for _, d := range late {
		d.unmet(m, now, out)
	}
	if (excess > 0 || own) && m.cluster.Demand() > 0 {
		for r := range m.cluster.Waiting {
			d := m.demands[r.ID]
			if d != nil && d.from == (ID{}) && d.ttl > 0 && d.retry <= now && d.kept(now, d.Estimate) && (m.cfg.Rounds == 0 || d.rounds < m.cfg.Rounds) {
				m.list = append(m.list, d)
			}
		}
	}
	slices.SortFunc(m.list, func(a, b *demand) int { return cmp.Compare(a.sequence, b.sequence) })
	if own {
		m.delegateBySelect(now, out)
		return
	}
	m.cfg.Selection.sort(m.list)
	for _, d := range m.list {
		if excess <= 0 && !d.wide {
			continue
		}
		if m.delegate(now, d, out) && !d.wide {
			excess -= 1000 * d.processors
		}
	}
	clear(m.list)
}

// delegateBySelect delegates those of the list that a policy of one's own selects.
func (m *Matchmaker) delegateBySelect(now grid.Time, out *grid.Outbox) {
	m.candidates = m.candidates[:0]
	for _, d := range m.list {
		m.candidates = append(m.candidates, d.candidate())
	}
	clear(m.list)
	for _, c := range m.cfg.Rules.Select(m.situation(now), m.candidates) {
		if d := m.demands[c.Task]; d != nil && d.from == (ID{}) && d.out == 0 {
			m.delegate(now, d, out)
		}
	}
}

// delegate begins a round of delegation of an own request, and reports whether
// somebody is asked.
func (m *Matchmaker) delegate(now grid.Time, d *demand, out *grid.Outbox) bool {
	d.tried = d.tried[:0]
	d.subject = roundOf(d.ID, d.rounds)
	if !m.ask(now, d, out) { // nobody who is not known to be full
		if d.latest != grid.Never {
			d.unmet(m, now, out)
			return false
		}
		d.retry = now + m.cfg.DelegationCycle
		m.giveWay(now, d)
		if !d.aside {
			m.setAside(d)
		}
		return false
	}
	d.rounds++
	m.seen.add(now, d.subject) // it must not come back to this site
	m.takeUp(d)
	m.giveWay(now, d)
	return true
}

// ask asks the next target of a request, and reports whether there was one.
func (m *Matchmaker) ask(now grid.Time, d *demand, out *grid.Outbox) bool {
	within, intime := d.within(now)
	if d.ttl < 1 || !intime {
		return false
	}
	targets := m.targetsOf(now, d, d.processors)
	if len(targets) == 0 {
		return false
	}
	t := targets[0]
	w := Want{
		Processors: d.processors, Span: m.span(d), Patience: m.cfg.Patience,
		Subject: d.subject, Sink: d.sink, TTL: d.ttl - 1, Age: max(now-d.born, 0),
		Within: within,
	}
	if within > 0 {
		w.Patience = min(w.Patience, within)
	}
	if d.from != (ID{}) {
		w.Patience = max(min(w.Patience, d.patience-now), 0)
		w.Most, w.Free = d.price, d.price == 0 // who lends on pays no more than it is paid
	}
	id, err := m.book.Request(now, t.Site, w, out)
	if err != nil {
		return false // the book is full
	}
	m.hearsay.place(now, t.Site, d.processors)
	d.tried = append(d.tried, t.Site)
	d.out = id.Number
	m.asking[id.Number] = d
	m.Delegations.Asked++
	return true
}

// span returns for how long to ask for processors. Each lease of a chain is shorter
// for its borrower than for its lender, so that clocks need not agree.
func (m *Matchmaker) span(d *demand) grid.Time {
	span := d.Estimate
	if d.from == (ID{}) {
		leases := d.ttl + 1 // of a chain at most
		if d.round != nil {
			leases = 1
		}
		span = min(span, SpanLimit) + m.cfg.Slack
		span += grid.Time(leases) * m.book.cfg.margin(span)
	}
	return min(span, SpanLimit)
}

// granted is the answer to a request: it is claimed at once, unless a job needs more.
func (m *Matchmaker) granted(now grid.Time, in *Granted, out *grid.Outbox) {
	switch d := m.asking[in.Number]; {
	case d == nil: // asked for by somebody else than this matchmaker
	case d.round != nil:
		m.partGranted(now, d, in, out)
	case d.from == (ID{}) && !d.kept(now, m.book.cfg.shorter(in.Span)):
		d.decline(m, now, &in.Lease, out)
	default:
		_ = m.book.Claim(now, in.ID, out) // ErrUnknown: the hold has just run out, and Ended follows
	}
}

// claimed says that processors are here.
func (m *Matchmaker) claimed(now grid.Time, in *Claimed, out *grid.Outbox) {
	d := m.asking[in.Number]
	if d == nil {
		return // asked for by somebody else than this matchmaker
	}
	if d.round != nil {
		m.partClaimed(now, d, in, out)
		return
	}
	if d.from != (ID{}) {
		m.forget(d)
		m.Delegations.Passed++
		if err := m.book.Grant(now, d.from, Terms{Via: in.ID}, out); err != nil {
			_ = m.book.Release(now, in.ID, out) // who wanted them has gone
		}
		return
	}
	if !d.kept(now, d.Estimate) {
		d.decline(m, now, &in.Lease, out)
		return
	}
	d.brought, d.since = true, now
	m.Delegations.Brought++
	m.Delegations.Hops += int64(in.Hops)
	m.takeUp(d)
	if err := m.cluster.Borrow(now, d.Request); err != nil {
		panic(fmt.Sprintf("lease: %s: processors for a job that cannot have them: %v", m.book.Site(), err))
	}
	brought := &Brought{Task: d.ID, Lease: in.Lease}
	if d.apart {
		brought.Leases = []Lease{in.Lease}
	}
	out.Local(brought)
}

// refused says that a target has no processors for a request: the next one is asked.
func (m *Matchmaker) refused(now grid.Time, in *Refused, out *grid.Outbox) {
	d := m.asking[in.Number]
	if d == nil {
		return
	}
	if d.round != nil {
		m.partRefused(now, d, in, out)
		return
	}
	delete(m.asking, in.Number)
	d.out = 0
	m.Delegations.Refused++
	if d.latest != grid.Never && d.from == (ID{}) {
		d.outlook.heard(now, in, d.Estimate)
	}
	if in.Reason == Unpaid || in.Reason == Dear {
		m.recalled(now, in.Lease, in.Reason)
	}
	if in.Reason == Busy || in.Reason == Exhausted || in.Reason == TooWide {
		m.hearsay.believe(in.Lender, refusal{processors: d.processors, ttl: d.ttl - 1, free: in.Free, reason: in.Reason, until: now + m.cfg.Retry})
	}
	m.again(now, d, out)
}

// again asks the next target, or gives this round up.
func (m *Matchmaker) again(now grid.Time, d *demand, out *grid.Outbox) {
	if d.from != (ID{}) {
		if now < d.patience && m.ask(now, d, out) {
			return
		}
		m.forget(d)
		m.reject(now, d, Exhausted, out)
		return
	}
	if m.ask(now, d, out) {
		return
	}
	if d.latest != grid.Never {
		d.unmet(m, now, out)
		return
	}
	d.retry = now + m.cfg.Retry
	if m.cfg.Ordering == OrderGossip {
		d.retry = now + m.cfg.DelegationCycle
	}
	if d.wide || m.cfg.Rounds == 0 || d.rounds < m.cfg.Rounds {
		m.setAside(d)
		return
	}
	d.away = false
	m.cluster.Unpark(now, d.ID)
}
