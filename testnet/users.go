package testnet

import (
	"cmp"
	"slices"

	"gridnode/grid"
)

// users are those who submit jobs. In a network that crashes sites, a user who got
// no answer because the daemon was down, or died before it could answer, submits
// the same job again once it is up. In other networks nobody waits for an answer:
// the token is 0.
type users struct {
	token uint64
	open  map[uint64]pending // submitted, not answered; empty unless Durable
}

type pending struct {
	site int32
	job  *grid.Job
}

// submit hands a job to its site. What the source gave in true time is what the
// user reads off the site's clock.
func (n *Network) submit(s int32, job *grid.Job) {
	m := &n.members[s]
	n.trace.add(uint64(n.now))
	n.trace.add(5<<61 | uint64(s))
	n.trace.job(job.ID)
	if shift := m.Clock.Local(job.Submit) - job.Submit; shift != 0 {
		job.Submit += shift
		if job.Deadline != grid.Never {
			job.Deadline += shift
		}
	}
	var token uint64
	if n.cfg.Durable {
		n.users.token++
		token = n.users.token
		n.users.open[token] = pending{s, job}
	}
	if m.core != nil {
		n.step(s, n.cfg.Inputs.Submit(token, job))
	}
}

// answered is a site's answer to a user.
func (n *Network) answered(s int32, a grid.Answer) {
	delete(n.users.open, a.Token)
	for i := range n.observers {
		if f := n.observers[i].Answer; f != nil {
			f(n.now, int(s), a)
		}
	}
}

// resubmit repeats, in their order, the submissions that a restarted site has not answered.
func (n *Network) resubmit(s int32) {
	var tokens []uint64
	for token, p := range n.users.open {
		if p.site == s {
			tokens = append(tokens, token)
		}
	}
	slices.SortFunc(tokens, cmp.Compare[uint64])
	for _, token := range tokens {
		if n.members[s].core != nil {
			n.step(s, n.cfg.Inputs.Submit(token, n.users.open[token].job))
		}
	}
}
