package word

import (
	"gridnode/grid"
	"gridnode/market/bank"
	"gridnode/testnet/scenario"
)

// signature is somebody's about a cheque; for a draw it is its payer's.
type signature struct {
	signer, payer grid.SiteID
	task          grid.TaskID
}

// sign takes a receipt, which is always over the same amount; over nothing, the cheque is given back.
func (w *Watch) sign(o *word, r *bank.Receipt) {
	if r == nil || r.Signer != o.from || r.Amount == 0 {
		return
	}
	id := signature{r.Signer, r.Payer, r.Task}
	if before, known := w.signed[id]; known && before != r.Amount {
		w.Checks.Violated("%s signs for %v for job %s, epoch %d, and has signed for %v", o.from, r.Amount, r.Task.Job, r.Task.Epoch, before)
	}
	w.signed[id] = r.Amount
	if d := w.draws[signature{r.Payer, r.Payer, r.Task}]; d != nil && r.Amount > d.Ceiling {
		w.Checks.Violated("%s signs for %v for job %s, epoch %d, and the cheque for it is over %v", o.from, r.Amount, r.Task.Job, r.Task.Epoch, d.Ceiling)
	}
}

// agreed takes the receipt of a payer.
func (w *Watch) agreed(o *word, r *bank.Receipt) {
	if r == nil {
		return
	}
	w.sign(o, r)
	if claim, known := w.signed[signature{r.Payee, r.Payer, r.Task}]; known && r.Signer == r.Payer && r.Amount > claim {
		w.Checks.Violated("%s agrees to pay %v to %s for job %s, epoch %d, which has claimed %v", o.from, r.Amount, r.Payee, r.Task.Job, r.Task.Epoch, claim)
	}
}

// draw takes what a payer wants of its bank.
func (w *Watch) draw(o *word, m *bank.Draw) {
	id := signature{o.from, o.from, m.Task}
	before := w.draws[id]
	w.draws[id] = m
	if _, known := w.given[id]; m.Withdrawn && !known {
		w.given[id] = o.now
	}
	switch {
	case before == nil:
	case before.Payee != m.Payee || before.Ceiling != m.Ceiling:
		w.Checks.Violated("%s draws %v for %s, for job %s, epoch %d, and has drawn %v for %s", o.from, m.Ceiling, m.Payee, m.Task.Job, m.Task.Epoch, before.Ceiling, before.Payee)
	case before.Withdrawn && !m.Withdrawn:
		w.Checks.Violated("%s draws once more for job %s, epoch %d, what it has withdrawn", o.from, m.Task.Job, m.Task.Epoch)
	}
}

// underWay is how long a message may be.
const underWay = grid.Minute

// drawn takes the bank's answer.
func (w *Watch) drawn(o *word, m *bank.Drawn) {
	if m.Refusal != bank.NoBank && m.Refusal != bank.NoAccount {
		w.account(o, m.Settled, m.Committed)
	}
	if given, known := w.given[signature{o.to, o.to, m.Task}]; m.Refusal == bank.NoFunds && known && o.now > given+underWay {
		w.Checks.Violated("bank %s says to %s that there are no credits for a cheque for job %s, epoch %d, which is not wanted any more since %v: it may be written one day", o.from, o.to, m.Task.Job, m.Task.Epoch, given)
	}
	d := w.draws[signature{o.to, o.to, m.Task}]
	if has := w.Books.Account(o.at, o.to); m.Refusal == bank.NoAccount && has != (bank.Balance{}) || m.Refusal == bank.NoFunds && d != nil && has.Settled >= d.Ceiling {
		w.Checks.Violated("bank %s writes %s no cheque for job %s, epoch %d (%s), and it has %v", o.from, o.to, m.Task.Job, m.Task.Epoch, m.Refusal, has.Settled)
	}
	if m.Refusal != bank.Done {
		return
	}
	if _, written, open := w.Books.Paid(o.at, o.to, m.Task); !open {
		w.Checks.Violated("bank %s has written %s a cheque for job %s, epoch %d, for which it holds nothing (any more: %t)", o.from, o.to, m.Task.Job, m.Task.Epoch, written)
	}
	c := m.Cheque
	if d != nil && (c.Payer != o.to || c.Payee != d.Payee || c.Ceiling != d.Ceiling || c.Task != m.Task || c.Bank != o.from) {
		w.Checks.Violated("bank %s has written %s %+v, drawn was %+v", o.from, o.to, *c, *d)
	}
}

// remembered is for how long a bank knows a cheque at least that is settled, for who has not heard so.
const remembered = 5 * grid.Hour

// redeemed takes what a bank says of a cheque that was presented.
func (w *Watch) redeemed(o *word, m *bank.Redeemed) {
	paid, written, open := w.Books.Paid(o.at, m.Payer, m.Task)
	switch {
	case m.Refusal == bank.Done && (open || !written || m.Paid != paid):
		w.Checks.Violated("bank %s says to have paid %v for job %s, epoch %d, of %s; it has paid %v (%t, open: %t)", o.from, m.Paid, m.Task.Job, m.Task.Epoch, m.Payer, paid, written, open)
	case m.Refusal == bank.UnknownCheque && w.Books.Closed(o.at, m.Payer, m.Task) > o.now-remembered:
		w.Checks.Violated("bank %s does not know the cheque of %s for job %s, epoch %d, any more, which was settled lately", o.from, m.Payer, m.Task.Job, m.Task.Epoch)
	case m.Refusal == bank.UnknownCheque && open:
		w.Checks.Violated("bank %s does not know the cheque of %s for job %s, epoch %d, for which it holds credits", o.from, m.Payer, m.Task.Job, m.Task.Epoch)
	}
}

// account takes what a bank says to a site of its account.
func (w *Watch) account(o *word, settled, committed grid.Credits) {
	if is := w.Books.Account(o.at, o.to); is.Settled != settled || is.Committed != committed {
		w.Checks.Violated("bank %s says to %s that it has %v settled and %v committed, its journal says %v and %v", o.from, o.to, settled, committed, is.Settled, is.Committed)
	}
}

// turn compares what a site says of its cheques to its users with what banks have paid.
func (w *Watch) turn(_ grid.Time, at int) {
	w.saved(at)
	s, up := scenario.SiteAt(w.N, at)
	if !up || s.Desk() == nil || w.Forgets {
		return
	}
	stats := s.Desk().Stats()
	if stats.Paid == 0 && stats.Earned == 0 {
		return
	}
	if out, in, known := w.Books.Moved(w.N.ID(at)); known && (stats.Paid > out || stats.Earned > in) {
		w.Checks.Violated("%s says to have paid %v and earned %v, banks have paid %v and %v", w.N.ID(at), stats.Paid, stats.Earned, out, in)
	}
}
