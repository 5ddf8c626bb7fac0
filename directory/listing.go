package directory

import (
	"slices"

	"gridnode/grid"
)

// Bounds of a site's own publishing.
const (
	placesMax = 8  // cells in which copies of its quote may be, per attribute
	hopsMax   = 64 // redirections it follows for one quote
	triesMax  = 4  // times a message is sent to a holder
)

// listing is a site's own quote under one attribute: the cells in which copies of
// it may be. One is the proper place, where it belongs. While that cell is closing, the
// one above it has a spare. From the former places it is withdrawn once it is in the
// proper one.
type listing struct {
	places []place
	retry  grid.Time // when an unanswered message is due again; grid.Never if none is
	hops   int       // redirections followed for the quote
	close  grid.Time // until when its proper cell is known to be closing
	leave  grid.Time // it does not leave a closed cell before then again
	again  bool      // a copy that is being withdrawn is wanted again, so it must be newer
}

// role is what a place is to a listing.
type role uint8

const (
	former role = iota
	spare
	proper
)

// voice says which of the holders who have the quote before are to answer.
type voice uint8

const (
	loud  voice = iota // all: something other than load has changed
	half               // every other one, next time the others: it is renewed
	quiet              // none: it differs in load only
)

// in returns the place in a role other than leaving, or nil.
func (l *listing) in(r role) *place {
	for i := range l.places {
		if l.places[i].role == r {
			return &l.places[i]
		}
	}
	return nil
}

// evict makes the place in a role one to leave.
func (l *listing) evict(r role) {
	if p := l.in(r); p != nil {
		p.turn(former)
	}
}

// enter returns the place of a cell, which may be a new one.
func (l *listing) enter(c cell) *place {
	i := slices.IndexFunc(l.places, func(p place) bool { return p.cell == c })
	if i >= 0 {
		p := &l.places[i]
		l.again = l.again || p.role == former && slices.ContainsFunc(p.copies, func(c replica) bool { return c.tries > 0 })
		return p
	}
	if len(l.places) == placesMax { // the copies in the one left first will expire
		i := slices.IndexFunc(l.places, func(p place) bool { return p.role == former })
		l.places = slices.Delete(l.places, i, i+1)
	}
	l.places = append(l.places, place{cell: c})
	return &l.places[len(l.places)-1]
}
