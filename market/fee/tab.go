package fee

import (
	"fmt"
	"iter"

	"gridnode/grid"
	"gridnode/market/bank"
)

// Bounds of what peers can make a tab keep, and for how long.
const (
	feesMax   = 1 << 17   // leases that are to be paid for, on either side
	lateKeep  = grid.Hour // how long a lender waits for the cheque of a lease that is over
	askPause  = 2 * grid.Second
	askMax    = 10 * grid.Minute // longest pause between repetitions
	checkIn   = grid.Hour        // from one look at whether a cheque is still good to the next
	allowance = 3                // thousandths that a lender's clock may count more than the borrower's
)

// Ref names a lease at one of its two sites.
type Ref struct {
	Peer   grid.SiteID // the other site
	Number uint64      // its borrower's
	Epoch  uint64      // its lender's
}

// Terms are what a lease costs.
type Terms struct {
	Ref
	Bank       grid.SiteID // whose cheque pays
	Processors int64
	Price      grid.Price // for a processor-hour, more than 0
	Longest    grid.Time  // from the grant to the latest end
}

// Cost returns what so much of the lease costs.
func (t *Terms) Cost(held grid.Time) grid.Credits {
	return grid.CostProcessorTime.Cost(t.Price, t.Processors, held)
}

// ceiling returns the most that it can cost: the amount of its cheque.
func (t *Terms) ceiling() grid.Credits { return max(t.Cost(t.Longest), 1) }

// mark begins the IDs of what cheques for leases are written for.
const mark = 0x666565 // "fee"

// TaskOf names what the cheque for a lease is written for, by its borrower's number: the
// execution of no job.
func TaskOf(number uint64) grid.TaskID {
	return grid.TaskID{Job: grid.JobID{Hi: mark, Lo: number}, Epoch: 1}
}

// IsFee returns the number of the lease that a cheque pays for, and whether it pays for one.
func IsFee(task grid.TaskID) (number uint64, yes bool) {
	return task.Job.Lo, task == TaskOf(task.Job.Lo)
}

// Inputs for the rest of the site, put into Outbox.Locals.

// Paid says, at the borrower, that the cheque for a lease is with its lender.
type Paid struct{ Number uint64 }

// Unpaid says, at the borrower, that there is no cheque for a lease.
type Unpaid struct {
	Number uint64
	Reason string // for the user
}

// Advanced says, at the lender, that the cheque for a lease is here.
type Advanced struct{ Ref }

// Lent returns what a lease that this site has lent, held or active, costs; ok is false if
// there is none.
type Lent func(r Ref) (t Terms, ok bool)

// Tab is what one site owes for leases, and is owed. It is deterministic, reads no clock
// and is not safe for concurrent use.
type Tab struct {
	desk   *bank.Desk
	self   grid.SiteID
	lent   Lent
	alarms grid.Alarms[*fee]
	owes   map[uint64]*fee // as the borrower, by number
	owed   map[key]*fee    // as the lender, of leases that are over
}

type key struct {
	borrower grid.SiteID
	number   uint64
}

// fee is one lease that is to be paid for.
type fee struct {
	Terms
	state  state
	asked  grid.Time    // borrower: when it asked for the lease
	over   grid.Time    // borrower: from then on it costs no more; Never: it goes on
	amount grid.Credits // lender: what it has cost
	pause  grid.Time
	alarm  grid.Alarm[*fee]
	record string // key
}

// state numbers are stored: append only.
type state uint8

const (
	drawing   state = iota + 1 // borrower: the bank is asked for the cheque
	advancing                  // borrower: the lender is given the cheque
	advanced                   // borrower: it has it
	late                       // lender: the lease is over, and there is no cheque yet
	billed                     // lender: the lease is over, and the borrower is asked to sign
)

// lends reports whether this site is the lender.
func (f *fee) lends() bool { return f.state >= late }

// New returns the tab of a site that owes nothing.
func New(self grid.SiteID, desk *bank.Desk, lent Lent) *Tab {
	return &Tab{self: self, desk: desk, lent: lent, owes: make(map[uint64]*fee), owed: make(map[key]*fee)}
}

// Open returns how many leases are not paid yet, of those that this site owes for and of
// those that are over and that it is owed for.
func (t *Tab) Open() (owes, owed int) { return len(t.owes), len(t.owed) }

// Records returns what is to be paid as it is to be saved, in no particular order.
func Records(t *Tab) iter.Seq[grid.Record] {
	return func(yield func(grid.Record) bool) {
		for _, f := range t.owes {
			if !yield(f) {
				return
			}
		}
		for _, f := range t.owed {
			if !yield(f) {
				return
			}
		}
	}
}

// Step applies one input at time now: grid.Tick, *grid.Delivery or *grid.Undelivered of
// this package's messages. What is due is done first. now never decreases.
func (t *Tab) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	for a := t.alarms.Pop(now); a != nil; a = t.alarms.Pop(now) {
		t.due(now, a.Owner, out)
	}
	d, ok := in.(*grid.Delivery)
	if !ok {
		return // what was not delivered is repeated by a timer
	}
	switch m := d.Message.(type) {
	case *Advance:
		t.advance(now, d.From, m, out)
	case *Advances:
		t.answered(now, d.From, m, out)
	case *Bill:
		t.sign(now, d.From, m, out)
	case *Agreed:
		t.agreed(now, d.From, m, out)
	default:
		panic(fmt.Sprintf("fee: message %T is of another protocol", m))
	}
}

// NextTimer returns when Step next needs a Tick, and grid.Never if it needs none.
func (t *Tab) NextTimer() grid.Time { return t.alarms.Next() }

// due repeats what was not answered, or ends it.
func (t *Tab) due(now grid.Time, f *fee, out *grid.Outbox) {
	switch {
	case t.settle(now, f, out):
	case f.state == late, f.state == billed && !t.desk.Holds(f.Peer, TaskOf(f.Number)):
		t.drop(f, out) // nobody pays for it any more
	case f.state == billed:
		t.bill(now, f, out)
	case t.desk.Cheque(TaskOf(f.Number)) == nil:
		t.drop(f, out)
	case f.state == advancing:
		t.hand(now, f, out)
	default:
		if f.over <= now { // and no bill has come: the lender may have taken nothing, and the bank's word of that is lost
			out.Send(f.Peer, &bank.Return{Cheque: t.desk.Cheque(TaskOf(f.Number))})
		}
		t.alarms.Set(&f.alarm, now+checkIn)
	}
}

// again sets the alarm for the next repetition.
func (t *Tab) again(now grid.Time, f *fee) {
	f.pause = min(max(2*f.pause, askPause), askMax)
	t.alarms.Set(&f.alarm, now+f.pause)
}

// enter adds a fee, or what has changed of it.
func (t *Tab) enter(f *fee, out *grid.Outbox) {
	if f.lends() {
		t.owed[key{f.Peer, f.Number}] = f
	} else {
		t.owes[f.Number] = f
	}
	f.alarm.Owner = f
	if out != nil {
		out.Save(f)
	}
}

func (t *Tab) drop(f *fee, out *grid.Outbox) {
	t.alarms.Stop(&f.alarm)
	if f.lends() {
		delete(t.owed, key{f.Peer, f.Number})
	} else {
		delete(t.owes, f.Number)
	}
	out.Delete(f)
}
