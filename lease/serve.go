package lease

import (
	"gridnode/grid"
	"gridnode/internal/lrms"
)

// asked is a request of another site.
func (m *Matchmaker) asked(now grid.Time, in *Asked, out *grid.Outbox) {
	d := &demand{
		Request:    lrms.Request{ID: TaskOf(in.Epoch), Processors: in.Processors, Estimate: in.Span},
		processors: in.Processors, subject: in.Subject, from: in.ID, sink: in.Sink, ttl: in.TTL,
		born: now - in.Age, patience: now + in.Patience, relation: m.relationOf(in.Borrower), price: in.Price,
		latest: grid.Never,
	}
	if in.Within > 0 {
		d.latest = now.Add(in.Within)
	}
	switch {
	case !m.cfg.Lend:
		m.reject(now, d, Denied, out)
	case in.Patience == 0:
		m.serveNow(now, d, out)
	case !m.seen.add(now, in.Subject):
		m.reject(now, d, Seen, out)
	case m.cfg.MatchCycle > 0 && m.nextMatch > d.latest: // nobody is served before that
		m.reject(now, d, TooLate, out)
	case m.Spare(now)-m.kept(now) >= d.processors && m.cluster.Submit(now, d.Request) == nil:
		m.demands[d.ID] = d // served at the next matchmaking cycle
	default:
		d.away = true
		if !m.ask(now, d, out) {
			m.reject(now, d, Exhausted, out)
			return
		}
		m.demands[d.ID] = d
	}
}

// relationOf returns what a site is to this one; Sibling if they are not linked.
func (m *Matchmaker) relationOf(site grid.SiteID) Relation {
	for _, l := range m.cfg.Links {
		if l.Site == site {
			return l.Relation
		}
	}
	return Sibling
}

// serveNow answers a request that cannot wait: it gets what is idle.
func (m *Matchmaker) serveNow(now grid.Time, d *demand, out *grid.Outbox) {
	why := Busy
	if d.processors > m.cluster.Processors() {
		why = TooWide
	} else if m.book.Grant(now, d.from, Terms{}, out) == nil {
		m.Delegations.Served++
		return
	}
	m.reject(now, d, why, out)
}

// reject is a DelegationReject.
func (m *Matchmaker) reject(now grid.Time, d *demand, why Reason, out *grid.Outbox) {
	m.Delegations.Rejected++
	_ = m.book.Refuse(now, d.from, why, 0, out) // ErrUnknown: its borrower has withdrawn it
}
