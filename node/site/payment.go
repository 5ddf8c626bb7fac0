package site

import (
	"fmt"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/market/bank"
	"gridnode/market/fee"
)

// payment is the part that owns what this site has to do with banks, as payer, payee
// and bank: home jobs leave once the bank has written a cheque for them.
type payment struct {
	*base
	jobs  *jobs
	agent core
	desk  *bank.Desk

	fees *fees // nil: the site neither lends nor borrows

	parked  []*entry          // wait until their bank answers, in order, or did
	waiting map[*entry]uint32 // those that do: the epoch; one that was placed since, as after a hold, does not
	due     grid.Time         // earliest deadline of theirs
}

// cheques is what other parts have of payment.
type cheques interface {
	// paid reports whether there is a cheque for an execution.
	paid(task grid.TaskID) bool
	// unwanted: an execution that a cheque may have been written for does not exist.
	unwanted(now grid.Time, task grid.TaskID, out *grid.Outbox)
	// parks reports whether a job waits until its bank answers.
	parks(e *entry) bool
}

func (nobody) paid(grid.TaskID) bool                         { return false }
func (nobody) unwanted(grid.Time, grid.TaskID, *grid.Outbox) {}
func (nobody) parks(*entry) bool                             { return false }

func (*payment) takes(b *board) {
	of := func(s *Site) *payment { return s.payment }
	hear(b, of, (*payment).message, kindsOf(&bank.Protocol)...)
	take(b, of, (*payment).grant)
	take(b, of, (*payment).transfer)
	take(b, of, (*payment).ask)
	take(b, of, (*payment).written)
	take(b, of, (*payment).declined)
	take(b, of, (*payment).back)
}

func (p *payment) message(now grid.Time, in grid.Input, out *grid.Outbox) { p.desk.Step(now, in, out) }
func (p *payment) grant(now grid.Time, in *bank.Grant, out *grid.Outbox)  { p.desk.Step(now, in, out) }
func (p *payment) transfer(now grid.Time, in *bank.Transfer, out *grid.Outbox) {
	p.desk.Step(now, in, out)
}
func (p *payment) ask(now grid.Time, in *bank.Question, out *grid.Outbox) { p.desk.Step(now, in, out) }

func (p *payment) tick(now grid.Time, out *grid.Outbox) {
	p.desk.Step(now, grid.Tick{}, out)
	if p.due <= now {
		p.unpark(now, now, out)
	}
}

func (p *payment) nextTimer() grid.Time { return min(p.desk.NextTimer(), p.due) }

func (p *payment) keeps() []string { return []string{bank.RecordPrefix} }

func (p *payment) recover(now grid.Time, stored records, out *grid.Outbox) error {
	for key, value := range stored.each {
		if err := p.desk.Load(now, key, value, out); err != nil {
			return recordError(key, err)
		}
	}
	return p.desk.Loaded(now, out)
}

func (p *payment) paid(task grid.TaskID) bool { return p.desk.Cheque(task) != nil }

func (p *payment) unwanted(now grid.Time, task grid.TaskID, out *grid.Outbox) {
	p.desk.Unwanted(now, task, out)
}

// waits returns the job that waits for the cheque of a task, nil if none does.
func (p *payment) waits(task grid.TaskID) *entry {
	e := p.jobs.current(task)
	if e == nil || e.foreign || e.state != Placing || e.award.Bank == "" || p.parks(e) {
		return nil
	}
	return e
}

// written: the cheque that a job waits for is there, so it goes.
func (p *payment) written(now grid.Time, in *bank.Written, out *grid.Outbox) {
	if p.fees != nil && p.fees.tab.Written(now, in.Task, out) {
		return
	}
	e := p.waits(in.Task)
	if e == nil {
		p.desk.Unwanted(now, in.Task, out)
		return
	}
	e.state = Awarded
	out.Save(e)
	out.Tell(grid.Event{Kind: grid.JobPlaced, Job: e.job, Epoch: e.epoch, Site: e.award.Site, Cost: e.award.Cost, Messages: e.messages})
	p.agent.Step(now, &market.Pay{Task: in.Task}, out)
}

// declined: the bank writes no cheque. If it said so the job is refused; if it said
// nothing the job waits until it does.
func (p *payment) declined(now grid.Time, in *bank.Declined, out *grid.Outbox) {
	if p.fees != nil && p.fees.tab.Declined(in, out) {
		return
	}
	e := p.waits(in.Task)
	if e == nil {
		return
	}
	e.reason = in.Reason
	if in.Silent {
		e.award = market.Award{}
		p.park(e)
		out.Save(e)
	} else {
		p.jobs.refuse(now, e, out)
	}
	p.agent.Step(now, &market.Stop{Job: e.job.ID}, out)
}

// back: the bank answers again.
func (p *payment) back(now grid.Time, _ *bank.Back, out *grid.Outbox) { p.unpark(now, grid.Never, out) }

// unpark places the parked jobs anew whose deadline is at due or earlier.
func (p *payment) unpark(now, due grid.Time, out *grid.Outbox) {
	parked := p.parked
	p.parked, p.due = nil, grid.Never
	for _, e := range parked {
		switch {
		case e.state != Placing || !p.parks(e): // cancelled or placed meanwhile
			delete(p.waiting, e)
		case e.job.Deadline > due:
			p.park(e)
		default:
			delete(p.waiting, e)
			e.reason = ""
			p.jobs.place(now, e, out)
			p.jobs.save(e, out)
		}
	}
}

// park makes a job wait for its bank. When it cannot make its deadline any more it is
// placed all the same, which is refused with the reason.
func (p *payment) park(e *entry) {
	p.waiting[e] = e.epoch
	p.parked = append(p.parked, e)
	p.due = min(p.due, e.job.Deadline)
}

func (p *payment) parks(e *entry) bool { return e.epoch > 0 && p.waiting[e] == e.epoch }

// fees is the part that pays for leases and is paid for them: it leads between the book,
// which knows what is held, and the tab, which knows what that costs.
type fees struct {
	*base
	tab       *fee.Tab
	desk      *bank.Desk
	book      *lease.Book
	loans     *loans
	borrowing *borrowing
	guests    *guests // nil: the owner has no rules
}

func (*fees) takes(b *board) {
	of := func(s *Site) *fees { return s.fees }
	hear(b, of, (*fees).message, kindsOf(&fee.Protocol)...)
	take(b, of, (*fees).due)
	take(b, of, (*fees).over)
	take(b, of, (*fees).paid)
	take(b, of, (*fees).unpaid)
	take(b, of, (*fees).advanced)
}

func (f *fees) message(now grid.Time, in grid.Input, out *grid.Outbox) { f.tab.Step(now, in, out) }

func (f *fees) tick(now grid.Time, out *grid.Outbox) { f.tab.Step(now, grid.Tick{}, out) }

func (f *fees) nextTimer() grid.Time { return f.tab.NextTimer() }

func (*fees) keeps() []string { return []string{fee.RecordPrefix} }

func (f *fees) recover(now grid.Time, stored records, out *grid.Outbox) error {
	for key, value := range stored.each {
		if err := f.tab.Load(now, value, out); err != nil {
			return recordError(key, err)
		}
	}
	return nil
}

// tariff is what the site charges for a lease that is paid from a bank: nothing if nobody
// pays, as for jobs.
func (f *fees) tariff(borrower, from grid.SiteID) (price grid.Price, lends bool) {
	switch price = f.cfg.Lease.Price; {
	case price == 0:
		return 0, true
	case !f.desk.Accepts(from):
		return 0, false
	case from == "":
		return 0, true
	case price == OwnPrice:
		price = f.price()
	}
	if f.guests != nil {
		price = f.guests.desk.Price(borrower, price)
	}
	return price, true
}

// most is the highest price that the site pays by itself: what it charges its own users,
// unless its owner says otherwise.
func (f *fees) most() grid.Price {
	if f.cfg.Lease.Pay != 0 {
		return f.cfg.Lease.Pay
	}
	return f.price()
}

// lent tells the tab what a lease of this site's costs.
func (f *fees) lent(r fee.Ref) (fee.Terms, bool) {
	l, longest, ok := f.book.Fee(lease.ID{Borrower: r.Peer, Number: r.Number}, r.Epoch)
	return fee.Terms{Ref: r, Bank: l.Bank, Processors: l.Processors, Price: l.Price, Longest: longest}, ok
}

// due: a lease is claimed that has a price.
func (f *fees) due(now grid.Time, in *lease.Due, out *grid.Outbox) {
	f.tab.Pay(now, fee.Terms{
		Ref: fee.Ref{Peer: in.Lender, Number: in.Number, Epoch: in.Epoch}, Bank: in.Bank, Processors: in.Processors, Price: in.Price,
		Longest: in.Hold + in.Span,
	}, in.Since, out)
}

func (f *fees) over(_ grid.Time, in *lease.Over, out *grid.Outbox) {
	f.tab.Over(in.Number, in.Gone, out)
}

// paid: the lender has the cheque.
func (f *fees) paid(now grid.Time, in *fee.Paid, out *grid.Outbox) {
	_ = f.book.Settle(now, lease.ID{Borrower: f.cfg.ID, Number: in.Number}, true, out) // ErrUnknown: it has ended meanwhile, and is billed
}

// unpaid: there is no cheque for a lease. Whoever wanted it hears why.
func (f *fees) unpaid(now grid.Time, in *fee.Unpaid, out *grid.Outbox) {
	f.loans.answer(in.Number, &LeaseAnswer{Err: fmt.Errorf("%w: %s", ErrLease, in.Reason)}, out)
	if id, ok := f.borrowing.matches.For(in.Number); ok {
		if e := f.borrowing.jobs.current(id); e != nil && (e.state == Queued || e.state == Placing) {
			e.reason = "no lease: " + in.Reason
			out.Save(e)
		}
	}
	_ = f.book.Settle(now, lease.ID{Borrower: f.cfg.ID, Number: in.Number}, false, out) // ErrUnknown: it has ended meanwhile
}

// advanced: the cheque for a lease is here.
func (f *fees) advanced(now grid.Time, in *fee.Advanced, out *grid.Outbox) {
	_ = f.book.Settle(now, lease.ID{Borrower: in.Peer, Number: in.Number}, true, out) // ErrUnknown: it has ended in the same moment
}

// ended: a lent lease is over. It has cost something from the grant on, whoever ended it,
// and nothing beyond the end that was agreed; a hold that this site took back is free.
func (f *fees) ended(now grid.Time, in *lease.Ended, out *grid.Outbox) {
	if f == nil || in.Price == 0 || in.State != lease.Held && in.State != lease.Active {
		return
	}
	held := min(now, in.End) - in.Since
	if in.State == lease.Held && (in.Cause == lease.Revoked || in.Cause == lease.Broken) {
		held = 0
	}
	f.tab.Ended(now, fee.Terms{
		Ref: fee.Ref{Peer: in.Borrower, Number: in.Number, Epoch: in.Epoch}, Bank: in.Bank, Processors: in.Processors, Price: in.Price, Longest: held,
	}, held, out)
}
