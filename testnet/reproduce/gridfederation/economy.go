package gridfederation

import (
	"slices"

	"gridnode/testnet/reproduce"
)

// experiment3 is the economy (figures 3 and 4).
func (s *federationStudy) experiment3() reproduce.Experiment {
	byPopulation := func(name string, unit reproduce.Unit, decimals int, f func(o *outcome, site int) reproduce.Number) []reproduce.Measure {
		var measures []reproduce.Measure
		for p := range populations {
			measures = append(measures, s.bySite(name+", "+populations[p].name, unit, decimals, nil, func(w *federationWindow, site int) reproduce.Number { return f(w.economy[p], site) }))
		}
		return measures
	}
	util := byPopulation("utilisation", reproduce.Percent, 2, func(o *outcome, site int) reproduce.Number {
		return reproduce.Number(100 * o.stats(site).Utilization.Float())
	})
	earned := byPopulation("incentive", reproduce.Millions, 2, func(o *outcome, site int) reproduce.Number { return reproduce.Number(o.earnedBy(site) / 1e6) })
	rejected := byPopulation("jobs rejected", reproduce.Jobs, 0, func(o *outcome, site int) reproduce.Number { return reproduce.Number(o.stats(site).Rejected) })
	response := s.withAlone("response time", reproduce.Seconds, 0, publishedResponse, (*users).meanResponse)
	accepted := s.withAlone("response time, accepted jobs", reproduce.Seconds, 0, publishedAccepted, (*users).meanAccepted)
	budget := s.withAlone("budget spent", reproduce.Credits, 0, publishedBudget, (*users).meanBudget)
	names := s.siteNames()
	plots := []reproduce.Plot{
		s.sitePlot("Figure 3 (a)", "Average resource utilisation by population.", "utilisation, %", seriesOf(util)...),
		s.sitePlot("Figure 3 (b)", "Total incentive by population.", "million credits", seriesOf(earned)...),
		s.sitePlot("Figure 4 (a)", "Jobs rejected, by home and population.", "jobs", seriesOf(rejected)...),
		s.sitePlot("Figure 4 (b)", "Average response time by home; rejected jobs count with what home expected.", "seconds", seriesOf(response)...),
		s.sitePlot("Figure 4 (c)", "Average budget spent by home; rejected jobs count as if they had run at home.", "credits", seriesOf(budget)...),
	}
	return reproduce.Experiment{
		Title:  "Experiment 3: with federation and economy",
		Text:   []string{"OFC: the cheapest site that can meet the deadline. OFT: the fastest within the budget, twice the cost at home (eq. 4). Of 50/50, half of the users seek each."},
		Claims: s.claimsEconomy(),
		Plots:  plots,
		Tables: []reproduce.Table{
			s.incentives(),
			{Title: "Figure 3: supply and demand, by site", Columns: names, Measures: slices.Concat(util, earned)},
			{Title: "Figure 4 (a): rejected jobs, by home", Columns: names, Measures: rejected},
			{
				Title: "Figure 4 (b): mean response time, by home", Columns: names, Measures: slices.Concat(response, accepted),
				Note: "Rejected jobs count with what home expected when it rejected them; those of LANL Origin that are published leave them out.",
			},
			s.responses(),
			{Title: "Figure 4 (c): mean budget spent, by home", Columns: names, Measures: budget},
		},
	}
}

// responses is the mean response time of all users by how a rejected job counts.
func (s *federationStudy) responses() reproduce.Table {
	t := reproduce.Table{
		Title:   "Mean response time of all users, by how a rejected job counts",
		Columns: []string{"alone", populations[0].name, populations[1].name, populations[2].name, "alone to OFT, %"},
		Note:    "The first line is compared above. The deadline is less than a rejected job would have taken in home's queue.",
	}
	for _, way := range []struct {
		name string
		of   func(u *users) reproduce.Number
	}{
		{"what home expected", (*users).meanResponse},
		{"at an idle home", func(u *users) reproduce.Number { return reproduce.Ratio(u.responseIdle, float64(u.jobs)) }},
		{"up to its deadline", func(u *users) reproduce.Number { return reproduce.Ratio(u.responseDeadline, float64(u.jobs)) }},
		{"not at all", (*users).meanAccepted},
	} {
		m := reproduce.Measure{Name: way.name, Unit: reproduce.Seconds, Alternative: true}
		published := publishedResponse[siteAll]
		all := func(i int) func(w *federationWindow) reproduce.Number {
			return func(w *federationWindow) reproduce.Number {
				u := w.alone.everybody()
				if i > 0 {
					u = w.economy[i-1].everybody()
				}
				return way.of(&u)
			}
		}
		for i := range published {
			m.Cells = append(m.Cells, s.cell(published[i], all(i)))
		}
		rise := func(from, to reproduce.Number) reproduce.Number { return 100 * (to - from) / from }
		m.Cells = append(m.Cells, s.cell(rise(published[0], published[3]), func(w *federationWindow) reproduce.Number { return rise(all(0)(w), all(3)(w)) }))
		t.Measures = append(t.Measures, m)
	}
	return t
}

// withAlone makes four measures by site: alone, and with economy by population.
func (s *federationStudy) withAlone(name string, unit reproduce.Unit, decimals int, published map[int][4]reproduce.Number, f func(*users) reproduce.Number) []reproduce.Measure {
	var measures []reproduce.Measure
	for i, label := range []string{"alone", populations[0].name, populations[1].name, populations[2].name} {
		values := make([]reproduce.Number, siteAll+1)
		for site := range values {
			values[site] = reproduce.None
			if p, ok := published[site]; ok {
				values[site] = p[i]
			}
		}
		measures = append(measures, s.bySite(name+", "+label, unit, decimals, values, func(w *federationWindow, site int) reproduce.Number {
			u := w.alone.usersOf(site)
			if i > 0 {
				u = w.economy[i-1].usersOf(site)
			}
			return f(&u)
		}))
	}
	return measures
}

// seriesOf makes bars of measures, named by what stands behind the last comma.
func seriesOf(measures []reproduce.Measure) []reproduce.Series {
	var series []reproduce.Series
	for i := range measures {
		name := measures[i].Name
		for at := len(name) - 1; at > 0; at-- {
			if name[at] == ',' {
				name = name[at+2:]
				break
			}
		}
		series = append(series, barsOf(&measures[i], name))
	}
	return series
}
