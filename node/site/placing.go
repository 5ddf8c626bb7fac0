package site

import (
	"fmt"

	"gridnode/grid"
	"gridnode/market"
)

// placing is the part that owns the market agent: it has home jobs guaranteed by other
// sites, and runs jobs of others here.
type placing struct {
	*base
	jobs    *jobs
	agent   *market.Agent
	payment cheques
	packing *packing // nil where nobody is headed: then no job is packed
}

func (*placing) takes(b *board) {
	of := func(s *Site) *placing { return s.placing }
	hear(b, of, (*placing).message, kindsOf(&market.Protocol)...)
	take(b, of, (*placing).setPrice)
	take(b, of, (*placing).placed)
	take(b, of, (*placing).refused)
	take(b, of, (*placing).accepted)
	take(b, of, (*placing).completed)
	take(b, of, (*placing).lost)
	take(b, of, (*placing).delivered)
	take(b, of, (*placing).revoke)
}

func (p *placing) message(now grid.Time, in grid.Input, out *grid.Outbox) { p.agent.Step(now, in, out) }

func (p *placing) tick(now grid.Time, out *grid.Outbox) { p.agent.Step(now, grid.Tick{}, out) }

func (p *placing) nextTimer() grid.Time { return p.agent.NextTimer() }

func (p *placing) wants(j *grid.Job) bool { return p.marketed(j) }

func (*placing) admit(grid.Time, *grid.Job) error { return nil }

func (p *placing) place(now grid.Time, e *entry, out *grid.Outbox) {
	p.agent.Step(now, &market.Place{Job: e.job, Epoch: e.epoch, Messages: e.messages, Losses: e.losses}, out)
}

func (*placing) withdraw(grid.Time, *entry, *grid.Outbox) {} // the agent is told in any case

func (*placing) explain(*entry, *View, bool) {}

func (p *placing) preview(now grid.Time, in *Preview, out *grid.Outbox) {
	p.agent.Step(now, &market.Preview{Token: in.Token, Job: in.Job}, out)
}

// setPrice changes the price; the next Tick quotes it.
func (p *placing) setPrice(_ grid.Time, in *SetPrice, out *grid.Outbox) {
	set := &PriceSet{Before: p.price()}
	set.Price, set.Err = p.agent.SetPrice(in.Price)
	out.Answer(in.Token, set)
}

// placed is the market's good news: a site guarantees the job.
func (p *placing) placed(now grid.Time, in *market.Placed, out *grid.Outbox) {
	e := p.jobs.current(grid.TaskID{Job: in.Job, Epoch: in.Award.Epoch})
	if e == nil {
		return
	}
	e.award, e.messages = in.Award, in.Messages
	if e.packed == nil {
		e.verdicts = in.Verdicts
	} else {
		p.packing.placed(now, e)
	}
	if in.Award.Bank != "" { // it is placed once it is paid for
		out.Save(e)
		return
	}
	if e.state == Placing {
		e.state = Awarded
		if in.Award.Site == p.cfg.ID {
			e.state = Queued
			e.award.Until = grid.Never // nobody else counts on its end
		}
	}
	out.Save(e)
	out.Tell(grid.Event{Kind: grid.JobPlaced, Job: e.job, Epoch: e.epoch, Site: in.Award.Site, Cost: in.Award.Cost, Messages: e.messages})
}

// refused is the market's bad news: nobody takes the job.
func (p *placing) refused(now grid.Time, in *market.Refused, out *grid.Outbox) {
	e := p.jobs.byID[in.Job]
	if e == nil || e.foreign || e.state != Placing {
		return
	}
	if e.packed != nil {
		p.packing.refused(now, e, in, out)
		return
	}
	e.verdicts, e.messages, e.reason = in.Verdicts, in.Messages, in.Reason
	p.jobs.refuse(now, e, out)
}

// accepted is a job of another site that came here within its hold. The agent
// has committed its reservation and acknowledges once this step is durable.
func (p *placing) accepted(now grid.Time, in *market.Accepted, out *grid.Outbox) {
	task := grid.TaskID{Job: in.Job.ID, Epoch: in.Award.Epoch}
	if old := p.jobs.byID[in.Job.ID]; old != nil {
		if !old.foreign || old.job.Home != in.Job.Home {
			p.cluster.Cancel(now, task)
			result := grid.Result{Start: now, End: now, ExitCode: 1, Reason: ErrOtherJob.Error()}
			p.agent.Step(now, &market.Ended{Task: task, Result: result}, out)
			return
		}
		p.supersede(now, old, out)
	}
	e := p.jobs.entries.New()
	e.job, e.state, e.foreign = in.Job, Queued, true
	e.epoch, e.award, e.losses = in.Award.Epoch, in.Award, in.Losses
	p.jobs.add(e)
	out.Save(e)
}

// supersede makes room for a later epoch of a foreign job.
func (p *placing) supersede(now grid.Time, old *entry, out *grid.Outbox) {
	if old.state == Running {
		out.Kill(grid.Task{ID: old.task(), Job: old.job, Cause: "its home placed it anew"})
	}
	p.cluster.Cancel(now, old.task())
	p.jobs.recovery.forget(old)
	p.jobs.drop(old)
}

// completed is the result of a job that ran elsewhere.
func (p *placing) completed(now grid.Time, in *market.Completed, out *grid.Outbox) {
	e := p.jobs.current(in.Task)
	if e == nil || e.foreign || e.state.Terminal() {
		return
	}
	e.result, e.messages = in.Result, in.Messages
	p.jobs.finish(now, e, out)
}

// lost is the agent's word that an execution at another site does not exist.
func (p *placing) lost(now grid.Time, in *market.Lost, out *grid.Outbox) {
	p.payment.unwanted(now, in.Task, out)
	e := p.jobs.current(in.Task)
	if e == nil {
		return
	}
	e.messages, e.losses = in.Messages, max(e.losses, in.Losses)
	if !p.payment.parks(e) { // else it goes when its bank answers
		p.jobs.lost(now, in.Task, out)
	}
}

// delivered: home has the result of a job that ran here.
func (p *placing) delivered(_ grid.Time, in *market.Delivered, out *grid.Outbox) {
	if e := p.jobs.current(in.Task); e != nil && e.foreign && e.state.Terminal() {
		out.Delete(e)
		p.jobs.drop(e)
	}
}

// revoke: home wants a job that it gave us to end.
func (p *placing) revoke(now grid.Time, in *market.Revoke, out *grid.Outbox) {
	e := p.jobs.current(in.Task)
	if e == nil || !e.foreign || e.state.Terminal() || e.state == Cancelling {
		return // told again: an execution that is being killed reports its end
	}
	p.jobs.withdraw(now, e, in.Cause, out)
}

// checkPrice returns an error about a price that no site may charge.
func checkPrice(price grid.Price) error {
	if price < 1 || price > grid.CreditsMax {
		return fmt.Errorf("price of %d micro-credits, want 1 to %d", int64(price), int64(grid.CreditsMax))
	}
	return nil
}
