package word

import (
	"gridnode/grid"
	"gridnode/lease"
	"gridnode/market/bank"
	"gridnode/market/fee"
)

// habit is how a site says again what is not answered: after first, after twice that, …, at most after longest.
type habit struct{ first, longest grid.Time }

// saying is something that a site says until it is answered.
type saying struct {
	kind     grid.Kind
	from, to grid.SiteID
	number   uint64 // of the lease
	task     grid.TaskID
	given    bool // what it is about is not wanted any more
}

// pause is when that was said last, and after what time at least it may be said again.
type pause struct {
	at, least grid.Time
}

// saying returns what a message says that is repeated until it is answered, and how; ok is false if it is
// nothing of that kind.
func (w *Watch) saying(o *word, m grid.Message) (s saying, h habit, ok bool) {
	s = saying{kind: m.MessageKind(), from: o.from, to: o.to}
	switch m := m.(type) {
	case *lease.Request:
		s.number, h = m.Number, habit{lease.RetryDefault, max(w.term(o.at), lease.RetryDefault)}
	case *lease.Claim:
		s.number, h = m.Number, habit{lease.RetryDefault, max(w.term(o.at), lease.RetryDefault)}
	case *bank.Draw:
		s.task, s.given, h = m.Task, m.Withdrawn, habit{grid.Second, 5 * grid.Second}
		if m.Withdrawn {
			h.longest = grid.Minute
		}
	case *bank.Redeem: // a cheque that is given back its payer may want back anew
		s.task, h = m.Claim.Task, habit{grid.Second, 10 * grid.Minute}
		if m.Claim.Amount == 0 || m.Claim.Signer == m.Claim.Payer {
			return s, h, false
		}
	case *fee.Advance:
		s.number, h = m.Number, habit{2 * grid.Second, 10 * grid.Minute}
	case *fee.Bill:
		s.number, h = m.Number, habit{2 * grid.Second, 10 * grid.Minute}
	default:
		return s, h, false
	}
	return s, h, true
}

// pauses checks that what a site says again, as it is not answered, it says after longer and longer pauses.
func (w *Watch) pauses(o *word, m grid.Message) {
	s, h, ok := w.saying(o, m)
	if !ok {
		return
	}
	p, known := w.paused[s]
	if !known || w.came[o.at] >= p.at {
		w.paused[s] = pause{o.now, h.first}
		return
	}
	if after := o.now - p.at; after < p.least-off(p.least) {
		w.Checks.Violated("%s says %T %+v to %s again after %v, and was to after %v at least", o.from, m, m, o.to, after, p.least)
	}
	w.paused[s] = pause{o.now, min(2*p.least, h.longest)}
}
