package reproduce

import (
	"cmp"
	"fmt"
	"slices"
)

// experiment1 is every site by itself (table 2).
func (s *federationStudy) experiment1() Experiment {
	offered := s.bySite("load offered", Percent, 1, implied(), func(w *federationWindow, site int) Number { return s.load(w.days, site) })
	util := s.bySite("utilisation", Percent, 2, publishedAlone.utilization, func(w *federationWindow, site int) Number {
		return Number(100 * w.alone.stats(site).Utilization.Float())
	})
	return Experiment{
		Title: "Experiment 1: independent resources",
		Text: []string{"Every job runs at home within its deadline, twice its time there (eq. 5), or is rejected. Utilisation is over the two days. " +
			"The last measure tells how far the windows are the paper's: the processor-seconds of the jobs over those of the site; “published” is what table 2 implies if rejected jobs were as large as others (utilisation / share accepted).",
			s.rejectedCompared(publishedAlone.accepted, s.windows[0].alone)},
		Tables: []Table{{
			Title: "Table 2: workload processing statistics, without federation", Columns: s.siteNames(),
			Measures: []Measure{
				util, s.jobsMeasure(), s.acceptedMeasure(publishedAlone.accepted, aloneOf), s.rejectedMeasure(publishedAlone.rejected, aloneOf), offered,
			},
		}},
	}
}

// implied returns the load that table 2 implies at each site, in percent.
func implied() []Number {
	loads := make([]Number, siteAll+1)
	for i := range siteAll {
		loads[i] = 100 * publishedAlone.utilization[i] / publishedAlone.accepted[i]
	}
	loads[siteAll] = None
	return loads
}

// weighted returns the mean of a figure over the processors of all sites.
func weighted(s *federationStudy, figures []Number) Number {
	var sum, processors Number
	for i := range s.sites {
		sum += figures[i] * Number(s.sites[i].Processors)
		processors += Number(s.sites[i].Processors)
	}
	return sum / processors
}

func aloneOf(w *federationWindow) *outcome     { return w.alone }
func federatedOf(w *federationWindow) *outcome { return w.federated }

func (s *federationStudy) jobsMeasure() Measure {
	return s.bySite("jobs", Jobs, 0, publishedJobs, func(w *federationWindow, site int) Number { return Number(w.alone.stats(site).Submitted) })
}

func (s *federationStudy) acceptedMeasure(published []Number, of func(*federationWindow) *outcome) Measure {
	return s.bySite("accepted", Percent, 2, published, func(w *federationWindow, site int) Number { return of(w).accepted(site) })
}

func (s *federationStudy) rejectedMeasure(published []Number, of func(*federationWindow) *outcome) Measure {
	return s.bySite("rejected", Percent, 2, published, func(w *federationWindow, site int) Number { return 100 - of(w).accepted(site) })
}

// experiment2 is the federation without economy (table 3, figure 2).
func (s *federationStudy) experiment2() Experiment {
	count := func(name string, published []Number, of func(o *outcome, site int) int64) Measure {
		return s.bySite(name, Jobs, 0, published, func(w *federationWindow, site int) Number { return Number(of(w.federated, site)) })
	}
	util := s.bySite("utilisation", Percent, 2, publishedFederated.utilization, func(w *federationWindow, site int) Number {
		return Number(100 * w.federated.stats(site).Utilization.Float())
	})
	local := count("processed locally", publishedFederated.local, func(o *outcome, site int) int64 { return o.stats(site).Local })
	migrated := count("migrated", publishedFederated.migrated, func(o *outcome, site int) int64 { return o.stats(site).Migrated })
	remote := count("remote jobs processed", publishedFederated.remote, func(o *outcome, site int) int64 { return o.stats(site).Remote })
	alone := s.experiment1().Tables[0].Measures[0]
	return Experiment{
		Title: "Experiment 2: with federation, without economy",
		Text: []string{"A job that home cannot finish by its deadline is offered to the other sites by falling speed. " +
			"The mean acceptance of the paper is that over all jobs, as its tables show.",
			s.rejectedCompared(publishedFederated.accepted, s.windows[0].federated),
			fmt.Sprintf("The utilisation of table 3 is %s %% of all processors, more than the load that table 2 implies (%s %%), so it cannot be over the same two days and jobs; ours is bounded by the load offered.",
				format(weighted(s, publishedFederated.utilization), 1), format(weighted(s, implied()), 1))},
		Claims: s.claimsFederation(),
		Tables: []Table{{
			Title: "Table 3: workload processing statistics, with federation", Columns: s.siteNames(),
			Measures: []Measure{
				util, s.jobsMeasure(), s.acceptedMeasure(publishedFederated.accepted, federatedOf), s.rejectedMeasure(publishedFederated.rejected, federatedOf),
				local, migrated, remote,
			},
		}},
		Plots: []Plot{
			s.sitePlot("Figure 2 (a)", "Average resource utilisation.", "utilisation, %",
				alone.publishedSeries("alone, published"), alone.series("alone, here"), util.publishedSeries("federated, published"), util.series("federated, here")),
			s.sitePlot("Figure 2 (b)", "Where jobs were processed.", "jobs",
				local.publishedSeries("local, published"), local.series("local, here"), migrated.publishedSeries("migrated, published"), migrated.series("migrated, here"),
				remote.publishedSeries("remote, published"), remote.series("remote, here")),
		},
	}
}

// claimsFederation is what the text says of experiments 1 and 2.
func (s *federationStudy) claimsFederation() []Claim {
	w := s.windows[0]
	alone, federated := w.alone.accepted(siteAll), w.federated.accepted(siteAll)
	gain := s.cell(None, func(w *federationWindow) Number { return w.federated.accepted(siteAll) - w.alone.accepted(siteAll) })
	here := fmt.Sprintf("%s → %s, %s points", format(alone, 2), format(federated, 2), format(gain.Here, 2))
	if gain.Spread != nil {
		here += fmt.Sprintf("; windows %s, mean %s", formatRange(gain.Spread, 2), format(gain.Spread.Mean, 2))
	}
	worst, at := Number(100), 0
	for site := range siteAll {
		if d := w.federated.accepted(site) - w.alone.accepted(site); d < worst {
			worst, at = d, site
		}
	}
	return []Claim{
		{"federating raises the mean acceptance by at least 6 points", "90.30 → 98.61, 8.31 points", here, gain.Here >= 6},
		{"no site's acceptance falls by more than 1 point", "NASA iPSC −0.19", fmt.Sprintf("%s %s", s.sites[at].Name, formatDeviation(worst, Percent)), worst >= -1},
	}
}

// experiment3 is the economy (figures 3 and 4).
func (s *federationStudy) experiment3() Experiment {
	byPopulation := func(name string, unit Unit, decimals int, f func(o *outcome, site int) Number) []Measure {
		var measures []Measure
		for p := range populations {
			measures = append(measures, s.bySite(name+", "+populations[p].name, unit, decimals, nil, func(w *federationWindow, site int) Number { return f(w.economy[p], site) }))
		}
		return measures
	}
	util := byPopulation("utilisation", Percent, 2, func(o *outcome, site int) Number { return Number(100 * o.stats(site).Utilization.Float()) })
	earned := byPopulation("incentive, price × processors × time", Millions, 2, func(o *outcome, site int) Number { return Number(o.earnedBy(site) / 1e6) })
	earnedPaper := byPopulation("incentive, eq. 3", Millions, 3, func(o *outcome, site int) Number { return o.incentive(site) / 1e6 })
	rejected := byPopulation("jobs rejected", Jobs, 0, func(o *outcome, site int) Number { return Number(o.stats(site).Rejected) })
	response := s.withAlone("response time", Seconds, 0, publishedResponse, func(u users) Number { return ratio(u.response, float64(u.jobs)) })
	accepted := s.withAlone("response time, accepted jobs", Seconds, 0, nil, func(u users) Number { return ratio(u.responseAccepted, float64(u.accepted)) })
	budget := s.withAlone("budget spent, price × processors × time", Credits, 0, publishedBudget, func(u users) Number { return ratio(u.spentByWidth, float64(u.jobs)) })
	budgetPaper := s.withAlone("budget spent, eq. 3", Credits, 0, nil, func(u users) Number { return ratio(u.spent, float64(u.jobs)) })
	total := Table{
		Title: "Total incentive of all owners", Columns: populationNames(),
		Note: "By eq. 3 as it is printed a job is charged for its time whatever its width. The published totals are of the order of price × processors × time, as are the budgets. " +
			"The schedule is the same either way: in table 1 the price is nearly proportional to the speed (0.0057 a MIPS everywhere), so computing costs the same at all sites and no budget, twice the cost at home, is ever reached; " +
			"by time, what differs is only the tenth of it that is communication, cheap where the network is fast.",
		Measures: []Measure{
			s.byPopulation("price × processors × time", Millions, 0, publishedIncentive, func(o *outcome) Number { return Number(o.earnedBy(siteAll) / 1e6) }),
			s.byPopulation("the same, for work done within the two days", Millions, 0, publishedIncentive, func(o *outcome) Number { return Number(o.timely / 1e6) }),
			s.byPopulation("eq. 3 as printed", Millions, 1, publishedIncentive, func(o *outcome) Number { return o.incentive(siteAll) / 1e6 }),
		},
	}
	names := s.siteNames()
	plots := []Plot{
		s.sitePlot("Figure 3 (a)", "Average resource utilisation by population.", "utilisation, %", seriesOf(util)...),
		s.sitePlot("Figure 3 (b)", "Total incentive by population (price × processors × time).", "million credits", seriesOf(earned)...),
		s.sitePlot("Figure 4 (a)", "Jobs rejected, by home and population.", "jobs", seriesOf(rejected)...),
		s.sitePlot("Figure 4 (b)", "Average response time by home; rejected jobs count as if they had run at home at once.", "seconds", seriesOf(response)...),
		s.sitePlot("Figure 4 (c)", "Average budget spent by home (price × processors × time); rejected jobs count as if they had run at home.", "credits", seriesOf(budget)...),
	}
	return Experiment{
		Title:  "Experiment 3: with federation and economy",
		Text:   []string{"OFC: the cheapest site that can meet the deadline. OFT: the fastest within the budget, twice the cost at home (eq. 4). Of 50/50, half of the users seek each."},
		Claims: s.claimsEconomy(),
		Plots:  plots,
		Tables: []Table{
			total,
			{Title: "Figure 3: supply and demand, by site", Columns: names, Measures: slices.Concat(util, earned, earnedPaper)},
			{Title: "Figure 4 (a): rejected jobs, by home", Columns: names, Measures: rejected},
			{Title: "Figure 4 (b): mean response time, by home", Columns: names, Measures: slices.Concat(response, accepted),
				Note: "Rejected jobs count with the time they would take at home, as in the paper's figure; those of LANL Origin that are published leave them out and belong beside “accepted jobs”."},
			{Title: "Figure 4 (c): mean budget spent, by home", Columns: names, Measures: slices.Concat(budget, budgetPaper)},
		},
	}
}

// withAlone makes four measures by site: alone, and with economy by population.
func (s *federationStudy) withAlone(name string, unit Unit, decimals int, published map[int][4]Number, f func(users) Number) []Measure {
	var measures []Measure
	for i, label := range []string{"alone", populations[0].name, populations[1].name, populations[2].name} {
		values := make([]Number, siteAll+1)
		for site := range values {
			values[site] = None
			if p, ok := published[site]; ok {
				values[site] = p[i]
			}
		}
		measures = append(measures, s.bySite(name+", "+label, unit, decimals, values, func(w *federationWindow, site int) Number {
			if i == 0 {
				return f(w.alone.usersOf(site))
			}
			return f(w.economy[i-1].usersOf(site))
		}))
	}
	return measures
}

// seriesOf makes bars of measures, named by what stands behind the last comma.
func seriesOf(measures []Measure) []Series {
	var series []Series
	for i := range measures {
		name := measures[i].Name
		for at := len(name) - 1; at > 0; at-- {
			if name[at] == ',' {
				name = name[at+2:]
				break
			}
		}
		series = append(series, measures[i].series(name))
	}
	return series
}

// cheapSites are those that "earned significant incentives" under OFC, fastSites
// those that "remained largely underutilized".
var (
	cheapSites = []int{siteCTC, siteCM5, siteOrigin, sitePar96, siteBlue}
	fastSites  = []int{siteKTH, siteNASA, siteSP2}
)

// claimsEconomy is what the text says of experiment 3.
func (s *federationStudy) claimsEconomy() []Claim {
	w := s.windows[0]
	ofc, mixed, oft := w.economy[0], w.economy[1], w.economy[2]
	var claims []Claim
	order := func(model string, f func(o *outcome) Number) {
		a, b, c := f(ofc), f(mixed), f(oft)
		claims = append(claims, Claim{
			"total incentive: OFT > 50/50 > OFC, " + model, "2.31e9 > 2.16e9 > 2.12e9",
			"OFT " + scientific(c) + ", 50/50 " + scientific(b) + ", OFC " + scientific(a), c > b && b > a,
		})
	}
	order("price × processors × time", func(o *outcome) Number { return Number(o.earnedBy(siteAll)) })
	order("eq. 3", func(o *outcome) Number { return o.incentive(siteAll) })

	cheap := 0.0
	for _, site := range cheapSites {
		cheap += ofc.earnedBy(site)
	}
	all := ofc.earnedBy(siteAll)
	top := []int{0, 1, 2, 3, 4, 5, 6, 7}
	slices.SortStableFunc(top, func(a, b int) int { return -cmp.Compare(ofc.earnedBy(a), ofc.earnedBy(b)) })
	least := slices.MinFunc(cheapSites, func(a, b int) int { return cmp.Compare(ofc.earnedBy(a), ofc.earnedBy(b)) })
	most := slices.MaxFunc(fastSites, func(a, b int) int { return cmp.Compare(ofc.earnedBy(a), ofc.earnedBy(b)) })
	claims = append(claims, Claim{
		"under OFC the cheap sites earn more than any fast one", "CTC, CM5, Origin, Par96 and Blue earn, KTH, NASA and SP2 do not",
		fmt.Sprintf("the five earn %s %%, most %s; least of them %s, most of the others %s", format(Number(100*cheap/all), 1), s.namesOf(top[:2]), s.sites[least].Name, s.sites[most].Name),
		ofc.earnedBy(least) > ofc.earnedBy(most),
	})
	var idle []int
	for site := range siteAll {
		if oft.earnedBy(site) == 0 {
			idle = append(idle, site)
		}
	}
	claims = append(claims, Claim{"under OFT every site earns", "every owner", "without: " + s.namesOf(idle), len(idle) == 0})

	moved := func(text, published string, from, to Number, falls bool) {
		claims = append(claims, Claim{text, published, change(from, to, 0), (to < from) == falls})
	}
	responseAccepted := func(o *outcome, site int) Number {
		u := o.usersOf(site)
		return ratio(u.responseAccepted, float64(u.accepted))
	}
	response := func(o *outcome, site int) Number { u := o.usersOf(site); return ratio(u.response, float64(u.jobs)) }
	budget := func(o *outcome, site int) Number { u := o.usersOf(site); return ratio(u.spentByWidth, float64(u.jobs)) }
	moved("response time of LANL Origin's users falls from OFC to OFT", "7 865 → 6 201 s (−21.2 %)", responseAccepted(ofc, siteOrigin), responseAccepted(oft, siteOrigin), true)
	moved("response time of NASA iPSC's users rises from alone to OFT", "1 268 → 1 553 s (+22.5 %)", response(w.alone, siteNASA), response(oft, siteNASA), false)
	moved("response time of all users falls from alone to OFT", "12 070 → 11 710 s (−3.0 %)", response(w.alone, siteAll), response(oft, siteAll), true)
	moved("budget of LANL Origin's users rises from alone to OFC", "485 100 → 518 900 (+7.0 %)", budget(w.alone, siteOrigin), budget(ofc, siteOrigin), false)
	moved("budget of all users falls from alone to OFC", "935 900 → 887 400 (−5.2 %)", budget(w.alone, siteAll), budget(ofc, siteAll), true)
	moved("users spend more under OFT than under OFC", "stated", budget(ofc, siteAll), budget(oft, siteAll), false)
	return claims
}

// experiment4 is the messages by site (figure 5).
func (s *federationStudy) experiment4() Experiment {
	e := Experiment{
		Title: "Experiment 4: messages by site",
		Text: []string{"Local messages are those that a site sends and receives to place its own users' jobs, remote ones those about jobs of others. " +
			"Counted are the paper's four types: negotiate, reply, job-submission and job-completion. A site that serves its own user needs none. Each message is local at one site and remote at another."},
		Claims: s.claimsMessages(),
	}
	t := Table{Title: "Figure 5: local and remote messages, by site", Columns: s.siteNames()}
	for p := range populations {
		var published []Number
		if p == 0 {
			published = []Number{None, None, None, publishedOriginRemote, None, None, None, None, None}
		}
		local := s.bySite("local, "+populations[p].name, Messages, 0, nil, func(w *federationWindow, site int) Number { return Number(w.economy[p].stats(site).MessagesLocal) })
		remote := s.bySite("remote, "+populations[p].name, Messages, 0, published, func(w *federationWindow, site int) Number { return Number(w.economy[p].stats(site).MessagesRemote) })
		t.Measures = append(t.Measures, local, remote)
		e.Plots = append(e.Plots, s.sitePlot(fmt.Sprintf("Figure 5 (%c)", 'a'+p), "Local and remote messages, all users "+populations[p].name+".", "messages", local.series("local"), remote.series("remote")))
	}
	e.Plots[1].Title = "Local and remote messages, half of the users OFC, half OFT."
	e.Tables = []Table{{
		Title: "Messages in all", Columns: populationNames(),
		Measures: []Measure{s.byPopulation("messages", Messages, 0, publishedMessages, (*outcome).messages)},
	}, t}
	return e
}

// claimsMessages is what the text says of experiment 4.
func (s *federationStudy) claimsMessages() []Claim {
	w := s.windows[0]
	byRemote := func(o *outcome) []int {
		order := []int{0, 1, 2, 3, 4, 5, 6, 7}
		slices.SortStableFunc(order, func(a, b int) int { return -cmp.Compare(o.stats(a).MessagesRemote, o.stats(b).MessagesRemote) })
		return order
	}
	ofc, oft := byRemote(w.economy[0]), byRemote(w.economy[2])
	return []Claim{
		{"under OFC LANL Origin, then LANL CM5, have most remote messages", "LANL Origin, LANL CM5", s.namesOf(ofc[:2]), slices.Equal(ofc[:2], []int{siteOrigin, siteCM5})},
		{"under OFT NASA iPSC, then SDSC SP2, have most remote messages", "NASA iPSC, SDSC SP2", s.namesOf(oft[:2]), slices.Equal(oft[:2], []int{siteNASA, siteSP2})},
		{"OFT takes more messages than OFC", "10 240 → 19 640 (+91.8 %)", change(w.economy[0].messages(), w.economy[2].messages(), 0), w.economy[2].messages() > w.economy[0].messages()},
	}
}

// perJobTolerance is how far messages per job may be from the published mean, in percent.
const perJobTolerance = 25

// experiment5 is the messages per job by size of the federation (figures 6 and 7).
func (s *federationStudy) experiment5() Experiment {
	e := Experiment{
		Title: "Experiment 5: messages by size of the system",
		Text: []string{"Table 1 again and again, up to the size. Messages are those of experiment 4, sent and received by a job's home; queries of the directory, O(log n) messages each by assumption, are not among them. " +
			"Figure 7 is not described in the text that we have; here it is what each site sends and receives in all."},
	}
	jobs := Table{Title: "Figure 6: messages per job", Columns: s.sizeNames()}
	sites := Table{Title: "Figure 7: messages per site", Columns: s.sizeNames()}
	for p := range populations {
		letter := string(rune('a' + p))
		name := populations[p].name
		mean := s.bySize("mean messages per job, "+name, 2, func(size int) Number {
			if published, ok := publishedPerJob[size]; ok {
				return published[p]
			}
			return None
		}, func(w *federationWindow, n int) Number { return measured(w.scale[n][p], (*outcome).perJob) })
		least := s.bySize("min, "+name, 0, nil, func(w *federationWindow, n int) Number {
			return measured(w.scale[n][p], func(o *outcome) Number { return Number(o.Messages.PerJob.Min) })
		})
		most := s.bySize("max, "+name, 0, nil, func(w *federationWindow, n int) Number {
			return measured(w.scale[n][p], func(o *outcome) Number { return Number(o.Messages.PerJob.Max) })
		})
		jobs.Measures = append(jobs.Measures, mean, least, most)
		e.Plots = append(e.Plots, s.sizePlot("Figure 6 ("+letter+")", "Messages per job, "+name+".", "messages per job", mean, least, most))
	}
	for p := range populations {
		letter := string(rune('a' + p))
		name := populations[p].name
		mean, least, most := s.siteMessages(p)
		sites.Measures = append(sites.Measures, mean, least, most)
		e.Plots = append(e.Plots, s.sizePlot("Figure 7 ("+letter+")", "Messages per site, "+name+".", "messages per site", mean, least, most))
	}
	e.Tables = []Table{jobs, sites}
	e.Claims = s.claimsSize()
	return e
}

// measured returns a figure of a run that may not have been made.
func measured(o *outcome, f func(*outcome) Number) Number {
	if o == nil {
		return None
	}
	return f(o)
}

// siteMessages returns mean, least and most of what sites send and receive.
func (s *federationStudy) siteMessages(p int) (mean, least, most Measure) {
	each := func(o *outcome) []Number {
		var counts []Number
		for i := range o.Sites {
			counts = append(counts, Number(o.Sites[i].MessagesLocal+o.Sites[i].MessagesRemote))
		}
		return counts
	}
	of := func(name string, pick func(Spread) Number) Measure {
		return s.bySize(name+", "+populations[p].name, 0, nil, func(w *federationWindow, n int) Number {
			return measured(w.scale[n][p], func(o *outcome) Number { return pick(spreadOf(each(o))) })
		})
	}
	return of("mean", func(s Spread) Number { return s.Mean }), of("min", func(s Spread) Number { return s.Min }), of("max", func(s Spread) Number { return s.Max })
}

// bySize makes a measure with a cell for each size.
func (s *federationStudy) bySize(name string, decimals int, published func(size int) Number, f func(w *federationWindow, n int) Number) Measure {
	m := Measure{Name: name, Unit: Messages, Decimals: decimals}
	for n, size := range s.sizes {
		p := None
		if published != nil {
			p = published(size)
		}
		m.Cells = append(m.Cells, s.cell(p, func(w *federationWindow) Number { return f(w, n) }))
	}
	return m
}

func (s *federationStudy) sizeNames() []string {
	var names []string
	for _, size := range s.sizes {
		names = append(names, fmt.Sprintf("%d sites", size))
	}
	return names
}

// sizePlot draws mean, least and most over the size.
func (s *federationStudy) sizePlot(figure, title, y string, mean, least, most Measure) Plot {
	p := Plot{Figure: figure, Title: title, X: "sites", Y: y}
	for _, size := range s.sizes {
		p.At = append(p.At, float64(size))
	}
	values := func(m *Measure, f func(c *Cell) Number) []Number {
		var out []Number
		for i := range m.Cells {
			out = append(out, f(&m.Cells[i]))
		}
		return out
	}
	here := func(c *Cell) Number { return c.Here }
	p.Series = []Series{
		{Name: "mean", Values: values(&mean, here)}, {Name: "most", Values: values(&most, here), Bound: true}, {Name: "least", Values: values(&least, here), Bound: true},
	}
	if mean.published() {
		p.Series = append(p.Series, Series{Name: "mean, published", Values: values(&mean, func(c *Cell) Number { return c.Published }), Published: true})
	}
	return p
}

// claimsSize compares the means that the text prints.
func (s *federationStudy) claimsSize() []Claim {
	var claims []Claim
	for n, size := range s.sizes {
		published, ok := publishedPerJob[size]
		if !ok {
			continue
		}
		for p := range populations {
			if !published[p].Known() {
				continue
			}
			here := s.windows[0].scale[n][p].perJob()
			off := 100 * (here - published[p]) / published[p]
			claims = append(claims, Claim{
				fmt.Sprintf("messages per job at %d sites under %s, within %d %%", size, populations[p].name, perJobTolerance),
				format(published[p], 2), fmt.Sprintf("%s (%s)", format(here, 2), formatDeviation(off, Messages)), off >= -perJobTolerance && off <= perJobTolerance,
			})
		}
	}
	return claims
}
