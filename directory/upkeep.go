package directory

import (
	"gridnode/directory/trie"
	"gridnode/grid"
)

// standing is what a holder knows of its own word.
type standing uint8

const (
	proving   standing = iota // it does not know that it has every live quote of the cell, and compares with the others
	mature                    // it has them all: a query believes it alone
	displaced                 // it is not among the holders any more, and keeps what it has until that expires
)

// upkeep is what a holder does for a cell in rounds, at intervals that double up to half
// a lifetime, and come soon again when something is amiss. It drops what has expired, and
// tells the sites of strays where their quotes belong. It reports the cell to the holders of
// the one above it, its parent, so that those keep the fence. And as long as it is not
// mature, it compares its quotes with the other holders'.
//
//	            all others have the same quotes, and no cell above has strays
//	            (or matureAge has gone by)
//	+---------+ ------------------------------------------------------------> +--------+
//	| proving |                                                               | mature |
//	+---------+ <------------------------------------------------------------ +--------+
//	  ^    |      a copy or an outer fence expires; a stranger holds the cell,     |
//	  |    |      or more do than when that was proved                             |
//	  |    |                                                                       |
//	  |    +-----------------> +-----------+ <-------------------------------------+
//	  |   no holder any more   | displaced |   no holder any more
//	  +----------------------- +-----------+
//	      a holder again
//
// Why a round in which all agree is proof: then every site that publishes here knows all
// the holders, since it has published to each. It ends once the router has answered, if that is
// being asked. It is no proof if others are found to hold the cell before it ends, or the router
// names nobody, nor if a holder does not answer that has not lied: what was published to it may be
// nowhere else. A new holder copies quotes that others have from them, and which cells there are below,
// of which it would hear when their holders report next. Whose quotes and cells these are may not
// know it yet; so then it is proof only if the others know it, and tell them with their answers.
// Who only stands in for a holder that it cannot reach has no such proof: others may
// reach that one. If some holder never agrees, say because another site has a wrong idea of who
// holds the cell, age does instead: by then every site must have looked the holders up again and
// published to them.
type upkeep struct {
	standing standing
	since    grid.Time // when this site first heard of the cell, or stopped being mature
	eager    int       // rounds since it began to prove that it is mature

	next  grid.Time // when the next round is due
	last  grid.Time // when the last one began
	due   grid.Time // when the parent is to hear again of a cell that is being proved; 0: in the next round
	pause grid.Time // between them
	span  grid.Time // between them while all is well: a holder that doubts rests as long as before once that is over
	round round
	clear bool // in the last round that ended, no cell above had strays
	known int  // how many held the cell when this site became mature

	displaced uint64 // digest of the holders of whom the site was told that was one before
	displaces int    // times that was

	fresh  bool // it has never been mature, and may lack what no site tells it before long
	waits  bool // a holder does not answer, so that there is no proof before it does, or is no holder any more
	copied bool // some quotes or fences have come from other holders since it began to prove
	pages  int  // of those, in this round

	route route  // to the holders of the parent
	word  word   // what they have been told
	told  uint64 // digest of the holders of the cell that they have been told
}

// round is what is asked, and has been answered, in one round.
type round struct {
	number  uint32
	open    int  // questions unanswered, the router's too, and the round itself until all are asked
	asks    bool // the router is being asked who the holders are
	copies  bool // another holder is asked for the quotes that it has
	differs bool // another holder did not answer, or has other quotes
	strays  bool // a cell above had strays, or did not answer
	rests   bool // the parent knows all that it would be told
	noted   bool // a holder of the parent has taken the report, and knows the same others

	ring uint64 // digest of who holds the cell, as the round began
}

// word is what the holders of the parent have been told of the quotes.
type word struct {
	given   bool // they have a summary
	summary trie.Summary
	retries int // times it is said again at once if one does not answer
}

const (
	matureAge = 2*spanMax + 2 // halves of a lifetime after which a holder counts as mature
	eagerMax  = 16            // rounds that follow quickly if the holder is not mature before

	wonderAfter = 3 // rounds that show other quotes elsewhere until the router is asked

	displacesMax = 2           // times a site is told that it is no holder any more
	copyAfter    = 2           // rounds until quotes that only others have are copied: they may be on their way
	copyPagesMax = crowdFactor // with as many quotes as a cell of the usual size may have
)

// prove begins to prove that the holder is mature; a round under way proves nothing. The first
// round comes soon, so that whoever this site displaces learns it, but after those who publish to
// a new cell had time to.
func (u *upkeep) prove(now grid.Time, sh *shared) {
	u.standing, u.since, u.eager, u.waits, u.copied = proving, now, 0, false, false
	u.round.differs = true
	u.pause = 2 * sh.cfg.Timeout
	u.span = max(u.span, u.pause)
	u.next = now + sh.cfg.Timeout/4 + sh.jitter(sh.cfg.Timeout/4)
}

// doubt begins to prove anew what was proved. What the parent has been told by a mature holder stays
// true meanwhile, so that it need not hear of the doubt unless that lasts.
func (u *upkeep) doubt(now grid.Time, sh *shared) {
	switch {
	case u.standing == mature && u.clear && u.word.given:
		u.due = u.next
	case u.eager > 0:
		u.due = 0
	}
	u.prove(now, sh)
}

// soon brings the next round forward: the parent is to hear again.
func (u *upkeep) soon(at grid.Time) {
	u.next, u.due = min(u.next, at), 0
}

// wait takes notice of whether a holder does not answer. It may be away for long: the pauses double.
func (u *upkeep) wait(silent bool, sh *shared) {
	if u.waits && !silent {
		u.pause = 2 * sh.cfg.Timeout
		u.next = min(u.next, u.last+u.pause)
	}
	u.waits = silent
}

// begin notes that a round begins, and plans the next.
func (u *upkeep) begin(now grid.Time, sh *shared) {
	u.eager++
	switch {
	case u.standing == proving && u.eager <= eagerMax && !u.waits:
	case u.standing == proving || u.standing == mature && !u.clear:
		u.pause = min(2*u.pause, sh.cfg.Lifetime/2)
	default:
		u.span = min(2*u.span, sh.cfg.Lifetime/2)
		u.pause = u.span
	}
	u.next, u.last = now+u.pause-sh.jitter(u.pause/8), now
}

// conclude notes that a question of the round is done with, and with the last one
// draws the conclusion. It reports whether the word of a mature holder is not enough any more for
// the cells below to prove theirs, so that it is to ask again soon.
func (u *upkeep) conclude(now grid.Time, isRoot bool, lifetime grid.Time) (clouded bool) {
	r := &u.round
	if r.open--; r.open > 0 {
		return false
	}
	clouded = u.standing == mature && u.clear
	if !r.rests {
		u.clear = !r.strays && (r.noted || isRoot)
	}
	switch {
	case u.clear && !r.differs || now-u.since >= matureAge*lifetime/2:
		if r.rests && u.word.given {
			u.next = max(u.next, u.due) // what the parent knows is true
		}
		u.standing, u.fresh, u.due = mature, false, 0
	case r.rests && u.word.given:
		u.due = 0 // the doubt lasts
	case !r.rests && u.standing == proving && u.clear:
		u.due = now + lifetime/4
	}
	return clouded && !u.clear
}

// raise takes notice that the cell has s now, and reports whether that exceeds what this
// site has said, so that it is to report at once.
func (w *word) raise(s trie.Summary) bool {
	if !w.given || w.summary.Covers(s) {
		return false
	}
	w.summary.Merge(s) // not again for the same
	w.retries = triesMax
	return true
}

// retract takes notice that a cell below is not known any more, and reports whether that
// makes what this site has said too much.
func (w *word) retract() bool {
	given := w.given
	w.given = false
	return given
}

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

// How much the load has to change to be published before the next renewal: the
// free processors or the widest startable job to or from nothing, or by this
// factor; the start of a job as wide as the site by this factor of the wait and
// more than waitSlack.
const (
	loadFactor = 3
	waitSlack  = grid.Minute
)

// paceMax bounds the span between two changes of load that goes on for long.
const paceMax = grid.Minute

// paceRest is how many times that span a site's load must rest before the next
// change goes out quickly again.
const paceRest = 8

// pace is when a change of load is published. What matters goes out at once, but
// the more slowly the longer it goes on: the least span between two doubles from
// Config.LoadInterval to paceMax, so that it is at most seven in the first minute
// and one a minute in the long run. What matters little waits for the renewal,
// which then comes at a quarter of the lifetime.
type pace struct {
	offer   Quote     // as last set, Issued being when; the own quote may be behind it in load
	flushAt grid.Time // when it is published; grid.Never if that is not due
	slowing
}

// slowing is what is said the more slowly the longer it goes on.
type slowing struct {
	span    grid.Time // least, from one change of load to the next
	flushed grid.Time // when the last one went out
}

// changed plans the publication of a load that differs from that of the own quote.
func (p *pace) changed(now grid.Time, own *Quote, least grid.Time) {
	p.flushAt = grid.Never
	if own.loadMatters(now, &p.offer) {
		p.flushAt = own.Issued.Add(max(p.span, least))
	}
}

// slow notes that a load is published now.
func (p *slowing) slow(now, least, most grid.Time) {
	if p.span == 0 || now-p.flushed > paceRest*p.span {
		p.span = least
	} else {
		p.span = min(2*p.span, max(least, most))
	}
	p.flushed = now
}

// loadMatters reports whether two quotes of a site differ so much in load that jobs
// would be placed elsewhere.
func (q *Quote) loadMatters(now grid.Time, other *Quote) bool {
	a, b := q.waitLeft(now), other.waitLeft(now)
	return differ(q.Free, other.Free) || differ(q.Widest, other.Widest) || (a > 0) != (b > 0) ||
		max(a-b, b-a) > waitSlack && differ(int64(a), int64(b))
}

// differ reports whether one of two numbers is none and the other is not, or at
// least loadFactor times as large.
func differ(a, b int64) bool {
	return a != b && (a == 0 || b == 0 || max(a, b) >= loadFactor*min(a, b))
}
