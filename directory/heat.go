package directory

import (
	"slices"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// Mirrors relieve the holders of a hot cell, such as the root. A holder that is asked
// often names sites next to the holders with its pages, and more of them the more
// often it is asked. Those who ask spread over holders and mirrors by their own hash.
// A mirror has an image of the cell for each holder that it was told to stand in for
// (Scan.Via), which is the same one for all who ask it; it fetches all of the cell from
// that holder when it is asked and its image is old, so the holder's work does not grow
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
	imagesMax      = 32 // at one site
	mirrorWaitMax  = 64 // questions that wait for one image
	mirrorPagesMax = 4  // of an image

	mirroredScansMax = 1 << 10 // that a mirror tells a holder of at a time
	mirrorAge        = 40      // of these spans make a lifetime: the age of an image

	// mirrorShare is how many questions a mirror is asked for each that a holder is:
	// holders have the mirrors' questions to answer as well, and their cell's upkeep.
	mirrorShare = 3

	// mirrorCells is how many cells of an attribute that are known make one mirror of its
	// root likely: a cell has some fifty quotes, and a site asks every ten minutes or so.
	mirrorCells = 4
)

// mirrorSpan is for how long an image is good.
func (sh *shared) mirrorSpan() grid.Time { return max(sh.cfg.Lifetime/mirrorAge, 1) }

// heat is how often a cell is asked for here.
type heat struct {
	since   grid.Time // when scans began to be counted
	scans   int64
	named   int      // that are named
	mirrors []mirror // mirrors that have asked
}

// mirror is one that may have an image.
type mirror struct {
	site  grid.SiteID
	until grid.Time
}

// count counts scans that this holder, or a mirror in its stead, has answered, and once
// a minute works out how many mirrors it takes for each to answer mirrorScans.
func (m *heat) count(now grid.Time, scans int64, replicas int) {
	m.scans += scans
	span := now - m.since
	if span < grid.Minute {
		return
	}
	total := m.scans * int64(replicas) // of all holders and mirrors, in span
	wanted := even(int(min(total*int64(grid.Minute)/(mirrorScans*int64(span)), replicasMax+mirrorsMax))-replicas, replicas)
	if wanted > m.named || 2*wanted < m.named {
		m.named = wanted
	}
	m.since, m.scans = now, 0
}

// even returns how many mirrors there are to be if it takes wanted: as many for each
// holder, so that what one of them and its mirrors answer shows what all do.
func even(wanted, replicas int) int {
	return min(max(wanted+replicas-1, 0), mirrorsMax) / replicas * replicas
}

// mirrors returns who is to be asked in this holder's stead as well.
func (k *holder) mirrors(now grid.Time, h *holding) (sites []grid.SiteID) {
	r := k.rings.list[h.cell]
	if h.heat.named == 0 || r == nil || !k.rings.isHolder(r) {
		return nil
	}
	for _, p := range r.peers[min(k.cfg.Replicas, len(r.peers)):] {
		if len(sites) < h.heat.named && p != k.cfg.Self && !k.rings.suspects.has(now, p) {
			sites = append(sites, p)
		}
	}
	return sites
}

// fillImage adds to a page for a mirror what it needs to answer as this site does.
func (k *holder) fillImage(now grid.Time, from grid.SiteID, h *holding, m *Scan, p *Page) {
	c := &h.heat.mirrors
	*c = slices.DeleteFunc(*c, func(x mirror) bool { return x.site == from || x.until <= now })
	if len(*c) < mirrorsMax {
		*c = append(*c, mirror{from, now + k.mirrorSpan() + k.cfg.Timeout})
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

// void tells the mirrors that their images are out of date, at the end of the call.
func (k *holder) void(now grid.Time, h *holding) {
	for _, c := range h.heat.mirrors {
		if now < c.until {
			k.voids = append(k.voids, voidLetter{c.site, h.cell})
		}
	}
	h.heat.mirrors = h.heat.mirrors[:0]
}

// voidLetter is such a word on its way.
type voidLetter struct {
	to   grid.SiteID
	cell cell
}

// postVoids sends it.
func (k *holder) postVoids(out *grid.Outbox) {
	for _, l := range k.voids {
		p := k.pages.New()
		*p = Page{Cell: l.cell}
		out.Send(l.to, p)
	}
	k.voids = k.voids[:0]
}
