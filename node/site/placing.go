package site

import (
	"fmt"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/market"
	"gridnode/market/keepalive"
)

// placing is the part that owns the market agent: it has home jobs guaranteed by other
// sites, and runs jobs of others here.
type placing struct {
	*base
	jobs      *jobs
	agent     *market.Agent
	payment   cheques
	packing   *packing     // nil where nobody is headed: then no job is packed
	request   market.Place // what the agent is told, so that telling it allocates nothing
	borrowing *borrowing   // nil: the site borrows nothing
	leased    *leased
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
	take(b, of, (*placing).belated)
	take(b, of, (*placing).delivered)
	take(b, of, (*placing).revoke)
}

func (p *placing) message(now grid.Time, in grid.Input, out *grid.Outbox) { p.agent.Step(now, in, out) }

func (p *placing) tick(now grid.Time, out *grid.Outbox) { p.agent.Step(now, grid.Tick{}, out) }

func (p *placing) nextTimer() grid.Time { return p.agent.NextTimer() }

func (p *placing) wants(j *grid.Job) bool { return p.marketed(j) }

func (*placing) admit(grid.Time, *grid.Job) error { return nil }

func (p *placing) place(now grid.Time, e *entry, out *grid.Outbox) {
	e.unheard.Place()
	p.request = market.Place{Job: e.job, Epoch: e.epoch, Messages: e.messages, Losses: e.losses}
	p.agent.Step(now, &p.request, out)
}

func (*placing) withdraw(grid.Time, *entry, *grid.Outbox) {} // the agent is told in any case

func (*placing) explain(e *entry, v *View, _ bool) {
	v.Waits = e.state == Placing && e.reason == awaitsSite
}

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
	e.award, e.messages, e.reason = in.Award, in.Messages, ""
	e.start, e.expected = 0, in.Award.Start // whatever was known of an execution before
	p.jobs.gate.Priced(e.job, in.Award.Cost)
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
	if in.Later && p.leased.retry(now, e) {
		out.Save(e)
		out.Tell(grid.Event{Kind: grid.JobAwaits, Job: e.job, Epoch: e.epoch, Site: e.job.Site})
		return
	}
	if p.borrowing != nil && p.borrowing.rescue(now, e, out) {
		out.Save(e)
		return
	}
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
	e := new(entry)
	e.job, e.state, e.foreign = in.Job, Queued, true
	e.epoch, e.award, e.losses, e.leased = in.Award.Epoch, in.Award, in.Losses, in.Leased
	p.jobs.add(e)
	out.Save(e)
}

// causeAnew is why an execution is given up that its home counts on no more.
const causeAnew = "its home placed it anew"

// supersede makes room for a later epoch of a foreign job.
func (p *placing) supersede(now grid.Time, old *entry, out *grid.Outbox) {
	if old.state == Running {
		out.Kill(grid.Task{ID: old.task(), Job: old.job, Cause: causeAnew})
	}
	p.cluster.Cancel(now, old.task())
	p.jobs.recovery.forget(old)
	if !old.state.Terminal() {
		old.reason = causeAnew
		p.jobs.chronicle.job(now, old, Returned, out)
	}
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
	told := e.unheard.Told(e.losses)
	e.messages, e.losses = in.Messages, e.losses+max(in.Losses, told)-told
	if in.Silent {
		e.unheard.Add(e.award.Site, e.epoch, told)
	}
	if once(e.job) && e.state != Placing && (in.Silent || now >= e.award.Until) {
		e.losses++ // as nobody can say that it did not run; one that was still to be paid for never left
	}
	if !p.payment.parks(e) { // else it goes when its bank answers
		p.jobs.lost(now, in.Task, out)
	}
}

// belated: a site says what it has lost of a job that is elsewhere by now. The job is given up as
// the execution vanishes that it has now, if that does.
func (p *placing) belated(_ grid.Time, in *market.Belated, out *grid.Outbox) {
	e := p.jobs.byID[in.Task.Job]
	if e == nil || e.foreign || e.state.Terminal() {
		return
	}
	if lost := e.unheard.Hear(in.Site, in.Task.Epoch, in.Losses); lost > 0 {
		e.losses += lost
		out.Save(e)
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

// leased is the part that knows which executions go on only as long as their homes hear of
// them, and what homes hear. It also has a job tried again whose site does not answer.
type leased struct {
	*base
	jobs *jobs
	dir  *directory.Directory
	due  agenda // jobs that wait for the site that they name
}

// awaitsSite is why such a job is not placed.
const awaitsSite = "waits for its site, which is busy or does not answer"

// retryPause is how long such a job waits until that site is asked again.
const retryPause = 15 * grid.Second

func (*leased) takes(b *board) {
	of := func(s *Site) *leased { return s.leased }
	take(b, of, (*leased).extended)
	take(b, of, (*leased).lapsed)
	take(b, of, (*leased).unwanted)
	take(b, of, (*leased).heard)
}

// leaseUnknown reports whether a job of another site has a lease of which nobody here
// knows any more when it ends.
func (e *entry) leaseUnknown() bool { return e.foreign && e.award.Lease > 0 && e.leased == 0 }

// leaseOver reports whether an execution must not begin any more.
func (e *entry) leaseOver(now grid.Time) bool {
	return e.foreign && e.award.Lease > 0 && now >= e.leased
}

// tellHome has the home of another site's job learn soon that it runs.
func (js *jobs) tellHome(now grid.Time, e *entry, out *grid.Outbox) {
	if e.foreign && e.award.Lease > 0 {
		js.agent.Step(now, &market.Begun{Task: e.task(), Start: e.start}, out)
	}
}

// extended: home has heard of this execution, which goes on.
func (l *leased) extended(now grid.Time, in *keepalive.Extended, out *grid.Outbox) {
	e := l.jobs.current(in.Task)
	if e == nil || !e.foreign || e.state.Terminal() {
		return
	}
	e.leased = max(e.leased, in.End)
	switch {
	case e.adrift:
		e.adrift = false
		l.jobs.recovery.promise(now, e, out)
	case e.state == Running:
		out.Renew(grid.Task{ID: in.Task, Job: e.job, Lease: e.leased})
	}
}

// lapsed: it has not begun, and must not any more.
func (l *leased) lapsed(now grid.Time, in *keepalive.Lapsed, out *grid.Outbox) {
	e := l.jobs.current(in.Task)
	if e == nil || !e.foreign || e.state != Queued {
		return // whoever runs it ends it
	}
	l.giveBack(now, e, out)
}

// giveBack gives an execution up that waits here.
func (l *leased) giveBack(now grid.Time, e *entry, out *grid.Outbox) {
	l.jobs.queue.dequeue(now, e, out)
	l.jobs.recovery.forget(e)
	l.jobs.expired(now, e, out)
}

// unwanted: home has it placed anew, or knows how it ended.
func (l *leased) unwanted(now grid.Time, in *keepalive.Unwanted, out *grid.Outbox) {
	e := l.jobs.current(in.Task)
	if e == nil || !e.foreign || e.state.Terminal() || e.state == Cancelling {
		return
	}
	if e.state == Queued && e.losses > 0 {
		l.giveBack(now, e, out) // home may not know of them
		return
	}
	l.jobs.withdraw(now, e, "its home does not wait for it any more", out)
}

// heard: the site that has a job of this home says how far it is.
func (l *leased) heard(_ grid.Time, in *market.Heard, out *grid.Outbox) {
	e := l.jobs.current(in.Task)
	if e == nil || e.foreign || e.state.Terminal() {
		return
	}
	news := in.Begun != (e.start > 0)
	e.start, e.expected = 0, 0
	switch {
	case in.Begun:
		e.start = in.Start
		l.jobs.gate.Begun(e.job, &l.jobs.table)
	case in.Start != grid.Never:
		e.expected = in.Start
	}
	if news {
		out.Tell(grid.Event{Kind: grid.JobHeard, Job: e.job, Epoch: e.epoch, Site: e.award.Site})
	}
}

// retry has a job wait for the site that it names, until its deadline. One that was taken
// out of the federation does not come back.
func (l *leased) retry(now grid.Time, e *entry) bool {
	at := now.Add(retryPause)
	if at >= e.job.Deadline || l.dir.Barred(e.job.Site) {
		return false
	}
	e.reason = awaitsSite
	l.due.enter(at, e.task())
	return true
}

func (l *leased) nextTimer() grid.Time { return l.due.next() }

// tick asks those sites again.
func (l *leased) tick(now grid.Time, out *grid.Outbox) {
	for _, r := range l.due.take(now) {
		if e := l.jobs.current(r.id); e != nil && e.state == Placing && !e.foreign {
			l.jobs.place(now, e, out)
			l.jobs.save(e, out)
		}
	}
}
