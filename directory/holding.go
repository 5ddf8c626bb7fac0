package directory

import (
	"cmp"
	"slices"

	"gridnode/grid"
)

// Bounds of what a site holds for others.
const (
	holdingsMax  = 4096   // cells
	recordsMax   = 10_000 // copies of quotes in all cells
	publisherMax = 64     // copies of one site's quotes
	fencesMax    = 128    // cells split off one cell
	crowdFactor  = 4      // a cell keeps at most this many times Config.CellMax copies
)

// holding is a cell that this site holds, as one of several: the copies of quotes
// that were published to it, and the fences, which are the cells that it covers and
// that were split off it. Copies inside a fence are strays, whose sites have not
// moved them yet, or guests.
type holding struct {
	cell    cell
	entries []entry // ordered by position, then site; each site once
	fences  []fence // ordered by prefix; some may cover others

	since   grid.Time // when this site first heard of the cell, or began anew to doubt that it has all
	mature  bool      // this site has every live quote of the cell
	soonest grid.Time // no entry or fence expires before
	closing closing

	told   []prefix // the fences as they stand in messages; nil after a change
	digest uint64   // of told
	upkeep upkeep
	demand demand
}

// entry is one site's copy.
type entry struct {
	at      position
	quote   *Quote
	expires grid.Time
	guest   bool // it belongs into a cell below, which is closing
	safe    bool // this cell is closing, and the cell above has a guest's copy
}

// fence is a cell that was split off this one.
type fence struct {
	prefix
	expires grid.Time     // unless its holders report again
	holders []grid.SiteID // as one of them has reported; shared by messages, does not change

	witnesses []witness // what some of these say of the cell, each once
	vouched   *summary  // of a copy: what the holder of the cell above makes of that
}

// holding returns a cell held here, or nil.
func (d *Directory) holding(c cell) *holding {
	if i, ok := d.seek(c); ok {
		return d.holdings[i]
	}
	return nil
}

func (d *Directory) seek(c cell) (int, bool) {
	return slices.BinarySearchFunc(d.holdings, c, func(h *holding, c cell) int { return h.cell.compare(c) })
}

// hold returns a cell, which this site holds from now on, or nil if it holds as
// many as it can.
func (d *Directory) hold(now grid.Time, c cell) *holding {
	i, ok := d.seek(c)
	if ok {
		return d.holdings[i]
	}
	if len(d.holdings) >= holdingsMax {
		return nil
	}
	h := &holding{cell: c, since: now, soonest: grid.Never, closing: never}
	h.upkeep.begin(now, d)
	d.holdings = slices.Insert(d.holdings, i, h)
	d.upkeepAt = min(d.upkeepAt, h.upkeep.next)
	return h
}

// index returns the index of the first entry at or behind a position.
func (h *holding) index(at position) int {
	i, _ := slices.BinarySearchFunc(h.entries, at, func(e entry, at position) int { return e.at.compare(at) })
	return i
}

// of returns the index of a site's entry, or -1.
func (h *holding) of(q *Quote) int {
	return slices.IndexFunc(h.entries, func(e entry) bool { return e.quote.spread == q.spread && e.quote.Site == q.Site })
}

// put inserts an entry of a site that has none.
func (h *holding) put(e entry) {
	i, _ := slices.BinarySearchFunc(h.entries, e, func(a, b entry) int {
		return cmp.Or(a.at.compare(b.at), cmp.Compare(a.quote.Site, b.quote.Site))
	})
	h.entries = slices.Insert(h.entries, i, e)
	h.soonest = min(h.soonest, e.expires)
}

// lapsed reports whether a copy or fence has expired. Then a site has died, or a
// cell has gone, or somebody has other ideas of who holds this cell, and so may
// others have: who was mature is not any more. Fences that another one covers do not
// count: the holders of these cells report to that one's as soon as there is one.
func (h *holding) lapsed(now grid.Time) bool {
	if now < h.soonest {
		return false
	}
	h.soonest = grid.Never
	for i := range h.entries {
		h.soonest = min(h.soonest, h.entries[i].expires)
	}
	for f := range h.outer {
		h.soonest = min(h.soonest, f.expires)
	}
	return now >= h.soonest
}

// doubt makes the holder of a cell prove anew that it has all of its quotes.
func (d *Directory) doubt(now grid.Time, h *holding) {
	h.since, h.mature = now, false
	h.upkeep.begin(now, d)
	d.upkeepAt = min(d.upkeepAt, h.upkeep.next)
	if r := d.rings[h.cell]; r != nil {
		r.fresh = min(r.fresh, now)
	}
}

// own yields the live quotes of the cell itself, in order.
func (h *holding) own(now grid.Time, yield func(*entry) bool) {
	fenced, edge, j := false, position{}, 0 // edge is the end of the last fence that began, if any
	for i := range h.entries {
		e := &h.entries[i]
		for ; j < len(h.fences) && !e.at.less(h.fences[j].bits); j++ {
			if end := h.fences[j].end(); !fenced || edge.less(end) {
				fenced, edge = true, end
			}
		}
		if now < e.expires && (!fenced || edge.less(e.at)) && !yield(e) {
			return
		}
	}
}

// stand returns how many live quotes the cell has and the sum of their spreads.
func (h *holding) stand(now grid.Time) (count int32, sum uint64) {
	for e := range func(yield func(*entry) bool) { h.own(now, yield) } {
		count++
		sum += e.quote.spread
	}
	return count, sum
}

// strays returns how many live copies kept here belong into a cell below.
func (h *holding) strays(now grid.Time, child prefix) (n int32) {
	end := child.end()
	for i := h.index(child.bits); i < len(h.entries) && !end.less(h.entries[i].at); i++ {
		if e := &h.entries[i]; now < e.expires && !e.guest {
			n++
		}
	}
	return n
}

// way returns the longest fence that contains a position and is not skip or below
// it; if there is one, that is where a quote at that position belongs.
func (h *holding) way(at position, skip prefix) (to prefix, moved bool) {
	for i := range h.fences {
		f := h.fences[i].prefix
		if at.less(f.bits) {
			break
		}
		if f.contains(at) && (!moved || f.length > to.length) && (skip.length == 0 || f.length < skip.length) {
			to, moved = f, true
		}
	}
	return to, moved
}

// addFence notes that a cell exists which this one covers. If there are too many
// already it reports false.
func (h *holding) addFence(x prefix, expires grid.Time) bool {
	i, known := slices.BinarySearchFunc(h.fences, x, func(f fence, x prefix) int { return f.prefix.compare(x) })
	if !known {
		if len(h.fences) >= fencesMax {
			return false
		}
		h.fences = slices.Insert(h.fences, i, fence{prefix: x})
		h.told, h.digest = nil, 0
	}
	h.fences[i].expires = max(h.fences[i].expires, expires)
	h.soonest = min(h.soonest, expires)
	return true
}

// fence returns the fence of a cell, or nil.
func (h *holding) fence(x prefix) *fence {
	i, ok := slices.BinarySearchFunc(h.fences, x, func(f fence, x prefix) int { return f.prefix.compare(x) })
	if !ok {
		return nil
	}
	return &h.fences[i]
}

// holdersOf returns who holds the cell of a fence, as far as they have reported.
func (h *holding) holdersOf(x prefix) []grid.SiteID {
	if f := h.fence(x); f != nil {
		return f.holders
	}
	return nil
}

// hintBytesMax leaves room in a page's frame for its quotes and fences.
const hintBytesMax = 7 << 10

// hints returns who holds the cells from a position on, in the order in which a
// scan comes to them, without those that it passes over.
func (h *holding) hints(at position, descending bool, barren []prefix) (hints []Hint) {
	size := 0
	for f := range h.ahead(at, descending) {
		if len(f.holders) == 0 || slices.ContainsFunc(barren, func(x prefix) bool { return x == f.prefix || x.covers(f.prefix) }) {
			continue
		}
		for _, s := range f.holders {
			size += len(s) + 2
		}
		if len(hints) == HintsMax || size > hintBytesMax {
			break
		}
		hints = append(hints, Hint{f.prefix, f.holders})
	}
	return hints
}

// ahead yields the fences from a position on, in the order in which a scan comes to
// them.
func (h *holding) ahead(at position, descending bool) func(yield func(*fence) bool) {
	return func(yield func(*fence) bool) {
		step, i := 1, 0
		if descending {
			step, i = -1, len(h.fences)-1
		}
		for ; i >= 0 && i < len(h.fences); i += step {
			f := &h.fences[i]
			if behind := descending && !at.less(f.bits) || !descending && !f.end().less(at); behind && !yield(f) {
				return
			}
		}
	}
}

// outer yields the fences that no other one covers.
func (h *holding) outer(yield func(*fence) bool) {
	last := -1
	for i := range h.fences {
		if last >= 0 && h.fences[last].covers(h.fences[i].prefix) {
			continue
		}
		last = i
		if !yield(&h.fences[i]) {
			return
		}
	}
}

// edges returns the digest of the outer fences: holders for whom it is the same know
// the same part of the cell as its own, whatever they know of the cells below those.
func (h *holding) edges() (digest uint64) {
	for f := range h.outer {
		digest = digestWith(digest, f.prefix)
	}
	return digest
}

// list returns the fences as they go into messages, and their digest. The slice is
// shared by all messages and does not change.
func (h *holding) list() ([]prefix, uint64) {
	if h.told == nil && len(h.fences) > 0 {
		h.told = make([]prefix, len(h.fences))
		for i := range h.fences {
			h.told[i] = h.fences[i].prefix
		}
		h.digest = digestOf(h.told)
	}
	return h.told, h.digest
}

// expire drops what is over: copies (their publishers' counts go down) and fences.
func (d *Directory) expire(now grid.Time, h *holding) {
	if h.lapsed(now) {
		d.doubt(now, h)
	}
	kept := h.entries[:0]
	for _, e := range h.entries {
		if now < e.expires {
			kept = append(kept, e)
		} else {
			d.uncount(e.quote.Site)
		}
	}
	clear(h.entries[len(kept):])
	h.entries = kept
	n := len(h.fences)
	h.fences = slices.DeleteFunc(h.fences, func(f fence) bool { return now >= f.expires })
	if len(h.fences) != n {
		h.told, h.digest = nil, 0
	}
}

// count notes one more copy of a site's quotes, unless there are too many.
func (d *Directory) count(site grid.SiteID) bool {
	if d.records >= recordsMax || d.publishers[site] >= publisherMax {
		return false
	}
	if d.publishers == nil {
		d.publishers = make(map[grid.SiteID]int32)
	}
	d.records++
	d.publishers[site]++
	return true
}

func (d *Directory) uncount(site grid.SiteID) {
	d.records--
	if d.publishers[site]--; d.publishers[site] == 0 {
		delete(d.publishers, site)
	}
}
