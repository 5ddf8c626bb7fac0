package site

import (
	"gridnode/grid"
	"gridnode/market"
	"gridnode/market/bank"
)

// payment is the part that owns what this site has to do with banks, as payer, payee
// and bank: home jobs leave once the bank has written a cheque for them.
type payment struct {
	*base
	jobs  *jobs
	agent core
	desk  *bank.Desk

	parked  []*entry        // wait until their bank answers, in order
	waiting map[*entry]bool // the same
	due     grid.Time       // earliest deadline of theirs
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
		case e.state != Placing: // cancelled meanwhile
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
	p.waiting[e] = true
	p.parked = append(p.parked, e)
	p.due = min(p.due, e.job.Deadline)
}

func (p *payment) parks(e *entry) bool { return p.waiting[e] }
