package scale

import (
	"time"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/testnet"
	"gridnode/testnet/kademlia"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
)

// Measure measures a virtual network from an instant on.
type Measure struct {
	n       *testnet.Network
	nodes   []*kademlia.Node // nil: the oracle answers
	begin   grid.Time
	Jobs    Jobs
	began   time.Time
	busy    time.Duration // of this thread at the beginning
	events  int64
	counted func(site int) *wire.Counter // before
	queries measure.Histogram
	asked   int64 // look-ups that queries asked for
	looked  kademlia.Stats
	gone    struct { // what sites had counted that have lost their power since
		sites   int64
		queries measure.Histogram
		asked   int64
	}
}

// Begin begins a measurement just before the instant begin.
func Begin(n *testnet.Network, nodes []*kademlia.Node, begin grid.Time) *Measure {
	m := &Measure{
		n: n, nodes: nodes, begin: begin, Jobs: Jobs{begin: begin, Jobs: make(map[grid.JobID]*Job)},
		events: n.Events(), counted: n.Tally(), queries: measure.Queries(n), asked: queryLookups(n), looked: requests(nodes),
	}
	n.Observe(testnet.Observer{
		Event: func(_ grid.Time, site int, e *grid.Event) { m.Jobs.Event(int32(site), e) },
		Start: func(_ grid.Time, x *testnet.Execution) { m.Jobs.started(x.Job, x.End) },
		Fault: func(_ grid.Time, f *testnet.Fault) { m.strikes(f) },
	})
	m.began = time.Now()
	m.busy, _ = threadTime()
	return m
}

// strikes keeps what a site has counted that loses its power.
func (m *Measure) strikes(f *testnet.Fault) {
	if !f.Kind.Kills() || f.Healing() {
		return
	}
	if s := scenario.SiteOf(m.n.Core(f.Sites[0])); s != nil {
		m.gone.sites++
		m.gone.queries.AddAll(s.QueryMessages())
		m.gone.asked += s.QueryLookups()
	}
}

// queryLookups adds up the look-ups that queries asked for.
func queryLookups(n *testnet.Network) (count int64) {
	for i := range n.Len() {
		if s := scenario.SiteOf(n.Core(i)); s != nil {
			count += s.QueryLookups()
		}
	}
	return count
}

// promised returns how long a job that has not started will have taken when it ends
// as its site promised.
func (m *Measure) promised(home int32, id grid.JobID) (grid.Time, bool) {
	s := scenario.SiteOf(m.n.Core(int(home)))
	if s == nil {
		return 0, false
	}
	v, known := s.Job(id)
	if !known || v.Award.Finish <= v.Job.Submit {
		return 0, false
	}
	return v.Award.Finish - v.Job.Submit, true
}

// Result ends the measurement at the present instant.
func (m *Measure) Result(end grid.Time) *Result {
	wall := time.Since(m.began)
	busy, known := threadTime()
	if busy -= m.busy; !known || m.n.Strides() > 0 {
		busy = wall
	}
	c := Counts{Counter: since(m.n.Counter, m.counted), Span: end - m.begin}
	for i := range m.n.Len() {
		c.Names = append(c.Names, string(m.n.ID(i)))
	}
	c.Queries = measure.Queries(m.n)
	c.Queries.Plus(&m.gone.queries)
	c.Queries.Minus(&m.queries)
	c.QueryLookups = queryLookups(m.n) + m.gone.asked - m.asked
	looked := requests(m.nodes)
	c.Lookups, c.Requests, c.Joining = looked.Lookups-m.looked.Lookups, looked.Requests-m.looked.Requests, looked.Joining-m.looked.Joining
	totals := m.Jobs.Totals(m.promised)
	r := &Result{Events: m.n.Events() - m.events, WallSeconds: measure.Seconds(grid.FromDuration(wall)), ProcessorSeconds: measure.Seconds(grid.FromDuration(busy))}
	r.Left = m.gone.sites
	r.EventsPerSecond = int64(float64(r.Events) / max(busy.Seconds(), 1e-9))
	r.Fill(&c, &totals)
	return r
}
