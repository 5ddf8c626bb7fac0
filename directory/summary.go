package directory

import (
	"math/bits"
	"slices"

	"gridnode/grid"
)

// summary says of the quotes of a cell, and of all cells below it, that none offers
// more: so a query with a filter need not ask a cell that has nothing for it.
//
// A mature holder tells it with its reports to the holders of the cell above, which
// name the cells that cannot answer a scan. A quote that exceeds it makes the holder
// report at once, so the quote is found as soon as that report has arrived. What has
// gone makes it lower only with the next report in turn.
type summary struct {
	processors, free, speed int64      // most
	price                   grid.Price // least
}

// nothing is the summary of no quotes.
var nothing = summary{price: grid.CreditsMax}

// Significant bits to which the most of a cell are rounded up: what changes little
// is not reported again before its turn. Load changes all the time.
const (
	summaryBits     = 4
	summaryBitsFree = 1
)

// add extends the summary to a quote.
func (s *summary) add(q *Quote) {
	s.merge(&summary{
		roundUp(q.Processors, summaryBits), roundUp(q.Free, summaryBitsFree), roundUp(q.Speed, summaryBits), q.Price,
	})
}

// merge extends the summary to what another one is of.
func (s *summary) merge(o *summary) {
	s.processors = max(s.processors, o.processors)
	s.free = max(s.free, o.free)
	s.speed = max(s.speed, o.speed)
	s.price = min(s.price, o.price)
}

// covers reports whether s says nothing less than o.
func (s *summary) covers(o *summary) bool {
	merged := *s
	merged.merge(o)
	return merged == *s
}

// barren reports whether no quote that s is of passes a filter.
func (s *summary) barren(f *Filter) bool {
	return s.processors < f.ProcessorsMin || s.free < f.FreeMin || s.speed < f.SpeedMin || f.PriceMax > 0 && s.price > f.PriceMax
}

// roundUp returns the least number from v on that has at most n significant bits.
func roundUp(v int64, n int) int64 {
	drop := max(bits.Len64(uint64(v))-n, 0)
	return (v + 1<<drop - 1) >> drop << drop
}

// witness is a holder's summary of its cell, at the holder of the cell above.
type witness struct {
	site    grid.SiteID
	summary summary
	expires grid.Time
}

// testify notes what a holder of the fence's cell says; with none it takes back what
// it said before.
func (f *fence) testify(site grid.SiteID, s *summary, expires grid.Time) {
	f.witnesses = slices.DeleteFunc(f.witnesses, func(w witness) bool {
		return w.site == site || !slices.Contains(f.holders, w.site)
	})
	if s != nil && slices.Contains(f.holders, site) {
		f.witnesses = append(f.witnesses, witness{site, *s, expires})
	}
}

// summary returns what more than half of the holders of the fence's cell agree that
// nothing there exceeds.
func (f *fence) summary(now grid.Time) (s summary, ok bool) {
	if f.vouched != nil {
		return *f.vouched, true
	}
	s, count := nothing, 0
	for i := range f.witnesses {
		if w := &f.witnesses[i]; now < w.expires {
			s.merge(&w.summary)
			count++
		}
	}
	return s, count > 0 && 2*count > len(f.holders)
}

// summary returns that of a cell held here, if this site knows all of its quotes and
// what is in all cells below.
func (h *holding) summary(now grid.Time) (s summary, ok bool) {
	if !h.mature {
		return s, false
	}
	s = nothing
	for i := range h.entries {
		if e := &h.entries[i]; now < e.expires {
			s.add(e.quote)
		}
	}
	outer := -1
	for i := range h.fences {
		f := &h.fences[i]
		if outer >= 0 && h.fences[outer].covers(f.prefix) {
			continue // its holders report to those of the outer one
		}
		outer = i
		below, ok := f.summary(now)
		if !ok {
			return s, false
		}
		s.merge(&below)
	}
	return s, true
}

// raise makes the holder of a cell report at once if what the cell has now exceeds
// what this site has said of it.
func (d *Directory) raise(now grid.Time, h *holding, s *summary) {
	if u := &h.upkeep; u.said && !u.summary.covers(s) {
		u.summary.merge(s) // not again for the same
		u.retries = triesMax
		d.hurry(h, max(now, u.last+d.cfg.Timeout/4))
	}
}

// hurry brings the next round of a cell forward.
func (d *Directory) hurry(h *holding, at grid.Time) {
	h.upkeep.next = min(h.upkeep.next, at)
	d.upkeepAt = min(d.upkeepAt, h.upkeep.next)
}

// barrenMax bounds the cells of a page that cannot answer, and those that a query
// remembers.
const (
	barrenMax      = 64
	barrenQueryMax = 1024
)

// selective reports whether the filter may leave out whole cells.
func (f *Filter) selective() bool {
	return f.PriceMax > 0 || f.SpeedMin > 0 || f.FreeMin > 0 || f.ProcessorsMin > 0
}

// barren returns the cells that a scan comes to before the end of its page and that
// have nothing which passes its filter.
func (h *holding) barren(now grid.Time, m *Scan, p *Page) (cells []prefix) {
	for f := range h.ahead(m.At, m.Descending) {
		if n := len(p.Quotes); p.More && n > 0 {
			if edge := p.Quotes[n-1].at(m.Cell.attribute); m.Descending && f.end().less(edge) || !m.Descending && edge.less(f.bits) {
				break
			}
		}
		if n := len(cells); n > 0 && cells[n-1].covers(f.prefix) {
			continue
		}
		if s, ok := f.summary(now); ok && s.barren(&m.Filter) {
			if cells = append(cells, f.prefix); len(cells) == barrenMax {
				break
			}
		}
	}
	return cells
}

// skip passes over the cells that have nothing for the query.
func (q *query) skip() {
	for i := 0; i < len(q.barren) && !q.end; i++ {
		x := q.barren[i]
		if !x.contains(q.at) {
			continue
		}
		if q.ask.Descending {
			q.cover(x.bits)
		} else {
			q.cover(x.end())
		}
		i = -1 // one of those before may be next
	}
}

// reconsiderSummary makes the holder of a cell report at once if what a cell below
// has, or that this is not known, shows that it has said too little.
func (d *Directory) reconsiderSummary(now grid.Time, h *holding, f *fence) {
	s, ok := f.summary(now)
	if ok {
		d.raise(now, h, &s)
	} else if u := &h.upkeep; u.said {
		u.said = false
		d.hurry(h, max(now, u.last+d.cfg.Timeout/4))
	}
}
