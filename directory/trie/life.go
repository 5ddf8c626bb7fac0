package trie

import "gridnode/grid"

// Stage is where a cell is in its life, as one of its holders sees it.
type Stage uint8

// The stages. They follow each other; a quote too many, a cell below, and for Leaving a
// quote without a second copy, lead back to Stays.
const (
	Stays   Stage = iota // it has enough quotes, or cells below it
	Sparse               // it has few quotes
	Closing              // it has had few for a lifetime: who publishes there is to put a second copy into the cell above
	Leaving              // all of its quotes have one: it is not reported to the cell above any more, which drops the fence
	Closed               // nobody above can know it any more: who publishes there is to withdraw, and with the last copy it is gone
)

var stageNames = [...]string{"stays", "sparse", "closing", "leaving", "closed"}

// String returns the stage's name.
func (s Stage) String() string { return stageNames[s] }

// closedAfter is how many lifetimes a cell is Leaving before it is Closed. One goes by
// until the fence in the cell above has expired, another until all who had heard of the
// cell before that have found out.
const closedAfter = 2

// Life is how a cell with few quotes becomes part of the cell above it again. At every
// moment one of the two has all quotes: until it is Leaving the cell itself, from then
// on the one above, which is asked as well because the cell is not believed alone any
// more. The zero value is a cell that stays.
type Life struct {
	stage Stage     // Stays to Leaving
	since grid.Time // when Sparse, Leaving began
}

// Census is what a holder finds in a cell when it reconsiders.
type Census struct {
	Quotes int  // live ones, of its own
	Max    int  // more of them make the cell split
	Safe   bool // all of them have a copy in the cell above
	Leaf   bool // there is no cell below, and one above
	Mature bool // the holder knows that it has them all
}

// A cell is sparse with an eighth of the most quotes, and stays again with a quarter: so
// one that was just split, which has half of them, does not close again.
const (
	sparseShare = 8
	staysShare  = 4
)

// Stage returns where the cell is.
func (l *Life) Stage(now, lifetime grid.Time) Stage {
	if l.stage == Leaving && now-l.since >= closedAfter*lifetime {
		return Closed
	}
	return l.stage
}

// Leaves reports whether the cell is Leaving or Closed: it reports no more, and nobody
// is to believe its holders alone.
func (l *Life) Leaves() bool { return l.stage == Leaving }

// Reconsider decides whether the cell stays.
func (l *Life) Reconsider(now, lifetime grid.Time, c Census) {
	switch l.stage {
	case Closing, Leaving:
		switch {
		case !c.Leaf || c.Quotes > c.Max/staysShare:
			*l = Life{}
		case l.stage == Closing && c.Safe:
			*l = Life{Leaving, now}
		}
	default:
		switch {
		case !c.Leaf || !c.Mature || c.Quotes > c.Max/sparseShare:
			*l = Life{}
		case l.stage == Stays:
			*l = Life{Sparse, now}
		case now-l.since >= lifetime:
			*l = Life{Closing, now}
		}
	}
}

// Published takes notice of a quote that comes in; safe says that it has a copy in the
// cell above. One that has none keeps the cell from leaving.
func (l *Life) Published(safe bool) {
	if l.stage == Leaving && !safe {
		*l = Life{}
	}
}
