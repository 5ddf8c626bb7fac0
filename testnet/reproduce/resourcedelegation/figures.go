package resourcedelegation

import (
	"fmt"
	"math"
	"strings"

	"gridnode/grid"
	"gridnode/testnet/measure"
	"gridnode/testnet/reproduce"
)

// perSite makes a measure of what stands in columns.
func perSite(name string, unit reproduce.Unit, decimals int, published []reproduce.Number, here func(column int) reproduce.Number) reproduce.Measure {
	m := reproduce.Measure{Name: name, Unit: unit, Decimals: decimals}
	for i, p := range published {
		m.Cells = append(m.Cells, reproduce.Cell{Published: p, Here: here(i)})
	}
	return m
}

// single is table 1.
func (s *delegationStudy) single() reproduce.Experiment {
	t := reproduce.Table{Title: "Table 1: each machine by itself, EASY", Note: "CTC is met to the last digit. The cleaned logs of KTH and SDSC hold slightly other jobs than the paper's."}
	for _, m := range machines {
		t.Columns = append(t.Columns, fmt.Sprintf("%s (%d)", m.name, m.processors))
	}
	stats := func(f func(*measure.Stats) reproduce.Number) func(int) reproduce.Number {
		return func(i int) reproduce.Number { return f(&s.alone[i].Total) }
	}
	t.Measures = []reproduce.Measure{
		perSite("jobs", reproduce.Jobs, 0, publishedSites.jobs, stats(func(x *measure.Stats) reproduce.Number { return reproduce.Number(x.Submitted) })),
		perSite("AWRT", reproduce.Seconds, 2, publishedSites.awrt, stats(func(x *measure.Stats) reproduce.Number { return reproduce.Number(x.AWRT.Float()) })),
		perSite("U", reproduce.Percent, 2, publishedSites.utilization, stats(func(x *measure.Stats) reproduce.Number { return reproduce.Number(100 * x.Utilization.Float()) })),
		perSite("Cmax", reproduce.Seconds, 0, publishedSites.makespan, stats(func(x *measure.Stats) reproduce.Number { return reproduce.Number(x.Makespan.Float()) })),
	}
	return reproduce.Experiment{Title: "Local execution (section 6.2)", Tables: []reproduce.Table{t}}
}

// column is a site of a set-up, as table 2 lists them.
type column struct{ setup, site int }

func columnOf(i int) column { return column{i / 2, i % 2} }

func (c column) machine() int { return setups[c.setup][c.site] }

func (c column) String() string { return fmt.Sprintf("%d: %s", c.setup+1, machines[c.machine()].name) }

func columnNames() (names []string) {
	for i := range 2 * len(setups) {
		names = append(names, columnOf(i).String())
	}
	return names
}

// stats are those of a site with a policy.
func (s *delegationStudy) stats(policy int, c column) *measure.Stats {
	return &s.leasing[policy][c.setup].Sites[c.site].Stats
}

// gain is by how many percent the AWRT is below that of local execution.
func (s *delegationStudy) gain(policy int, c column) reproduce.Number {
	alone := s.alone[c.machine()].Total.AWRT.Float()
	return reproduce.Number(100 * (alone - s.stats(policy, c).AWRT.Float()) / alone)
}

// gainUtilization is by how many percent the utilisation is above that of local
// execution.
func (s *delegationStudy) gainUtilization(policy int, c column) reproduce.Number {
	alone := s.alone[c.machine()].Total.Utilization.Float()
	return reproduce.Number(100 * (s.stats(policy, c).Utilization.Float() - alone) / alone)
}

// pairs is table 2 and figure 3.
func (s *delegationStudy) pairs() reproduce.Experiment {
	e := reproduce.Experiment{Title: "Two sites that lease from each other (section 6.3)", Claims: s.pairClaims()}
	var worst []string
	for p, policy := range delegationPolicies {
		off := 0.0
		published := &publishedLeasing[p]
		for i := range published.awrt {
			off = max(off, math.Abs(s.stats(p, columnOf(i)).AWRT.Float()/float64(published.awrt[i])-1))
		}
		worst = append(worst, fmt.Sprintf("%.2f %% with %s", 100*off, strings.ToUpper(policy)))
		e.Tables = append(e.Tables, s.pairTable(p))
		values := make([]reproduce.Number, len(published.gain))
		for i := range values {
			values[i] = s.gain(p, columnOf(i))
		}
		e.Plots = append(e.Plots, reproduce.Plot{
			Figure: fmt.Sprintf("Figure 3 (%c)", 'a'+p), Title: "Improvement in AWRT over local execution, " + strings.ToUpper(policy) + ".",
			Y: "%", Columns: columnNames(),
			Series: []reproduce.Series{{Name: "published", Values: published.gain, Published: true}, {Name: "here", Values: values}},
		})
	}
	table, text := s.contradiction()
	e.Tables = append(e.Tables, table)
	e.Text = []string{
		"Largest deviation of AWRT from the published figure: " + strings.Join(worst, ", ") + ".",
		"U is over [0, Cmax] of the site. The leased area is what a site's jobs have had on the partner's processors. " + text,
		"The paper does not say over what the queue is averaged. The mean over events is compared; the other means stand below it.",
	}
	return e
}

func (s *delegationStudy) pairTable(p int) reproduce.Table {
	published := &publishedLeasing[p]
	stats := func(f func(*measure.Stats) reproduce.Number) func(int) reproduce.Number {
		return func(i int) reproduce.Number { return f(s.stats(p, columnOf(i))) }
	}
	return reproduce.Table{
		Title: "Table 2: " + strings.ToUpper(delegationPolicies[p]), Columns: columnNames(),
		Measures: []reproduce.Measure{
			perSite("AWRT", reproduce.Seconds, 2, published.awrt, stats(func(x *measure.Stats) reproduce.Number { return reproduce.Number(x.AWRT.Float()) })),
			perSite("U", reproduce.Percent, 2, published.utilization, stats(func(x *measure.Stats) reproduce.Number { return reproduce.Number(100 * x.Utilization.Float()) })),
			perSite("Cmax", reproduce.Seconds, 0, published.makespan, stats(func(x *measure.Stats) reproduce.Number { return reproduce.Number(x.Makespan.Float()) })),
			perSite("ΔAWRT", reproduce.Percent, 2, published.gain, func(i int) reproduce.Number { return s.gain(p, columnOf(i)) }),
			perSite("ΔU", reproduce.Percent, 2, published.gainUtilization, func(i int) reproduce.Number { return s.gainUtilization(p, columnOf(i)) }),
			perSite("leased area SAλ", reproduce.Area, 0, published.leased, stats(func(x *measure.Stats) reproduce.Number { return reproduce.Number(x.LeasedArea.Float()) })),
			perSite("mean queue, over events", reproduce.Jobs, 2, published.queue, s.queued(p, (*queue).overEvents)),
			alternative(perSite("mean queue, over submissions after the pass", reproduce.Jobs, 2, published.queue, s.queued(p, (*queue).overSubmissions))),
			alternative(perSite("mean queue, over time until Cmax", reproduce.Jobs, 2, published.queue, stats(func(x *measure.Stats) reproduce.Number { return reproduce.Number(x.QueueLength.Float()) }))),
			perSite("leases per job", reproduce.Jobs, 3, make6(reproduce.None), stats(func(x *measure.Stats) reproduce.Number { return reproduce.Number(x.DelegationsPerJob.Float()) })),
		},
	}
}

// queued takes a mean of the queues with a policy.
func (s *delegationStudy) queued(policy int, mean func(*queue) reproduce.Number) func(int) reproduce.Number {
	return func(i int) reproduce.Number {
		c := columnOf(i)
		return mean(s.queues[policy][c.setup][c.site])
	}
}

// alternative marks a measure as one of another reading.
func alternative(m reproduce.Measure) reproduce.Measure {
	m.Alternative = true
	return m
}

func make6(n reproduce.Number) []reproduce.Number { return []reproduce.Number{n, n, n, n, n, n} }

// dynamics is figures 4 and 5: set-up 1 with S-STRD.
func (s *delegationStudy) dynamics() reproduce.Experiment {
	e := reproduce.Experiment{Title: "Reconfiguration in set-up 1, S-STRD (section 6.3)"}
	t := reproduce.Table{Title: "Figure 5: processors over time", Note: "Quantiles are of time: in half of the time there were at most as many as the median says."}
	plot := reproduce.Plot{Figure: "Figure 5", Title: "Leased processors, and processors at a site's disposal: quantiles over time.", Y: "processors"}
	quantiles := []struct {
		name     string
		permille int64
	}{{"least", 0}, {"5 %", 50}, {"25 %", 250}, {"median", 500}, {"75 %", 750}, {"95 %", 950}, {"most", 1000}}
	var all []durations
	for i, r := range s.sizes {
		r.until(grid.Time(s.leasing[0][0].Sites[i].Makespan) * (grid.Second / 100))
	}
	for _, what := range []string{"leased by ", "size of "} {
		for i, r := range s.sizes {
			d := r.leased
			if what == "size of " {
				d = r.sizes
			}
			all = append(all, d)
			t.Columns = append(t.Columns, what+machines[setups[0][i]].name)
		}
	}
	plot.Columns = t.Columns
	for _, q := range quantiles {
		m := reproduce.Measure{Name: q.name, Unit: reproduce.Size}
		series := reproduce.Series{Name: q.name}
		for _, d := range all {
			m.Cells = append(m.Cells, reproduce.Cell{Published: reproduce.None, Here: d.quantile(q.permille)})
			series.Values = append(series.Values, d.quantile(q.permille))
		}
		t.Measures = append(t.Measures, m)
		if q.permille%250 == 0 {
			plot.Series = append(plot.Series, series)
		}
	}
	mean := reproduce.Measure{Name: "mean", Unit: reproduce.Size, Decimals: 1}
	for _, d := range all {
		mean.Cells = append(mean.Cells, reproduce.Cell{Published: reproduce.None, Here: d.mean()})
	}
	t.Measures = append(t.Measures, mean)
	e.Tables = []reproduce.Table{t}
	for i, r := range s.sizes {
		e.Plots = append(e.Plots, r.plot(i))
	}
	e.Plots = append(e.Plots, plot)
	e.Claims = s.sizeClaims()
	return e
}

// plot draws the size of a site week by week.
func (r *reconfiguration) plot(site int) reproduce.Plot {
	p := reproduce.Plot{
		Figure: fmt.Sprintf("Figure 4 (%c)", 'a'+site), X: "week", Y: "processors",
		Title:  fmt.Sprintf("Processors at the disposal of %s, which owns %d: least, mean and most of each week.", machines[setups[0][site]].name, r.own),
		Series: []reproduce.Series{{Name: "mean"}, {Name: "least", Bound: true}, {Name: "most", Bound: true}},
	}
	last := int(r.since / weekSpan)
	for n := range r.weeks {
		w := &r.weeks[n]
		span := weekSpan
		if n == last {
			span = r.since - grid.Time(n)*weekSpan
		}
		p.At = append(p.At, float64(n+1))
		for i, v := range []reproduce.Number{reproduce.Number(w.area / span.Seconds()), reproduce.Number(w.least), reproduce.Number(w.most)} {
			p.Series[i].Values = append(p.Series[i].Values, v)
		}
	}
	return p
}
