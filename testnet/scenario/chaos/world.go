package chaos

import (
	"fmt"
	"math/rand/v2"

	"gridnode/grid"
	"gridnode/market/bank"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/federation"
	"gridnode/testnet/workload"
)

// million is what shares of messages are of.
const million = 1_000_000

// chaosLink is a wide-area network with the faults of links.
func chaosLink(faults map[string]float64) testnet.Link {
	share := func(name string) int32 { return int32(faults[name] * million) }
	return testnet.Link{
		LatencyMin: 5 * grid.Millisecond, LatencyMax: 150 * grid.Millisecond,
		Loss: share("loss"), Duplicate: share("duplicate"), Reorder: share("reorder"), ReorderMax: 2 * grid.Second,
		Coincide: share("coincide"),
	}
}

// chaosClock draws a clock for each site: up to ten seconds off, and drifting.
func chaosClock(seed uint64, drift int64) func(id grid.SiteID) testnet.Clock {
	if drift == 0 {
		return nil
	}
	return func(id grid.SiteID) testnet.Clock {
		pcg := draw.PCG(seed, id, draw.ForClock)
		return testnet.Clock{
			Offset: grid.Time(draw.Uniform(pcg, uint64(10*grid.Second))),
			Drift:  int64(draw.Uniform(pcg, uint64(2*drift+1))) - drift,
		}
	}
}

// chaosSites are sites small enough to be full at times, faster ones dearer.
func chaosSites(n int) []workload.Site {
	sites := make([]workload.Site, n)
	for i := range sites {
		speed := int64(600 + i*97%400)
		sites[i] = workload.Site{
			Name: fmt.Sprintf("site-%d", i+1), Processors: int64(8 << (i % 4)),
			Rating: grid.Rating{Speed: speed, Bandwidth: 1000}, Price: grid.Price(speed) * grid.Credit / 100,
		}
	}
	return sites
}

// chaosBanks is how many banks there are among so many sites: the first ones.
func chaosBanks(sites int) int { return min(2, sites) }

// chaosBank lets sites bank with either bank. A third of them run nothing unpaid.
func chaosBank(sites int, at func(int) grid.SiteID) func(site int) bank.Config {
	banks := chaosBanks(sites)
	return func(site int) bank.Config {
		c := bank.Config{Offer: site < banks, Bank: at(site / 2 % banks)}
		for b := 0; b < banks && site%3 == 0; b++ {
			c.Accept = append(c.Accept, at(b))
		}
		return c
	}
}

// chaosGrants has the banks issue credits now and then, to some sites too few, so
// that jobs are refused; a site lives on what it earns, too. What a bank that is down
// misses is not made up for. Once everything has healed everybody gets plenty.
func chaosGrants(n *testnet.Network, seed uint64, span grid.Time) {
	const rounds = 8
	bankOf := chaosBank(n.Len(), n.ID)
	for i := range n.Len() {
		pcg := draw.PCG(seed, n.ID(i), draw.ForJobs)
		where, _ := n.Index(bankOf(i).Bank)
		each := grid.Credits(draw.Uniform(pcg, uint64(grid.Credit)*uint64(span/grid.Hour+1)*4)) + grid.Credit
		for round := range rounds {
			at := federation.Warmup/2 + span/rounds*grid.Time(round)
			id := grid.JobID{Hi: uint64(round + 1), Lo: uint64(i + 1)}
			n.Inject(at, where, &bank.Grant{ID: id, To: n.ID(i), Amount: each})
		}
		// What waits for a lease that its site cannot pay for would wait for ever.
		id := grid.JobID{Hi: rounds + 1, Lo: uint64(i + 1)}
		n.Inject(federation.Warmup+span+grid.Minute, where, &bank.Grant{ID: id, To: n.ID(i), Amount: grid.CreditsMax / 1_000_000})
	}
}

// feed is the jobs of all sites, or those that a script has.
type feed struct {
	scenario.Feed
	only map[string]bool           // by ID; nil: all
	told func(j *grid.Job, at int) // is told of each; nil: nobody is
}

// Next implements testnet.Source.
func (f *feed) Next() (*grid.Job, int, error) {
	for {
		job, at, err := f.Feed.Next()
		if err != nil {
			return nil, 0, err
		}
		if f.only != nil && !f.only[job.ID.String()] {
			f.Read--
			continue
		}
		if f.told != nil {
			f.told(job, at)
		}
		return job, at, nil
	}
}

// chaosFeed generates the jobs of all sites: two thirds of what the processors can
// do, some jobs with deadline and budget, some without.
func chaosFeed(s *Script, f *federation.Builder, uses features) (*feed, error) {
	var sources []workload.Source
	for i := range f.Sites {
		m := workload.Lublin(f.Sites[i].Processors)
		m.Shape = workload.Shape{Load: 0.66, MeanRunTime: 10 * grid.Minute}
		g, err := workload.NewGenerator(m, rand.New(draw.PCG(s.Seed, federation.SiteID(&f.Sites[i]), draw.ForJobs)))
		if err != nil {
			return nil, err
		}
		sources = append(sources, &workload.Later{Source: &workload.Window{Source: g, Span: s.span()}, By: federation.Warmup})
	}
	sets := s.sets()
	goals := [...]grid.Goal{grid.GoalLocal, grid.GoalCost, grid.GoalTime, grid.GoalSpill}
	jobs := &feed{Feed: scenario.Feed{
		Source: workload.NewMerge(sources...),
		QoS:    workload.QoS{Deadline: 10_000, Budget: 4000, Traffic: 100, Length: workload.LengthEstimate},
		Homes:  f.Homes(),
		Goal: func(site int, job *workload.Job) grid.Goal {
			return goals[draw.Mix(draw.Mix(s.Seed, uint64(site)), uint64(job.Number))%4]
		},
		Adjust: func(j *grid.Job) {
			if j.ID.Lo%2 == 0 { // half of the users have all the time and money of the world
				j.Deadline, j.Budget = grid.Never, grid.NoBudget
			}
			if s.Lend {
				if home, _ := workload.Origin(j.ID); !uses.hits(s.Seed, "thrift", uint64(home)) {
					divideSome(j, f)
				}
				spreadSome(j)
			}
			uses.adjust(s.Seed, j)
			if sets && j.Terms != nil && j.Terms.Lease == grid.NoLease {
				j.Terms.Lease = grid.LeaseMin // without a lease only clocks say that a job is dead
			}
		},
	}}
	if s.Jobs != nil {
		jobs.only = make(map[string]bool, len(s.Jobs))
		for _, id := range s.Jobs {
			jobs.only[id] = true
		}
	}
	return jobs, nil
}
