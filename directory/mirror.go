package directory

import (
	"slices"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// Mirrors relieve the holders of a hot cell, such as the root. A holder that is asked
// often names sites next to the holders with its pages, and more of them the more
// often it is asked. Those who ask spread over holders and mirrors by their own hash.
// A mirror has a copy of the cell for each holder that it was told to stand in for
// (Scan.Via), which is the same one for all who ask it; it fetches all of the cell from
// that holder when it is asked and its copy is old, so the holder's work does not grow
// with the questions. Who asks checks a mirror's page like a holder's, as every quote is
// signed, and goes to a holder if it is not content.
//
// Who has not asked for the root of an attribute yet does not know its mirrors. If it
// knows that the attribute has many cells it takes the sites next to the holders that
// the router named, as many as are likely: the answer says which there are.
//
// A mirror's answer may be older than a holder's by mirrorSpan, but for the terms of
// quotes: a holder tells its mirrors when they change (Page without a token).
const (
	mirrorsMax     = 16 // of one holder
	mirrorScans    = 15 // a minute that one holder or mirror is to answer
	mirroredMax    = 32 // copies at one site
	mirrorWaitMax  = 64 // questions that wait for one copy
	mirrorPagesMax = 4  // of a copy

	mirroredScansMax = 1 << 10 // that a mirror tells a holder of at a time
	mirrorAge        = 40      // of these spans make a lifetime: the age of a copy

	// mirrorShare is how many questions a mirror is asked for each that a holder is:
	// holders have the mirrors' questions to answer as well, and their cell's upkeep.
	mirrorShare = 3

	// mirrorCells is how many cells of an attribute that are known make one mirror of its
	// root likely: a cell has some fifty quotes, and a site asks every ten minutes or so.
	mirrorCells = 4
)

// mirrorSpan is for how long a copy is good.
func (d *Directory) mirrorSpan() grid.Time { return max(d.cfg.Lifetime/mirrorAge, 1) }

// demand is how often a cell is asked for here.
type demand struct {
	since   grid.Time // when scans began to be counted
	scans   int64
	mirrors int          // that are named
	copies  []copyholder // mirrors that have asked
}

// copyholder is a mirror that may have a copy.
type copyholder struct {
	site  grid.SiteID
	until grid.Time
}

// heard counts scans that this holder, or a mirror in its stead, has answered, and once
// a minute works out how many mirrors it takes for each to answer mirrorScans.
func (m *demand) heard(now grid.Time, scans int64, replicas int) {
	m.scans += scans
	span := now - m.since
	if span < grid.Minute {
		return
	}
	total := m.scans * int64(replicas) // of all holders and mirrors, in span
	wanted := even(int(min(total*int64(grid.Minute)/(mirrorScans*int64(span)), replicasMax+mirrorsMax))-replicas, replicas)
	if wanted > m.mirrors || 2*wanted < m.mirrors {
		m.mirrors = wanted
	}
	m.since, m.scans = now, 0
}

// even returns how many mirrors there are to be if it takes wanted: as many for each
// holder, so that what one of them and its mirrors answer shows what all do.
func even(wanted, replicas int) int {
	return min(max(wanted+replicas-1, 0), mirrorsMax) / replicas * replicas
}

// mirrors returns who is to be asked in this holder's stead as well.
func (d *Directory) mirrors(now grid.Time, h *holding) (sites []grid.SiteID) {
	r := d.rings[h.cell]
	if h.demand.mirrors == 0 || r == nil || !d.isHolder(r) {
		return nil
	}
	for _, p := range r.peers[min(d.cfg.Replicas, len(r.peers)):] {
		if len(sites) < h.demand.mirrors && p != d.cfg.Self && !d.isSuspect(now, p) {
			sites = append(sites, p)
		}
	}
	return sites
}

// fillCopy adds to a page for a mirror what it needs to answer as this site does.
func (d *Directory) fillCopy(now grid.Time, from grid.SiteID, h *holding, m *Scan, p *Page) {
	c := &h.demand.copies
	*c = slices.DeleteFunc(*c, func(x copyholder) bool { return x.site == from || x.until <= now })
	if len(*c) < mirrorsMax {
		*c = append(*c, copyholder{from, now + d.mirrorSpan() + d.cfg.Timeout})
	}
	if p.HasFences = m.At == trie.First(); !p.HasFences {
		p.Fences, p.Hints = nil, nil
		return
	}
	p.Fences, _ = h.fences.List()
	for _, hint := range append(h.hints(trie.First(), false, nil), h.hints(trie.Last(), true, nil)...) {
		if !slices.ContainsFunc(p.Hints, func(x Hint) bool { return x.Cell == hint.Cell }) && len(p.Hints) < 2*HintsMax {
			p.Hints = append(p.Hints, hint)
		}
	}
	for f := range h.fences.Ahead(trie.First(), false) {
		var known *trie.Summary
		if s, ok := f.Summary(now); ok {
			known = &s
		}
		p.Summaries = append(p.Summaries, known)
	}
}

// void tells the mirrors that their copies are out of date, at the end of the call.
func (d *Directory) void(now grid.Time, h *holding) {
	for _, c := range h.demand.copies {
		if now < c.until {
			d.voids = append(d.voids, voidLetter{c.site, h.cell})
		}
	}
	h.demand.copies = h.demand.copies[:0]
}

// voidLetter is such a word on its way.
type voidLetter struct {
	to   grid.SiteID
	cell cell
}

// postVoids sends it.
func (d *Directory) postVoids(out *grid.Outbox) {
	for _, l := range d.voids {
		p := d.pages.New()
		*p = Page{Cell: l.cell}
		out.Send(l.to, p)
	}
	d.voids = d.voids[:0]
}

// mirrored is a copy of a cell that is held by another site.
type mirrored struct {
	cell    cell
	via     grid.SiteID // the holder
	copy    *holding    // nil if there is none
	mirrors []grid.SiteID
	ring    uint64
	asked   grid.Time // when the copy was begun; it is good for mirrorSpan
	open    bool      // it is being fetched
	stale   bool      // the holder said so meanwhile
	fetched *holding  // what there is of it
	pages   int
	waiting []waiter
	used    grid.Time
	scans   int32 // answered that the holder has not been told of, at most mirroredScansMax
}

// waiter is a question that waits for a copy.
type waiter struct {
	from grid.SiteID
	scan Scan
}

// onScanVia answers a scan in another holder's stead, now or when there is a copy.
func (d *Directory) onScanVia(now grid.Time, from grid.SiteID, m *Scan, out *grid.Outbox) {
	if h := d.holding(m.Cell); m.Via == d.cfg.Self || m.Limit == 0 || m.Copy || h != nil && h.mature {
		out.Send(from, d.onScan(now, from, m))
		return
	}
	c := d.mirrorOf(now, m)
	if c == nil {
		out.Send(from, d.onScan(now, from, m))
		return
	}
	c.used = now
	c.scans = min(c.scans+1, mirroredScansMax)
	if now-c.asked < d.mirrorSpan() && !c.open {
		out.Send(from, d.reflect(now, c, m))
		return
	}
	if len(c.waiting) >= mirrorWaitMax {
		out.Send(from, d.onScan(now, from, m)) // says that this site does not hold the cell
		return
	}
	c.waiting = append(c.waiting, waiter{from, *m})
	if !c.open {
		c.open, c.stale, c.asked, c.pages = true, false, now, 0
		c.fetched = &holding{cell: c.cell, soonest: grid.Never}
		d.fetch(now, c, trie.First(), out)
	}
}

// mirrorOf returns the copy that a scan asks for; a new one takes the place of the one
// that was unused for longest. It returns nil if all are being fetched.
func (d *Directory) mirrorOf(now grid.Time, m *Scan) *mirrored {
	var oldest *mirrored
	for _, c := range d.mirrored {
		if c.cell == m.Cell && c.via == m.Via {
			return c
		}
		if !c.open && (oldest == nil || c.used < oldest.used) {
			oldest = c
		}
	}
	fresh := mirrored{cell: m.Cell, via: m.Via, asked: now - d.mirrorSpan()}
	switch {
	case len(d.mirrored) < mirroredMax:
		d.mirrored = append(d.mirrored, &fresh)
		return &fresh
	case oldest != nil:
		*oldest = fresh
	}
	return oldest
}

// fetch asks the holder for the next page of a copy.
func (d *Directory) fetch(now grid.Time, c *mirrored, at trie.Position, out *grid.Outbox) {
	token := d.requests.add(request{purpose: forCopy, site: c.via, cell: c.cell, deadline: now + d.cfg.Timeout})
	if token == 0 {
		d.fetchedAll(now, c, false, out)
		return
	}
	s := d.scans.New()
	*s = Scan{Token: token, Cell: c.cell, At: at, Limit: PageMax, Copy: true, Answered: c.scans}
	c.scans = 0
	out.Send(c.via, s)
}

// onCopy takes a page of a copy, or, with nil, that there is none.
func (d *Directory) onCopy(now grid.Time, r request, p *Page, out *grid.Outbox) {
	i := slices.IndexFunc(d.mirrored, func(c *mirrored) bool { return c.cell == r.cell && c.via == r.site && c.open })
	if i < 0 {
		return
	}
	c := d.mirrored[i]
	if p == nil || !p.Mature || p.Cell != c.cell || c.pages >= mirrorPagesMax || p.More && len(p.Quotes) == 0 {
		d.fetchedAll(now, c, false, out)
		return
	}
	c.pages++
	h := c.fetched
	for i, f := range p.Fences {
		if c.pages > 1 || !h.fences.Add(f, grid.Never) {
			break
		}
		if i < len(p.Summaries) {
			h.fences.Get(f).Vouch(p.Summaries[i])
		}
	}
	for _, hint := range p.Hints {
		if f := h.fences.Get(hint.Cell); f != nil {
			f.Holders = hint.Holders
		}
	}
	c.mirrors, c.ring = p.Mirrors, p.Ring
	for _, q := range p.Quotes {
		at := q.at(c.cell.attribute)
		if n := len(h.entries); !c.cell.Contains(at) || q.impossible(now) || n > 0 && !h.entries[n-1].at.Less(at) {
			d.Rejected++
			d.distrust(now, r.site)
			d.fetchedAll(now, c, false, out)
			return
		}
		d.learn(q)
		h.entries = append(h.entries, entry{at: at, quote: q, expires: q.Expires()})
	}
	if p.More {
		d.fetch(now, c, h.entries[len(h.entries)-1].at.Next(), out)
		return
	}
	d.fetchedAll(now, c, true, out)
}

// fetchedAll ends the fetching of a copy and answers those who wait for it.
func (d *Directory) fetchedAll(now grid.Time, c *mirrored, whole bool, out *grid.Outbox) {
	c.open, c.copy = false, nil
	if whole {
		c.copy = c.fetched
	}
	c.fetched = nil
	waiting := c.waiting
	c.waiting = nil
	for i := range waiting {
		out.Send(waiting[i].from, d.reflect(now, c, &waiting[i].scan))
	}
	if c.stale {
		c.asked = now - d.mirrorSpan()
	}
}

// voided takes a holder's word that a copy is out of date.
func (d *Directory) voided(now grid.Time, from grid.SiteID, p *Page) {
	for _, c := range d.mirrored {
		if c.cell == p.Cell && c.via == from {
			c.stale = true
			if !c.open {
				c.asked = now - d.mirrorSpan()
			}
		}
	}
}

// reflect answers a scan from a copy as its holder would have. Without one the page
// says that this site does not hold the cell.
func (d *Directory) reflect(now grid.Time, c *mirrored, m *Scan) *Page {
	p := d.pages.New()
	p.Token, p.Cell = m.Token, m.Cell
	if c.copy == nil {
		return p
	}
	p.Ring, p.Held, p.Mature, p.Mirrors = c.ring, true, true, c.mirrors
	d.answerFrom(now, c.copy, m, p)
	return p
}

// heed takes notice of who a holder, or a mirror in its stead, says may be asked.
func (r *ring) heed(site grid.SiteID, mirror bool, mirrors []grid.SiteID) {
	if !mirror {
		r.preferred = site
	}
	r.mirrors, r.instructed = mirrors, true
}

// forgo makes a holder be asked next time instead of a mirror, and say who its mirrors are.
func (r *ring) forgo(mirror grid.SiteID) {
	if r != nil && (slices.Contains(r.mirrors, mirror) || !r.instructed) {
		r.mirrors, r.instructed = nil, true
	}
}

// likelyMirrors returns who probably are the mirrors of an attribute's root, of which no
// holder has said: as many of the sites next to its holders as the cells known make likely.
func (d *Directory) likelyMirrors(now grid.Time, r *ring) []grid.SiteID {
	if !r.cell.IsRoot() || r.heard == 0 || now-r.heard > spanMax*d.cfg.Lifetime || d.isHolder(r) || len(r.peers) < d.cfg.Replicas {
		return nil
	}
	next := r.peers[d.cfg.Replicas:]
	cells := 0
	for a := range d.maps { // all orders have the same quotes, but this site has not come to know all equally well
		cells = max(cells, d.maps[a].Size())
	}
	likely := even(cells/mirrorCells-d.cfg.Replicas, d.cfg.Replicas)
	return next[:min(likely, len(next))]
}

// mirror returns whom a query asks first instead of a holder, if the cell is hot, and
// in which holder's stead.
func (d *Directory) mirror(now grid.Time, q *query, r *ring) (site, via grid.SiteID, ok bool) {
	mirrors := r.mirrors
	if !r.instructed {
		mirrors = d.likelyMirrors(now, r)
	}
	if len(mirrors) == 0 || len(q.visit.asked) > 0 {
		return "", "", false
	}
	slot := int(mixSpread(d.spread, r.key) % uint64(d.cfg.Replicas+mirrorShare*len(mirrors)))
	if slot < d.cfg.Replicas {
		return "", "", false
	}
	i := (slot - d.cfg.Replicas) / mirrorShare
	d.sites = d.holders(now, r, d.sites[:0])
	site, via = mirrors[i], d.sites[i%len(d.sites)]
	return site, via, site != d.cfg.Self && site != via && !d.isSuspect(now, site)
}

// mixSpread makes a site's place among a cell's holders and mirrors another one for
// each cell.
func mixSpread(spread uint64, key grid.Key) uint64 {
	x := spread ^ uint64(key[0])<<56 ^ uint64(key[1])<<48 ^ uint64(key[2])
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	return x ^ x>>27
}
