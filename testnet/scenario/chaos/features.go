package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gridnode/coalloc/muscle"
	"gridnode/directory/record"
	"gridnode/grid"
	"gridnode/internal/lrms/gpu"
	"gridnode/internal/lrms/titan"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/node/guest"
	"gridnode/node/pilot"
	"gridnode/node/quota"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/chaos/owner"
	"gridnode/testnet/scenario/federation"
	"gridnode/testnet/workload"
)

// bounds are what a fault or a feature without a number means, and the most it may be.
type bounds struct{ usual, most float64 }

// featureBounds are the features of Config.Features.
var featureBounds = map[string]bounds{
	"cancel": {0.1, 1}, "hold": {0.1, 1}, "requeue": {0.1, 1},
	"after": {0.2, 1}, "begin": {0.1, 1}, "fail": {0.1, 1}, "break": {0.1, 1}, "unready": {0.05, 1}, "linger": {0.2, 1}, "poison": {0.02, 1}, "once": {0.1, 1}, "singleton": {0.2, 1}, "renew": {0.2, 1},
	"drain": {0.1, 60}, "price": {0.5, 60}, "link": {0.2, 60}, "ask": {2, 600}, "account": {4, 600}, "ban": {0.02, 1},
	"paper": {0.5, 1}, "demand": {0.5, 1}, "queue": {0.5, 1},
	"gossip": {1, 1}, "fresh": {1, 1}, "oracle": {1, 1},
	"forge":  {2, 60},
	"guests": {0.5, 1}, "quota": {0.5, 1}, "most": {0.5, 1}, "thrift": {0.5, 1}, "gpus": {0.5, 1}, "chain": {1, 1}, "head": {0.5, 1}, "array": {0.2, 1},
	"expire": {0.5, 1}, "revoke": {0.1, 1},
	"data": {6, 60}, "read": {0.5, 1}, "find": {6, 600}, "detain": {0.5, 1}, "invite": {8, 60}, "return": {3, 60},
}

// parseList reads a list of NAME or NAME=NUMBER, separated by commas, or "none".
func parseList(flag, list string, known map[string]bounds) (map[string]float64, error) {
	chosen := make(map[string]float64)
	if list == "none" {
		return chosen, nil
	}
	for _, f := range strings.Split(list, ",") {
		name, number, given := strings.Cut(strings.TrimSpace(f), "=")
		range_, there := known[name]
		if !there {
			names := slices.Sorted(maps.Keys(known))
			return nil, scenario.ConfigError(flag, "%q: want none or a list of %s", name, strings.Join(names, ", "))
		}
		chosen[name] = range_.usual
		if given {
			v, err := strconv.ParseFloat(number, 64)
			if err != nil || !(v >= 0 && v <= range_.most) {
				return nil, scenario.ConfigError(flag, "%s=%s: want a number from 0 to %v", name, number, range_.most)
			}
			chosen[name] = v
		}
	}
	return chosen, nil
}

// features is what a script uses of what sites can do, by name: a share, or times per hour.
type features map[string]float64

// hits draws whether something of a run has a feature, by what it is: whatever else is in
// the run, the same has it.
func (f features) hits(seed uint64, name string, of uint64) bool {
	share := f[name]
	return share > 0 && draw.Mix(draw.Mix(seed, draw.Text(name)), of)%million < uint64(share*million)
}

// roll returns a number that is drawn for something of a run, from 0 to below.
func roll(seed uint64, name string, of, below uint64) uint64 {
	return draw.Mix(draw.Mix(seed+1, draw.Text(name)), of) >> 11 % below
}

// tell says to a site what it is to be, besides what all are.
func (f features) tell(seed uint64, at int, c *site.Config, sites int, id func(int) grid.SiteID) {
	of := uint64(at)
	if head := at/headEach*headEach + headEach - 1; head < sites && f.heads(seed, head) {
		f.lead(seed, at, head, c, id)
	}
	if f.hits(seed, "paper", of) {
		c.Market.Placement = market.PlacementPaper
	}
	if f.hits(seed, "demand", of) {
		c.Market.Pricing = market.PricingDemand
	}
	if f.hits(seed, "queue", of) {
		c.Discipline = [...]site.Discipline{site.FCFS, site.TITAN}[roll(seed, "discipline", of, 2)]
	}
	if f.hits(seed, "guests", of) {
		most := guestBounds[roll(seed, "guests may have", of, uint64(len(guestBounds)))]
		c.Guests.Rules = []guest.Rule{{Jobs: guestJobs, Processors: most.processors, Lent: most.lent, Price: 1500}}
	}
	if f.hits(seed, "quota", of) {
		c.Coallocation.Queue.Max = quotaDivided[roll(seed, "divided", of, uint64(len(quotaDivided)))]
		c.Users = &quota.Config{HalfLife: grid.Hour, Everyone: quotaOf(c)}
		if spend := quotaSpends[roll(seed, "spends", of, uint64(len(quotaSpends)))]; spend > 0 {
			c.Users.Everyone.Spend = quota.Spend{Credits: spend, Span: quotaSpan}
		}
	}
	if f["chain"] > 0 && c.Lease.Term > 0 {
		c.Lease.Lend, c.Lease.Match.Links = true, federation.Hierarchy(sites, 1, id)(at)
		if f.hits(seed, "chain", of) {
			c.Lease.Match.Policy, c.Lease.Match.Threshold = lease.DMM, chainThreshold
		}
	}
	if f["find"] > 0 { // with members or authorities, sites are not called as their IDs
		c.Record.Lifetime = record.LifetimeDefault
	}
	if f.hits(seed, "most", of) {
		c.Lease.Most = mostLent(seed, of, c.Processors)
	}
	if f.hits(seed, "thrift", of) {
		c.Lease.Pay = thrifts[roll(seed, "pays", of, uint64(len(thrifts)))]
	}
	if f.hits(seed, "gpus", of) {
		for i := range gpusEach {
			c.GPUs = append(c.GPUs, gpu.Device{Name: fmt.Sprintf("gpu%d", i), Type: "a100"})
		}
	}
}

// headEach is of how many sites, one after the other, the last may head the others.
const headEach = 4

// headBatch bounds the jobs of a packing: few, so that some are left for the next one.
const headBatch = 3

// heads reports whether a site heads those before it.
func (f features) heads(seed uint64, at int) bool {
	return at%headEach == headEach-1 && f.hits(seed, "head", uint64(at/headEach))
}

// lead tells a site whom it heads, or who heads it.
func (f features) lead(seed uint64, at, head int, c *site.Config, id func(int) grid.SiteID) {
	if at != head {
		c.Head = id(head)
		return
	}
	of := uint64(at)
	for member := head - headEach + 1; member < head; member++ {
		c.Heads.Members = append(c.Heads.Members, string(id(member)))
	}
	c.Heads.HeadConfig = muscle.HeadConfig{
		Collect: muscle.Collect(roll(seed, "collect", of, uint64(len(muscle.CollectNames)))), Threshold: [...]grid.Time{muscle.ThresholdDefault, muscle.ThresholdMax}[roll(seed, "threshold", of, 2)],
		Window: [...]grid.Time{0, 2 * grid.Second, 20 * grid.Second}[roll(seed, "window", of, 3)],
		Batch:  headBatch, Policy: muscle.Policy(roll(seed, "policy", of, uint64(len(muscle.PolicyNames)))),
		Plan: &muscle.PlanConfig{Config: titan.Config{Set: 4, Stable: 1, Generations: 2, Settle: 100}, Start: muscle.StartAll, Work: 10_000},
	}
}

// What owners of sites allow.
const (
	guestJobs    = 4 // jobs of one other site at a time
	quotaRunning = 6 // jobs of one user that are placed or run
	gpusEach     = 2 // of a site that has some

	chainThreshold = 500 // load, in thousandths, at which a site of a chain borrows
)

// quotaOf is what a user of a site may have at a time whose owner bounds it.
func quotaOf(c *site.Config) quota.Limits {
	return quota.Limits{Running: quotaRunning, Processors: c.Processors}
}

// quotaSpends are how much a user of such a site may spend in quotaSpan until faults end; 0: without
// a bound.
var quotaSpends = [...]grid.Credits{0, 20 * grid.Credit, 60 * grid.Credit}

const quotaSpan = 20 * grid.Minute

// liftSpending has the owners of such sites let users spend what they want from an instant on: what costs more
// than a user may ever spend waits for ever.
func liftSpending(n *testnet.Network, config func(at int) site.Config, from grid.Time) {
	for at := range n.Len() {
		if c := config(at); c.Users != nil {
			n.Inject(from, at, &site.ConfigureUsers{Token: wishTokens, Config: quota.Config{HalfLife: c.Users.HalfLife, Everyone: quotaOf(&c)}})
		}
	}
}

// quotaDivided is how many jobs may wait to be placed at several sites, or be there.
var quotaDivided = [...]int{2, 4, 32}

// lentLeast is what a component may need that names its site: with less it would wait for ever.
const lentLeast = dividedMax / 2

// guestBounds are how many processors one other site may have at a time, and be lent.
var guestBounds = [...]struct{ processors, lent int64 }{{lentLeast, lentLeast}, {lentLeast, 2 * lentLeast}, {2 * lentLeast, lentLeast}}

// mostLent is how many processors a site lends at most whose owner bounds that: a quarter of them,
// or as few as a few requests at once exceed.
func mostLent(seed, of uint64, processors int64) int64 {
	bounds := [...]int64{processors / 4, processors / 16, 2 * lentLeast, lentLeast}
	return max(bounds[roll(seed, "lends most", of, uint64(len(bounds)))], lentLeast)
}

// thrifts are the highest prices that a site pays for a lease which does not pay any: what it charges
// itself, and what some lenders charge, neither more nor less.
var thrifts = [...]grid.Price{0, lentPrice, lentPrice - 1}

// group says what a whole run is: whose sites gossip to each other, and for how long quotes are
// good that hardly any cell holds all of.
func (f features) group(b *federation.Builder) {
	if f["gossip"] > 0 {
		b.Authority = federation.Authorities(4)
	}
	if f["fresh"] > 0 {
		b.Directory.Lifetime, b.Directory.CellMax = 10*grid.Minute, 8
	}
	if f["head"] > 0 && f["gossip"] == 0 {
		b.Siblings = headEach // a head has to hear of its clusters
	}
	b.Oracle = f["oracle"] > 0
}

// arrayOf makes a job one of an array, of those that its home gets one after the other.
func arrayOf(j *grid.Job) {
	_, number := workload.Origin(j.ID)
	index := number % arrayJobs
	j.Array = &grid.Array{ID: grid.JobID{Hi: 1, Lo: j.ID.Lo - uint64(index)}, Index: index, Count: arrayJobs, Max: arrayJobs - 1, Step: 1, Most: arrayMost}
	j.User, j.Name = "many", fmt.Sprintf("array[%d]", index)
}

// An array has so many jobs, some of which are other kinds of jobs, and so many may run at a time. They come
// one after the other, and those of half of the arrays may begin at the same instants only.
const (
	arrayJobs   = 16
	arrayMost   = 1
	arrayBegins = 30 * grid.Minute
)

// squads returns what befalls the parts of gangs.
func (f features) squads(seed uint64) func(id grid.TaskID) (ready, fails grid.Time) {
	if f["break"]+f["unready"] == 0 {
		return nil
	}
	return func(id grid.TaskID) (ready, fails grid.Time) {
		of := draw.Mix(draw.Mix(id.Job.Hi, id.Job.Lo), uint64(id.Epoch))
		if f.hits(seed, "unready", of) {
			ready = [...]grid.Time{grid.Never, pilot.ReadyMax / 2, 2 * pilot.ReadyMax}[roll(seed, "unready", of, 3)]
		}
		if f.hits(seed, "break", of) {
			fails = grid.Second + grid.Time(roll(seed, "break", of, uint64(20*grid.Minute)))
		}
		return ready, fails
	}
}

// lingers returns how long executions go on that are to end.
func (f features) lingers(seed uint64) func(id grid.TaskID) grid.Time {
	if f["linger"] == 0 {
		return nil
	}
	return func(id grid.TaskID) grid.Time {
		of := draw.Mix(draw.Mix(id.Job.Hi, id.Job.Lo), uint64(id.Epoch))
		if !f.hits(seed, "linger", of) {
			return 0
		}
		return grid.Time(roll(seed, "linger", of, uint64(lingerMost)))
	}
}

// lingerMost is after what time a daemon's shim kills what does not stop, unless its owner says otherwise.
const lingerMost = 5 * grid.Second

// adjust changes a job as its owner wants it.
func (f features) adjust(seed uint64, j *grid.Job) {
	of := j.ID.Lo
	terms := new(grid.Terms)
	home, number := workload.Origin(j.ID)
	if f.hits(seed, "after", of) && number > 3 {
		terms.Drop, terms.Any = true, roll(seed, "any", of, 2) == 0
		for range 1 + roll(seed, "after", of, 2) {
			earlier := workload.JobID(home, number-1-int64(roll(seed, "earlier", of+uint64(len(terms.After))<<50, 3)))
			terms.After = append(terms.After, grid.Dependency{
				Condition: grid.AfterOK + grid.Condition(roll(seed, "condition", of, 4)), Job: earlier,
			})
		}
	}
	if f.hits(seed, "begin", of) {
		terms.Begin = j.Submit + grid.Time(roll(seed, "begin", of, uint64(30*grid.Minute)))
	}
	if f.hits(seed, "fail", of) { // it does not end in time, and may try again
		terms.Retries = int32(roll(seed, "retries", of, 4))
		j.RunTime = 4*j.Estimate + grid.Hour
	}
	terms.Once = f.hits(seed, "once", of)
	if f.hits(seed, "singleton", of) {
		terms.Singleton, j.User, j.Name = true, "alone", "the same"
	}
	if f.hits(seed, "renew", of) {
		terms.Lease = [...]grid.Time{grid.NoLease, grid.LeaseMin, 2 * grid.Minute}[roll(seed, "renew", of, 3)]
	}
	if f.hits(seed, "array", of&^(arrayJobs-1)) && j.Coallocate == nil && !j.Spread && !terms.Singleton {
		arrayOf(j)
		if roll(seed, "array begins", of&^(arrayJobs-1), 2) == 0 {
			terms.Begin = (j.Submit/arrayBegins + 1) * arrayBegins
		}
	}
	if f.heads(seed, home) && roll(seed, "shared out", of, 2) == 0 && j.Coallocate == nil && !j.Spread {
		j.Goal, j.Budget = grid.GoalLocal, grid.NoBudget
	}
	if f.hits(seed, "gpus", uint64(home)) && roll(seed, "gpus", of, 4) == 0 && j.Coallocate == nil && !j.Spread {
		j.GPUs = grid.GPUs{Type: "a100", Count: 1 + int64(roll(seed, "gpu count", of, gpusEach))}
	}
	if f.hits(seed, "read", of) && j.Coallocate != nil {
		f.reads(seed, j)
	}
	if terms.After != nil || terms.Begin > 0 || terms.Retries > 0 || terms.Once || terms.Singleton || terms.Lease != 0 {
		terms.Notify = "true"
		j.Terms = terms
	}
}

// reads has a job read data sets, of which it says how large they are, or does not.
func (f features) reads(seed uint64, j *grid.Job) {
	for i := range 1 + roll(seed, "inputs", j.ID.Lo, 2) {
		of := j.ID.Lo + i<<50
		name, size := owner.SetName(roll(seed, "input", of, owner.Sets))
		if slices.ContainsFunc(j.Inputs, func(in grid.DataSet) bool { return in.Name == name }) {
			continue
		}
		if roll(seed, "size", of, 2) == 0 {
			size = grid.SizeUnknown
		}
		j.Inputs = append(j.Inputs, grid.DataSet{Name: name, Size: size})
	}
}

// wishes returns what the owner of a job will want of it.
func (f features) wishes(seed uint64, j *grid.Job, at int) (list []Wish) {
	of := j.ID.Lo
	soon := func(name string) grid.Time {
		within := []grid.Time{10 * grid.Millisecond, grid.Second, grid.Minute, 30 * grid.Minute}[roll(seed, name+" within", of, 4)]
		return j.Submit + grid.Time(roll(seed, name+" at", of, uint64(within)))
	}
	for _, kind := range []WishKind{WishHold, WishRequeue, WishCancel} {
		if !f.hits(seed, string(kind), of) {
			continue
		}
		w := Wish{Kind: kind, At: soon(string(kind)), Site: at, Job: j.ID.String()}
		if kind == WishHold {
			w.Span = grid.Time(roll(seed, "held", of, uint64(20*grid.Minute)))
		}
		list = append(list, w)
	}
	return list
}

// drawOwners has the owners of sites drain them, change their prices and their links, and give leases back, or
// want them back.
func (f features) drawOwners(seed uint64, sites []workload.Site, span grid.Time) (drawn []Wish) {
	for _, kind := range []WishKind{WishDrain, WishPrice, WishLink, WishReturn, WishData, WishFind, WishInvite, WishNamesakes, WishRemain} {
		pcg := draw.PCG(seed, grid.SiteID(kind), draw.ForJobs)
		for range int(f.times(kind)*float64(len(sites))*span.Seconds()/3600 + 0.5) {
			w := Wish{Kind: kind, Site: int(draw.Uniform(pcg, uint64(len(sites))))}
			w.At = federation.Warmup + grid.Time(draw.Uniform(pcg, uint64(span)))
			switch kind {
			case WishDrain:
				w.Span = grid.Second + grid.Time(draw.Uniform(pcg, uint64(20*grid.Minute)))
			case WishPrice:
				w.Which = uint64(sites[w.Site].Price)/2 + draw.Uniform(pcg, uint64(sites[w.Site].Price))
			case WishLink:
				w.Lender, w.Which = int(draw.Uniform(pcg, uint64(len(sites)))), draw.Uniform(pcg, 3)
			case WishReturn:
				w.Which, w.Force = pcg.Uint64(), draw.Uniform(pcg, 4) == 0
			default:
				w.Which = pcg.Uint64()
			}
			drawn = append(drawn, w)
		}
	}
	if f["data"] > 0 {
		drawn = append(drawn, drawSets(seed, len(sites))...)
	}
	return drawn
}

// times returns how often an hour the owner of a site, or who comes to it, does something.
func (f features) times(kind WishKind) float64 {
	switch kind {
	case WishNamesakes:
		return f["invite"] / namesakesEach
	case WishRemain:
		return f["invite"] / remainEach
	}
	return f[string(kind)]
}

// So many invitations, and applications, come for two strangers of one name, and for one whose
// certificate is renewed.
const (
	namesakesEach = 2
	remainEach    = 8
)

// drawSets has each site hold some data sets from the beginning.
func drawSets(seed uint64, sites int) (drawn []Wish) {
	for at := range sites {
		for set := range uint64(owner.Sets) {
			of := uint64(at)<<32 | set
			if roll(seed, "holds", of, 3) == 0 {
				drawn = append(drawn, Wish{Kind: WishData, Site: at, At: federation.Warmup / 2, Which: owner.Hold(set, roll(seed, "way", of, 4))})
			}
		}
	}
	return drawn
}

// sitesMost is how many sites a swarm has at most, unless all of its runs are to have more.
const sitesMost = 50

// Swarmed returns the configuration with a mixture of faults and features drawn from its seed:
// each is left out or usual, or exaggerated, or hardly there (swarm testing: Groce et al. 2012).
// One run of eight has fewer sites, two at least, or more.
func (cfg Config) Swarmed() Config {
	one := func(name string, of uint64) uint64 { // one more name changes nothing of the others
		return draw.Uniform(draw.PCG(cfg.Seed, grid.SiteID("swarm "+name), draw.ForFaults), of)
	}
	mix := func(known map[string]bounds) string {
		var list []string
		for _, name := range slices.Sorted(maps.Keys(known)) {
			if name == testnet.FaultOld.String() {
				continue // of its sites' jobs nothing is checked
			}
			usual := known[name].usual
			switch intensity := usual * [...]float64{0, 0, 0.25, 1, 1, 4}[one(name, 6)]; {
			case intensity == usual:
				list = append(list, name)
			case intensity > 0:
				list = append(list, fmt.Sprintf("%s=%.4g", name, min(intensity, known[name].most)))
			}
		}
		return cmp.Or(strings.Join(list, ","), "none")
	}
	cfg.Faults, cfg.Features = mix(intensities), mix(featureBounds)
	cfg.Lend = one("lend", 4) > 0
	switch one("sites", 16) {
	case 0:
		cfg.Sites = 2 + int(one("fewer", uint64(max(cfg.Sites-1, 1))))
	case 1:
		cfg.Sites = min(cfg.Sites+int(one("more", uint64(8*cfg.Sites))), max(cfg.Sites, sitesMost))
	}
	return cfg
}
