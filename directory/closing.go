package directory

import "gridnode/grid"

// closing is how a cell with few quotes becomes part of the cell above it again. At
// every moment one of the two has all quotes:
//
//  1. The cell has few quotes for a lifetime. From then on it tells those who
//     publish to it to put a copy into the cell above, too: a guest's.
//  2. When all its quotes have such a copy, it stops reporting to its parent, which
//     drops the fence a lifetime later. Who still knows this cell asks it, and, as
//     it is not mature any more, also the one above it.
//  3. After another lifetime it tells those who publish to it to withdraw. When they
//     have, it is gone.
//
// A quote without a copy, or too many quotes, put an end to that.
type closing struct {
	low  grid.Time // since when the cell has few quotes; grid.Never if it does not
	on   bool      // step 1
	quit grid.Time // since when it does not report, step 2; grid.Never if it does
}

// never is the state of a cell that stays.
var never = closing{low: grid.Never, quit: grid.Never}

// closed reports whether step 3 has come.
func (c *closing) closed(now, lifetime grid.Time) bool {
	return c.quit != grid.Never && now-c.quit >= 2*lifetime
}

// heed takes notice of a quote that was published.
func (c *closing) heed(safe bool) {
	if c.quit != grid.Never && !safe {
		*c = never
	}
}

// reconsider decides whether the cell stays.
func (h *holding) reconsider(now grid.Time, cellMax int, lifetime grid.Time) {
	c := &h.closing
	count, safe := 0, true
	for e := range func(yield func(*entry) bool) { h.own(now, yield) } {
		count++
		safe = safe && e.safe
	}
	leaf := !h.cell.isRoot() && len(h.fences) == 0
	switch {
	case c.on && (!leaf || count > cellMax/4):
		*c = never
	case c.on && c.quit == grid.Never && safe:
		c.quit = now
	case c.on:
	case !leaf || !h.mature || count > cellMax/8:
		c.low = grid.Never
	case c.low == grid.Never:
		c.low = now
	default:
		c.on = now-c.low >= lifetime
	}
}
