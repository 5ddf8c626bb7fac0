package liar

import (
	"fmt"

	"gridnode/grid"
	"gridnode/market"
	"gridnode/market/bank"
	"gridnode/node/site"
)

// offer is a guarantee that a site has given a home, and the job that it is for.
type offer struct {
	home  grid.SiteID
	reply *market.Reply
	job   market.JobSubmission
}

// question is what a home asks, and the job that it is about.
func (t *Twin) question(home grid.SiteID, most grid.Credits, probe bool) (*market.Negotiate, *grid.Job) {
	task := t.task()
	job := &grid.Job{
		ID: task.Job, Home: home, Resources: grid.Resources{Processors: 1}, Tasks: 1, Estimate: grid.Minute, Work: workOf,
		Deadline: grid.Never, Budget: grid.NoBudget, Goal: grid.GoalTime,
	}
	return &market.Negotiate{
		Task: task, Request: uint64(t.Now) + task.Job.Lo%1000, Validity: grid.Minute, Processors: 1, Work: job.Away().Work,
		Deadline: grid.Never, CostMax: most, Bank: t.Bank, Probe: probe,
	}, job
}

// ask has a site be asked for a guarantee; nil: it gives none.
func (t *Twin) ask(home grid.SiteID, most grid.Credits, probe bool) *offer {
	m, job := t.question(home, most, probe)
	r, there := answer[*market.Reply](t.hear(home, m))
	if !there || r.Refusal != market.Granted {
		return nil
	}
	if again, _ := answer[*market.Reply](t.hear(home, m)); !probe && (again == nil || again.Hold != r.Hold || again.Cost != r.Cost) {
		t.twice = fmt.Errorf("%s repeats a question, and was promised %+v, and is %+v", home, r, again)
	}
	o := &offer{home: home, reply: r}
	o.job = market.JobSubmission{Job: job, Epoch: m.Task.Epoch, Hold: r.Hold, Price: r.Price, Cost: r.Cost, Deadline: grid.Never}
	if r.Cost > 0 && t.Bank != "" {
		o.job.Cheque = &bank.Cheque{Bank: t.Bank, Payer: home, Payee: t.ID, Task: m.Task, Ceiling: r.Cost, Expires: t.Now + 30*grid.Day}
	}
	return o
}

// has reports whether a site has taken a job.
func (t *Twin) has(o *offer) (site.View, bool) { return t.Site.Glance(o.job.Job.ID) }

// Provider tries to have a site take a job that it has given no guarantee for, or another one
// than that, or with a cheque that does not pay for it (D-4, C-3), and asks it for more than the
// home is willing to pay, and what it would say, which holds nothing (P-1), and has questions come late.
func (t *Twin) Provider() error {
	home := t.Then[0]
	right := t.ask(home, grid.CreditsMax, false)
	if t.twice != nil {
		return t.twice
	}
	if o := t.ask(home, 0, false); o != nil && o.reply.Cost > 0 {
		return fmt.Errorf("%s wants to pay nothing for a job, and is promised it for %v", home, o.reply.Cost)
	}
	if right == nil {
		return nil
	}
	for range 2 {
		a, there := answer[*market.Acknowledge](t.hear(home, &right.job))
		v, taken := t.has(right)
		switch {
		case !there:
			return nil
		case taken && a.Unknown:
			return fmt.Errorf("%s submits a job, perhaps twice, which is taken and not known", home)
		case !taken:
			return nil // its owner does not want it
		case v.Award.Cost != right.reply.Cost:
			return fmt.Errorf("%s was promised a job for %v, and it is taken for %v", home, right.reply.Cost, v.Award.Cost)
		}
	}
	if err := t.probe(home); err != nil {
		return err
	}
	if err := t.late(home); err != nil {
		return err
	}
	for _, wrong := range wrongs {
		o := t.ask(home, grid.CreditsMax, false)
		if o == nil {
			return nil
		}
		from := home
		if o.job.Cheque == nil && wrong.paid {
			continue
		}
		if wrong.other {
			from = t.Then[1]
		}
		wrong.twist(t, o)
		t.hear(from, &o.job)
		if _, taken := t.has(o); taken {
			return fmt.Errorf("%s submits a job %s, and it is taken", from, wrong.what)
		}
		t.hear(home, &market.Cancel{Task: o.reply.Task, Hold: o.reply.Hold})
	}
	return nil
}

// Anew has the home of a job place it anew that runs here (so the site was told when it started),
// here again, having thanked for a result that there is not: what ran ends (J-3), and nothing is kept for it
// (site.Audit).
func (t *Twin) Anew(v *site.View) error {
	task := grid.TaskID{Job: v.Job.ID, Epoch: v.Epoch}
	if now, there := t.Site.Glance(v.Job.ID); !there || now.State != site.Running || now.Epoch != v.Epoch {
		return nil // it has been too long
	}
	t.hear(v.Job.Home, &market.Acknowledge{Task: task, Of: (*market.JobCompletion)(nil).MessageKind()})
	next := grid.TaskID{Job: v.Job.ID, Epoch: v.Epoch + 1}
	r, there := answer[*market.Reply](t.hear(v.Job.Home, &market.Negotiate{
		Task: next, Request: uint64(t.Now) + 1, Validity: grid.Minute, Processors: v.Job.Processors, Memory: v.Job.Memory, GPUs: v.Job.GPUs,
		Work: v.Job.Away().Work, Deadline: grid.Never, CostMax: grid.CreditsMax, Bank: t.Bank,
	}))
	if !there || r.Refusal != market.Granted {
		return nil
	}
	m := &market.JobSubmission{Job: v.Job, Epoch: next.Epoch, Hold: r.Hold, Price: r.Price, Cost: r.Cost, Deadline: grid.Never}
	if r.Cost > 0 && t.Bank != "" {
		m.Cheque = &bank.Cheque{Bank: t.Bank, Payer: v.Job.Home, Payee: t.ID, Task: next, Ceiling: r.Cost, Expires: t.Now + 30*grid.Day}
	}
	out := t.step(&grid.Delivery{From: v.Job.Home, Message: m})
	if now, _ := t.Site.Glance(v.Job.ID); now.Epoch != next.Epoch {
		return nil // its owner does not want it
	}
	for _, e := range out.Effects {
		if e.Kind == grid.EffectKill && out.Tasks[e.Index].ID == task {
			if err := site.Audit(t.Now, t.Site); err != nil {
				return fmt.Errorf("job %s of %s comes anew with epoch %d: %w", v.Job.ID, v.Job.Home, next.Epoch, err)
			}
			return nil
		}
	}
	return fmt.Errorf("job %s of %s runs with epoch %d, and comes anew with epoch %d: what runs goes on", v.Job.ID, v.Job.Home, v.Epoch, next.Epoch)
}

// late asks twice for a job, and a copy of the first question comes after the second: what was
// promised last stays.
func (t *Twin) late(home grid.SiteID) error {
	first, _ := t.question(home, grid.CreditsMax, false)
	second := *first
	second.Request++
	t.hear(home, first)
	r, there := answer[*market.Reply](t.hear(home, &second))
	if !there || r.Refusal != market.Granted {
		return nil
	}
	t.hear(home, first)
	for g := range site.CoresOf(t.Site).Market.Guarantees {
		if g.Home == home && g.Task == r.Task && g.Hold == r.Hold {
			t.hear(home, &market.Cancel{Task: r.Task, Hold: r.Hold})
			return nil
		}
	}
	return fmt.Errorf("%s asks twice for job %s, and was promised it with guarantee %d; a copy of its first question comes, and that is gone", home, r.Task.Job, r.Hold)
}

// probe asks only.
func (t *Twin) probe(home grid.SiteID) error {
	before := t.Site.Offer()
	o := t.ask(home, grid.CreditsMax, true)
	if o == nil {
		return nil
	}
	if after := t.Site.Offer(); after.Free != before.Free || after.Widest != before.Widest {
		return fmt.Errorf("%s has only asked what a job would cost: %d processors are free, and were %d", home, after.Free, before.Free)
	}
	return nil
}

// workOf is the work of a job that is made up: a minute or so.
var workOf = grid.WorkOf(grid.Minute, 0, grid.Rating{Speed: 1000, Bandwidth: 1000})

// wrongs are what may be wrong with a submission.
var wrongs = []struct {
	what  string
	paid  bool // it is about its cheque
	other bool // another site says it
	twist func(t *Twin, o *offer)
}{
	{"for a guarantee that it was not given", false, false, func(_ *Twin, o *offer) { o.job.Hold++ }},
	{"without a guarantee", false, false, func(_ *Twin, o *offer) { o.job.Hold = 0 }},
	{"for a guarantee that another has", false, true, func(t *Twin, o *offer) {
		its := *o.job.Job
		its.Home = t.Then[1]
		o.job.Job = &its
		if c := o.job.Cheque; c != nil {
			c.Payer = its.Home
		}
	}},
	{"for the guarantee of another epoch", false, false, func(_ *Twin, o *offer) {
		o.job.Epoch++
		if c := o.job.Cheque; c != nil {
			c.Task.Epoch++
		}
	}},
	{"that is wider than was promised", false, false, func(_ *Twin, o *offer) {
		wide := *o.job.Job
		wide.Processors++
		o.job.Job = &wide
	}},
	{"that is longer than was promised", false, false, func(_ *Twin, o *offer) {
		long := *o.job.Job
		long.Work.Instructions *= 2
		long.Estimate *= 2
		o.job.Job = &long
	}},
	{"for less than was agreed", true, false, func(_ *Twin, o *offer) {
		o.job.Cost--
		o.job.Cheque.Ceiling--
	}},
	{"without a cheque", true, false, func(_ *Twin, o *offer) { o.job.Cheque = nil }},
	{"with a cheque over too little", true, false, func(_ *Twin, o *offer) { o.job.Cheque.Ceiling-- }},
	{"with a cheque for another site", true, false, func(t *Twin, o *offer) { o.job.Cheque.Payee = t.Then[1] }},
	{"with the cheque of another site", true, false, func(t *Twin, o *offer) { o.job.Cheque.Payer = t.Then[1] }},
	{"with a cheque for another task", true, false, func(t *Twin, o *offer) { o.job.Cheque.Task = t.task() }},
	{"with a cheque of another bank", true, false, func(_ *Twin, o *offer) { o.job.Cheque.Bank = "no bank" }},
	{"with a cheque that expires before it can have ended", true, false, func(t *Twin, o *offer) { o.job.Cheque.Expires = t.Now + grid.Second }},
	{"with a cheque that is void soon after it has ended", true, false, func(t *Twin, o *offer) { o.job.Cheque.Expires = t.Now + o.reply.Finish + grid.Minute }},
}
