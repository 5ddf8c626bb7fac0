package bank

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// recovery collects records of a ledger in any order.
type recovery struct {
	journal []*Transaction
	holds   []*hold
	closed  []grid.Time // of the holds
}

// transaction takes one record of the journal.
func (r *recovery) transaction(value []byte) error {
	var p wirepb.BankTransaction
	if err := proto.Unmarshal(value, &p); err != nil {
		return err
	}
	var c check
	t := c.transaction(&p)
	if c.Err != nil {
		return c.Err
	}
	if copy(t.hash[:], p.Hash) != len(t.hash) {
		return wire.Malformed("hash of %d bytes", len(p.Hash))
	}
	t.record = journalKey(t.Sequence)
	r.journal = append(r.journal, t)
	return nil
}

// account takes one account.
func (l *Ledger) account(value []byte) error {
	var p wirepb.BankAccountRecord
	if err := proto.Unmarshal(value, &p); err != nil {
		return err
	}
	var c check
	a := newAccount(c.site("site", p.Site))
	c.Within("settled", p.Settled, -int64(grid.CreditsMax), int64(grid.CreditsMax))
	a.Settled, a.Committed, a.last = grid.Credits(p.Settled), c.amount("committed", p.Committed, 0), p.Last
	a.refused = c.refusals(p.Refused)
	l.accounts[a.site] = a
	return c.Err
}

// hold takes one cheque.
func (r *recovery) hold(value []byte) error {
	var p wirepb.BankHoldRecord
	if err := proto.Unmarshal(value, &p); err != nil {
		return err
	}
	c, err := chequeFromProto(p.Cheque)
	if err != nil {
		return err
	}
	h := newHold(*c)
	h.state, h.paid = holdState(p.State), grid.Credits(p.Paid)
	if h.state < holdOpen || h.state > holdWithdrawn {
		return wire.Malformed("state %d", p.State)
	}
	r.holds, r.closed = append(r.holds, h), append(r.closed, grid.Time(p.Closed))
	return nil
}

// recover rebuilds the ledger once every record was taken. Of a step only the first
// records may have been stored; the journal comes first, so what accounts and
// cheques lack is made up for from it, and stored.
func (l *Ledger) recover(now grid.Time, r *recovery, out *grid.Outbox) error {
	slices.SortFunc(r.journal, func(a, b *Transaction) int { return int(min(max(int64(a.Sequence-b.Sequence), -1), 1)) })
	l.journal = r.journal
	if n := len(l.journal); n > 0 {
		l.last, l.head = l.journal[n-1].Sequence, l.journal[n-1].hash
	}
	if err := l.auditChain(); err != nil {
		return err
	}
	for i, h := range r.holds {
		if l.accounts[h.Payer] == nil {
			return fmt.Errorf("cheque of %s, which has no account", h.Payer)
		}
		l.add(h)
		at := h.Expires
		if h.state != holdOpen {
			at = r.closed[i].Add(closedKeep)
		}
		l.alarms.Set(&h.due, at)
	}
	made := make(map[*hold]bool)
	for _, t := range l.journal {
		if err := l.redo(t, made, out); err != nil {
			return err
		}
	}
	for _, h := range slices.SortedFunc(maps.Keys(made), func(a, b *hold) int { return strings.Compare(a.record, b.record) }) {
		if h.state != holdOpen && h.due.At() <= now { // forgotten long ago
			l.alarms.Stop(&h.due)
			delete(l.holds, h.key())
			l.accounts[h.Payer].holds--
			continue
		}
		out.Save(h)
	}
	for _, a := range l.accounts {
		a.forgotten = a.refused
	}
	for _, h := range l.holds {
		if a := l.accounts[h.Payee]; a != nil && h.state == holdOpen {
			a.Incoming += h.Ceiling
		}
	}
	return l.Audit()
}

// redo takes a transaction of the journal up, and applies it where it is missing.
// Holds that were not stored, or are forgotten, it adds to made.
func (l *Ledger) redo(t *Transaction, made map[*hold]bool, out *grid.Outbox) error {
	if t.Kind == KindGrant || t.Kind == KindTransfer {
		l.moved[moveKey{t.Payer, t.Task.Job}] = t
	}
	sides := t.postings()
	for i := range sides {
		p := &sides[i]
		if p.site == "" || p.settled == 0 && p.committed == 0 {
			continue
		}
		a := l.accounts[p.site]
		if a == nil {
			a = openAccount(t.At, p.site)
			l.accounts[p.site] = a
		}
		a.history = append(a.history, t.Sequence)
		if a.last < t.Sequence {
			if err := a.apply(t, p); err != nil {
				return err
			}
			out.Save(l.records.New().set(a))
		}
	}
	h := l.holds[key{t.Payer, t.Task}]
	switch {
	case t.Kind == KindDraw && h == nil:
		h = newHold(Cheque{Bank: l.self, Payer: t.Payer, Payee: t.Payee, Task: t.Task, Ceiling: t.Amount, Expires: t.Expires})
		h.state = holdOpen
		if l.accounts[h.Payer] == nil {
			return fmt.Errorf("cheque of %s, which has no account", h.Payer)
		}
		made[h] = true
		l.add(h)
		l.alarms.Set(&h.due, h.Expires)
	case (t.Kind == KindRedeem || t.Kind == KindExpire) && h != nil && h.state == holdOpen:
		h.state = holdExpired
		if t.Kind == KindRedeem {
			h.state, h.paid = holdRedeemed, t.Amount
		}
		l.alarms.Set(&h.due, t.At.Add(closedKeep))
		made[h] = true
	}
	return nil
}

// RecordPrefix is what the keys of all records of this package begin with.
const RecordPrefix = "bank/"

// Load takes one stored record, in any order, before any Step. Its error says what is
// wrong with the record.
func (d *Desk) Load(now grid.Time, key string, value []byte, out *grid.Outbox) error {
	switch {
	case strings.HasPrefix(key, paymentPrefix):
		return d.recoverPayment(now, value, out)
	case strings.HasPrefix(key, billPrefix):
		return d.recoverBill(now, value)
	case d.ledger == nil: // the books of a bank that is not offered any more are kept
		return nil
	case strings.HasPrefix(key, JournalPrefix):
		return d.recovery.transaction(value)
	case strings.HasPrefix(key, accountPrefix):
		return d.ledger.account(value)
	case strings.HasPrefix(key, holdPrefix):
		return d.recovery.hold(value)
	}
	return fmt.Errorf("not a record of a bank: %q", key)
}

// Loaded says that every record was taken. Its error says why the books do not
// balance: a bank must not go on then.
func (d *Desk) Loaded(now grid.Time, out *grid.Outbox) error {
	r := d.recovery
	d.recovery = recovery{}
	if d.ledger == nil {
		return nil
	}
	if err := d.ledger.recover(now, &r, out); err != nil {
		return fmt.Errorf("the bank's books: %w", err)
	}
	return nil
}

// resumeSpread is four times the span over which a desk spreads what it takes up
// after a restart: later adds up to a quarter.
const resumeSpread = 8 * grid.Second

// soon draws an instant within the next two seconds.
func (d *Desk) soon(now grid.Time) grid.Time {
	var pause grid.Time
	return d.later(now, &pause, resumeSpread, resumeSpread) - resumeSpread
}

// recoverPayment takes a cheque of ours up. A job that waited for it never left, so
// nobody needs it.
func (d *Desk) recoverPayment(now grid.Time, value []byte, out *grid.Outbox) error {
	var record wirepb.BankPaymentRecord
	if err := proto.Unmarshal(value, &record); err != nil {
		return err
	}
	c, err := chequeFromProto(record.Cheque)
	if err != nil {
		return err
	}
	p := newPayment(*c)
	p.Sealed = record.Sealed
	p.state, p.wrote = payState(record.State), record.Written
	p.agreed, p.ends = grid.Credits(record.Agreed), grid.Time(record.Ends)
	if p.state < payDrawing || p.state > payReturning {
		return wire.Malformed("state %d", record.State)
	}
	d.payments[p.Task] = p
	at := p.ends
	switch p.state {
	case payDrawing:
		p.state = payWithdrawn
		out.Save(p)
		fallthrough
	case payWithdrawn:
		d.probes++
		at = d.soon(now)
	case payReturning:
		at = d.soon(now)
	}
	d.alarms.Set(&p.due, at)
	return nil
}

// recoverBill takes a cheque that we were given up.
func (d *Desk) recoverBill(now grid.Time, value []byte) error {
	var record wirepb.BankBillRecord
	if err := proto.Unmarshal(value, &record); err != nil {
		return err
	}
	c, err := chequeFromProto(record.Cheque)
	if err != nil {
		return err
	}
	b := newBill(*c)
	b.Sealed = record.Sealed
	b.state = billState(record.State)
	if b.state < billOpen || b.state > billRedeeming || b.state == billRedeeming && record.Claim == nil {
		return wire.Malformed("state %d", record.State)
	}
	for _, r := range []struct {
		from   *wirepb.BankReceipt
		sealed []byte
		into   **Receipt
	}{{record.Claim, record.ClaimSealed, &b.claim}, {record.Agreement, record.AgreementSealed, &b.agreement}} {
		if r.from == nil {
			continue
		}
		if *r.into, err = receiptFromProto(r.from); err != nil {
			return err
		}
		(*r.into).Sealed = r.sealed
	}
	d.bills[b.key()] = b
	at := b.Expires
	if b.state == billRedeeming {
		at = d.soon(now)
	}
	d.alarms.Set(&b.due, at)
	return nil
}
