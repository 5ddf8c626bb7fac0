package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"gridnode/grid"
	"gridnode/market"
	"gridnode/market/bank"
	"gridnode/market/keepalive"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/federation"
	"gridnode/testnet/workload"
)

// Config is the scenario "chaos": a federation under faults. While they last
// and after they have healed, invariants are checked at every event.
type Config struct {
	scenario.Common

	Sites int     `json:"sites"` // 1 to 1000
	Hours float64 `json:"hours"` // how long jobs are submitted and faults happen; more than 0, at most 10000

	// Faults is a list of NAME or NAME=INTENSITY, separated by commas, or "none":
	//
	//	loss       share of messages that vanish
	//	duplicate  share of messages that arrive twice
	//	reorder    share of messages held back by up to two seconds
	//	drift      most that a clock gains or loses, in millionths
	//	daemon     crashes of a daemon, per site and hour
	//	torn       crashes between saving and sending, per site and hour
	//	machine    power cuts, per site and hour
	//	partition  partitions of the network, per hour
	//	aim        share of jobs at several sites that are cancelled, and of their claims,
	//	           barriers and starts at which one of their sites dies
	Faults string `json:"faults"`

	// Lend lets sites lend processors to each other: by load, in a hierarchy, for what a job
	// lacks, and by hand; most of them want processors back at times.
	Lend bool `json:"lend"`
}

// Default is what the command line starts from.
func Default() Config {
	return Config{
		Common: scenario.Common{Seed: 1}, Sites: 20, Hours: 24,
		Faults: "loss,duplicate,reorder,drift,daemon,torn,machine,partition,aim", Lend: true,
	}
}

// intensities are what a fault without a number means, and the most it may be.
var intensities = map[string]struct{ usual, most float64 }{
	"loss": {0.02, 0.5}, "duplicate": {0.02, 1}, "reorder": {0.05, 1}, "drift": {200, testnet.DriftMax},
	"daemon": {0.5, 60}, "torn": {0.5, 60}, "machine": {0.1, 60}, "partition": {1, 60}, "aim": {0.2, 1},
}

// parseFaults reads Config.Faults.
func parseFaults(list string) (map[string]float64, error) {
	faults := make(map[string]float64)
	if list == "none" {
		return faults, nil
	}
	for _, f := range strings.Split(list, ",") {
		name, number, given := strings.Cut(strings.TrimSpace(f), "=")
		range_, known := intensities[name]
		if !known {
			var names []string
			for n := range intensities {
				names = append(names, n)
			}
			slices.Sort(names)
			return nil, scenario.ConfigError("faults", "%q: want none or a list of %s", name, strings.Join(names, ", "))
		}
		faults[name] = range_.usual
		if given {
			v, err := strconv.ParseFloat(number, 64)
			if err != nil || !(v >= 0 && v <= range_.most) {
				return nil, scenario.ConfigError("faults", "%s=%s: want a number from 0 to %v", name, number, range_.most)
			}
			faults[name] = v
		}
	}
	return faults, nil
}

// chaosReport is the configuration as a result shows it.
type chaosReport struct {
	Config
	Injected map[string]int64 `json:"injected"` // faults that happened, by name
	Lost     int64            `json:"lost"`     // messages
	Acked    int              `json:"acknowledged"`
	Checked  int64            `json:"eventsChecked"`

	Leases leaseCounts `json:"leases"`
	Gangs  gangCounts  `json:"gangs"`
	Aimed  aimCounts   `json:"aimed"`
	Lapsed int64       `json:"lapsed"` // executions that were not renewed

	Transactions map[string]int64 `json:"transactions"` // of the banks, by kind
}

// patience is how long after the last fault every job must have ended: the longest
// job, placed anew as often as allowed, and a full queue before it each time.
const patience = 14 * grid.Day

// Run runs the scenario. A violated invariant is an error that says how to
// see it again.
func Run(ctx context.Context, cfg Config) (*measure.Result, error) {
	if cfg.Sites < 1 || cfg.Sites > 1000 {
		return nil, scenario.ConfigError("sites", "%d: want 1 to 1000", cfg.Sites)
	}
	if !(cfg.Hours > 0 && cfg.Hours <= 10_000) {
		return nil, scenario.ConfigError("hours", "%v: want more than 0 and at most 10000", cfg.Hours)
	}
	faults, err := parseFaults(cfg.Faults)
	if err != nil {
		return nil, err
	}
	span := grid.Time(cfg.Hours * float64(grid.Hour))
	var watch *testnet.Checker
	f := federation.Builder{
		Config: testnet.Config{
			Seed: cfg.Seed, Inputs: scenario.Inputs(), Durable: true, Link: chaosLink(faults),
			Check: func(now grid.Time) error { return watch.Violation(now) },
		},
		Placement: market.PlacementCoordinated, Foreign: true, Sites: chaosSites(cfg.Sites),
		Retention: grid.Day, Clock: chaosClock(cfg.Seed, int64(faults["drift"])), Bank: chaosBank(cfg.Sites),
		Tell: func(_ int, c *site.Config) { c.Market.Lease = keepalive.Default },
	}
	if cfg.Lend {
		f.Lease = chaosLease(cfg.Sites)
	}
	n, err := f.Build()
	if err != nil {
		return nil, err
	}
	watch = testnet.Check(n, f.Processors(), scenario.Submission)
	var banks []int
	for b := range chaosBanks(cfg.Sites) {
		banks = append(banks, b)
	}
	money := watchBooks(n, watch, banks)
	chaosGrants(n, cfg.Seed, span)
	lent, gangs := watchLeases(n, watch), watchGangs(n, watch)
	alive := watchAlive(n, watch, faults["loss"] == 0)
	aimed := aimAt(n, cfg.Seed, faults["aim"], span)
	if cfg.Lend {
		chaosLeases(n, cfg.Seed, span)
	}
	report := &chaosReport{Config: cfg, Injected: make(map[string]int64), Transactions: make(map[string]int64)}
	n.Observe(testnet.Observer{Fault: func(_ grid.Time, f *testnet.Fault) {
		if !f.Healing() {
			report.Injected[f.Kind.String()]++
		}
	}})
	if err := scheduleChaos(n, cfg.Seed, faults, span); err != nil {
		return nil, err
	}
	source, err := chaosFeed(cfg, &f, span)
	if err != nil {
		return nil, err
	}
	n.Feed(source)
	r := scenario.Run{
		Common: cfg.Common, Scenario: "chaos", Config: report, Network: n, Sites: f.Described(),
		Begin: federation.Warmup, Window: grid.Never, Read: func() int64 { return source.Read },
		Least: federation.Warmup + span, Most: federation.Warmup + span + patience,
		Inspect: func(*measure.Result) {
			report.Lost, report.Acked, report.Checked = n.Lost(), watch.Acknowledged(), n.Events()
			report.Leases, report.Gangs, report.Aimed = lent.counts, gangs.sum(), aimed.counts
			report.Lapsed = alive.lapsed
			report.Leases.Paid = money.fees.paid
			for kind, count := range money.count {
				report.Transactions[kind.String()] = count
			}
		},
		Quiet: func() bool { return money.quiet() && lent.quiet() }, AtRest: func() error { return errors.Join(aimed.failed, watch.AtRest(), money.atRest(), lent.atRest()) },
	}
	result, err := caught(func() (*measure.Result, error) { return r.Do(ctx) })
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w\nto see it again: gridnode testnet run chaos --seed %d --sites %d --hours %v --faults %s --lend=%v", err, cfg.Seed, cfg.Sites, cfg.Hours, cfg.Faults, cfg.Lend)
	}
	return result, err
}

// caught returns as an error what do panics with: a core that finds its own invariants
// broken is a violation like any other.
func caught(do func() (*measure.Result, error)) (result *measure.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, fmt.Errorf("a defect: %v\n%s", p, debug.Stack())
		}
	}()
	return do()
}

// million is what shares of messages are of.
const million = 1_000_000

// chaosLink is a wide-area network with the faults of links.
func chaosLink(faults map[string]float64) testnet.Link {
	share := func(name string) int32 { return int32(faults[name] * million) }
	return testnet.Link{
		LatencyMin: 5 * grid.Millisecond, LatencyMax: 150 * grid.Millisecond,
		Loss: share("loss"), Duplicate: share("duplicate"), Reorder: share("reorder"), ReorderMax: 2 * grid.Second,
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
func chaosBank(sites int) func(site int) bank.Config {
	at := func(i int) grid.SiteID { return grid.SiteID(fmt.Sprintf("site-%d", i+1)) }
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
	bankOf := chaosBank(n.Len())
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

// chaosFeed generates the jobs of all sites: two thirds of what the processors can
// do, some jobs with deadline and budget, some without.
func chaosFeed(cfg Config, f *federation.Builder, span grid.Time) (*scenario.Feed, error) {
	var sources []workload.Source
	for i := range f.Sites {
		m := workload.Lublin(f.Sites[i].Processors)
		m.Shape = workload.Shape{Load: 0.66, MeanRunTime: 10 * grid.Minute}
		g, err := workload.NewGenerator(m, rand.New(draw.PCG(cfg.Seed, federation.SiteID(&f.Sites[i]), draw.ForJobs)))
		if err != nil {
			return nil, err
		}
		sources = append(sources, &workload.Later{Source: &workload.Window{Source: g, Span: span}, By: federation.Warmup})
	}
	goals := [...]grid.Goal{grid.GoalLocal, grid.GoalCost, grid.GoalTime, grid.GoalSpill}
	return &scenario.Feed{
		Source: workload.NewMerge(sources...),
		QoS:    workload.QoS{Deadline: 10_000, Budget: 4000, Traffic: 100, Length: workload.LengthEstimate},
		Homes:  f.Homes(),
		Goal: func(site int, job *workload.Job) grid.Goal {
			return goals[draw.Mix(draw.Mix(cfg.Seed, uint64(site)), uint64(job.Number))%4]
		},
		Adjust: func(j *grid.Job) {
			if j.ID.Lo%2 == 0 { // half of the users have all the time and money of the world
				j.Deadline, j.Budget = grid.Never, grid.NoBudget
			}
			if cfg.Lend {
				divideSome(j, f.Sites)
				spreadSome(j)
			}
		},
	}, nil
}

// scheduleChaos draws when sites crash and the network parts. Everything has healed
// when span is over.
func scheduleChaos(n *testnet.Network, seed uint64, faults map[string]float64, span grid.Time) error {
	sites := n.Len()
	for _, c := range []struct {
		kind           testnet.FaultKind
		times          float64 // per hour in the whole network
		least, longest grid.Time
	}{
		{testnet.FaultDaemon, faults["daemon"] * float64(sites), grid.Second, 5 * grid.Minute},
		{testnet.FaultTorn, faults["torn"] * float64(sites), 10 * grid.Second, 5 * grid.Minute},
		{testnet.FaultMachine, faults["machine"] * float64(sites), grid.Minute, 30 * grid.Minute},
		{testnet.FaultPartition, faults["partition"], grid.Second, 10 * grid.Minute},
	} {
		pcg := draw.PCG(seed, grid.SiteID(c.kind.String()), draw.ForFaults)
		for range int64(c.times*span.Seconds()/3600 + 0.5) {
			f := testnet.Fault{Kind: c.kind, At: federation.Warmup + grid.Time(draw.Uniform(pcg, uint64(span)))}
			f.For = c.least + grid.Time(draw.Uniform(pcg, uint64(c.longest-c.least)))
			f.For = max(min(f.For, federation.Warmup+span-f.At), 1)
			f.Sites = drawSites(pcg, sites, c.kind == testnet.FaultPartition)
			if err := n.Schedule(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// drawSites draws one site, or, for a partition, each with an even chance, but at least one.
func drawSites(pcg *rand.PCG, sites int, several bool) []int {
	first := int(draw.Uniform(pcg, uint64(sites)))
	drawn := []int{first}
	if !several {
		return drawn
	}
	for s := range sites {
		if s != first && draw.Chance(pcg, million/2) {
			drawn = append(drawn, s)
		}
	}
	return drawn
}
