package market

import (
	"math"
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
	attribute directory.Attribute
	quote     directory.Quote // one of them, for its value
	narrowest int64           // jobs narrower than this may find better sites
	widest    int64           // wider ones find none of the tie
	page      uint64          // share of the tie that a page covers, in 2^-64
	place     uint64          // about where this home begins, as directory.Spread
	until     grid.Time       // then the front of the order is looked at again
}

const (
	tiesMax = 8
	// tieSpan bounds for how long a home may miss a site that is better than a tie.
	// Looking at the front of the order costs two messages.
	tieSpan = 30 * grid.Minute
)

// tied notes that a page from the front of an order has one value and more is to come,
// and reports whether that is so. With end there is nothing behind the page.
func (a *Agent) tied(now grid.Time, q *directory.Query, page []directory.Quote, end bool) bool {
	n := len(page)
	if n < q.Limit && (end || q.Tie == 0 || n < q.Tie) || n < 2 || !directory.Equal(&page[0], &page[n-1], q.Attribute) {
		return false
	}
	t := tie{attribute: q.Attribute, quote: page[0], narrowest: q.Filter.ProcessorsMin, until: now.Add(tieSpan)}
	t.quote.Sealed = nil
	for i := range page {
		t.widest = max(t.widest, page[i].Processors)
	}
	if q.Attribute == directory.Free {
		t.widest = page[0].Free // for wider jobs the order ends before it
	}
	t.page = directory.Spread(page[n-1].Site)
	if q.Descending {
		t.page = math.MaxUint64 - t.page
	}
	if !t.heads(q.Attribute, q.Filter.ProcessorsMin) {
		return false // these are not what was asked for
	}
	t.place = a.rng.Uint64()
	i := slices.IndexFunc(a.ties, func(old tie) bool {
		return old.attribute == t.attribute && old.narrowest == t.narrowest && directory.Equal(&old.quote, &t.quote, t.attribute)
	})
	if i >= 0 {
		t.place = a.ties[i].place
		a.ties = slices.Delete(a.ties, i, i+1)
	}
	if len(a.ties) >= tiesMax {
		a.ties = slices.Delete(a.ties, 0, 1)
	}
	a.ties = append(a.ties, t)
	return true
}

// heads reports whether t stands at the front of an order for a job.
func (t *tie) heads(by directory.Attribute, processors int64) bool {
	return t.attribute == by && t.narrowest <= processors && processors <= t.widest
}

// tieFor returns the tie at the front of an order for a job, or nil.
func (a *Agent) tieFor(now grid.Time, by directory.Attribute, processors int64) *tie {
	for i := range a.ties {
		if now < a.ties[i].until && a.ties[i].heads(by, processors) {
			return &a.ties[i]
		}
	}
	return nil
}

// begin draws the place amid t at which the pages of a job begin. Two pages of the tie
// are left behind it, or half of the tie if that is less.
func (a *Agent) begin(t *tie, descending bool) *directory.Cursor {
	spread := a.dir.Around(&t.quote, t.attribute, t.place, a.rng.Uint64())
	allowed := math.MaxUint64 - 2*min(t.page, math.MaxUint64/4)
	switch {
	case descending && spread < math.MaxUint64-allowed:
		spread = math.MaxUint64 - a.rng.Uint64N(allowed)
	case !descending && spread >= allowed:
		spread = a.rng.Uint64N(allowed)
	}
	return directory.Amid(&t.quote, t.attribute, spread)
}

// move makes the pages of later jobs begin elsewhere: one was not enough.
func (a *Agent) move(by directory.Attribute, processors int64) {
	for i := range a.ties {
		if t := &a.ties[i]; t.heads(by, processors) {
			t.place = a.rng.Uint64()
		}
	}
}

// dissolved forgets the tie amid which a query began if the answer has none of it, and
// reports whether that is so.
func (a *Agent) dissolved(q *directory.Query, page []directory.Quote) bool {
	n := len(a.ties)
	a.ties = slices.DeleteFunc(a.ties, func(t tie) bool {
		return t.heads(q.Attribute, q.Filter.ProcessorsMin) &&
			!slices.ContainsFunc(page, func(of directory.Quote) bool { return directory.Equal(&of, &t.quote, t.attribute) })
	})
	return len(a.ties) < n
}
