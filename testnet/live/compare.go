package live

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/market"
	"gridnode/node/p2p"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/kademlia"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/federation"
	"gridnode/testnet/scenario/scale"
	"gridnode/testnet/workload"
)

// ComparisonConfig is a measurement on real nodes, beside one of the same workload in
// virtual time.
type ComparisonConfig struct {
	Seed      uint64
	Nodes     int
	Jobs      int64 // the first so many of the two days, those longer than liveLongest left out
	Placement string
	OFT       int
	Traces    []string

	// Rate is how many jobs arrive a second; 0: half of what a fleet on two idle
	// processors can place.
	Rate int64

	// Rest is how long the nodes rest once they have found each other, before the first
	// job: holders of new cells look for each other often at first, and how often is chance.
	Rest time.Duration

	// Progress, if set, is told which share of the work is done, in thousandths.
	Progress func(permille int64)

	free    bool                 // there are no authorities: sites are siblings of those near them
	latency func() time.Duration // of a message between live nodes; nil: what it takes
	apart   time.Duration        // least time from one live node's start to the next one's
}

// liveLongest is the longest run time of a job that live nodes replay: a day-long one
// would keep them up for minutes after all others have ended.
const liveLongest = 2 * grid.Hour

// Jobs arrive at half the rate that a fleet can bear and may take their time, so that
// what is compared is what nodes say to each other and not how busy the machine is.
const (
	LiveRate  = arrivalRate / 2 // jobs a second
	liveSlack = 5 * grid.Second
)

// stage is a part of a live measurement.
type stage int

const (
	stageStart stage = iota
	stageRest
	stageReplay
	stageTwin // all virtual networks
	stagesEnd
)

// expected is about how long a stage takes on idle processors.
func (cfg *ComparisonConfig) expected(s stage) time.Duration {
	nodes := time.Duration(cfg.Nodes)
	switch s {
	case stageStart:
		return nodes * 100 * time.Millisecond
	case stageRest:
		return cfg.Rest
	case stageReplay:
		return time.Duration(cfg.Jobs)*time.Second/time.Duration(cmp.Or(cfg.Rate, LiveRate)) + time.Second
	}
	return nodes * 50 * time.Millisecond
}

// Expected is about how long the measurement takes on idle processors.
func (cfg *ComparisonConfig) Expected() (sum time.Duration) {
	for s := range stagesEnd {
		sum += cfg.expected(s)
	}
	return sum
}

// step tells Progress how far a stage is.
func (cfg *ComparisonConfig) step(s stage, done, total int64) {
	if cfg.Progress == nil {
		return
	}
	share := cfg.expected(s).Seconds() * float64(done) / float64(max(total, 1))
	for before := range s {
		share += cfg.expected(before).Seconds()
	}
	cfg.Progress(int64(1000 * share / cfg.Expected().Seconds()))
}

// rest lets the nodes rest.
func (cfg *ComparisonConfig) rest(ctx context.Context) error {
	const pulse = 500 * time.Millisecond
	for begun := time.Now(); ; {
		past := time.Since(begun)
		if past >= cfg.Rest {
			return nil
		}
		cfg.step(stageRest, int64(past), int64(cfg.Rest))
		select {
		case <-time.After(min(pulse, cfg.Rest-past)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// matureMax is how long the directory may take to come to rest, on a busy machine, too.
const matureMax = 5 * time.Minute

// mature returns once one holder's word is enough for every node's query for the
// cheapest site, by two messages at most: a young directory asks all holders.
func (l *Live) mature(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, matureMax, fmt.Errorf("the directory did not come to rest within %v", matureMax))
	defer cancel()
	for _, attribute := range []directory.Attribute{directory.Price, directory.Speed} {
		query := directory.Query{Attribute: attribute, Descending: attribute == directory.Speed, Limit: 1}
		for i := 0; i < len(l.hosts); {
			answer, err := l.hosts[i].Ask(ctx, func(token uint64) grid.Input { return &site.FindQuotes{Token: token, Query: query} })
			if err != nil {
				return fmt.Errorf("site %s: %w", l.work.Sites[i].Name, errors.Join(err, context.Cause(ctx)))
			}
			if found := answer.(*directory.Found); found.Err == nil && found.Messages <= 2 {
				i++
				continue
			}
			select {
			case <-time.After(200 * time.Millisecond):
			case <-ctx.Done():
				return fmt.Errorf("site %s: %w", l.work.Sites[i].Name, context.Cause(ctx))
			}
		}
	}
	return nil
}

// Messages of the virtual network of a comparison take what they take between nodes of
// one process.
var (
	fleetLatencyMin = grid.Millisecond / 2
	fleetLatencyMax = 5 * grid.Millisecond
)

// fleetRouter looks up as nodes of p2p.ProfileFleet do.
func fleetRouter() kademlia.Config {
	k, alpha := p2p.ProfileFleet.Kademlia()
	return kademlia.Config{K: k, Alpha: alpha, Hash: true}
}

// twins is how many virtual networks a live one is compared with: they differ in what
// chance decides, such as how long each message takes, and so do live ones. When a cell
// splits changes what sites publish by more than a tenth.
const twins = 5

// Compare measures real nodes in this process while they replay a workload, and
// a few virtual networks that replay the same, with seeds from cfg.Seed on. All measure
// from the first job on until all have ended and nothing about them is under way.
// Cancelling ctx ends it with ctx's error. An error wrapping ErrConfig is about cfg.
func Compare(ctx context.Context, cfg ComparisonConfig) (live *scale.Result, virtual []*scale.Result, err error) {
	up := Default()
	up.Seed, up.Nodes, up.Count = cfg.Seed, cfg.Nodes, cfg.Jobs
	up.Placement, up.OFT, up.Traces, up.Transport = cfg.Placement, cfg.OFT, cfg.Traces, "memory"
	up.longest, up.rate, up.Slack = liveLongest, cmp.Or(cfg.Rate, LiveRate), liveSlack
	up.step, up.latency, up.apart, up.free = cfg.step, cfg.latency, cfg.apart, cfg.free
	l, err := Up(ctx, up)
	if err != nil {
		return nil, nil, err
	}
	if err := l.mature(ctx); err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	if err := cfg.rest(ctx); err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	setup := time.Since(l.begun)
	_, err = l.Replay(ctx)
	if err = errors.Join(err, l.Close()); err != nil {
		return nil, nil, fmt.Errorf("%d live nodes, seed %d: %w", cfg.Nodes, cfg.Seed, err)
	}
	live = l.measured()
	live.SetupSeconds = measure.Seconds(grid.FromDuration(setup))
	for i := range uint64(twins) {
		cfg.step(stageTwin, int64(i), twins)
		r, err := l.twin(ctx, cfg.Seed+i, grid.FromDuration(setup))
		if err != nil {
			return nil, nil, fmt.Errorf("%d virtual sites, seed %d: %w", cfg.Nodes, cfg.Seed+i, err)
		}
		virtual = append(virtual, r)
	}
	return live, virtual, nil
}

// count returns what the nodes have counted so far.
func (l *Live) count(ctx context.Context) (*scale.Counts, error) {
	c := &scale.Counts{}
	for i, h := range l.hosts {
		c.Names = append(c.Names, l.work.Sites[i].Name)
		c.Counters = append(c.Counters, h.Counter())
		net := h.Net()
		c.Lookups += net.Lookups
		c.Requests += net.Requests
		err := h.Do(ctx, func(s *site.Site) {
			c.Queries.AddAll(s.QueryMessages())
			c.QueryLookups += s.QueryLookups()
		})
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", l.work.Sites[i].Name, err)
		}
	}
	return c, nil
}

// measured returns what was measured while the nodes replayed.
func (l *Live) measured() *scale.Result {
	r := &scale.Result{Mode: "live", Seed: l.cfg.Seed, Placement: l.cfg.Placement, OFT: l.cfg.OFT, WallSeconds: measure.Seconds(l.counted.Span)}
	l.tally.mu.Lock()
	defer l.tally.mu.Unlock()
	r.LateSeconds = measure.Seconds(grid.FromDuration(l.late))
	totals := l.tally.jobs.Totals(nil)
	totals.Stretch(l.cfg.Speedup)
	r.Fill(l.counted, &totals)
	return r
}

// twin measures a virtual network of the same sites, which come up one after the other
// as the live ones did, with the same jobs at the same instants, that has been up for
// as long when the first job comes, and is measured for as long at least.
func (l *Live) twin(ctx context.Context, seed uint64, setup grid.Time) (*scale.Result, error) {
	n, f, homes, err := l.network(ctx, seed)
	if err != nil {
		return nil, err
	}
	jobs := &workload.First{Source: l.work.Source(0), Left: l.total()}
	n.Feed(&scenario.Feed{Source: jobs, QoS: workload.PaperQoS, Homes: homes, Goal: l.goal(), Adjust: func(j *grid.Job) {
		at := setup + j.Submit/grid.Time(l.cfg.Speedup)
		l.compress(j)
		j.Submit, j.Deadline = at, at+j.Deadline
	}})
	if err := n.Run(ctx, setup-1, nil); err != nil {
		return nil, err
	}
	m := scale.Begin(n, f.Nodes, setup)
	least := setup + l.counted.Span
	over := func() bool { return n.Now() >= least && n.Drained() && m.Jobs.Over() }
	if err := n.Run(ctx, least+grid.Hour, over); err != nil {
		return nil, err
	}
	r := m.Result(n.Now())
	r.Mode, r.Seed, r.Placement, r.OFT = "virtual", seed, l.cfg.Placement, l.cfg.OFT
	r.TraceHash = fmt.Sprintf("%016x", n.TraceHash())
	r.ResponseTime *= measure.Decimal(l.cfg.Speedup)
	return r, nil
}

// network returns a virtual network of the same sites, all of which have come up as the
// live ones did, and what its workload needs to know of them.
func (l *Live) network(ctx context.Context, seed uint64) (*testnet.Network, *federation.Builder, []workload.Home, error) {
	placement, err := market.ParsePlacement(l.cfg.Placement)
	if err != nil {
		return nil, nil, nil, scenario.ConfigError("placement", "%v", err)
	}
	f := &federation.Builder{
		Config: testnet.Config{
			Seed: seed, Inputs: scenario.Inputs(),
			Link: testnet.Link{LatencyMin: fleetLatencyMin, LatencyMax: fleetLatencyMax},
		},
		Placement: placement, Foreign: true, Sites: slices.Clone(l.work.Sites), Authority: l.authority,
		Router: fleetRouter(), Allowance: l.cfg.Slack / 4, Directory: l.directory(),
	}
	places, err := l.places()
	if err != nil {
		return nil, nil, nil, err
	}
	f.Name, f.Place = liveFederation, func(site int) grid.Key { return places[site] } // who holds a cell decides how many holders there are
	for i := range f.Sites {                                                          // the same names: quotes of equal value are ordered by them
		f.Sites[i].Name = string(l.hosts[i].ID())
	}
	homes := f.Homes()
	for i := range f.Sites {
		f.Sites[i].Price *= grid.Price(l.cfg.Speedup)
	}
	f.Through = func(site int) []int { return l.ups[site].through }
	n, err := f.Network()
	if err != nil {
		return nil, nil, nil, err
	}
	for i := range f.Sites {
		if err := n.Run(ctx, grid.FromDuration(l.ups[i].at), nil); err != nil {
			return nil, nil, nil, err
		}
		if err := f.Add(n, i); err != nil {
			return nil, nil, nil, err
		}
	}
	return n, f, homes, nil
}

// places returns where kad-dht puts the nodes.
func (l *Live) places() ([]grid.Key, error) {
	places := make([]grid.Key, len(l.hosts))
	for i, h := range l.hosts {
		id, err := peer.Decode(string(h.ID()))
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", l.work.Sites[i].Name, err)
		}
		places[i] = sha256.Sum256([]byte(id))
	}
	return places, nil
}

// directory returns how the nodes publish and gossip.
func (l *Live) directory() directory.Config {
	return directory.Config{Lifetime: l.cfg.lifetime}
}

// authority returns whose a site is.
func (l *Live) authority(site int) string {
	if l.cfg.free {
		return ""
	}
	return federation.Authorities(scale.SiblingsMax)(site)
}

// Difference is one kind of message, live beside virtual.
type Difference struct {
	Type    string        `json:"type"`
	Live    int64         `json:"live"`
	Virtual int64         `json:"virtual"` // mean of the virtual networks
	Least   int64         `json:"least"`   // of them
	Most    int64         `json:"most"`
	Percent measure.Ratio `json:"percent"` // live over the mean, less 100
	Outside measure.Ratio `json:"outside"` // live over Most or below Least, in per cent of that; 0 between them
}

// Differences compares a live measurement with virtual ones type by type.
func Differences(live *scale.Result, virtual []*scale.Result) (list []Difference) {
	for k := range grid.Kind(wire.KindMax) {
		name := wire.KindName(k)
		d := Difference{Type: name, Live: live.ByType[name]}
		for i, v := range virtual {
			n := v.ByType[name]
			d.Virtual += n
			if i == 0 {
				d.Least = n
			}
			d.Least, d.Most = min(d.Least, n), max(d.Most, n)
		}
		d.Virtual = (d.Virtual + int64(len(virtual))/2) / max(int64(len(virtual)), 1)
		switch {
		case d.Live == 0 && d.Most == 0:
			continue
		case k == wire.KademliaFind || k == wire.KademliaNodes:
			continue // live these are kad-dht's own; look-ups are compared by requests
		}
		over := func(n int64) measure.Ratio { return measure.Ratio((d.Live - n) * 1_000_000 / max(n, 1)) }
		d.Percent = over(d.Virtual)
		switch {
		case d.Live < d.Least:
			d.Outside = over(d.Least)
		case d.Live > d.Most:
			d.Outside = over(d.Most)
		}
		list = append(list, d)
	}
	return list
}
