package leasing

import (
	"fmt"

	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/lease"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
)

// partners is a network of sites that lease from each other ("The gain of resource
// delegation", section 4). Their messages take no time, so that what they agree on is
// agreed at once, as in the paper.
type partners struct {
	n       *testnet.Network
	sites   []measure.Site
	told    func(site int, at grid.Time, borrowed, lent int64)
	asked   func(site int, d lease.Delegations)
	totals  []lease.Totals // as last told
	current []*site.Site
}

// newPartners adds the sites of w to a network of their own.
func newPartners(cfg *Config, policy lease.Policy, discipline lrms.Discipline, w *logs) (*partners, error) {
	n, err := testnet.New(testnet.Config{Seed: cfg.Seed, Inputs: scenario.Inputs()})
	if err != nil {
		return nil, err
	}
	net := &partners{n: n, sites: w.sites, told: cfg.Leases, asked: cfg.Asked, totals: make([]lease.Totals, len(w.sites))}
	for i := range w.sites {
		if err := net.add(w, i, lease.MatchConfig{Policy: policy, Slack: 1}, discipline); err != nil {
			return nil, err
		}
	}
	if net.told != nil {
		n.Observe(testnet.Observer{Turn: net.turn})
	}
	return net, nil
}

// add adds a site that all others are linked to.
func (net *partners) add(w *logs, i int, match lease.MatchConfig, discipline lrms.Discipline) error {
	home := &w.homes[i]
	for j := range w.homes {
		if j != i {
			match.Links = append(match.Links, lease.Link{Site: w.homes[j].ID, Relation: lease.Sibling})
		}
	}
	cfg := site.Config{
		ID: home.ID, Name: w.sites[i].Name, Resources: grid.Resources{Processors: w.sites[i].Processors}, Rating: home.Rating,
		Discipline: discipline, Parts: site.Leases,
		// No site fails here and no clock drifts: keep-alives would be nothing but messages.
		Lease:  site.LeaseConfig{Lend: true, Term: lease.TermMax, Span: lease.SpanLimit, Drift: 1, Match: match},
		Limits: site.Limits{Jobs: scenario.JobsMax, PerUser: scenario.JobsMax},
	}
	_, err := net.n.Add(testnet.Member{ID: home.ID, Rating: home.Rating, New: func(int) (testnet.Site, error) {
		s, err := site.New(cfg, draw.PCG(net.n.Seed(), home.ID, draw.ForSite).Uint64())
		net.current = append(net.current, s)
		return s, err
	}})
	return err
}

// turn tells how much a site has of others, and others of it.
func (net *partners) turn(now grid.Time, at int) {
	if t := net.current[at].LeaseTotals(); t != net.totals[at] {
		net.totals[at] = t
		net.told(at, now, t.Borrowed, t.Held+t.Lent)
	}
}

// leased yields how much of an execution runs on other sites' processors.
func (net *partners) leased(x *testnet.Execution, yield func(lender int, processors int64)) {
	if x.Squad == nil {
		return
	}
	for i := range x.Squad.Gang.Parts {
		if p := &x.Squad.Gang.Parts[i]; p.Site != x.Job.Home {
			lender, _ := net.n.Index(p.Site)
			yield(lender, p.Processors)
		}
	}
}

// inspect completes the result: how many jobs of a site ran on leased processors.
func (net *partners) inspect(r *measure.Result) {
	var all int64
	for i, s := range net.current {
		d := s.Delegations()
		brought := d.Brought
		if all += brought; net.asked != nil {
			net.asked(i, d)
		}
		r.Sites[i].DelegationsPerJob = measure.Ratio(measure.SumOf(brought).Over(measure.SumOf(r.Sites[i].Submitted), 10_000))
	}
	r.Total.DelegationsPerJob = measure.Ratio(measure.SumOf(all).Over(measure.SumOf(r.Total.Submitted), 10_000))
}

// returned reports, as an error, processors that are not where they belong.
func (net *partners) returned() error {
	for i, s := range net.current {
		if leases := s.Leases(); len(leases) > 0 {
			return fmt.Errorf("%s still has %d leases although all jobs have ended: %+v", net.sites[i].Name, len(leases), leases[0].Lease)
		}
	}
	return nil
}
