package directory

import (
	"cmp"
	"fmt"
	"slices"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// holding is a cell that this site holds, as one of several: the copies of quotes
// that were published to it, and the cells that were split off it. Copies inside a
// fence are strays, whose sites have not moved them yet, or spares.
type holding struct {
	cell    cell
	records []record  // ordered by position, then site; each site once
	lapse   grid.Time // no record expires before
	fences  trie.Fences
	life    trie.Life

	upkeep upkeep
	heat   heat
}

// record is one site's copy.
type record struct {
	at      trie.Position
	quote   *Quote
	expires grid.Time
	spare   bool // it is a spare: it belongs into a cell below, which is closing
	safe    bool // this cell is closing, and the cell above has a spare
	copied  bool // another holder had it: its site may not know that this one holds the cell
}

// isMature reports whether this site has every live quote of the cell.
func (h *holding) isMature() bool { return h.upkeep.standing == mature }

// index returns the index of the first record at or behind a position.
func (h *holding) index(at trie.Position) int {
	i, _ := slices.BinarySearchFunc(h.records, at, func(e record, at trie.Position) int { return e.at.Compare(at) })
	return i
}

// of returns the index of a site's record, or -1.
func (h *holding) of(q *Quote) int {
	return slices.IndexFunc(h.records, func(e record) bool { return e.quote.spread == q.spread && e.quote.Site == q.Site })
}

// put inserts a record of a site that has none.
func (h *holding) put(e record) {
	i, _ := slices.BinarySearchFunc(h.records, e, func(a, b record) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.quote.Site, b.quote.Site))
	})
	h.records = slices.Insert(h.records, i, e)
	h.lapse = min(h.lapse, e.expires)
}

// lapsed reports whether a copy or an outer fence has expired. Then a site has died, or
// a cell has gone, or somebody has other ideas of who holds this cell, and so may
// others have: who was mature is not any more.
func (h *holding) lapsed(now grid.Time) bool {
	if now >= h.lapse {
		h.lapse = grid.Never
		for i := range h.records {
			h.lapse = min(h.lapse, h.records[i].expires)
		}
		if now >= h.lapse {
			return true
		}
	}
	return h.fences.Lapsed(now)
}

// expire drops what is over: copies (their publishers' counts go down) and fences.
func (k *holder) expire(now grid.Time, h *holding) {
	if h.lapsed(now) {
		k.doubt(now, h)
	}
	kept := h.records[:0]
	for _, e := range h.records {
		if now < e.expires {
			kept = append(kept, e)
		} else {
			k.uncount(e.quote.Site)
		}
	}
	clear(h.records[len(kept):])
	h.records = kept
	h.fences.Expire(now)
}

// own yields the live quotes of the cell itself, in order.
func (h *holding) own(now grid.Time, yield func(*record) bool) {
	outside := h.fences.Sieve()
	for i := range h.records {
		e := &h.records[i]
		if outside.Passes(e.at) && now < e.expires && !yield(e) {
			return
		}
	}
}

// split makes cells of parts of a cell that has too many quotes of its own.
func (h *holding) split(now grid.Time, cellMax int, expires grid.Time) {
	if len(h.records) <= h.cell.Room(cellMax) {
		return
	}
	var points []trie.Position
	for e := range func(yield func(*record) bool) { h.own(now, yield) } {
		points = append(points, e.at)
	}
	if h.fences.Split(h.cell.Prefix, points, cellMax, expires) {
		h.upkeep.soon(now) // for the strays to be told
	}
}

// reconsider decides whether the cell stays.
func (h *holding) reconsider(now grid.Time, cellMax int, lifetime grid.Time) {
	c := trie.Census{Max: cellMax, Safe: true, Mature: h.isMature(), Leaf: !h.cell.IsRoot() && h.fences.Len() == 0}
	for e := range func(yield func(*record) bool) { h.own(now, yield) } {
		c.Quotes++
		c.Safe = c.Safe && e.safe
	}
	h.life.Reconsider(now, lifetime, c)
}

// stand returns how many live quotes the cell has and the sum of their spreads.
func (h *holding) stand(now grid.Time) (count int32, sum uint64) {
	for e := range func(yield func(*record) bool) { h.own(now, yield) } {
		count++
		sum += e.quote.spread
	}
	return count, sum
}

// strays returns how many live copies kept here belong into a cell below, and will be moved there by
// their sites.
func (h *holding) strays(now grid.Time, child trie.Prefix) (n int32) {
	end := child.End()
	for i := h.index(child.Bits); i < len(h.records) && !end.Less(h.records[i].at); i++ {
		if e := &h.records[i]; now < e.expires && !e.spare && !e.copied {
			n++
		}
	}
	return n
}

// summary returns that of a cell held here, if this site knows all of its quotes and
// what is in all cells below.
func (h *holding) summary(now grid.Time) (s trie.Summary, ok bool) {
	if !h.isMature() {
		return s, false
	}
	if s, ok = h.fences.Summary(now); !ok {
		return s, false
	}
	for i := range h.records {
		if e := &h.records[i]; now < e.expires {
			s.Merge(e.quote.summary())
		}
	}
	return s, true
}

// hintBytesMax leaves room in a page's frame for its quotes and fences.
const hintBytesMax = 7 << 10

// hints returns who holds the cells from a position on, in the order in which a
// scan comes to them, without those that it passes over.
func (h *holding) hints(at trie.Position, descending bool, barren []trie.Prefix) (hints []Hint) {
	size := 0
	for f := range h.fences.Ahead(at, descending) {
		if len(f.Holders) == 0 || slices.ContainsFunc(barren, func(x trie.Prefix) bool { return x == f.Prefix || x.Covers(f.Prefix) }) {
			continue
		}
		for _, s := range f.Holders {
			size += len(s) + 2
		}
		if len(hints) == HintsMax || size > hintBytesMax {
			break
		}
		hints = append(hints, Hint{f.Prefix, f.Holders})
	}
	return hints
}

// barrenMax bounds the cells of a page that cannot answer, and those that a query
// remembers.
const (
	barrenMax      = 64
	barrenQueryMax = 1024
)

// barren returns the cells that a scan comes to before the end of its page and that
// have nothing which passes its filter.
func (h *holding) barren(now grid.Time, m *Scan, p *Page) (cells []trie.Prefix) {
	need := m.Filter.need()
	for f := range h.fences.Ahead(m.At, m.Descending) {
		if n := len(p.Quotes); p.More && n > 0 {
			if edge := p.Quotes[n-1].at(m.Cell.attribute); m.Descending && f.End().Less(edge) || !m.Descending && edge.Less(f.Bits) {
				break
			}
		}
		if n := len(cells); n > 0 && cells[n-1].Covers(f.Prefix) {
			continue
		}
		if s, ok := f.Summary(now); ok && s.Barren(need) {
			if cells = append(cells, f.Prefix); len(cells) == barrenMax {
				break
			}
		}
	}
	return cells
}

// audit looks at one copy.
func (h *holding) audit(now grid.Time, i int, lifetime grid.Time) error {
	e := &h.records[i]
	switch {
	case !h.cell.Contains(e.at) || e.at != e.quote.at(h.cell.attribute):
		return fmt.Errorf("belongs elsewhere")
	case i > 0 && e.at.Less(h.records[i-1].at):
		return fmt.Errorf("is out of order")
	case e.quote.Issued > now+skewMax:
		return fmt.Errorf("is of %v, which is to come", e.quote.Issued)
	case e.expires > e.quote.Expires() || e.expires < h.lapse:
		return fmt.Errorf("runs out at %v, and is kept until %v", e.quote.Expires(), e.expires)
	case e.expires+lifetime+auditLate < now:
		return fmt.Errorf("has run out at %v, and is kept still", e.expires)
	}
	return nil
}
