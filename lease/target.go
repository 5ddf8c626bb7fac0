package lease

import (
	"slices"

	"gridnode/grid"
)

// hearsay is what a site knows of the room that its neighbours have: what they report, what
// they have refused since, and what they were asked for.
type hearsay struct {
	loads    Loads // nil: nobody gossips
	refusals map[grid.SiteID]refusal
	placed   map[grid.SiteID]placed
}

func newHearsay(loads Loads) *hearsay {
	return &hearsay{loads, make(map[grid.SiteID]refusal), make(map[grid.SiteID]placed)}
}

// refusal is what a neighbour had no room for, itself or beyond, or why it is not asked at all.
type refusal struct {
	processors int64
	ttl        int32
	free       int64
	reason     Reason    // Accepted: it has lent, and wanted its processors back
	until      grid.Time // it is believed for so long
	report     uint64    // number of the newest report of the site's load when it refused
}

// lasts reports whether no room at the site makes up for it.
func (r *refusal) lasts() bool {
	return r.reason == Accepted || r.reason == Unpaid || r.reason == Dear
}

// believe remembers a refusal. A later report that tells of room ends it.
func (h *hearsay) believe(site grid.SiteID, r refusal) {
	if len(h.refusals) >= LinksMax {
		clear(h.refusals)
	}
	if h.loads != nil {
		_, r.report, _ = h.loads(site)
	}
	h.refusals[site] = r
}

// believed returns the refusal of a site that is believed still, if there is one.
func (h *hearsay) believed(now grid.Time, site grid.SiteID) (refusal, bool) {
	r, ok := h.refusals[site]
	if !ok || now >= r.until {
		return r, false
	}
	if h.loads == nil || r.lasts() {
		return r, true
	}
	spare, report, told := h.loads(site)
	return r, !told || report <= r.report || spare < r.processors
}

// placed is what a site was asked for since its newest report.
type placed struct {
	report     uint64
	processors int64
	at         grid.Time // last
}

// placedSpan is for how long it counts: what came of it the site would have told by then.
const placedSpan = grid.Minute

// free returns the free processors of a site as far as is known, or -1.
func (h *hearsay) free(now grid.Time, site grid.SiteID) int64 {
	if h.loads != nil {
		if free, report, ok := h.loads(site); ok {
			if p := h.placed[site]; p.report == report && now-p.at <= placedSpan {
				free -= p.processors
			}
			return free
		}
	}
	if r, ok := h.believed(now, site); ok {
		return r.free
	}
	return -1
}

// place remembers what a site is asked for until it gossips anew.
func (h *hearsay) place(now grid.Time, site grid.SiteID, processors int64) {
	if h.loads == nil {
		return
	}
	if _, report, ok := h.loads(site); ok {
		p := h.placed[site]
		if p.report != report || now-p.at > placedSpan {
			p = placed{report: report}
		}
		p.processors += processors
		p.at = now
		h.placed[site] = p
	}
}

// bars reports whether a refusal keeps its site from being asked for so many processors.
func (r *refusal) bars(d *demand, processors int64) bool {
	return d.latest == grid.Never && processors >= r.processors && d.ttl-1 <= r.ttl
}

// Barred is a site that is not asked for processors for a job, as it has refused.
type Barred struct {
	Site   grid.SiteID
	Reason Reason    // Accepted: it has lent, and wanted its processors back
	Until  grid.Time // it is asked again then, or once it reports room
}

// String says why, for people.
func (b Barred) String() string {
	if b.Reason == Accepted {
		return "it has wanted its processors back"
	}
	return b.Reason.String()
}

// Barred returns the sites that are not asked for a job which waits, in the order of the links.
func (m *Matchmaker) Barred(id grid.TaskID) (list []Barred) {
	d := m.demands[id]
	if d == nil {
		return nil
	}
	for _, l := range m.cfg.Links {
		if r, ok := m.hearsay.believed(m.now, l.Site); ok && r.bars(d, d.Processors) {
			list = append(list, Barred{l.Site, r.reason, r.until})
		}
	}
	return list
}

// targetsOf returns who may be asked for so many processors for a request, best first.
// The slice is reused.
func (m *Matchmaker) targetsOf(now grid.Time, d *demand, processors int64) []Target {
	targets := m.targets[:0]
	add := func(l Link) {
		if l.Site == d.from.Borrower || l.Site == d.sink || slices.Contains(d.tried, l.Site) || !d.passes(l.Relation) {
			return
		}
		if r, ok := m.hearsay.believed(now, l.Site); ok && r.bars(d, processors) {
			return
		}
		t := Target{Link: l, Free: m.hearsay.free(now, l.Site)}
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
