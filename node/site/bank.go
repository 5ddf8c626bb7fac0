package site

import (
	"gridnode/grid"
	"gridnode/market"
	"gridnode/market/bank"
)

// atBank passes a user's wish on to the desk.
func (s *Site) atBank(now grid.Time, in grid.Input, out *grid.Outbox) {
	if s.desk != nil {
		s.desk.Step(now, in, out)
		return
	}
	var token uint64
	switch in := in.(type) {
	case *bank.Grant:
		token = in.Token
	case *bank.Transfer:
		token = in.Token
	case *bank.Question:
		token = in.Token
	}
	out.Answer(token, &bank.Answer{Refusal: bank.NoBank, Account: s.cfg.ID})
}

// Desk returns what this site has to do with banks; nil when it is alone. The
// caller may read it.
func (s *Site) Desk() *bank.Desk { return s.desk }

// waits returns the job that waits for the cheque of a task, nil if none does.
func (s *Site) waits(task grid.TaskID) *entry {
	e := s.current(task)
	if e == nil || e.foreign || e.state != Placing || e.parked || e.award.Bank == "" {
		return nil
	}
	return e
}

// written: the cheque that a job waits for is there, so it goes.
func (s *Site) written(now grid.Time, in *bank.Written, out *grid.Outbox) {
	e := s.waits(in.Task)
	if e == nil {
		s.desk.Unwanted(now, in.Task, out)
		return
	}
	e.state = Awarded
	out.Save(e)
	out.Tell(grid.Event{Kind: grid.JobPlaced, Job: e.job, Epoch: e.epoch, Site: e.award.Site, Cost: e.award.Cost, Messages: e.messages})
	s.agent.Step(now, &market.Pay{Task: in.Task}, out)
}

// declined: the bank writes no cheque. If it said so the job is refused; if it said
// nothing the job waits until it does.
func (s *Site) declined(now grid.Time, in *bank.Declined, out *grid.Outbox) {
	e := s.waits(in.Task)
	if e == nil {
		return
	}
	e.reason = in.Reason
	if in.Silent {
		e.parked, e.award = true, market.Award{}
		s.park(e)
		out.Save(e)
	} else {
		out.Tell(grid.Event{Kind: grid.JobRefused, Job: e.job, Epoch: e.epoch, Messages: e.messages, Text: e.reason})
		s.end(now, e, Refused, out)
	}
	s.agent.Step(now, &market.Stop{Job: e.job.ID}, out)
}

// unpark places the parked jobs anew whose deadline is at due or earlier.
func (s *Site) unpark(now, due grid.Time, out *grid.Outbox) {
	parked := s.parked
	s.parked, s.parkedDue = nil, grid.Never
	for _, e := range parked {
		switch {
		case e.state != Placing: // cancelled meanwhile
		case e.job.Deadline > due:
			s.park(e)
		default:
			e.parked, e.reason = false, ""
			s.place(now, e, out)
			s.save(e, out)
		}
	}
}

// park makes a job wait for its bank. When it cannot make its deadline any more it is
// placed all the same, which is refused with the reason.
func (s *Site) park(e *entry) {
	s.parked = append(s.parked, e)
	s.parkedDue = min(s.parkedDue, e.job.Deadline)
}
