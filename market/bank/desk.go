package bank

import (
	"fmt"
	"iter"

	"gridnode/grid"
)

// Config is what a desk is told.
type Config struct {
	Self   grid.SiteID
	Offer  bool          // keep a bank here
	Bank   grid.SiteID   // the bank that this site pays from, Self included; empty: it pays nobody
	Accept []grid.SiteID // banks one of whose cheques another site's job must bring; empty: none is asked for
	Seal   Seal          // nil in virtual time
}

// Desk is all that one site has to do with banks: the bank it keeps, if it offers
// one, the cheques that it writes as a home, and those that it is paid with. It is
// deterministic, reads no clock and is not safe for concurrent use.
type Desk struct {
	cfg    Config
	ledger *Ledger // nil unless Config.Offer
	alarms grid.Alarms[any]

	payments  map[grid.TaskID]*payment
	probes    int  // payments whose draws nobody waits for
	silent    bool // the bank left a draw without an answer
	bills     map[key]*bill
	questions map[uint64]*question
	debtors   debtors
	outcasts  *Outcasts
	token     uint64
	spread    uint64 // state of the jitter of repetitions

	stats    Stats
	recovery recovery // between Load and Loaded
}

// Stats counts what passed over a desk since it was made.
type Stats struct {
	Paid, Earned grid.Credits     // by cheques of this site, and to it
	Unpaid       grid.Credits     // owed to this site by cheques that no bank honours any more
	Refused      map[string]int64 // answers of banks to this site, by reason; nil if none
}

// Inputs of Desk besides grid.Tick, *grid.Delivery and *grid.Undelivered. The answer
// to each Token is a *Statement.

// Grant issues credits of the bank kept here.
type Grant struct {
	Token  uint64
	ID     grid.JobID
	To     grid.SiteID
	Amount grid.Credits
}

// Transfer moves credits of this site's account at its bank.
type Transfer struct {
	Token  uint64
	ID     grid.JobID
	To     grid.SiteID
	Amount grid.Credits
}

// Question asks what is in an account, and for its newest transactions.
type Question struct {
	Token   uint64
	Account grid.SiteID // empty: this site's at its bank; others only where the bank is kept
	Limit   int32       // transactions, 0 to 100
	All     bool        // every account of the bank kept here; Account and Limit do not count
}

// Statement answers Grant, Transfer and Question.
type Statement struct {
	Bank         grid.SiteID
	Refusal      Refusal
	Silent       bool // the bank did not answer: of a transfer it is not known whether it happened
	Account      grid.SiteID
	Balance      Balance
	Transactions []*Transaction // newest first
	Accounts     []Holding      // of Question.All, by site
}

// Holding is one account of a bank.
type Holding struct {
	Site grid.SiteID
	Balance
}

// Local inputs that a desk gives to the rest of its site.

// Written: the cheque that a job waits for is there.
type Written struct{ Task grid.TaskID }

// Declined: there will be no cheque for the task.
type Declined struct {
	Task   grid.TaskID
	Silent bool   // the bank did not answer; Back says when it is worth another try
	Reason string // for the user
}

// Back: the bank answers again.
type Back struct{}

// NewDesk returns a desk that knows of nothing. seed spreads its repetitions.
func NewDesk(cfg Config, seed uint64) *Desk {
	d := &Desk{
		cfg: cfg, payments: make(map[grid.TaskID]*payment), bills: make(map[key]*bill),
		questions: make(map[uint64]*question), spread: seed,
	}
	d.outcasts = &Outcasts{d, make(map[grid.SiteID]bool)}
	if cfg.Offer {
		d.ledger = NewLedger(cfg.Self, cfg.Seal)
		d.ledger.outcasts = d.outcasts
	}
	return d
}

// Ledger returns the books of the bank kept here, nil if none is. The caller may
// read them.
func (d *Desk) Ledger() *Ledger { return d.ledger }

// Bank returns the bank that this site pays from; empty if none.
func (d *Desk) Bank() grid.SiteID { return d.cfg.Bank }

// Stats returns what passed over the desk so far.
func (d *Desk) Stats() Stats { return d.stats }

// Open returns how many cheques of this site are not known to be spent, and how many
// it was given and has not been paid for.
func (d *Desk) Open() (payments, bills int) { return len(d.payments), len(d.bills) }

// Records returns what a site has to do with cheques as it is to be saved, and, if it keeps a bank,
// accounts and the cheques that are drawn on them, but not the journal; in no particular order.
func Records(d *Desk) iter.Seq[grid.Record] {
	return func(yield func(grid.Record) bool) {
		for _, p := range d.payments {
			if !yield(p) {
				return
			}
		}
		for _, b := range d.bills {
			if !yield(b) {
				return
			}
		}
		if d.ledger == nil {
			return
		}
		for _, h := range d.ledger.holds {
			if !yield(h) {
				return
			}
		}
		for _, a := range d.ledger.accounts {
			if a.last > 0 && !yield(new(accountRecord).set(a)) {
				return
			}
		}
	}
}

// Step applies one input at time now and appends the effects to out. What is due is
// done first. now never decreases.
func (d *Desk) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	d.due(now, out)
	switch in := in.(type) {
	case grid.Tick: // what was due is done
	case *grid.Delivery:
		d.deliver(now, in.From, in.Message, out)
	case *grid.Undelivered:
		d.undelivered(now, in, out)
	case *Grant:
		d.grant(now, in, out)
	case *Transfer:
		d.transfer(now, in, out)
	case *Question:
		d.ask(now, in, out)
	default:
		panic(fmt.Sprintf("bank: unknown input %T", in))
	}
}

// NextTimer returns when Step next needs a Tick, and grid.Never if it needs none.
func (d *Desk) NextTimer() grid.Time {
	if d.ledger != nil {
		return min(d.alarms.Next(), d.ledger.NextTimer())
	}
	return d.alarms.Next()
}

// due does what is due.
func (d *Desk) due(now grid.Time, out *grid.Outbox) {
	if d.ledger != nil {
		d.ledger.Expire(now, out)
	}
	for a := d.alarms.Pop(now); a != nil; a = d.alarms.Pop(now) {
		switch owner := a.Owner.(type) {
		case *payment:
			d.paymentDue(now, owner, out)
		case *bill:
			d.billDue(now, owner, out)
		case *question:
			d.questionDue(now, owner, out)
		}
	}
}

func (d *Desk) deliver(now grid.Time, from grid.SiteID, message grid.Message, out *grid.Outbox) {
	switch m := message.(type) {
	case *Drawn:
		d.drawn(now, from, m, out)
	case *Settled:
		d.settled(from, m, out)
	case *Return:
		d.returned(now, from, m, out)
	case *Redeemed:
		d.redeemed(now, from, m, out)
	case *TransferReply:
		d.transferred(from, m, out)
	case *Inform:
		d.informed(from, m, out)
	case *Draw, *Redeem, *TransferRequest, *Inquire:
		d.asBank(now, from, message, out)
	default:
		panic(fmt.Sprintf("bank: message %T is of another protocol", message))
	}
}

// asBank answers a request to the bank kept here.
func (d *Desk) asBank(now grid.Time, from grid.SiteID, message grid.Message, out *grid.Outbox) {
	l := d.ledger
	switch m := message.(type) {
	case *Draw:
		reply := &Drawn{Task: m.Task, Refusal: NoBank}
		if l != nil {
			reply.Cheque, reply.Refusal = l.Draw(now, from, m, out)
			b, _ := l.Balance(from)
			reply.Settled, reply.Committed = b.Settled, b.Committed
		}
		d.send(from, reply, out)
	case *Redeem:
		reply := &Redeemed{Payer: m.Cheque.Payer, Task: m.Cheque.Task, Refusal: NoBank}
		if l != nil {
			reply.Paid, reply.Refusal = l.Redeem(now, from, m, out)
		}
		if reply.Refusal == Done && from != m.Cheque.Payer {
			d.send(m.Cheque.Payer, &Settled{Task: m.Cheque.Task, Paid: reply.Paid}, out)
		}
		d.send(from, reply, out)
	case *TransferRequest:
		reply := &TransferReply{ID: m.ID, Asked: m.Asked, Refusal: NoBank}
		if l != nil {
			reply.Refusal = l.Transfer(now, from, m, out)
			b, _ := l.Balance(from)
			reply.Settled, reply.Committed = b.Settled, b.Committed
		}
		d.send(from, reply, out)
	case *Inquire:
		reply := &Inform{Token: m.Token, Refusal: NoBank}
		if l != nil {
			reply.Refusal = NoAccount
			if b, ok := l.Balance(from); ok {
				reply.Refusal, reply.Balance, reply.Transactions = Done, b, l.History(from, int(m.Limit))
			}
		}
		d.send(from, reply, out)
	}
}

// send sends a message; one to this very site goes round within it.
func (d *Desk) send(to grid.SiteID, m grid.Message, out *grid.Outbox) {
	if to == d.cfg.Self {
		out.Local(&grid.Delivery{From: to, Message: m})
		return
	}
	out.Send(to, m)
}

// later returns when to repeat something: after first, twice that, …, at most
// longest, each up to a quarter later, so that a site that comes back is not met by
// everybody at once. pause is what it was last time, 0 at first.
func (d *Desk) later(now grid.Time, pause *grid.Time, first, longest grid.Time) grid.Time {
	*pause = min(max(2**pause, first), longest)
	d.spread = d.spread*6364136223846793005 + 1442695040888963407 // Knuth, MMIX
	return now.Add(*pause).Add(grid.Time(d.spread>>33) % (*pause/4 + 1))
}

// refusedBy counts a refusal by a bank.
func (d *Desk) refusedBy(r Refusal) {
	if r == Done {
		return
	}
	if d.stats.Refused == nil {
		d.stats.Refused = make(map[string]int64)
	}
	d.stats.Refused[r.String()]++
}
