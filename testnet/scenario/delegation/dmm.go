package delegation

import (
	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/lease"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/scenario"
)

// leaseTerm is how long a lease lasts without a keep-alive. No site of this scenario
// fails, so nothing but messages comes of a shorter one; those that Condor would
// send are counted by keepAlive.
const leaseTerm = 6 * grid.Hour

// gossipTopic is where the sites tell how busy they are, if they do.
const gossipTopic = "delegation/load"

// newDMM makes a site manager of Delegated MatchMaking with its cluster, if it has one:
// a site that lends and borrows and does nothing else.
func (d *delegated) newDMM(at int, match lease.MatchConfig, phase grid.Time) (testnet.Site, error) {
	id := delegationID(at)
	match.Links, match.Phase = delegationLinks(at), phase
	cfg := site.Config{
		ID: id, Name: string(id), Rating: grid.Rating{Speed: 1, Bandwidth: 1}, Discipline: lrms.FCFS, Parts: site.Leases,
		Limits: site.Limits{Jobs: scenario.JobsMax, PerUser: scenario.JobsMax},
		Lease:  site.LeaseConfig{Lend: true, Term: leaseTerm},
	}
	if at < clusters {
		cfg.Processors = clusterSizes[at]
	}
	if match.Ordering == lease.OrderGossip {
		cfg.Parts |= site.Gossip
		cfg.Directory = directory.Config{Federation: "delegation", Topic: gossipTopic, GossipInterval: 30 * grid.Second}
		for other := range clusters {
			if !linked(match.Links, delegationID(other)) && other != at {
				match.Members = append(match.Members, delegationID(other))
			}
		}
	}
	cfg.Lease.Match = match
	s, err := site.New(cfg, draw.PCG(d.cfg.Seed, id, draw.ForSite).Uint64())
	if bind := grid.Time(d.cfg.Bind) * grid.Second; err == nil && bind > 0 {
		return &bound{Site: s, span: bind}, nil
	}
	return s, err
}

func linked(links []lease.Link, site grid.SiteID) bool {
	for _, l := range links {
		if l.Site == site {
			return true
		}
	}
	return false
}

// bound is a site whose executor needs a while to make borrowed processors usable: what
// the site starts there begins later.
type bound struct {
	*site.Site
	span    grid.Time
	binding []binding // by time
}

// binding is a task whose processors are here and cannot be used yet.
type binding struct {
	at   grid.Time
	task grid.Task
}

// NextTimer implements testnet.Site.
func (b *bound) NextTimer() grid.Time {
	at := b.Site.NextTimer()
	if len(b.binding) > 0 {
		at = min(at, b.binding[0].at)
	}
	return at
}

// Step implements testnet.Site.
func (b *bound) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	b.Site.Step(now, in, out)
	kept := out.Effects[:0]
	for _, e := range out.Effects {
		if e.Kind == grid.EffectStart && out.Tasks[e.Index].Job != nil && out.Tasks[e.Index].Pilot.Key != 0 {
			b.binding = append(b.binding, binding{now + b.span, out.Tasks[e.Index]})
			continue
		}
		kept = append(kept, e)
	}
	out.Effects = kept
	for len(b.binding) > 0 && b.binding[0].at <= now {
		out.Start(b.binding[0].task)
		b.binding = b.binding[1:]
	}
}
