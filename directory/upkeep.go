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
// a lifetime. It drops what has expired, and tells the sites of strays where their
// quotes belong. It reports the cell to the holders of the one above it, its
// parent, so that those keep the fence. And as long as it is not mature, it
// compares its quotes with the other holders'.
//
//	            all others have the same quotes, and no cell above has strays
//	            (or matureAge has gone by)
//	+---------+ ------------------------------------------------------------> +--------+
//	| proving |                                                               | mature |
//	+---------+ <------------------------------------------------------------ +--------+
//	  ^    |      a copy or an outer fence expires; a stranger holds the cell      |
//	  |    |                                                                       |
//	  |    +-----------------> +-----------+ <-------------------------------------+
//	  |   no holder any more   | displaced |   no holder any more
//	  +----------------------- +-----------+
//	      a holder again
//
// Why a round in which all agree is proof: then every site that publishes here knows all
// the holders, since it has published to each. If some holder never agrees, say because
// another site has a wrong idea of who holds the cell, age does instead: by then every
// site must have looked the holders up again and published to them.
type upkeep struct {
	standing standing
	since    grid.Time // when this site first heard of the cell, or stopped being mature
	eager    int       // rounds since it began to prove that it is mature

	next  grid.Time // when the next round is due
	last  grid.Time // when the last one began
	span  grid.Time // between them
	round round
	clear bool // in the last round that ended, no cell above had strays

	route route // to the holders of the parent
	word  word  // what they have been told
}

// round is what is asked, and has been answered, in one round.
type round struct {
	number  uint32
	open    int  // questions unanswered, and the round itself until all are asked
	differs bool // another holder did not answer, or has other quotes
	strays  bool // a cell above had strays, or did not answer
	noted   bool // a holder of the parent has taken the report
}

// word is what the holders of the parent have been told of the quotes.
type word struct {
	given   bool // they have a summary
	summary trie.Summary
	retries int // times it is said again at once if one does not answer
}

const (
	matureAge = 2*spanMax + 1 // halves of a lifetime after which a holder counts as mature
	eagerMax  = 16            // rounds that follow quickly if the holder is not mature before
)

// prove begins to prove that the holder is mature. The first round comes soon, so that
// whoever this site displaces learns it, but after those who publish to a new cell had
// time to.
func (u *upkeep) prove(now grid.Time, sh *shared) {
	u.standing, u.since, u.eager = proving, now, 0
	u.span = 2 * sh.cfg.Timeout
	u.next = now + sh.cfg.Timeout/4 + sh.jitter(sh.cfg.Timeout/4)
}

// begin notes that a round begins, and plans the next.
func (u *upkeep) begin(now grid.Time, sh *shared) {
	u.eager++
	if u.standing != proving || u.eager > eagerMax {
		u.span = min(2*u.span, sh.cfg.Lifetime/2)
	}
	u.next, u.last = now+u.span-sh.jitter(u.span/8), now
}

// conclude notes that a question of the round is done with, and with the last one
// draws the conclusion.
func (u *upkeep) conclude(now grid.Time, isRoot bool, lifetime grid.Time) {
	r := &u.round
	if r.open--; r.open > 0 {
		return
	}
	u.clear = !r.strays && (r.noted || isRoot)
	if u.clear && !r.differs || now-u.since >= matureAge*lifetime/2 {
		u.standing = mature
	}
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
