package directory

import (
	"slices"

	"gridnode/grid"
)

// pageBytesMax leaves room in a frame for what surrounds the quotes of a page.
const (
	pageBytesMax  = 51 << 10
	imageBytesMax = 40 << 10 // of a page for a mirror, which has more beside them
)

// onScan returns the next quotes of a cell. For a cell that is not held here the
// page says so.
func (k *holder) onScan(now grid.Time, from grid.SiteID, m *Scan) *Page {
	p := k.pages.New()
	p.Token, p.Cell = m.Token, m.Cell
	h := k.holding(m.Cell)
	if h == nil {
		return p
	}
	if h.isMature() && (h.lapsed(now) || k.standsIn(h)) {
		k.doubt(now, h)
	}
	p.Ring = k.rings.list[m.Cell].holdersDigest()
	if m.Ring != 0 && m.Ring != p.Ring {
		p.Holders = k.rings.list[m.Cell].show(k.cfg.Replicas)
	}
	k.contradicted(now, m.Cell, m.Ring)
	p.Held, p.Mature = true, h.isMature() && !h.life.Leaves()
	switch {
	case m.Limit == 0:
		p.Count, p.Sum = h.stand(now)
	case m.Image:
		h.heat.count(now, int64(m.Answered), k.cfg.Replicas)
		p.Mirrors = k.mirrors(now, h)
	default:
		h.heat.count(now, 1, k.cfg.Replicas)
		p.Mirrors = k.mirrors(now, h)
	}
	k.answerFrom(now, h, m, p)
	if m.Image {
		k.fillImage(now, from, h, m, p)
	}
	return p
}

// answerFrom fills a page with what a cell has.
func (sh *shared) answerFrom(now grid.Time, h *holding, m *Scan, p *Page) {
	if m.Limit == 0 {
		p.HasFences = h.fences.Edges() != m.Fences
		return
	}
	sh.fillPage(now, h, m, p)
	if fences, digest := h.fences.List(); digest != m.Fences {
		p.Fences, p.HasFences = fences, true
		p.Hints = h.hints(m.At, m.Descending, p.Barren)
	}
}

// fillPage puts the quotes asked for into a page, and the cells that need not be
// asked before the last of them.
func (sh *shared) fillPage(now grid.Time, h *holding, m *Scan, p *Page) {
	quotes := sh.quoteChunk()
	limit, size, most := min(int(m.Limit), PageMax), 0, pageBytesMax
	if m.Image {
		limit, most = imagePageMax, imageBytesMax
		quotes = make([]*Quote, 0, min(imagePageMax, len(h.records)))
	}
	step, i := 1, h.index(m.At)
	if m.Descending {
		step = -1
		if i == len(h.records) || h.records[i].at != m.At {
			i--
		}
	}
	for ; i >= 0 && i < len(h.records); i += step {
		e := &h.records[i]
		if now >= e.expires || !m.Filter.Match(e.quote) || sh.isBarred(e.quote.Site) {
			continue
		}
		size += len(e.quote.Sealed) + 4
		if len(quotes) == limit || size > most {
			p.More = true
			break
		}
		quotes = append(quotes, e.quote)
	}
	p.Quotes = quotes
	if !m.Image {
		sh.quoteSpace = sh.quoteSpace[len(quotes):]
	}
	if p.Mature && m.Filter.need().Selective() {
		p.Barren = h.barren(now, m, p)
	}
}

// Without returns the page without the quotes that are not good. Then its holder is not
// believed alone. The page itself stays as it is.
func (p *Page) Without(good func(*Quote) bool) *Page {
	if !slices.ContainsFunc(p.Quotes, func(q *Quote) bool { return !good(q) }) {
		return p
	}
	cut := *p
	cut.Mature = false
	cut.Quotes = slices.DeleteFunc(slices.Clone(p.Quotes), func(q *Quote) bool { return !good(q) })
	return &cut
}
