package market

import (
	"gridnode/directory"
	"gridnode/internal/grid"
)

// sitesMax bounds the sites a Memory knows; the one unused for longest goes.
const sitesMax = 4096

// shunSpan is for how long a site that did not answer is passed over. It is
// shorter than the lifetime of a quote, so that a site that came back is not
// missed for longer than one that is new.
const shunSpan = 30 * grid.Second

// Load is what is startable at a site, as it says itself with every reply.
type Load struct {
	Free, Widest int64      // as in directory.Quote
	Wait         grid.Time  // as in directory.Quote
	Price        grid.Price // per hour
	Sequence     uint64     // of the newest quote the site had published; later quotes know better
}

// Memory is what one site has learned about others beyond their quotes: the load
// they reported, what it is asking them for and they have not answered yet, and
// who does not answer. Without it, all jobs that arrive between two quotes of the
// best site would go there. The zero value is ready.
type Memory struct {
	sites  map[grid.SiteID]*memory
	newest *memory // ring of all entries, by last use
	size   int
}

// memory is what is known of one site, as one that we ask and as one that asks us.
type memory struct {
	site         grid.SiteID
	newer, older *memory

	load       Load
	known      bool      // load is set
	shunned    grid.Time // passed over until then
	processors int64     // asked for and not answered
	area       int64     // their processors × span, in processor-seconds

	underWay int   // negotiations and submissions of ours without an answer
	waiting  queue // jobs to be asked for there when fewer are under way
	freed    bool  // stands in Agent.freed

	request uint64 // newest negotiation seen from there
	holds   int    // guarantees given to it and not taken up
	held    int64  // their processors
}

// idle reports whether nothing depends on the entry.
func (e *memory) idle() bool {
	return e.processors == 0 && e.underWay == 0 && e.waiting.len() == 0 && !e.freed && e.holds == 0
}

// find returns what is known of a site, or nil.
func (m *Memory) find(site grid.SiteID) *memory {
	if m == nil {
		return nil
	}
	return m.sites[site]
}

// at returns the entry of a site and marks it as used.
func (m *Memory) at(site grid.SiteID) *memory {
	e := m.sites[site]
	if e == nil {
		if m.sites == nil {
			m.sites = make(map[grid.SiteID]*memory)
		}
		if m.size >= sitesMax {
			m.forget()
		}
		e = &memory{site: site}
		m.sites[site] = e
		m.size++
	} else {
		m.unlink(e)
	}
	m.link(e)
	return e
}

// forget drops the entry that was unused for longest among the idle ones. The
// others are bounded by the placements and by holdsMax.
func (m *Memory) forget() {
	for e, n := m.newest.newer, m.size; n > 0; e, n = e.newer, n-1 {
		if e.idle() {
			m.unlink(e)
			delete(m.sites, e.site)
			m.size--
			return
		}
	}
}

// link makes e the newest of the ring; newest.newer is the oldest.
func (m *Memory) link(e *memory) {
	if m.newest == nil {
		e.newer, e.older = e, e
	} else {
		e.older, e.newer = m.newest, m.newest.newer
		e.older.newer, e.newer.older = e, e
	}
	m.newest = e
}

func (m *Memory) unlink(e *memory) {
	if e.newer == e {
		m.newest = nil
	} else {
		e.newer.older, e.older.newer = e.older, e.newer
		if m.newest == e {
			m.newest = e.older
		}
	}
	e.newer, e.older = nil, nil
}

// Report notes the load that a site told with a reply.
func (m *Memory) Report(site grid.SiteID, load Load) {
	e := m.at(site)
	e.load, e.known, e.shunned = load, true, 0
}

// Asking notes that a site is being asked for processors over span; Answered
// takes it back.
func (m *Memory) Asking(site grid.SiteID, processors int64, span grid.Time) {
	e := m.at(site)
	e.processors += processors
	e.area += areaOf(processors, span)
}

// Answered takes back an Asking.
func (m *Memory) Answered(site grid.SiteID, processors int64, span grid.Time) {
	e := m.at(site)
	e.processors -= processors
	e.area -= areaOf(processors, span)
}

// Shun notes that a site did not answer: it is passed over until until.
func (m *Memory) Shun(site grid.SiteID, until grid.Time) { m.at(site).shunned = until }

// areaOf is in processor-seconds and saturates, so that sums of many fit.
func areaOf(processors int64, span grid.Time) int64 {
	const most = 1 << 40
	seconds := int64(span/grid.Second) + 1
	if seconds > most/processors {
		return most
	}
	return processors * seconds
}

// adjust returns what is startable at the site of q according to both the quote
// and the memory, and whether the site is to be passed over.
func (m *Memory) adjust(q *directory.Quote, now grid.Time) (load Load, shunned bool) {
	load = Load{q.Free, q.Widest, q.Wait, q.Price, q.Sequence}
	e := m.find(q.Site)
	if e == nil {
		return load, false
	}
	if e.known && e.load.Sequence >= q.Sequence {
		load = e.load
	}
	if e.processors > 0 {
		load.Free = max(load.Free-e.processors, 0)
		load.Widest = max(load.Widest-e.processors, 0)
		if q.Processors > 0 {
			load.Wait = min(load.Wait.Add(grid.Time(e.area/q.Processors)*grid.Second), grid.SpanMax)
		}
	}
	return load, e.shunned > now
}
