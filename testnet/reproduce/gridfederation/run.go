package gridfederation

import (
	"context"
	"fmt"

	"gridnode/grid"
	"gridnode/testnet/measure"
	"gridnode/testnet/reproduce"
	"gridnode/testnet/scenario/federation"
	"gridnode/testnet/workload"
)

// federationCase is one run of the scenario.
type federationCase struct {
	mode  string
	oft   int
	sites int

	placement      string // empty: paper
	pricing        string // empty: fixed
	cost           string // empty: paper
	queue          string // empty: easy
	skipInfeasible bool
}

func (c *federationCase) name() string {
	return fmt.Sprintf("%d sites, %s, %d %% OFT", c.sites, c.mode, c.oft)
}

// weight grows like the messages: jobs times sites asked.
func (c *federationCase) weight() int64 {
	n := int64(c.sites)
	return n*100 + n*n*int64(c.oft+20)/10
}

// outcome is what came of a run.
type outcome struct {
	*measure.Result
	users  []users   // by their home
	earned []float64 // by site, in credits: price × processors × time
	timely float64   // of it, for what was done within the two days
}

// users are those of one site, or all of them. Sums are over jobs.
type users struct {
	jobs, accepted   int64
	response         float64 // seconds; of a rejected job the time it would take at home
	responseQueued   float64 // seconds; of a rejected job the time to its deadline, the least it would have taken in home's queue
	responseAccepted float64 // seconds; without rejected jobs
	spent            float64 // credits by eq. 3; of a rejected job what it would cost at home
	spentByWidth     float64 // the same by price × processors × time
}

func (u *users) plus(v *users) {
	u.jobs += v.jobs
	u.accepted += v.accepted
	u.response += v.response
	u.responseQueued += v.responseQueued
	u.responseAccepted += v.responseAccepted
	u.spent += v.spent
	u.spentByWidth += v.spentByWidth
}

// run runs a case on those days.
func (s *federationStudy) run(ctx context.Context, days [][]workload.Job, c federationCase) (*outcome, error) {
	sites := workload.Sites(c.sites)
	index := make(map[grid.SiteID]int, len(sites))
	for i := range sites {
		index[grid.SiteID(sites[i].Name)] = i
	}
	o := &outcome{users: make([]users, len(sites)), earned: make([]float64, len(sites))}
	cfg := federation.Default()
	cfg.Seed, cfg.Mode, cfg.Placement, cfg.OFT, cfg.Sites = s.o.Seed, c.mode, "paper", c.oft, c.sites
	cfg.Days, cfg.SkipInfeasible = days, c.skipInfeasible
	cfg.DHT = "oracle" // "we assume the query process is optimal"; its messages are not counted here
	if c.placement != "" {
		cfg.Placement = c.placement
	}
	if c.pricing != "" {
		cfg.Pricing = c.pricing
	}
	if c.cost != "" {
		cfg.Cost = c.cost
	}
	if c.queue != "" {
		cfg.Queue = c.queue
	}
	cfg.Ended = func(home int, e *grid.Event) {
		u := &o.users[home]
		u.jobs++
		at := &sites[home]
		response := e.Job.EstimateAt(at.Rating).Seconds()
		queued := (e.Job.Deadline - e.Job.Submit).Seconds()
		if e.Kind == grid.JobFinished {
			at = &sites[index[e.Site]]
			response = (e.Result.End - e.Job.Submit).Seconds()
			queued = response
			u.accepted++
			u.responseAccepted += response
		}
		byWidth := e.Job.CostAt(at.Rating, at.Price, grid.CostProcessorTime).Float()
		u.response += response
		u.responseQueued += queued
		u.spent += e.Job.CostAt(at.Rating, at.Price, grid.CostPaper).Float()
		u.spentByWidth += byWidth
		if e.Kind == grid.JobFinished {
			o.earned[index[e.Site]] += byWidth
			o.timely += byWidth * within(&e.Result)
		}
	}
	result, err := federation.Run(ctx, cfg)
	o.Result = result
	return o, err
}

// within returns which share of an execution lies within the two days.
func within(r *grid.Result) float64 {
	const end = federation.Begin + federation.Span
	switch {
	case r.End <= end:
		return 1
	case r.Start >= end:
		return 0
	}
	return (end - r.Start).Seconds() / (r.End - r.Start).Seconds()
}

// stats returns the figures of a site, or of all.
func (o *outcome) stats(site int) *measure.Stats {
	if site == siteAll {
		return &o.Total
	}
	return &o.Sites[site].Stats
}

// usersOf returns the users of a site of table 1, or of all.
func (o *outcome) usersOf(site int) users {
	if site != siteAll {
		return o.users[site]
	}
	return o.everybody()
}

// everybody returns all users, of however many sites.
func (o *outcome) everybody() (all users) {
	for i := range o.users {
		all.plus(&o.users[i])
	}
	return all
}

// earnedBy returns what a site, or all, earned by price × processors × time.
func (o *outcome) earnedBy(site int) float64 {
	if site != siteAll {
		return o.earned[site]
	}
	sum := 0.0
	for _, e := range o.earned {
		sum += e
	}
	return sum
}

func (o *outcome) accepted(site int) reproduce.Number {
	st := o.stats(site)
	return reproduce.PercentOf(st.Accepted, st.Submitted)
}

func (o *outcome) incentive(site int) reproduce.Number {
	return reproduce.Number(grid.Credits(o.stats(site).Incentive).Float())
}

// messages returns how many messages the paper counts were sent about jobs.
func (o *outcome) messages() reproduce.Number { return reproduce.Number(o.Total.MessagesLocal) }

func (o *outcome) perJob() reproduce.Number { return reproduce.Number(o.Messages.PerJob.Mean.Float()) }
