package liar

import (
	"fmt"

	"gridnode/grid"
	"gridnode/market"
	"gridnode/node/site"
)

// Home has users submit jobs for another site, and that one, or a third, promise what an honest one
// would not. The job goes to where its home has asked, for the guarantee that answers its last
// question; all others are given back, as is one that costs more than the budget, that comes
// too late (C-7), or whose job its user does not want any more (J-7). What was lost of a job elsewhere
// its home tells the next site (J-10). Who changes its price is asked once more, and not for ever.
func (t *Twin) Home() error {
	for _, play := range []func() error{t.promised, t.overpaid, t.unpromised, t.losses, t.repriced} {
		if err := play(); err != nil {
			return err
		}
	}
	return nil
}

// away submits a job for another site, and returns what that is asked; nil: nothing.
func (t *Twin) away(at grid.SiteID, twist func(j *grid.Job)) *market.Negotiate {
	id := t.task().Job
	job := &grid.Job{
		ID: id, Home: t.ID, User: id.String(), Site: at, Resources: grid.Resources{Processors: 1}, Tasks: 1, Submit: t.Now,
		Estimate: grid.Minute, Work: workOf, Deadline: grid.Never, Budget: grid.NoBudget, Goal: grid.GoalTime,
	}
	twist(job)
	out := t.step(&site.Submit{Job: job})
	return asked(out, at, id)
}

// asked returns the question about a job that a site is asked; nil: none.
func asked(out *grid.Outbox, at grid.SiteID, job grid.JobID) *market.Negotiate {
	for _, s := range out.Sends {
		if m, yes := s.Message.(*market.Negotiate); yes && s.To == at && m.Task.Job == job && !m.Probe {
			return m
		}
	}
	return nil
}

func asIs(*grid.Job) {}

// granted is the promise of an honest site that wants nothing for it.
func granted(m *market.Negotiate, hold uint64) *market.Reply {
	return &market.Reply{
		Task: m.Task, Request: m.Request, Refusal: market.Granted, Hold: hold, HoldSpan: grid.Minute, Start: 0, Finish: grid.Minute,
		Lease: m.Lease, GPUs: m.GPUs.Count,
	}
}

// takes has the site hear a promise, and returns the job that it sends for it, if it does, and
// whether it gives the guarantee back.
func (t *Twin) takes(from grid.SiteID, r *market.Reply) (sent *market.JobSubmission, back bool) {
	answers := t.hear(from, r)
	sent, _ = answer[*market.JobSubmission](answers)
	for _, m := range answers {
		if c, yes := m.(*market.Cancel); yes && c.Task == r.Task && c.Hold == r.Hold {
			back = true
		}
	}
	return sent, back
}

// givesBack has the site hear a promise that it does not want.
func (t *Twin) givesBack(from grid.SiteID, what string, r *market.Reply) error {
	switch sent, back := t.takes(from, r); {
	case sent != nil:
		return fmt.Errorf("%s promises %s, and gets job %s for guarantee %d", from, what, sent.Job.ID, sent.Hold)
	case !back:
		return fmt.Errorf("%s promises %s, and guarantee %d is not given back", from, what, r.Hold)
	}
	return nil
}

// promised: other promises than that for the last question are given back, and refuse nothing.
func (t *Twin) promised() error {
	at, other := t.Then[0], t.Then[1]
	ask := t.away(at, asIs)
	if ask == nil {
		return nil
	}
	older, stray := *ask, *ask
	older.Request--
	stray.Task = t.task()
	for _, wrong := range []struct {
		from grid.SiteID
		what string
		m    *market.Negotiate
		hold uint64
	}{
		{other, "what another site was asked for", ask, 11},
		{at, "what it was asked for before", &older, 12},
		{at, "what it was not asked for", &stray, 13},
	} {
		if err := t.givesBack(wrong.from, wrong.what, granted(wrong.m, wrong.hold)); err != nil {
			return err
		}
		t.hear(wrong.from, &market.Reply{Task: wrong.m.Task, Request: wrong.m.Request, Refusal: market.Busy, Start: grid.Never, Finish: grid.Never})
	}
	right := granted(ask, 14)
	sent, _ := t.takes(at, right)
	if sent == nil || sent.Hold != right.Hold {
		return fmt.Errorf("%s promises what it was asked for, after it, and others, have said no to other questions, and the job does not come: %+v", at, sent)
	}
	if _, back := t.takes(at, right); back {
		return fmt.Errorf("%s promises what it was asked for, a copy of that comes, and the guarantee is given back", at)
	}
	return t.givesBack(at, "a job twice", granted(ask, 15))
}

// overpaid: what costs more than its budget, or ends too late, is given back.
func (t *Twin) overpaid() error {
	at := t.Then[0]
	if ask := t.away(at, func(j *grid.Job) { j.Budget = 100 }); ask != nil {
		r := granted(ask, 21)
		r.Cost = max(ask.CostMax, 100) + 1
		if err := t.givesBack(at, "a job for more than its budget", r); err != nil {
			return err
		}
	}
	if ask := t.away(at, func(j *grid.Job) { j.Deadline = t.Now + grid.Hour }); ask != nil {
		r := granted(ask, 22)
		r.Start, r.Finish = grid.Hour, 2*grid.Hour
		return t.givesBack(at, "a job for after its deadline", r)
	}
	return nil
}

// unpromised: what is promised for a job that its user has cancelled is given back.
func (t *Twin) unpromised() error {
	at := t.Then[0]
	ask := t.away(at, asIs)
	if ask == nil {
		return nil
	}
	t.step(&site.Cancel{Token: mark, Job: ask.Task.Job, Cause: "its user does not want it"})
	return t.givesBack(at, "a job that its user has cancelled", granted(ask, 31))
}

// losses: a site gives a job back of which an execution has vanished there. The next one knows of none, and
// gives it back, too.
func (t *Twin) losses() error {
	at := t.Then[0]
	ask := t.away(at, asIs)
	for i := range uint64(3) {
		if ask == nil {
			return nil
		}
		sent, _ := t.takes(at, granted(ask, 41+i))
		if sent == nil {
			return nil
		}
		if lost := min(i, 1); uint64(sent.Losses) != lost {
			return fmt.Errorf("sites have lost %d executions of job %s, and the next one is told that %d were lost", lost, sent.Job.ID, sent.Losses)
		}
		t.hear(at, &market.Acknowledge{Task: ask.Task, Of: (*market.JobSubmission)(nil).MessageKind(), Hold: 41 + i})
		back := &market.JobCompletion{Task: ask.Task, Abandoned: true}
		if i == 0 {
			back.Losses = 1
		}
		ask = asked(t.step(&grid.Delivery{From: at, Message: back}), at, ask.Task.Job)
	}
	return nil
}

// repriced: a site says each time it is asked that its price has changed.
func (t *Twin) repriced() error {
	at := t.Then[0]
	ask := t.away(at, asIs)
	for i := range 2 {
		if ask == nil {
			return nil
		}
		ask = asked(t.step(&grid.Delivery{From: at, Message: &market.Reply{
			Task: ask.Task, Request: ask.Request, Refusal: market.PriceChanged, Price: grid.Price(i + 1), Start: grid.Never, Finish: grid.Never,
		}}), at, ask.Task.Job)
	}
	if ask != nil {
		return fmt.Errorf("%s has changed its price twice, and is asked for job %s a third time", at, ask.Task.Job)
	}
	return nil
}
