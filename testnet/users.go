package testnet

import (
	"cmp"
	"slices"

	"gridnode/grid"
)

// Users are those who submit jobs. In a network that crashes sites, a user who got
// no answer because the daemon was down, or died before it could answer, submits
// the same job again once it is up. In other networks nobody waits for an answer:
// the token is 0.

// pending is a submission without an answer.
type pending struct {
	site int32
	job  *grid.Job
}

// submit hands a job to its site. What the source gave in true time is what the
// user reads off the site's clock.
func (l *lane) submit(a arrival) {
	s, job := a.site, a.job
	m := &l.members[s]
	m.trace.add(uint64(l.now))
	m.trace.add(5<<61 | uint64(s))
	m.trace.job(job.ID)
	if shift := m.Clock.Local(job.Submit) - job.Submit; shift != 0 {
		job.Submit += shift
		if job.Deadline != grid.Never {
			job.Deadline += shift
		}
	}
	if a.token != 0 {
		l.open[a.token] = pending{s, job}
	}
	if m.core != nil {
		l.submitted = l.cfg.Inputs.Submit(l.submitted, a.token, job)
		l.step(s, l.submitted)
	}
}

// answered is a site's answer to a user.
func (l *lane) answered(s int32, a grid.Answer) {
	delete(l.open, a.Token)
	l.tellAnswer(s, a)
}

// resubmit repeats, in their order, the submissions that a restarted site has not answered.
func (l *lane) resubmit(s int32) {
	var tokens []uint64
	for token, p := range l.open {
		if p.site == s {
			tokens = append(tokens, token)
		}
	}
	slices.SortFunc(tokens, cmp.Compare[uint64])
	for _, token := range tokens {
		if l.members[s].core != nil {
			l.step(s, l.cfg.Inputs.Submit(nil, token, l.open[token].job))
		}
	}
}
