package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/node/site"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario/scale"
	"gridnode/testnet/sweep"
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
	Rate float64

	Shrink    int64     // as in Config; 0: 1
	Load      float64   // as in Config
	Protocols Protocols // as in Config

	// Rest is how long the nodes rest once they have found each other, before the first
	// job: holders of new cells look for each other often at first, and how often is chance.
	Rest time.Duration

	// Progress, if set, is told which share of the work is done, in thousandths.
	Progress func(permille int64)

	// age is how long after the first node's start the first job comes, if the directory is
	// at rest by then. How soon it is depends on chance, and a round of reports that falls
	// on the edge of what is measured is counted here and not there.
	age time.Duration

	free bool // there are no authorities: sites are siblings of those near them
}

// liveLongest is the longest run time of a job that live nodes replay: a day-long one
// would keep them up for minutes after all others have ended.
const liveLongest = 2 * grid.Hour

// Jobs arrive at half the rate that a fleet can bear and may take their time, so that
// what is compared is what nodes say to each other and not how busy the machine is.
const (
	LiveRate  = arrivalRate / 2.0 // jobs a second
	liveSlack = 5 * grid.Second
	liveApart = 50 * time.Millisecond // from one node's start to the next one's, at least
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
		return time.Duration(float64(cfg.Jobs)/cmp.Or(cfg.Rate, LiveRate)*float64(time.Second)) + time.Second
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

// Settle returns once the directory has come to rest, and the nodes have rested for a
// while: a young network has more to say.
func (l *Live) Settle(ctx context.Context, rest time.Duration) error {
	if err := l.mature(ctx); err != nil {
		return err
	}
	const pulse = 500 * time.Millisecond
	for begun := time.Now(); ; {
		past := time.Since(begun)
		if past >= rest {
			return nil
		}
		l.step(stageRest, int64(past), int64(rest))
		select {
		case <-time.After(min(pulse, rest-past)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// matureMax is how long the directory may take to come to rest, on a busy machine, too.
const matureMax = 5 * time.Minute

// mature returns once the words of a holder and its witnesses are enough for every node's
// ripeQueries.
func (l *Live) mature(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, matureMax, fmt.Errorf("the directory did not come to rest within %v", matureMax))
	defer cancel()
	for _, query := range ripeQueries {
		for i := 0; i < len(l.hosts); {
			answer, err := l.hosts[i].Ask(ctx, func(token uint64) grid.Input { return &site.FindQuotes{Token: token, Query: query} })
			if err != nil {
				return fmt.Errorf("site %s: %w", l.work.Sites[i].Name, errors.Join(err, context.Cause(ctx)))
			}
			if found := answer.(*directory.Found); found.Err == nil && found.Messages <= ripeMessages {
				i++
				continue
			}
			select {
			case <-time.After(ripeAgain.Duration()):
			case <-ctx.Done():
				return fmt.Errorf("site %s: %w", l.work.Sites[i].Name, context.Cause(ctx))
			}
		}
	}
	return nil
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
	up.Shrink, up.Load, up.Protocols = max(cfg.Shrink, 1), cfg.Load, cfg.Protocols
	up.step, up.apart, up.free = cfg.step, liveApart, cfg.free
	l, err := Up(ctx, up)
	if err != nil {
		return nil, nil, err
	}
	if err := l.Settle(ctx, cfg.Rest); err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	time.Sleep(cfg.age - time.Since(l.begun))
	_, err = l.Replay(ctx)
	if err = errors.Join(err, l.Close()); err != nil {
		return nil, nil, fmt.Errorf("%d live nodes, seed %d: %w", cfg.Nodes, cfg.Seed, err)
	}
	virtual, err = l.twins(ctx)
	return l.measured(), virtual, err
}

// twins measures virtual networks that replay what the nodes have replayed.
func (l *Live) twins(ctx context.Context) (virtual []*scale.Result, err error) {
	virtual = make([]*scale.Result, twins)
	runs := make([]sweep.Run, twins)
	for i := range runs {
		seed := l.cfg.Seed + uint64(i)
		runs[i] = sweep.Run{Name: fmt.Sprintf("%d virtual sites, seed %d", l.cfg.Nodes, seed), Weight: 1, Do: func(ctx context.Context, _ func(int64)) (err error) {
			virtual[i], err = l.twin(ctx, seed, grid.FromDuration(l.setup))
			return err
		}}
	}
	err = sweep.Do(ctx, runs, sweep.Options{Progress: func(done, total int64) { l.step(stageTwin, done, total) }})
	if err != nil {
		return nil, err
	}
	return virtual, nil
}

// count returns what the nodes have counted so far.
func (l *Live) count(ctx context.Context) (*scale.Counts, error) {
	var counters []wire.Counter
	c := &scale.Counts{}
	for i, h := range l.hosts {
		c.Names = append(c.Names, l.work.Sites[i].Name)
		counters = append(counters, h.Counter())
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
	c.Counter = func(site int) *wire.Counter { counter := counters[site]; return &counter }
	return c, nil
}

// measured returns what was measured while the nodes replayed.
func (l *Live) measured() *scale.Result {
	r := &scale.Result{Mode: "live", Seed: l.cfg.Seed, Placement: l.cfg.Placement, OFT: l.cfg.OFT, WallSeconds: measure.Seconds(l.counted.Span)}
	l.tally.mu.Lock()
	defer l.tally.mu.Unlock()
	r.SetupSeconds = measure.Seconds(grid.FromDuration(l.setup))
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
	n, f, err := l.network(ctx, seed)
	if err != nil {
		return nil, err
	}
	if err := ripen(ctx, n); err != nil {
		return nil, err
	}
	setup = max(setup, n.Now()+1) // as the live ones waited for their directory
	jobs := l.jobs()
	adjust := jobs.Adjust
	jobs.Adjust = func(j *grid.Job) {
		adjust(j)
		j.Submit += setup
		j.Deadline = j.Submit.Add(j.Deadline)
	}
	n.Feed(jobs)
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
		case k >= wire.MemberRevoked && k <= wire.MemberInform:
			continue // live these follow from who is connected; a virtual site has no connections
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
