package market

import (
	"math"
	"math/rand/v2"
	"slices"

	"gridnode/directory"
	"gridnode/grid"
)

// tie is more than a page of quotes of equal value at the front of an order, such as
// a hundred clusters of one kind at the lowest price. The directory lists them in one
// order for everybody, so every home would ask the same few sites, and ask the same
// holders for them, and leave the others idle: "popular resources can become
// bottlenecks" (Grid-Federation §4). Therefore a home that knows of a tie begins its
// pages amid it: at a place drawn for each job, in a cell of the directory that is the
// home's own as long as one page of it is enough, for whoever asks where he has asked
// before needs no other holders. What stands before that place comes last. The price is
// that a better quote may go unnoticed for tieSpan.
type tie struct {
	attribute  directory.Attribute
	descending bool
	quote      directory.Quote // one of them, for its value
	narrowest  int64           // jobs narrower than this may find better sites
	widest     int64           // wider ones find none of the tie
	page       uint64          // share of the tie that a page covers, in 2^-64
	place      uint64          // about where this home begins, as directory.Spread
	until      grid.Time       // then the front of the order is looked at again
}

// ties are those that a home knows of.
type ties struct {
	list []tie // oldest first
	rng  *rand.Rand
	dir  *directory.Directory
}

const (
	tiesMax = 8
	// tieSpan bounds for how long a home may miss a site that is better than a tie.
	// Looking at the front of the order costs two messages.
	tieSpan = 30 * grid.Minute
)

// noticed notes that a page from the front of an order has one value and more is to come,
// and reports whether that is so. With end there is nothing behind the page.
func (l *ties) noticed(now grid.Time, q *directory.Query, page []directory.Quote, end bool) bool {
	n := len(page)
	if n < q.Limit && (end || q.Tie == 0 || n < q.Tie) || n < 2 || !directory.Equal(&page[0], &page[n-1], q.Attribute) {
		return false
	}
	t := tie{attribute: q.Attribute, descending: q.Descending, quote: page[0], narrowest: q.Filter.ProcessorsMin, until: now.Add(tieSpan)}
	t.quote.Sealed = nil
	for i := range page {
		t.widest = max(t.widest, page[i].Processors)
	}
	t.page = directory.Spread(page[n-1].Site)
	if q.Descending {
		t.page = math.MaxUint64 - t.page
	}
	if !t.heads(q, q.Filter.ProcessorsMin) {
		return false // these are not what was asked for
	}
	t.place = l.rng.Uint64()
	i := slices.IndexFunc(l.list, func(old tie) bool {
		return old.attribute == t.attribute && old.descending == t.descending && old.narrowest == t.narrowest && directory.Equal(&old.quote, &t.quote, t.attribute)
	})
	if i >= 0 {
		t.place = l.list[i].place
		l.list = slices.Delete(l.list, i, i+1)
	}
	if len(l.list) >= tiesMax {
		l.list = slices.Delete(l.list, 0, 1)
	}
	l.list = append(l.list, t)
	return true
}

// heads reports whether t stands at the front of the order of a query for a job.
func (t *tie) heads(q *directory.Query, processors int64) bool {
	return t.attribute == q.Attribute && t.descending == q.Descending && t.narrowest <= processors && processors <= t.widest
}

// of returns the tie at the front of an order for a job, or nil.
func (l *ties) of(now grid.Time, q *directory.Query, processors int64) *tie {
	for i := range l.list {
		if now < l.list[i].until && l.list[i].heads(q, processors) {
			return &l.list[i]
		}
	}
	return nil
}

// begin draws the place amid t at which the pages of a job begin. Two pages of the tie
// are left behind it, or half of the tie if that is less.
func (l *ties) begin(t *tie, descending bool) *directory.Cursor {
	spread := l.dir.Around(&t.quote, t.attribute, t.place, l.rng.Uint64())
	allowed := math.MaxUint64 - 2*min(t.page, math.MaxUint64/4)
	switch {
	case descending && spread < math.MaxUint64-allowed:
		spread = math.MaxUint64 - l.rng.Uint64N(allowed)
	case !descending && spread >= allowed:
		spread = l.rng.Uint64N(allowed)
	}
	return directory.Amid(&t.quote, t.attribute, spread)
}

// move makes the pages of later jobs begin elsewhere: one was not enough.
func (l *ties) move(q *directory.Query, processors int64) {
	for i := range l.list {
		if t := &l.list[i]; t.heads(q, processors) {
			t.place = l.rng.Uint64()
		}
	}
}

// dissolved forgets the tie amid which a query began if the answer has none of it, and
// reports whether that is so.
func (l *ties) dissolved(q *directory.Query, page []directory.Quote) bool {
	n := len(l.list)
	l.list = slices.DeleteFunc(l.list, func(t tie) bool {
		return t.heads(q, q.Filter.ProcessorsMin) &&
			!slices.ContainsFunc(page, func(of directory.Quote) bool { return directory.Equal(&of, &t.quote, t.attribute) })
	})
	return len(l.list) < n
}
