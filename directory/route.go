package directory

import (
	"gridnode/directory/trie"
	"gridnode/grid"
)

// bearing is how far a holder knows its cell's parent, the longest cell that covers it.
type bearing uint8

const (
	lost     bearing = iota // it does not: every round begins at the root and asks downwards
	checking                // it does, but asks downwards from the root again: a cell may have come between
	settled                 // it does: reports go to all holders of the parent
)

// route is how the reports of a cell find their way.
//
//	        a round begins, and it is time        who is asked
//	settled -----------------------------> checking -----> lost
//	   ^                                      |   says: further down
//	   |          who is asked notes it       |              |
//	   +--------------------------------------+--------------+
//
// A holder that says nothing while it is checking leaves the route as it was: the next
// round is settled again.
type route struct {
	bearing bearing
	parent  trie.Prefix // unless lost
	way     trie.Prefix // the cell whose holders are asked; the parent if settled
	hops    int         // of the way in this round
	again   grid.Time   // when it is looked for from the root again
	span    grid.Time   // until then
}

// routeMin is after how many lifetimes a holder looks for its cell's parent from the
// root again, at first. The span doubles up to spanMax lifetimes.
const routeMin = 4

// begin chooses where a round begins.
func (r *route) begin(now grid.Time, sh *shared) {
	r.hops = 0
	if r.bearing != lost && now < r.again {
		r.bearing, r.way = settled, r.parent
		return
	}
	r.span = min(max(2*r.span, routeMin*sh.cfg.Lifetime), spanMax*sh.cfg.Lifetime)
	r.again = now + r.span - sh.jitter(r.span/4)
	r.way = trie.Prefix{}
	if r.bearing != lost && !r.parent.IsRoot() { // else the root is who is to know
		r.bearing = checking
	}
}

// moved takes the word of a holder that another cell is between its own and x, and
// reports whether that one is to be asked next.
func (r *route) moved(to, x trie.Prefix) bool {
	if !r.way.Covers(to) || !to.Covers(x) || r.hops >= hopsMax {
		return false
	}
	r.hops++
	r.bearing, r.way = lost, to
	return true
}

// arrived notes that the holder asked is one of the parent's.
func (r *route) arrived() { r.bearing, r.parent = settled, r.way }
