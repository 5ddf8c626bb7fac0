package market

import (
	"gridnode/directory"
	"gridnode/grid"
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
	sites  map[grid.SiteID]*acquaintance
	newest *acquaintance // ring of all entries, by last use
	size   int
	freed  []*acquaintance // sites with room for jobs that wait to be asked for
}

// acquaintance is what is known of one site, as one that we ask and as one that asks us.
type acquaintance struct {
	site         grid.SiteID
	newer, older *acquaintance

	load        Load
	known       bool      // load is set
	told        grid.Time // when
	gossip      uint64    // sequence of the newest load report from there by then
	taughtWidth int64     // a job this wide was refused there as too late, under this load; 0 if none was
	taughtStart grid.Time // when it could have started
	misses      int       // negotiations in a row without an answer
	shunned     grid.Time // passed over until then
	shunnedBy   uint64    // sequence of the newest quote that was known when that began: it did not help
	processors  int64     // asked for and not answered
	area        int64     // their processors × span, in processor-seconds

	underWay int   // negotiations and submissions of ours without an answer
	waiting  queue // jobs to be asked for there when fewer are under way
	freed    bool  // stands in Memory.freed

	request uint64 // newest negotiation seen from there
	holds   int    // guarantees given to it and not taken up
	held    int64  // their processors

	proven     bool      // it took the latest guarantee up that it did not let stand
	distrusted grid.Time // it let one stand, and is held to less until then
}

// idle reports whether nothing depends on the entry.
func (e *acquaintance) idle() bool {
	return e.processors == 0 && e.underWay == 0 && e.waiting.len() == 0 && !e.freed && e.holds == 0
}

// find returns what is known of a site, or nil.
func (m *Memory) find(site grid.SiteID) *acquaintance {
	if m == nil {
		return nil
	}
	return m.sites[site]
}

// at returns the entry of a site and marks it as used.
func (m *Memory) at(site grid.SiteID) *acquaintance {
	e := m.sites[site]
	if e == nil {
		if m.sites == nil {
			m.sites = make(map[grid.SiteID]*acquaintance)
		}
		if m.size >= sitesMax {
			m.forget()
		}
		e = &acquaintance{site: site}
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
func (m *Memory) link(e *acquaintance) {
	if m.newest == nil {
		e.newer, e.older = e, e
	} else {
		e.older, e.newer = m.newest, m.newest.newer
		e.older.newer, e.newer.older = e, e
	}
	m.newest = e
}

func (m *Memory) unlink(e *acquaintance) {
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

// Report notes the load that a site told with a reply that arrived at now. gossip is
// the sequence of the newest load report from there, 0 if there was none: later
// ones know better than the reply.
func (m *Memory) Report(site grid.SiteID, load Load, gossip uint64, now grid.Time) {
	e := m.at(site)
	e.load, e.known, e.told, e.gossip, e.taughtWidth = load, true, now, gossip, 0
}

// Refused notes, after Report, that a job of a width could start at the site at
// start and not before. A load says little about widths in between.
func (m *Memory) Refused(site grid.SiteID, processors int64, start grid.Time) {
	e := m.at(site)
	e.taughtWidth, e.taughtStart = processors, start
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

// missesMax is how many negotiations in a row a site may leave unanswered before it
// is passed over. One may just have been lost.
const missesMax = 2

// Missed notes that a site whose newest quote, as far as is known, has that sequence did not
// answer in time.
func (m *Memory) Missed(site grid.SiteID, sequence uint64, now grid.Time) {
	e := m.at(site)
	if e.misses++; e.misses >= missesMax {
		e.shun(sequence, now)
	}
}

// Unreachable notes that a site certainly cannot be reached at the moment. sequence is that of
// its newest quote, 0 if nobody knows.
func (m *Memory) Unreachable(site grid.SiteID, sequence uint64, now grid.Time) {
	m.at(site).shun(sequence, now)
}

// shun has a site passed over for a while, or until it publishes anew: it is there again then.
func (e *acquaintance) shun(sequence uint64, now grid.Time) {
	e.shunned, e.shunnedBy = now.Add(shunSpan), max(sequence, e.load.Sequence, e.shunnedBy)
}

// shunnedUntil returns until when a site whose newest quote has that sequence is passed over; 0
// if it is not.
func (e *acquaintance) shunnedUntil(sequence uint64, now grid.Time) grid.Time {
	if e.shunned > now && sequence <= e.shunnedBy {
		return e.shunned
	}
	return 0
}

// Heard notes that a site is there.
func (m *Memory) Heard(site grid.SiteID) {
	if e := m.find(site); e != nil {
		e.misses, e.shunned = 0, 0
	}
}

// free notes that one thing less is under way to a site.
func (m *Memory) free(e *acquaintance) {
	e.underWay--
	if e.waiting.len() > 0 && !e.freed {
		e.freed = true
		m.freed = append(m.freed, e)
	}
}

// areaOf is in processor-seconds and saturates, so that sums of many fit.
func areaOf(processors int64, span grid.Time) int64 {
	const most = 1 << 40
	seconds := int64(span/grid.Second) + 1
	if seconds > most/processors {
		return most
	}
	return processors * seconds
}

// adjusted is what quote, gossip and memory together say about a site.
type adjusted struct {
	Load
	notBefore grid.Time // earliest start of the job in question; 0 if nothing is known
	shunned   grid.Time // the site is to be passed over until then; 0: it is not
}

// adjust returns what is startable at the site of q for a job of a width: what the
// newest says of quote, load report and reply, less what is being asked for.
func (m *Memory) adjust(q *directory.Quote, gossip Gossip, processors int64, now grid.Time) adjusted {
	load := adjusted{Load: Load{q.Free, q.Widest, q.Wait, q.Price, q.Sequence}}
	e := m.find(q.Site)
	replied := e != nil && e.known && e.load.Sequence >= q.Sequence // later than the quote
	if replied {
		load.Load = e.load
		load.age(q, now-e.told)
		if e.taughtWidth > 0 && processors >= e.taughtWidth {
			load.notBefore = e.taughtStart
		}
	}
	if gossip != nil {
		if l, ok := gossip(q.Site); ok && l.Issued > q.Issued && !(replied && l.Sequence <= e.gossip) {
			// A report has no price, and what a refusal taught holds until there is room.
			load.Free, load.Widest, load.Wait = l.Free, l.Widest, l.Wait
			load.age(q, now-l.Issued)
			if processors <= load.Widest {
				load.notBefore = 0
			}
		}
	}
	if e == nil {
		return load
	}
	load.shunned = e.shunnedUntil(q.Sequence, now)
	if e.processors > 0 {
		load.Free = max(load.Free-e.processors, 0)
		load.Widest = max(load.Widest-e.processors, 0)
		if q.Processors > 0 {
			load.Wait = min(load.Wait.Add(grid.Time(e.area/q.Processors)*grid.Second), grid.SpanMax)
		}
	}
	return load
}

// age makes a load as much older. A wait passes: what waits then is startable, as
// far as anybody here knows. The site's clock may be ahead.
func (l *adjusted) age(q *directory.Quote, by grid.Time) {
	if l.Wait -= max(by, 0); l.Wait <= 0 {
		l.Wait, l.Free, l.Widest = 0, q.Processors, q.Processors
	}
}

// queue is a first-in first-out list of placements.
type queue struct {
	list []*placement
	head int
}

func (q *queue) len() int { return len(q.list) - q.head }

func (q *queue) push(p *placement) { q.list = append(q.list, p) }

// pop returns nil for one that was taken out meanwhile.
func (q *queue) pop() *placement {
	p := q.list[q.head]
	q.list[q.head] = nil
	q.head++
	if q.head == len(q.list) {
		q.list, q.head = q.list[:0], 0
	} else if q.head > len(q.list)/2 && q.head > 64 {
		n := copy(q.list, q.list[q.head:])
		clear(q.list[n:])
		q.list, q.head = q.list[:n], 0
	}
	return p
}

// remove takes p out wherever it stands.
func (q *queue) remove(p *placement) {
	for i := q.head; i < len(q.list); i++ {
		if q.list[i] == p {
			q.list[i] = nil
		}
	}
}

// stopWaiting takes p out of the queue it stands in, if it does.
func (p *placement) stopWaiting() {
	if p.waiting != nil {
		p.waiting.waiting.remove(p)
		p.waiting = nil
	}
}

// wake lets jobs ask whose turn has come. They are judged anew: much may have
// changed meanwhile.
func (b *broker) wake(now grid.Time, out *grid.Outbox) {
	for i := 0; i < len(b.memory.freed); i++ {
		e := b.memory.freed[i]
		e.freed = false
		for e.underWay < b.cfg.AsksPerPeer && e.waiting.len() > 0 {
			if p := e.waiting.pop(); p != nil {
				p.waiting = nil
				b.advance(now, p, out)
			}
		}
	}
	b.memory.freed = b.memory.freed[:0]
}
