package directory

import (
	"slices"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// images are what this site has of hot cells as their mirror. They take scans in a
// holder's stead and answer them, now or when an image has come; they put out scans for
// images. They have no timer: what is fetched is among the requests.
type images struct {
	*shared
	suspects *suspects
	holder   *holder  // answers what this site need not mirror
	list     []*image // at most imagesMax
}

// image is all that one holder of a cell has, at a site that is none: a copy of the cell,
// not of a quote.
type image struct {
	cell     cell
	via      grid.SiteID // the holder
	whole    *holding    // nil if there is none
	mirrors  []grid.SiteID
	ring     uint64
	begun    grid.Time // when the last one was asked for; it is good for mirrorSpan
	fetching bool      // it is being fetched
	stale    bool      // the holder said so meanwhile
	coming   *holding  // what there is of it
	pages    int
	waiting  []waiter
	usedAt   grid.Time
	scans    int32 // answered that the holder has not been told of, at most mirroredScansMax
}

// waiter is a question that waits for an image.
type waiter struct {
	from grid.SiteID
	scan Scan
}

// onScan answers a scan in another holder's stead, now or when there is an image.
func (im *images) onScan(now grid.Time, from grid.SiteID, m *Scan, out *grid.Outbox) {
	if h := im.holder.holding(m.Cell); m.Via == im.cfg.Self || m.Limit == 0 || m.Image || h != nil && h.isMature() {
		out.Send(from, im.holder.onScan(now, from, m))
		return
	}
	c := im.imageOf(now, m)
	if c == nil {
		out.Send(from, im.holder.onScan(now, from, m))
		return
	}
	c.usedAt = now
	c.scans = min(c.scans+1, mirroredScansMax)
	if now-c.begun < im.mirrorSpan() && !c.fetching {
		out.Send(from, im.reflect(now, c, m))
		return
	}
	if len(c.waiting) >= mirrorWaitMax {
		out.Send(from, im.holder.onScan(now, from, m)) // says that this site does not hold the cell
		return
	}
	c.waiting = append(c.waiting, waiter{from, *m})
	if !c.fetching {
		c.fetching, c.stale, c.begun, c.pages = true, false, now, 0
		c.coming = &holding{cell: c.cell, lapse: grid.Never}
		im.fetch(now, c, trie.First(), out)
	}
}

// imageOf returns the image that a scan asks for; a new one takes the place of the one
// that was unused for longest. It returns nil if all are being fetched.
func (im *images) imageOf(now grid.Time, m *Scan) *image {
	var oldest *image
	for _, c := range im.list {
		if c.cell == m.Cell && c.via == m.Via {
			return c
		}
		if !c.fetching && (oldest == nil || c.usedAt < oldest.usedAt) {
			oldest = c
		}
	}
	fresh := image{cell: m.Cell, via: m.Via, begun: now - im.mirrorSpan()}
	switch {
	case len(im.list) < imagesMax:
		im.list = append(im.list, &fresh)
		return &fresh
	case oldest != nil:
		*oldest = fresh
	}
	return oldest
}

// fetch asks the holder for the next page of an image.
func (im *images) fetch(now grid.Time, c *image, at trie.Position, out *grid.Outbox) {
	token := im.requests.add(request{purpose: forImage, site: c.via, cell: c.cell, deadline: now + im.cfg.Timeout})
	if token == 0 {
		im.fetchedAll(now, c, false, out)
		return
	}
	s := im.scans.New()
	*s = Scan{Token: token, Cell: c.cell, At: at, Limit: PageMax, Image: true, Answered: c.scans}
	c.scans = 0
	out.Send(c.via, s)
}

// onPage takes a page of an image, or, with nil, that there is none.
func (im *images) onPage(now grid.Time, r request, p *Page, out *grid.Outbox) {
	i := slices.IndexFunc(im.list, func(c *image) bool { return c.cell == r.cell && c.via == r.site && c.fetching })
	if i < 0 {
		return
	}
	c := im.list[i]
	if p == nil || !p.Mature || p.Cell != c.cell || c.pages >= mirrorPagesMax || p.More && len(p.Quotes) == 0 {
		im.fetchedAll(now, c, false, out)
		return
	}
	c.pages++
	h := c.coming
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
		if n := len(h.records); !c.cell.Contains(at) || q.impossible(now) || n > 0 && !h.records[n-1].at.Less(at) {
			im.counts.Rejected++
			im.suspects.distrust(now, r.site)
			im.fetchedAll(now, c, false, out)
			return
		}
		im.learn(q)
		h.records = append(h.records, record{at: at, quote: q, expires: q.Expires()})
	}
	if p.More {
		im.fetch(now, c, h.records[len(h.records)-1].at.Next(), out)
		return
	}
	im.fetchedAll(now, c, true, out)
}

// fetchedAll ends the fetching of an image and answers those who wait for it.
func (im *images) fetchedAll(now grid.Time, c *image, whole bool, out *grid.Outbox) {
	c.fetching, c.whole = false, nil
	if whole {
		c.whole = c.coming
	}
	c.coming = nil
	waiting := c.waiting
	c.waiting = nil
	for i := range waiting {
		out.Send(waiting[i].from, im.reflect(now, c, &waiting[i].scan))
	}
	if c.stale {
		c.begun = now - im.mirrorSpan()
	}
}

// voided takes a holder's word that an image is out of date.
func (im *images) voided(now grid.Time, from grid.SiteID, p *Page) {
	for _, c := range im.list {
		if c.cell == p.Cell && c.via == from {
			c.stale = true
			if !c.fetching {
				c.begun = now - im.mirrorSpan()
			}
		}
	}
}

// reflect answers a scan from an image as its holder would have. Without one the page
// says that this site does not hold the cell.
func (im *images) reflect(now grid.Time, c *image, m *Scan) *Page {
	p := im.pages.New()
	p.Token, p.Cell = m.Token, m.Cell
	if c.whole == nil {
		return p
	}
	p.Ring, p.Held, p.Mature, p.Mirrors = c.ring, true, true, c.mirrors
	im.answerFrom(now, c.whole, m, p)
	return p
}
