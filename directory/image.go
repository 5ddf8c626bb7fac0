package directory

import (
	"slices"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// images are the copies of hot cells that this site has as a mirror. They take scans in a
// holder's stead and answer them, now or when a copy has come; they put out scans for
// copies. They have no timer: what is fetched is among the requests.
type images struct {
	*shared
	suspects *suspects
	keeper   *keeper  // answers what this site need not mirror
	list     []*image // at most imagesMax
}

// image is a copy of a cell that is held by another site.
type image struct {
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

// onScan answers a scan in another holder's stead, now or when there is a copy.
func (im *images) onScan(now grid.Time, from grid.SiteID, m *Scan, out *grid.Outbox) {
	if h := im.keeper.holding(m.Cell); m.Via == im.cfg.Self || m.Limit == 0 || m.Copy || h != nil && h.isMature() {
		out.Send(from, im.keeper.onScan(now, from, m))
		return
	}
	c := im.imageOf(now, m)
	if c == nil {
		out.Send(from, im.keeper.onScan(now, from, m))
		return
	}
	c.used = now
	c.scans = min(c.scans+1, mirroredScansMax)
	if now-c.asked < im.mirrorSpan() && !c.open {
		out.Send(from, im.reflect(now, c, m))
		return
	}
	if len(c.waiting) >= mirrorWaitMax {
		out.Send(from, im.keeper.onScan(now, from, m)) // says that this site does not hold the cell
		return
	}
	c.waiting = append(c.waiting, waiter{from, *m})
	if !c.open {
		c.open, c.stale, c.asked, c.pages = true, false, now, 0
		c.fetched = &holding{cell: c.cell, soonest: grid.Never}
		im.fetch(now, c, trie.First(), out)
	}
}

// imageOf returns the copy that a scan asks for; a new one takes the place of the one
// that was unused for longest. It returns nil if all are being fetched.
func (im *images) imageOf(now grid.Time, m *Scan) *image {
	var oldest *image
	for _, c := range im.list {
		if c.cell == m.Cell && c.via == m.Via {
			return c
		}
		if !c.open && (oldest == nil || c.used < oldest.used) {
			oldest = c
		}
	}
	fresh := image{cell: m.Cell, via: m.Via, asked: now - im.mirrorSpan()}
	switch {
	case len(im.list) < imagesMax:
		im.list = append(im.list, &fresh)
		return &fresh
	case oldest != nil:
		*oldest = fresh
	}
	return oldest
}

// fetch asks the holder for the next page of a copy.
func (im *images) fetch(now grid.Time, c *image, at trie.Position, out *grid.Outbox) {
	token := im.requests.add(request{purpose: forCopy, site: c.via, cell: c.cell, deadline: now + im.cfg.Timeout})
	if token == 0 {
		im.fetchedAll(now, c, false, out)
		return
	}
	s := im.scans.New()
	*s = Scan{Token: token, Cell: c.cell, At: at, Limit: PageMax, Copy: true, Answered: c.scans}
	c.scans = 0
	out.Send(c.via, s)
}

// onPage takes a page of a copy, or, with nil, that there is none.
func (im *images) onPage(now grid.Time, r request, p *Page, out *grid.Outbox) {
	i := slices.IndexFunc(im.list, func(c *image) bool { return c.cell == r.cell && c.via == r.site && c.open })
	if i < 0 {
		return
	}
	c := im.list[i]
	if p == nil || !p.Mature || p.Cell != c.cell || c.pages >= mirrorPagesMax || p.More && len(p.Quotes) == 0 {
		im.fetchedAll(now, c, false, out)
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
			im.counts.Rejected++
			im.suspects.distrust(now, r.site)
			im.fetchedAll(now, c, false, out)
			return
		}
		im.learn(q)
		h.entries = append(h.entries, entry{at: at, quote: q, expires: q.Expires()})
	}
	if p.More {
		im.fetch(now, c, h.entries[len(h.entries)-1].at.Next(), out)
		return
	}
	im.fetchedAll(now, c, true, out)
}

// fetchedAll ends the fetching of a copy and answers those who wait for it.
func (im *images) fetchedAll(now grid.Time, c *image, whole bool, out *grid.Outbox) {
	c.open, c.copy = false, nil
	if whole {
		c.copy = c.fetched
	}
	c.fetched = nil
	waiting := c.waiting
	c.waiting = nil
	for i := range waiting {
		out.Send(waiting[i].from, im.reflect(now, c, &waiting[i].scan))
	}
	if c.stale {
		c.asked = now - im.mirrorSpan()
	}
}

// voided takes a holder's word that a copy is out of date.
func (im *images) voided(now grid.Time, from grid.SiteID, p *Page) {
	for _, c := range im.list {
		if c.cell == p.Cell && c.via == from {
			c.stale = true
			if !c.open {
				c.asked = now - im.mirrorSpan()
			}
		}
	}
}

// reflect answers a scan from a copy as its holder would have. Without one the page
// says that this site does not hold the cell.
func (im *images) reflect(now grid.Time, c *image, m *Scan) *Page {
	p := im.pages.New()
	p.Token, p.Cell = m.Token, m.Cell
	if c.copy == nil {
		return p
	}
	p.Ring, p.Held, p.Mature, p.Mirrors = c.ring, true, true, c.mirrors
	im.answerFrom(now, c.copy, m, p)
	return p
}
