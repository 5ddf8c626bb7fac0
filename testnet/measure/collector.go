package measure

import (
	"fmt"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/testnet"
)

// Collector turns what a network's sites tell and what its executor does into
// Stats. It holds nothing per job.
type Collector struct {
	n       *testnet.Network
	begin   grid.Time // times are counted from here
	window  grid.Time // utilization is over [begin, begin+window]; grid.Never: until the makespan
	tallies []Tally
	Open    int64 // jobs submitted that have no end yet
	perJob  Histogram
	rows    *JobRows // nil: nobody wants them
	Err     error    // of rows

	// Leased yields which of an execution's processors other sites lend; nil: none.
	Leased func(x *testnet.Execution, yield func(lender int, processors int64))
}

// Collect starts to observe n, whose sites must all be there.
func Collect(n *testnet.Network, begin, window grid.Time, rows *JobRows) *Collector {
	c := &Collector{n: n, begin: begin, window: window, tallies: make([]Tally, n.Len()), rows: rows}
	n.Observe(testnet.Observer{Event: c.Event, End: c.end})
	return c
}

// Event accounts for what a home site says about a job.
func (c *Collector) Event(now grid.Time, site int, e *grid.Event) {
	home := &c.tallies[site]
	switch e.Kind {
	case grid.JobSubmitted:
		home.Submitted++
		c.Open++
	case grid.JobRefused:
		home.Rejected++
		c.ended(site, e, "refused")
	case grid.JobFinished:
		home.Finished++
		c.paid(home, e)
		outcome := "done"
		if e.Result.ExitCode != 0 || e.Result.Reason != "" {
			outcome = "failed"
		}
		c.ended(site, e, outcome)
	case grid.JobCancelled:
		c.ended(site, e, "cancelled")
	case grid.JobReplaced:
		c.paid(home, e)
	}
}

// paid accounts for what an execution has cost.
func (c *Collector) paid(home *Tally, e *grid.Event) {
	home.Spent += e.Cost
	if at, ok := c.n.Index(e.Site); ok {
		c.tallies[at].Incentive += e.Cost
	}
}

func (c *Collector) ended(site int, e *grid.Event, outcome string) {
	c.Open--
	c.perJob.Add(e.Messages)
	c.tallies[site].Sent += int64(e.Messages)
	if c.rows != nil && c.Err == nil {
		c.Err = c.rows.Write(e, outcome)
	}
}

// end accounts for an execution. One that died with its machine did nothing for anyone.
// The squads of a gang start and end as one: the first stands for the whole job.
func (c *Collector) end(now grid.Time, x *testnet.Execution) {
	if x.Lost || x.Squad != nil && x.Squad.Part > 0 {
		return
	}
	home, ok := c.n.Index(x.Job.Home)
	if !ok {
		panic(fmt.Sprintf("testnet: job %s has home %q, which does not exist", x.Job.ID, x.Job.Home))
	}
	wait := c.n.Clock(home).Local(x.Start) - x.Job.Submit
	times := Times{
		Processors: processorsOf(x), Wait: max(wait, 0), Start: x.Start - c.begin, End: x.End - c.begin, Window: c.window,
	}
	if c.Leased != nil {
		c.endLeased(home, x, times)
		return
	}
	Account(&c.tallies[home], &c.tallies[x.Site], nil, &times)
}

// endLeased accounts for an execution that may have had processors of other sites.
func (c *Collector) endLeased(home int, x *testnet.Execution, times Times) {
	at := x.Site
	c.Leased(x, func(lender int, processors int64) {
		Lent(&c.tallies[home], &c.tallies[lender], processors, &times)
		at = home // processors have gone to the job, and not the job to them
	})
	Account(&c.tallies[home], &c.tallies[at], nil, &times)
}

// processorsOf returns how many an execution has, with those of its gang.
func processorsOf(x *testnet.Execution) int64 {
	if x.Squad == nil {
		return x.Job.Processors
	}
	var all int64
	for i := range x.Squad.Gang.Parts {
		all += x.Squad.Gang.Parts[i].Processors
	}
	return all
}

// Done reports whether every job has been submitted and has ended.
func (c *Collector) Done() bool { return c.Open == 0 && c.n.Drained() && c.n.Unanswered() == 0 }

// Histogram counts how often each small number occurs.
type Histogram struct {
	counts []int64
	N      int64
	total  Sum
}

// countMax bounds what a histogram tells apart; larger numbers count as it.
const countMax = 1 << 20

// Add counts a number.
func (h *Histogram) Add(v int32) {
	v = min(max(v, 0), countMax)
	for int(v) >= len(h.counts) {
		h.counts = append(h.counts, 0)
	}
	h.counts[v]++
	h.N++
	h.total.Add(int64(v), 1)
}

// AddAll adds counts of 0, 1, 2, ….
func (h *Histogram) AddAll(counts []int64) {
	for v, count := range counts {
		if v >= len(h.counts) {
			h.counts = append(h.counts, 0)
		}
		h.counts[v] += count
		h.N += count
		h.total.Add(int64(v), count)
	}
}

// Plus adds the counts of another one, which must not be of larger numbers than AddAll was given.
func (h *Histogram) Plus(other *Histogram) { h.AddAll(other.counts) }

// Minus takes counts away that were among them before.
func (h *Histogram) Minus(before *Histogram) {
	for v, count := range before.counts {
		h.counts[v] -= count
	}
	h.N -= before.N
	h.total = h.total.minus(before.total)
}

// Sum returns the sum of all numbers.
func (h *Histogram) Sum() int64 { return h.total.Over(SumOf(1), 1) }

// Queries adds up what directory queries cost, as far as sites that are up know.
func Queries(n *testnet.Network) (h Histogram) {
	for i := range n.Len() {
		if s, ok := n.Core(i).(interface{ QueryMessages() []int64 }); ok {
			h.AddAll(s.QueryMessages())
		}
	}
	return h
}

// Spread returns mean, least, greatest and 99th percentile (the smallest number
// that at least 99 % do not exceed).
func (h *Histogram) Spread() Spread {
	s := Spread{Mean: Decimal(h.total.Over(SumOf(h.N), 100))}
	var below int64
	first := true
	for v, count := range h.counts {
		if count == 0 {
			continue
		}
		if first {
			s.Min, first = int64(v), false
		}
		s.Max = int64(v)
		if before := below * 100; before < h.N*99 {
			s.P99 = int64(v)
		}
		below += count
	}
	return s
}

// jobMessages returns how many messages of the kinds the paper counts a site has
// sent and received.
func jobMessages(n *testnet.Network, site int) (count int64) {
	counter := n.Counter(site)
	for k := range grid.Kind(wire.KindMax) {
		if wire.Paper(k) {
			count += counter.SentOf(k).Messages + counter.ReceivedOf(k).Messages
		}
	}
	return count
}

// Sent adds up the counters of all sites.
func Sent(n *testnet.Network) *wire.Counter {
	total := new(wire.Counter)
	for i := range n.Len() {
		total.Add(n.Counter(i))
	}
	return total
}
