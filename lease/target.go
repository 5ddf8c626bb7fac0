package lease

import (
	"slices"

	"gridnode/grid"
)

// refusal is what a neighbour had no room for, itself or beyond.
type refusal struct {
	processors int64
	ttl        int32
	free       int64
	at         grid.Time
}

// placed is what a site was asked for since its newest report.
type placed struct {
	report     uint64
	processors int64
	at         grid.Time // last
}

// placedSpan is for how long it counts: what came of it the site would have told by then.
const placedSpan = grid.Minute

// targetsOf returns who may be asked for so many processors for a request, best first.
// The slice is reused.
func (m *Matchmaker) targetsOf(now grid.Time, d *demand, processors int64) []Target {
	targets := m.targets[:0]
	add := func(l Link) {
		if l.Site == d.from.Borrower || l.Site == d.sink || slices.Contains(d.tried, l.Site) || !d.passes(l.Relation) {
			return
		}
		if r, ok := m.heard[l.Site]; ok && d.latest == grid.Never && processors >= r.processors && d.ttl-1 <= r.ttl && now < r.at+m.cfg.Retry {
			return
		}
		t := Target{Link: l, Free: m.free(now, l.Site)}
		if m.cfg.Ordering == OrderGossip && t.Free < processors {
			return
		}
		targets = append(targets, t)
	}
	for _, l := range m.cfg.Links {
		add(l)
	}
	if m.cfg.Ordering == OrderGossip {
		for _, s := range m.cfg.Members {
			add(Link{s, Parent})
		}
	}
	m.cfg.Ordering.sort(targets, processors, m.rng)
	m.targets = targets
	if m.cfg.Rules.Order != nil {
		return m.cfg.Rules.Order(d.candidate(), processors, targets)
	}
	return targets
}

// passes reports whether a request may be passed on to a neighbour: who asks from
// above or from beside can ask those above and beside by itself, so what it asks for
// is looked for below only. No site is reached by two ways then.
func (d *demand) passes(to Relation) bool {
	return d.from == (ID{}) || d.relation == Child || to == Child
}

// free returns the free processors of a site as far as is known, or -1.
func (m *Matchmaker) free(now grid.Time, site grid.SiteID) int64 {
	if m.loads != nil {
		if free, report, ok := m.loads(site); ok {
			if p := m.placed[site]; p.report == report && now-p.at <= placedSpan {
				free -= p.processors
			}
			return free
		}
	}
	if r, ok := m.heard[site]; ok && now < r.at+m.cfg.Retry {
		return r.free
	}
	return -1
}

// place remembers what a site is asked for until it gossips anew.
func (m *Matchmaker) place(now grid.Time, site grid.SiteID, processors int64) {
	if m.loads == nil {
		return
	}
	if _, report, ok := m.loads(site); ok {
		p := m.placed[site]
		if p.report != report || now-p.at > placedSpan {
			p = placed{report: report}
		}
		p.processors += processors
		p.at = now
		m.placed[site] = p
	}
}
