package scale

import (
	"strings"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/testnet/measure"
)

// Result is what was measured in one federation. Its JSON keys are stable.
// Messages count when they arrive, each once, but in MessagesPerSite, where a
// message is something to do for its sender and for its receiver.
type Result struct {
	Mode        string          `json:"mode"` // "virtual" or "live"
	Seed        uint64          `json:"seed"`
	Sites       int             `json:"sites"`
	Placement   string          `json:"placement"`
	OFT         int             `json:"oft"`
	TraceHash   string          `json:"traceHash"` // empty if live
	SpanSeconds measure.Decimal `json:"spanSeconds"`

	Jobs         int64           `json:"jobs"` // submitted within the span
	Accepted     int64           `json:"accepted"`
	Migrated     int64           `json:"migrated"`     // accepted by another site than their home
	Acceptance   measure.Ratio   `json:"acceptance"`   // share of those decided on
	ResponseTime measure.Decimal `json:"responseTime"` // seconds, mean of the accepted; of those not started as promised
	BudgetSpent  measure.Decimal `json:"budgetSpent"`  // credits, mean of the accepted

	ByType      map[string]int64 `json:"byType"` // "market.negotiate": messages within the span
	PerJob      PerJob           `json:"perJob"`
	Negotiation measure.Spread   `json:"negotiation"` // messages of a job of the four kinds that Grid-Federation counts
	Cheapest    measure.Spread   `json:"cheapest"`    // of them, of jobs whose users want the cheapest site (OFC)
	Fastest     measure.Spread   `json:"fastest"`     // and the fastest (OFT)
	Queries     int64            `json:"queries"`
	PerQuery    measure.Spread   `json:"perQuery"` // directory messages of a query, look-ups apart

	Lookups           int64           `json:"lookups"`      // of holders of a cell, in the DHT
	QueryLookups      int64           `json:"queryLookups"` // of them, those that queries asked for
	RequestsPerLookup measure.Decimal `json:"requestsPerLookup"`

	// UpkeepPerSiteMinute is what a site receives in a minute, whatever its users do:
	// messages of the directory for publishing, load reports, and look-ups for both.
	UpkeepPerSiteMinute Upkeep `json:"upkeepPerSiteMinute"`

	// MessagesPerSite is what sites send and receive: all they do, and parts of it.
	MessagesPerSite []SiteLoad `json:"messagesPerSite"`

	Events          int64           `json:"events"`          // within the span
	EventsPerSecond int64           `json:"eventsPerSecond"` // of the run's processor time, where that is known
	WallSeconds     measure.Decimal `json:"wallSeconds"`     // that the span took

	// ProcessorSeconds is what the span took of a processor, the collection of garbage in
	// the background left out: others that use the machine do not change it much. Of a run on
	// several processors nobody knows: it is WallSeconds.
	ProcessorSeconds measure.Decimal `json:"processorSeconds"`

	strides int64 // that workers went through

	SetupSeconds measure.Decimal `json:"setupSeconds"` // what came before, by the wall
	SetupEvents  int64           `json:"setupEvents"`

	Left int64 `json:"left,omitempty"` // times that a site lost its power within the span

	// LateSeconds is how far behind its instant a live submission was, at most. If it is
	// not small the machine was too busy: nodes that answer late are asked again.
	LateSeconds measure.Decimal `json:"lateSeconds,omitempty"`
}

// PerJob is all messages within the span over the jobs submitted in it.
type PerJob struct {
	Negotiation  measure.Decimal `json:"negotiation"`  // the four kinds; completions still to come are counted
	Receipts     measure.Decimal `json:"receipts"`     // acknowledgements and cancellations
	Queries      measure.Decimal `json:"queries"`      // scans and pages of queries
	QueryLookups measure.Decimal `json:"queryLookups"` // look-ups that queries asked for
	Publishing   measure.Decimal `json:"publishing"`   // all else of the directory
	Lookups      measure.Decimal `json:"lookups"`      // all other look-ups
	Gossip       measure.Decimal `json:"gossip"`       // load reports
	Other        measure.Decimal `json:"other"`
	Total        measure.Decimal `json:"total"`
}

// Upkeep is messages per site and minute.
type Upkeep struct {
	Publishing measure.Decimal `json:"publishing"`
	Gossip     measure.Decimal `json:"gossip"`
	Lookups    measure.Decimal `json:"lookups"`
	Total      measure.Decimal `json:"total"`
}

// SiteLoad says how messages of some kinds are spread over the sites.
type SiteLoad struct {
	Messages string          `json:"messages"` // "all", "market", "directory", …
	Mean     measure.Decimal `json:"mean"`
	Max      int64           `json:"max"`
	Times    measure.Decimal `json:"times"` // max over mean
	Hottest  string          `json:"hottest"`

	// ByType is what the busiest site has sent and received, of "all".
	ByType map[string]int64 `json:"byType,omitempty"`
}

// Counts is what was counted within the span.
type Counts struct {
	Names   []string                     // of the sites
	Counter func(site int) *wire.Counter // of a site, made anew: it is kilobytes
	Queries measure.Histogram            // messages per query

	Lookups, QueryLookups int64
	Requests              int64 // each is a message, and so is its answer
	Joining               int64 // further ones, of look-ups by which sites joined
	Span                  grid.Time
}

// Fill works the figures out.
func (r *Result) Fill(c *Counts, t *jobTotals) {
	total := r.spread(c)
	r.Sites, r.SpanSeconds = len(c.Names), measure.Seconds(c.Span)
	r.Jobs, r.Accepted, r.Migrated = t.submitted, t.accepted, t.migrated
	r.Acceptance = measure.Ratio(measure.SumOf(t.accepted).Over(measure.SumOf(t.submitted-t.open), 10_000))
	r.ResponseTime = meanOf(t.response, t.timed, int64(grid.Second))
	r.BudgetSpent = meanOf(t.cost, t.accepted, int64(grid.Credit))
	r.Cheapest, r.Fastest = t.byGoal[0].Spread(), t.byGoal[1].Spread()
	r.Negotiation, r.Queries, r.PerQuery = t.perJob.Spread(), c.Queries.N, c.Queries.Spread()
	r.Lookups, r.QueryLookups, r.RequestsPerLookup = c.Lookups, c.QueryLookups, measure.Decimal(measure.SumOf(c.Requests).Over(measure.SumOf(c.Lookups), 100))
	r.ByType = make(map[string]int64)
	for k := range grid.Kind(wire.KindMax) {
		if n := total.ReceivedOf(k).Messages; n > 0 {
			r.ByType[wire.KindName(k)] = n
		}
	}
	r.shares(c, t)
}

// meanOf returns s/(n·unit) in hundredths.
func meanOf(s measure.Sum, n, unit int64) measure.Decimal {
	var d measure.Sum
	d.Add(n, unit)
	return measure.Decimal(s.Over(d, 100))
}

// shares divides all messages by what they are for.
func (r *Result) shares(c *Counts, t *jobTotals) {
	family := func(prefix string) (n int64) {
		for name, count := range r.ByType {
			if strings.HasPrefix(name, prefix) {
				n += count
			}
		}
		return n
	}
	var paper int64
	for k := range grid.Kind(wire.KindMax) {
		if wire.Paper(k) {
			paper += r.ByType[wire.KindName(k)]
		}
	}
	market, directory, gossip := family("market."), family("directory."), family("gossip.")
	queries := c.Queries.Sum()
	lookups := 2 * (c.Requests + c.Joining)
	queryLookups := int64(0)
	if c.Lookups > 0 { // their share of all that were asked for
		queryLookups = measure.SumOf(2*c.Requests*c.QueryLookups).Over(measure.SumOf(c.Lookups), 1)
	}
	publishing := max(directory-queries, 0)
	all := lookups
	for name, count := range r.ByType {
		if !strings.HasPrefix(name, "kademlia.") {
			all += count
		}
	}
	all += t.due
	perJob := func(n int64) measure.Decimal {
		return measure.Decimal(measure.SumOf(n).Over(measure.SumOf(t.submitted), 100))
	}
	r.PerJob = PerJob{
		Negotiation: perJob(paper + t.due), Receipts: perJob(market - paper),
		Queries: perJob(queries), QueryLookups: perJob(queryLookups),
		Publishing: perJob(publishing), Lookups: perJob(lookups - queryLookups), Gossip: perJob(gossip),
		Other: perJob(all - t.due - market - directory - gossip - lookups), Total: perJob(all),
	}
	perMinute := func(n int64) measure.Decimal {
		var siteMinutes, messages measure.Sum
		siteMinutes.Add(int64(len(c.Names)), int64(c.Span))
		messages.Add(n, int64(grid.Minute))
		return measure.Decimal(messages.Over(siteMinutes, 100))
	}
	r.UpkeepPerSiteMinute = Upkeep{
		Publishing: perMinute(publishing), Gossip: perMinute(gossip), Lookups: perMinute(lookups - queryLookups),
		Total: perMinute(publishing + gossip + lookups - queryLookups),
	}
}

// spread says how the messages are spread over the sites, and returns what all have counted.
func (r *Result) spread(c *Counts) *wire.Counter {
	families := []string{"all", "market", "directory", "kademlia", "gossip"}
	loads, sums := make([]SiteLoad, len(families)), make([]int64, len(families))
	total, sites := new(wire.Counter), int64(len(c.Names))
	for i, site := range c.Names {
		counter := c.Counter(i)
		total.Add(counter)
		for f, family := range families {
			n := handled(counter, family)
			sums[f] += n
			if load := &loads[f]; n > load.Max {
				load.Max, load.Hottest = n, site
				if family == "all" {
					load.ByType = handledByType(counter)
				}
			}
		}
	}
	for f := range loads {
		if sums[f] > 0 {
			load := &loads[f]
			load.Messages = families[f]
			load.Mean = measure.Decimal(measure.SumOf(sums[f]).Over(measure.SumOf(sites), 100))
			load.Times = measure.Decimal(measure.SumOf(load.Max*sites).Over(measure.SumOf(sums[f]), 100))
			r.MessagesPerSite = append(r.MessagesPerSite, *load)
		}
	}
	return total
}

// handled returns how many messages of a family a site has sent and received.
func handled(c *wire.Counter, family string) (n int64) {
	for k := range grid.Kind(wire.KindMax) {
		name := wire.KindName(k)
		if name != "" && (family == "all" || strings.HasPrefix(name, family+".")) {
			n += c.SentOf(k).Messages + c.ReceivedOf(k).Messages
		}
	}
	return n
}

// handledByType returns how many messages of each kind a site has sent and received.
func handledByType(c *wire.Counter) map[string]int64 {
	byType := make(map[string]int64)
	for k := range grid.Kind(wire.KindMax) {
		if n := c.SentOf(k).Messages + c.ReceivedOf(k).Messages; n > 0 {
			byType[wire.KindName(k)] = n
		}
	}
	return byType
}

// Minus takes away what had been counted before.
func (c *Counts) Minus(before *Counts) {
	c.Counter = since(c.Counter, before.Counter)
	c.Queries.Minus(&before.Queries)
	c.Lookups -= before.Lookups
	c.Requests -= before.Requests
	c.Joining -= before.Joining
	c.QueryLookups -= before.QueryLookups
}

// since returns what a site has counted since another time.
func since(now, before func(site int) *wire.Counter) func(site int) *wire.Counter {
	return func(site int) *wire.Counter {
		counter := now(site)
		counter.Subtract(before(site))
		return counter
	}
}
