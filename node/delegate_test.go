package node

import (
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/lease"
	"gridnode/node/p2p"
	"gridnode/node/run"
	"gridnode/node/site"
)

// TestSiblingsAreAskedWithoutLinks: with the order gossip a job that finds its own site
// full runs on processors of a site that is idle and lends, though no link was agreed: it
// is known by its gossip. One that does not lend is not asked.
func TestSiblingsAreAskedWithoutLinks(t *testing.T) {
	t.Parallel()
	memory := &p2p.Memory{}
	l := realConfig(t, 2, memory)
	l.Site.Lease = site.LeaseConfig{Lend: true, Term: grid.Minute}
	lender := realHost(t, l)
	m := realConfig(t, 3, memory)
	m.Join = lender.Addrs()
	miser := realHost(t, m)
	c := realConfig(t, 1, memory)
	c.Site.Processors, c.Join = 1, append(lender.Addrs(), miser.Addrs()...)
	c.Site.Lease = site.LeaseConfig{Term: grid.Minute, Match: lease.MatchConfig{
		Threshold: 1000, DelegationCycle: grid.Second, Retry: grid.Second, Ordering: lease.OrderGossip,
	}}
	b := realHost(t, c)
	full := scriptJob(b, 1, "sleep 1000")
	submitJob(t, b, full)
	until(t, "the own processor is taken", func() bool { return stateOf(t, b, full).State == site.Running })
	job := scriptJob(b, 2, "pwd")
	submitJob(t, b, job)
	until(t, "the job is over", func() bool { return stateOf(t, b, job).State.Terminal() })
	if out := readOutput(t, b, job, run.Stdout); !strings.HasPrefix(out, l.Home) {
		t.Errorf("it ran in %q, want %q", out, l.Home)
	}
	counter := miser.Counter()
	if n := counter.ReceivedOf(wire.LeaseRequest).Messages; n != 0 {
		t.Errorf("the site that does not lend was asked %d times", n)
	}
}
