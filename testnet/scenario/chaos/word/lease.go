package word

import (
	"cmp"
	"slices"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/testnet/scenario"
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

// want is such a request, and what has come of it.
type want struct {
	lease.Request
	at      grid.Time // when it was said first
	granted grid.Time // 0: not yet
	back    bool      // its borrower has given it back
	over    bool      // one of the two has said so
}

// serves names what processors are asked for.
type serves struct {
	borrower grid.SiteID
	job      grid.JobID
}

// lent is what a lender has said of a lease.
type lent struct {
	price    grid.Price
	span     grid.Time
	own      bool      // the processors are the lender's
	end      grid.Time // in true time
	limit    grid.Time
	stamp    grid.Time
	spoke    grid.Time // when it last said so, in true time
	recalled bool
}

// said is what a borrower has: the lender's word, and its own number.
type said struct {
	stamp    grid.Time
	sequence uint64
	at       grid.Time
	span     grid.Time // for which it wants the lease from now on; 0: for as long as it has it
	claim    bool
}

// renewal is one of a lease, by its number.
type renewal struct {
	term
	sequence uint64
}

// leases takes what lenders and borrowers say to each other.
func (w *Watch) leases(o *word, m grid.Message) {
	if id, yes := subject(o, m); yes {
		w.speaks(o.at, id)
	}
	switch m := m.(type) {
	case *lease.Request:
		w.wanted(o, m)
	case *lease.Grant:
		w.granted(o, m)
	case *lease.Renewed:
		w.prolonged(o, m)
	case *lease.Refuse:
		w.denies(o, m)
		w.over(loan{o.to, o.from, m.Number})
	case *lease.Released:
		w.released(o, m)
	case *lease.Release:
		w.over(loan{o.from, o.to, m.Number})
		if l := w.wants[loan{o.from, o.to, m.Number}]; l != nil {
			l.back = true
		}
	case *lease.Revoke:
		if l := w.loans[term{loan{o.to, o.from, m.Number}, m.Epoch}]; l != nil {
			l.recalled = true
		}
	case *lease.Claim:
		w.repeated(o, term{loan{o.from, o.to, m.Number}, m.Epoch}, said{m.Stamp, m.Sequence, o.now, 0, true})
	case *lease.Renew:
		w.repeated(o, term{loan{o.from, o.to, m.Number}, m.Epoch}, said{m.Stamp, m.Sequence, o.now, m.Span, false})
	}
}

// subject returns of which lease a message speaks; ok is false if of none.
func subject(o *word, m grid.Message) (id lease.ID, ok bool) {
	switch m := m.(type) {
	case *lease.Request:
		return lease.ID{Borrower: o.from, Number: m.Number}, true
	case *lease.Claim:
		return lease.ID{Borrower: o.from, Number: m.Number}, true
	case *lease.Renew:
		return lease.ID{Borrower: o.from, Number: m.Number}, true
	case *lease.Release:
		return lease.ID{Borrower: o.from, Number: m.Number}, true
	case *lease.Grant:
		return lease.ID{Borrower: o.to, Number: m.Number}, true
	case *lease.Renewed:
		return lease.ID{Borrower: o.to, Number: m.Number}, true
	case *lease.Released:
		return lease.ID{Borrower: o.to, Number: m.Number}, true
	case *lease.Revoke:
		return lease.ID{Borrower: o.to, Number: m.Number}, true
	}
	return id, false
}

// wanted takes a request, which is the same each time.
func (w *Watch) wanted(o *word, m *lease.Request) {
	id := loan{o.from, o.to, m.Number}
	before := w.wants[id]
	if before == nil {
		before = &want{Request: *m, at: o.now}
		w.wants[id] = before
		if m.Hold > 0 {
			w.inTurn(o, before)
		}
	}
	w.outlasts(o, m)
	if before.Processors != m.Processors || before.Span != m.Span || before.Hold != m.Hold || before.Sink != m.Sink || before.Subject != m.Subject || before.Most != m.Most || before.Bank != m.Bank {
		w.Checks.Violated("%s asks %s for %+v, and has asked for %+v", o.from, o.to, *m, before.Request)
	}
}

// outlasts checks that processors for a component of a job are asked for at least as long as the job takes, by
// a clock that is as slow as one may be.
func (w *Watch) outlasts(o *word, m *lease.Request) {
	s, up := scenario.SiteAt(w.N, o.at)
	if !up {
		return
	}
	v, there := s.Glance(m.Subject)
	if there && v.Job.Coallocate != nil && m.Span < lease.SpanLimit && m.Span-m.Span/1000*3 < v.Job.Estimate {
		w.Checks.Violated("%s asks %s for %d processors for job %s for %v, which may take %v", o.from, o.to, m.Processors, m.Subject, m.Span, v.Job.Estimate)
	}
}

// inTurn checks that what is held already for a job, when one more site is asked to hold something for it, was
// to be held for longer than that: it has to last until that site has answered, too.
func (w *Watch) inTurn(o *word, next *want) {
	of := serves{o.from, next.Subject}
	w.held[of] = append(slices.DeleteFunc(w.held[of], func(l *want) bool {
		return l.over || l.at < w.came[o.at] || l.granted > 0 && o.now >= l.granted+l.Hold
	}), next)
	for _, l := range w.held[of] {
		if l.granted > 0 && l.at < o.now && l.Hold <= next.Hold && l.Hold < lease.HoldLimit {
			w.Checks.Violated("%s asks %s to hold %d processors for job %s for %v, and what is held since %v was to be for %v", o.from, o.to, next.Processors, next.Subject, next.Hold, l.granted, l.Hold)
		}
	}
}

// over takes that nothing comes of a request any more.
func (w *Watch) over(id loan) {
	if l := w.wants[id]; l != nil {
		l.over = true
	}
}

// released takes that a lender has the processors again. That they were given back it says if they were.
func (w *Watch) released(o *word, m *lease.Released) {
	id := loan{o.to, o.from, m.Number}
	w.over(id)
	if l := w.wants[id]; l != nil && m.Cause == lease.Freed && !l.back {
		w.Checks.Violated("%s says that lease %d was given back by %s, which has not said so", o.from, m.Number, o.to)
	}
}

// granted takes the answer.
func (w *Watch) granted(o *word, m *lease.Grant) {
	id := loan{o.to, o.from, m.Number}
	if r := w.wants[id]; r != nil {
		if m.Span > r.Span || r.Most > 0 && m.Price > r.Most || r.Bank == "" && m.Price > 0 || r.Hold > 0 && m.Hold > r.Hold {
			w.Checks.Violated("%s lends %s %+v, asked for was %+v", o.from, o.to, *m, r.Request)
		}
		r.granted = cmp.Or(r.granted, o.now)
	}
	w.free(o, m.Number, m.Hold, m.Gone)
	t := term{id, m.Epoch}
	if l := w.loans[t]; l != nil && l.price != m.Price {
		w.Checks.Violated("%s lends %s lease %d for %v, and has granted it for %v", o.from, o.to, m.Number, m.Price, l.price)
	} else if l == nil {
		w.loans[t] = &lent{price: m.Price, span: m.Span, own: m.Source == o.from, stamp: m.Stamp, spoke: o.now}
	}
}

// grace is how long something of a borrower may be alive after the end of a lease, which sites
// do not say: how long a pilot takes to die.
const grace = 5 * grid.Second

// term is how long a lease of a site lasts from a word of its borrower on.
func (w *Watch) term(at int) grid.Time { return cmp.Or(w.site(at).Lease.Term, lease.DefaultTerm) }

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
	id := term{loan{o.to, o.from, m.Number}, m.Epoch}
	l := w.loans[id]
	if l == nil {
		return
	}
	end, limit := o.now+m.Term, o.now+m.Limit
	if asked, known := w.used[renewal{id, m.Sequence}]; known {
		w.asFor(o, m, l, asked)
	}
	switch {
	case m.Stamp < l.stamp:
		w.Checks.Violated("%s speaks of lease %d of %s at %v of its clock, and has at %v", o.from, m.Number, o.to, m.Stamp, l.stamp)
	case l.recalled && l.end > 0 && end > l.end+off(m.Term):
		w.Checks.Violated("%s wants lease %d of %s back, which was to end at %v, and prolongs it until %v", o.from, m.Number, o.to, l.end, end)
	case l.price > 0 && l.limit > 0 && limit > l.limit+off(m.Limit):
		w.Checks.Violated("%s lends lease %d to %s until %v, which is paid for until %v", o.from, m.Number, o.to, limit, l.limit)
	}
	l.end, l.limit, l.stamp, l.spoke = max(l.end, end), max(l.limit, limit), m.Stamp, o.now
}

// asFor checks how long a lease lasts against what its borrower has asked for: until then at most, and if
// nothing speaks against it, for a term, and as long as is wanted.
func (w *Watch) asFor(o *word, m *lease.Renewed, l *lent, asked said) {
	most := max(l.limit-o.now, asked.span)
	if l.limit == 0 {
		most = l.span
	}
	if m.Limit > most+off(most) {
		w.Checks.Violated("%s lends lease %d to %s for %v at most, asked for is %v", o.from, m.Number, o.to, m.Limit, most)
	}
	recalled := l.recalled || w.came[o.at] > l.spoke // it may have died before it said that it wants it back
	if recalled || !l.own || asked.claim || asked.stamp > m.Stamp {
		return
	}
	if least := min(w.term(o.at), m.Limit, asked.stamp+2*w.term(o.at)-m.Stamp); m.Term < least {
		w.Checks.Violated("%s prolongs lease %d of %s for %v, and could for %v", o.from, m.Number, o.to, m.Term, least)
	}
	if l.price == 0 && m.Limit < asked.span {
		w.Checks.Violated("%s lends lease %d to %s for %v at most, which is wanted for %v", o.from, m.Number, o.to, m.Limit, asked.span)
	}
}

// repeated takes what a borrower says again of its lender, and which number it gives that: one of its
// own each time, and a larger one unless it has been restarted.
func (w *Watch) repeated(o *word, id term, is said) {
	was := w.says[id]
	anew := w.came[o.at] >= was.at
	if is.stamp < was.stamp || is.sequence < was.sequence && !anew || !is.claim && w.knows(renewal{id, is.sequence}) {
		w.Checks.Violated("%s renews lease %d of %s as number %d, by what that said at %v; its last word was number %d, by what it said at %v", o.from, id.number, o.to, is.sequence, is.stamp, was.sequence, was.stamp)
	}
	w.says[id], w.used[renewal{id, is.sequence}] = is, is
}

// knows reports whether a lease was renewed with that number.
func (w *Watch) knows(id renewal) bool {
	_, known := w.used[id]
	return known
}
