package liar

import (
	"gridnode/grid"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/node/member"
)

// Rights has a member that may offer, and nothing else, ask for what takes another right:
// nobody answers.
func (t *Twin) Rights(poor *member.Member) error {
	t.step(&member.Introduce{Member: poor})
	task := t.task()
	job := &grid.Job{
		ID: task.Job, Home: poor.Site, Resources: grid.Resources{Processors: 1}, Tasks: 1, Estimate: grid.Minute, Work: workOf,
		Deadline: grid.Never, Budget: grid.NoBudget, Goal: grid.GoalTime,
	}
	for _, lie := range []lie{
		{"negotiates", poor.Site, &market.Negotiate{
			Task: task, Request: 1, Validity: grid.Minute, Processors: 1, Work: workOf, Deadline: grid.Never, CostMax: grid.CreditsMax, Probe: true,
		}},
		{"submits a job", poor.Site, &market.JobSubmission{Job: job, Epoch: 1, Hold: 1, Deadline: grid.Never}},
		{"cancels a job", poor.Site, &market.Cancel{Task: task, Hold: 1, Cause: "a lie"}},
		{"asks for a lease", poor.Site, &lease.Request{Number: 1, Processors: 1, Span: grid.Hour, Hold: grid.Minute, Subject: task.Job, Sink: poor.Site}},
		{"claims a lease", poor.Site, &lease.Claim{Number: 1, Epoch: 1, Sequence: 1}},
		{"renews a lease", poor.Site, &lease.Renew{Number: 1, Epoch: 1, Sequence: 2, Span: grid.Hour}},
		{"gives a lease back", poor.Site, &lease.Release{Number: 1, Epoch: 1}},
	} {
		if answers := t.hear(lie.from, lie.m); len(answers) > 0 {
			return lie.fallen("it has no right to, and is answered: %T", answers[0])
		}
	}
	return nil
}
