package scale

import (
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario/scale"
)

// figure is one number of a measurement.
type figure struct {
	name     string
	decimals int
	of       func(m *scale.Result) float64
	virtual  bool // only virtual networks count it
}

// group is figures that belong together.
type group struct {
	title, note string
	figures     []figure
}

func decimal(name string, of func(m *scale.Result) measure.Decimal) figure {
	return figure{name: name, decimals: 2, of: func(m *scale.Result) float64 { return of(m).Float() }}
}

func count(name string, of func(m *scale.Result) int64) figure {
	return figure{name: name, of: func(m *scale.Result) float64 { return float64(of(m)) }}
}

// spread is mean, 99th percentile and greatest.
func spread(name string, of func(m *scale.Result) measure.Spread) []figure {
	return []figure{
		decimal(name+", mean", func(m *scale.Result) measure.Decimal { return of(m).Mean }),
		count(name+", 99 %", func(m *scale.Result) int64 { return of(m).P99 }),
		count(name+", most", func(m *scale.Result) int64 { return of(m).Max }),
	}
}

// site is how messages of some kinds are spread over the sites.
func site(family, name string) []figure {
	load := func(m *scale.Result) (none scale.SiteLoad) {
		for _, l := range m.MessagesPerSite {
			if l.Messages == family {
				return l
			}
		}
		return none
	}
	return []figure{
		decimal(name+", mean", func(m *scale.Result) measure.Decimal { return load(m).Mean }),
		count(name+", most", func(m *scale.Result) int64 { return load(m).Max }),
		decimal(name+", most over mean", func(m *scale.Result) measure.Decimal { return load(m).Times }),
	}
}

// virtually marks figures that only virtual networks count.
func virtually(list []figure) []figure {
	for i := range list {
		list[i].virtual = true
	}
	return list
}

func concat(lists ...[]figure) (all []figure) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// groups returns the tables of a report.
func groups() []group {
	return []group{
		{"Jobs", "Response time and budget are means over the accepted jobs.", []figure{
			decimal("hours measured", func(m *scale.Result) measure.Decimal { return m.SpanSeconds / 3600 }),
			count("jobs", func(m *scale.Result) int64 { return m.Jobs }),
			{name: "accepted, %", decimals: 2, of: func(m *scale.Result) float64 { return 100 * m.Acceptance.Float() }},
			{name: "at another site, %", decimals: 2, of: func(m *scale.Result) float64 {
				return 100 * float64(m.Migrated) / float64(max(m.Accepted, 1))
			}},
			decimal("response time, s", func(m *scale.Result) measure.Decimal { return m.ResponseTime }),
			decimal("budget spent, credits", func(m *scale.Result) measure.Decimal { return m.BudgetSpent }),
		}},
		{"Messages per job", "Everything that was sent, over the jobs submitted.", perJob()},
		{"Of one job and of one query", "", concat(
			spread("negotiation messages of a job", func(m *scale.Result) measure.Spread { return m.Negotiation }),
			spread("of a user who wants the cheapest", func(m *scale.Result) measure.Spread { return m.Cheapest }),
			spread("of a user who wants the fastest", func(m *scale.Result) measure.Spread { return m.Fastest }),
			spread("directory messages of a query", func(m *scale.Result) measure.Spread { return m.PerQuery }),
			[]figure{
				count("queries", func(m *scale.Result) int64 { return m.Queries }),
				count("look-ups for queries", func(m *scale.Result) int64 { return m.QueryLookups }),
				count("look-ups in all", func(m *scale.Result) int64 { return m.Lookups }),
				decimal("requests per look-up", func(m *scale.Result) measure.Decimal { return m.RequestsPerLookup }),
			})},
		{"Received per site and minute", "What it costs to be a member, whatever one's users do.", []figure{
			decimal("publishing", func(m *scale.Result) measure.Decimal { return m.UpkeepPerSiteMinute.Publishing }),
			decimal("gossip", func(m *scale.Result) measure.Decimal { return m.UpkeepPerSiteMinute.Gossip }),
			decimal("look-ups for publishing", func(m *scale.Result) measure.Decimal { return m.UpkeepPerSiteMinute.Lookups }),
			decimal("all of them", func(m *scale.Result) measure.Decimal { return m.UpkeepPerSiteMinute.Total }),
		}},
		{"Sent and received by a site", "Is any site a hot spot?", concat(
			site("all", "all messages"), site("market", "market"), site("directory", "directory"), virtually(site("kademlia", "look-ups")), site("gossip", "gossip"))},
		{"Speed", "Events of virtual time, and processor time of the run's own thread: the garbage collector's is not in it, nor that of the other sizes.", virtually([]figure{
			count("events", func(m *scale.Result) int64 { return m.Events }),
			count("events a second of processor time", func(m *scale.Result) int64 { return m.EventsPerSecond }),
			decimal("seconds of processor time", func(m *scale.Result) measure.Decimal { return m.ProcessorSeconds }),
			decimal("seconds", func(m *scale.Result) measure.Decimal { return m.WallSeconds }),
			decimal("seconds before, to set up and warm up", func(m *scale.Result) measure.Decimal { return m.SetupSeconds }),
			count("events before", func(m *scale.Result) int64 { return m.SetupEvents }),
		})},
	}
}

// columns returns all figures of all groups, named as columns of a CSV file, and what
// the busiest site handled.
func columns() (all []figure) {
	for _, g := range groups() {
		for _, f := range g.figures {
			f.name = g.title + ": " + f.name
			all = append(all, f)
		}
	}
	for k := range grid.Kind(wire.KindMax) {
		if name := wire.KindName(k); name != "" {
			all = append(all, count("Busiest site: "+name, func(m *scale.Result) int64 {
				counts, _ := busiest(m)
				return counts[name]
			}))
		}
	}
	return all
}

func perJob() []figure {
	return []figure{
		decimal("negotiation", func(m *scale.Result) measure.Decimal { return m.PerJob.Negotiation }),
		decimal("receipts, cancellations", func(m *scale.Result) measure.Decimal { return m.PerJob.Receipts }),
		decimal("directory queries", func(m *scale.Result) measure.Decimal { return m.PerJob.Queries }),
		decimal("look-ups for queries", func(m *scale.Result) measure.Decimal { return m.PerJob.QueryLookups }),
		decimal("publishing", func(m *scale.Result) measure.Decimal { return m.PerJob.Publishing }),
		decimal("look-ups for publishing", func(m *scale.Result) measure.Decimal { return m.PerJob.Lookups }),
		decimal("gossip", func(m *scale.Result) measure.Decimal { return m.PerJob.Gossip }),
		decimal("other", func(m *scale.Result) measure.Decimal { return m.PerJob.Other }),
		decimal("all", func(m *scale.Result) measure.Decimal { return m.PerJob.Total }),
	}
}

// chart is a plot of figures by size.
type chart struct {
	title, note, axis string
	figures           []figure
}

func plots() []chart {
	return []chart{
		{"Negotiation and queries", "Messages per job that must not grow with the federation", "messages per job", perJob()[:4]},
		{"Negotiation messages of a job", "Mean, 99th percentile and greatest", "messages", spread("negotiation", func(m *scale.Result) measure.Spread { return m.Negotiation })},
		{"Directory messages of a query", "Mean, 99th percentile and greatest", "messages", spread("query", func(m *scale.Result) measure.Spread { return m.PerQuery })},
		{"Membership", "Received per site and minute", "messages a minute", groups()[3].figures[:3]},
		{"Hot spots", "The busiest site's messages over the mean", "times the mean", []figure{site("all", "all messages")[2], site("market", "market")[2], site("directory", "directory")[2]}},
	}
}
