package coallocation

import (
	"fmt"
	"math/rand/v2"

	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/lease"
)

// lender is a cluster that runs components of a co-allocator's jobs: its processors,
// its lease book, and the matchmaker that decides who gets them, as in site.Site.
type lender struct {
	id      grid.SiteID
	cluster *lrms.Cluster
	book    *lease.Book
	matches *lease.Matchmaker
}

func newLender(id grid.SiteID, processors int64) (*lender, error) {
	l := &lender{id: id}
	var err error
	if l.cluster, err = lrms.New(lrms.Config{Processors: processors}); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", id, err)
	}
	if l.book, err = lease.New(leaseConfig(id), l.cluster); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", id, err)
	}
	l.matches, err = lease.NewMatchmaker(lease.MatchConfig{Lend: true}, l.cluster, l.book, nil, rand.New(rand.NewPCG(0, 0))) // it asks nobody, so it draws nothing
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", id, err)
	}
	return l, nil
}

// leaseConfig is that of all books of a network without faults whose clocks agree.
func leaseConfig(id grid.SiteID) lease.Config { return lease.Config{Site: id, Drift: 1} }

// NextTimer implements Site.
func (l *lender) NextTimer() grid.Time { return l.book.NextTimer() }

// Step implements Site.
func (l *lender) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	first := len(out.Locals)
	l.book.Step(now, in, out)
	for i := first; i < len(out.Locals); i++ {
		switch in := out.Locals[i].(type) {
		case *lease.Asked, *lease.Ended:
			l.matches.Step(now, in, out)
		case *lease.Activated: // what runs there is the co-allocator's
		default:
			panic(fmt.Sprintf("testnet: unknown input %T", in))
		}
	}
	out.Locals = out.Locals[:first]
}
