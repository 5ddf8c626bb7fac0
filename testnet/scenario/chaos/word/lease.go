package word

import (
	"cmp"

	"gridnode/grid"
	"gridnode/lease"
)

// loan is a request for processors, and the lease that comes of it.
type loan struct {
	borrower, lender grid.SiteID
	number           uint64
}

// term is one grant of it.
type term struct {
	loan
	epoch uint64
}

// lent is what a lender has said of a lease.
type lent struct {
	price    grid.Price
	end      grid.Time // in true time
	limit    grid.Time
	stamp    grid.Time
	recalled bool
}

// said is what a borrower has: the lender's word, and its own number.
type said struct {
	stamp    grid.Time
	sequence uint64
	at       grid.Time
}

// renewal is one of a lease, by its number.
type renewal struct {
	term
	sequence uint64
}

// leases takes what lenders and borrowers say to each other.
func (w *Watch) leases(o *word, m grid.Message) {
	switch m := m.(type) {
	case *lease.Request:
		w.wanted(o, m)
	case *lease.Grant:
		w.granted(o, m)
	case *lease.Renewed:
		w.prolonged(o, m)
	case *lease.Revoke:
		if l := w.loans[term{loan{o.to, o.from, m.Number}, m.Epoch}]; l != nil {
			l.recalled = true
		}
	case *lease.Claim:
		w.repeated(o, term{loan{o.from, o.to, m.Number}, m.Epoch}, said{m.Stamp, m.Sequence, o.now}, true)
	case *lease.Renew:
		w.repeated(o, term{loan{o.from, o.to, m.Number}, m.Epoch}, said{m.Stamp, m.Sequence, o.now}, false)
	}
}

// wanted takes a request, which is the same each time.
func (w *Watch) wanted(o *word, m *lease.Request) {
	id := loan{o.from, o.to, m.Number}
	before, known := w.wants[id]
	if known && (before.Processors != m.Processors || before.Span != m.Span || before.Hold != m.Hold || before.Sink != m.Sink || before.Subject != m.Subject || before.Most != m.Most || before.Bank != m.Bank) {
		w.Checks.Violated("%s asks %s for %+v, and has asked for %+v", o.from, o.to, *m, before)
	}
	w.wants[id] = *m
}

// granted takes the answer.
func (w *Watch) granted(o *word, m *lease.Grant) {
	id := loan{o.to, o.from, m.Number}
	if r, known := w.wants[id]; known && (m.Span > r.Span || r.Most > 0 && m.Price > r.Most || r.Bank == "" && m.Price > 0 || r.Hold > 0 && m.Hold > r.Hold) {
		w.Checks.Violated("%s lends %s %+v, asked for was %+v", o.from, o.to, *m, r)
	}
	w.free(o, m.Number, m.Hold, m.Gone)
	t := term{id, m.Epoch}
	if l := w.loans[t]; l != nil && l.price != m.Price {
		w.Checks.Violated("%s lends %s lease %d for %v, and has granted it for %v", o.from, o.to, m.Number, m.Price, l.price)
	} else if l == nil {
		w.loans[t] = &lent{price: m.Price, stamp: m.Stamp}
	}
}

// grace is how long something of a borrower may be alive after the end of a lease, which sites
// do not say: how long a pilot takes to die.
const grace = 5 * grid.Second

// term is how long a lease of a site lasts from a word of its borrower on.
func (w *Watch) term(at int) grid.Time { return cmp.Or(w.Site(at).Lease.Term, lease.DefaultTerm) }

// free checks that a lender says to be free no sooner than it is, if nothing of its borrower reaches it
// any more: each word of its prolongs the lease for two terms at most.
func (w *Watch) free(o *word, number uint64, hold, gone grid.Time) {
	if most := hold + 2*w.term(o.at) + grace; gone < most {
		w.Checks.Violated("%s says to be free of lease %d of %s in %v; that may take %v", o.from, number, o.to, gone, most)
	}
}

// prolonged takes how long a lease lasts.
func (w *Watch) prolonged(o *word, m *lease.Renewed) {
	w.free(o, m.Number, 0, m.Gone)
	if most := w.term(o.at); m.Term > most {
		w.Checks.Violated("%s says that lease %d of %s lasts for %v, its term is %v", o.from, m.Number, o.to, m.Term, most)
	}
	l := w.loans[term{loan{o.to, o.from, m.Number}, m.Epoch}]
	if l == nil {
		return
	}
	end, limit := o.now+m.Term, o.now+m.Limit
	switch {
	case m.Stamp < l.stamp:
		w.Checks.Violated("%s speaks of lease %d of %s at %v of its clock, and has at %v", o.from, m.Number, o.to, m.Stamp, l.stamp)
	case l.recalled && l.end > 0 && end > l.end+off(m.Term):
		w.Checks.Violated("%s wants lease %d of %s back, which was to end at %v, and prolongs it until %v", o.from, m.Number, o.to, l.end, end)
	case l.price > 0 && l.limit > 0 && limit > l.limit+off(m.Limit):
		w.Checks.Violated("%s lends lease %d to %s until %v, which is paid for until %v", o.from, m.Number, o.to, limit, l.limit)
	}
	l.end, l.limit, l.stamp = max(l.end, end), max(l.limit, limit), m.Stamp
}

// repeated takes what a borrower says again of its lender, and which number it gives that: one of its
// own each time, and a larger one unless it has been restarted.
func (w *Watch) repeated(o *word, id term, is said, claim bool) {
	was := w.says[id]
	anew := w.came[o.at] >= was.at
	if is.stamp < was.stamp || is.sequence < was.sequence && !anew || !claim && w.used[renewal{id, is.sequence}] {
		w.Checks.Violated("%s renews lease %d of %s as number %d, by what that said at %v; its last word was number %d, by what it said at %v", o.from, id.number, o.to, is.sequence, is.stamp, was.sequence, was.stamp)
	}
	w.says[id], w.used[renewal{id, is.sequence}] = is, true
}
