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
	earned []charges // by site
	timely float64   // of what is earned for the time taken: for what was done within the two days
}

// users are those of one site, or all of them. Sums are over jobs.
type users struct {
	jobs, accepted   int64
	response         float64 // seconds; of a rejected job what home expected when it was rejected
	responseIdle     float64 // seconds; of a rejected job the time it would take at an idle home
	responseDeadline float64 // seconds; of a rejected job the time to its deadline, less than home's queue would take
	responseAccepted float64 // seconds; without rejected jobs
	spent            charges // of a rejected job what it would cost at home
}

func (u *users) plus(v *users) {
	u.jobs += v.jobs
	u.accepted += v.accepted
	u.response += v.response
	u.responseIdle += v.responseIdle
	u.responseDeadline += v.responseDeadline
	u.responseAccepted += v.responseAccepted
	u.spent.plus(v.spent)
}

func (u *users) meanResponse() reproduce.Number { return reproduce.Ratio(u.response, float64(u.jobs)) }

func (u *users) meanAccepted() reproduce.Number {
	return reproduce.Ratio(u.responseAccepted, float64(u.accepted))
}

func (u *users) meanBudget() reproduce.Number {
	return reproduce.Ratio(u.spent.computing, float64(u.jobs))
}

// run runs a case on those days.
func (s *federationStudy) run(ctx context.Context, days [][]workload.Job, c federationCase) (*outcome, error) {
	sites := workload.Sites(c.sites)
	index := make(map[grid.SiteID]int, len(sites))
	for i := range sites {
		index[grid.SiteID(sites[i].Name)] = i
	}
	o := &outcome{users: make([]users, len(sites)), earned: make([]charges, len(sites))}
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
	o.listen(&cfg, c, sites, index)
	result, err := federation.Run(ctx, cfg)
	o.Result = result
	return o, err
}

// listen accounts for every job that ends.
func (o *outcome) listen(cfg *federation.Config, c federationCase, sites []workload.Site, index map[grid.SiteID]int) {
	// Mean response times are printed for table 1 alone; larger runs do without.
	asked := c.sites <= siteAll && c.placement == ""
	if asked {
		cfg.Rejected = func(home int, e *grid.Event, finish grid.Time) {
			o.users[home].response += expected(e.Job, finish)
		}
	}
	cfg.Ended = func(home int, e *grid.Event) {
		u := &o.users[home]
		u.jobs++
		if e.Kind == grid.JobRefused {
			idle := e.Job.EstimateAt(sites[home].Rating).Seconds()
			u.responseIdle += idle
			u.responseDeadline += (e.Job.Deadline - e.Job.Submit).Seconds()
			if !asked {
				u.response += idle
			}
			u.spent.plus(chargesFor(e.Job, &sites[home]))
			return
		}
		at := index[e.Site]
		response := (e.Result.End - e.Job.Submit).Seconds()
		u.accepted++
		u.response += response
		u.responseIdle += response
		u.responseDeadline += response
		u.responseAccepted += response
		paid := chargesFor(e.Job, &sites[at])
		u.spent.plus(paid)
		o.earned[at].plus(paid)
		o.timely += paid.taken * within(&e.Result)
	}
}

// expected returns the response time of a rejected job: "Fig. 4(b) and 4(c) includes the
// expected budget spent and response time for the rejected jobs assuming they are
// executed on the originating resource" (§3.7). What the originating resource expects is
// known to its GFA, which rejects because of it: the finish that it could have promised.
func expected(job *grid.Job, finish grid.Time) float64 { return (finish - job.Submit).Seconds() }

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

func (o *outcome) accepted(site int) reproduce.Number {
	st := o.stats(site)
	return reproduce.PercentOf(st.Accepted, st.Submitted)
}

// messages returns how many messages the paper counts were sent about jobs.
func (o *outcome) messages() reproduce.Number { return reproduce.Number(o.Total.MessagesLocal) }

func (o *outcome) perJob() reproduce.Number { return reproduce.Number(o.Messages.PerJob.Mean.Float()) }
