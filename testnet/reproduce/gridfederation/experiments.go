package gridfederation

import (
	"cmp"
	"fmt"
	"slices"

	"gridnode/testnet/reproduce"
)

// experiment1 is every site by itself (table 2).
func (s *federationStudy) experiment1() reproduce.Experiment {
	offered := s.bySite("load offered", reproduce.Percent, 1, implied(), func(w *federationWindow, site int) reproduce.Number { return s.load(w.days, site) })
	util := s.bySite("utilisation", reproduce.Percent, 2, publishedAlone.utilization, func(w *federationWindow, site int) reproduce.Number {
		return reproduce.Number(100 * w.alone.stats(site).Utilization.Float())
	})
	return reproduce.Experiment{
		Title: "Experiment 1: independent resources",
		Text: []string{"Every job runs at home within its deadline, twice its time there (eq. 5), or is rejected. Utilisation is over the two days. " +
			"The last measure tells how far the windows are the paper's: the processor-seconds of the jobs over those of the site; “published” is what table 2 implies if rejected jobs were as large as others (utilisation / share accepted).",
			s.rejectedCompared(publishedAlone.accepted, s.windows[0].alone)},
		Tables: []reproduce.Table{{
			Title: "Table 2: workload processing statistics, without federation", Columns: s.siteNames(),
			Measures: []reproduce.Measure{
				util, s.jobsMeasure(), s.acceptedMeasure(publishedAlone.accepted, aloneOf), s.rejectedMeasure(publishedAlone.rejected, aloneOf), offered,
			},
		}},
	}
}

// implied returns the load that table 2 implies at each site, in percent.
func implied() []reproduce.Number {
	loads := make([]reproduce.Number, siteAll+1)
	for i := range siteAll {
		loads[i] = 100 * publishedAlone.utilization[i] / publishedAlone.accepted[i]
	}
	loads[siteAll] = reproduce.None
	return loads
}

// weighted returns the mean of a figure over the processors of all sites.
func weighted(s *federationStudy, figures []reproduce.Number) reproduce.Number {
	var sum, processors reproduce.Number
	for i := range s.sites {
		sum += figures[i] * reproduce.Number(s.sites[i].Processors)
		processors += reproduce.Number(s.sites[i].Processors)
	}
	return sum / processors
}

func aloneOf(w *federationWindow) *outcome     { return w.alone }
func federatedOf(w *federationWindow) *outcome { return w.federated }

func (s *federationStudy) jobsMeasure() reproduce.Measure {
	return s.bySite("jobs", reproduce.Jobs, 0, publishedJobs, func(w *federationWindow, site int) reproduce.Number {
		return reproduce.Number(w.alone.stats(site).Submitted)
	})
}

func (s *federationStudy) acceptedMeasure(published []reproduce.Number, of func(*federationWindow) *outcome) reproduce.Measure {
	return s.bySite("accepted", reproduce.Percent, 2, published, func(w *federationWindow, site int) reproduce.Number { return of(w).accepted(site) })
}

func (s *federationStudy) rejectedMeasure(published []reproduce.Number, of func(*federationWindow) *outcome) reproduce.Measure {
	return s.bySite("rejected", reproduce.Percent, 2, published, func(w *federationWindow, site int) reproduce.Number { return 100 - of(w).accepted(site) })
}

// experiment2 is the federation without economy (table 3, figure 2).
func (s *federationStudy) experiment2() reproduce.Experiment {
	count := func(name string, published []reproduce.Number, of func(o *outcome, site int) int64) reproduce.Measure {
		return s.bySite(name, reproduce.Jobs, 0, published, func(w *federationWindow, site int) reproduce.Number { return reproduce.Number(of(w.federated, site)) })
	}
	util := s.bySite("utilisation", reproduce.Percent, 2, publishedFederated.utilization, func(w *federationWindow, site int) reproduce.Number {
		return reproduce.Number(100 * w.federated.stats(site).Utilization.Float())
	})
	local := count("processed locally", publishedFederated.local, func(o *outcome, site int) int64 { return o.stats(site).Local })
	migrated := count("migrated", publishedFederated.migrated, func(o *outcome, site int) int64 { return o.stats(site).Migrated })
	remote := count("remote jobs processed", publishedFederated.remote, func(o *outcome, site int) int64 { return o.stats(site).Remote })
	alone := s.experiment1().Tables[0].Measures[0]
	return reproduce.Experiment{
		Title: "Experiment 2: with federation, without economy",
		Text: []string{"A job that home cannot finish by its deadline is offered to the other sites by falling speed. " +
			"The mean acceptance of the paper is that over all jobs, as its tables show.",
			s.rejectedCompared(publishedFederated.accepted, s.windows[0].federated),
			fmt.Sprintf("The utilisation of table 3 is %s %% of all processors, more than the load that table 2 implies (%s %%), so it cannot be over the same two days and jobs; ours is bounded by the load offered.",
				reproduce.Format(weighted(s, publishedFederated.utilization), 1), reproduce.Format(weighted(s, implied()), 1))},
		Claims: s.claimsFederation(),
		Tables: []reproduce.Table{{
			Title: "Table 3: workload processing statistics, with federation", Columns: s.siteNames(),
			Measures: []reproduce.Measure{
				util, s.jobsMeasure(), s.acceptedMeasure(publishedFederated.accepted, federatedOf), s.rejectedMeasure(publishedFederated.rejected, federatedOf),
				local, migrated, remote,
			},
		}},
		Plots: []reproduce.Plot{
			s.sitePlot("Figure 2 (a)", "Average resource utilisation.", "utilisation, %",
				publishedBarsOf(&alone, "alone, published"), barsOf(&alone, "alone, here"), publishedBarsOf(&util, "federated, published"), barsOf(&util, "federated, here")),
			s.sitePlot("Figure 2 (b)", "Where jobs were processed.", "jobs",
				publishedBarsOf(&local, "local, published"), barsOf(&local, "local, here"), publishedBarsOf(&migrated, "migrated, published"), barsOf(&migrated, "migrated, here"),
				publishedBarsOf(&remote, "remote, published"), barsOf(&remote, "remote, here")),
		},
	}
}

// claimsFederation is what the text says of experiments 1 and 2.
func (s *federationStudy) claimsFederation() []reproduce.Claim {
	w := s.windows[0]
	alone, federated := w.alone.accepted(siteAll), w.federated.accepted(siteAll)
	gain := s.cell(reproduce.None, func(w *federationWindow) reproduce.Number {
		return w.federated.accepted(siteAll) - w.alone.accepted(siteAll)
	})
	here := fmt.Sprintf("%s → %s, %s points", reproduce.Format(alone, 2), reproduce.Format(federated, 2), reproduce.Format(gain.Here, 2))
	if gain.Spread != nil {
		here += fmt.Sprintf("; windows %s, mean %s", reproduce.FormatRange(gain.Spread, 2), reproduce.Format(gain.Spread.Mean, 2))
	}
	worst, at := reproduce.Number(100), 0
	for site := range siteAll {
		if d := w.federated.accepted(site) - w.alone.accepted(site); d < worst {
			worst, at = d, site
		}
	}
	return []reproduce.Claim{
		{Text: "federating raises the mean acceptance by at least 6 points", Published: "90.30 → 98.61, 8.31 points", Here: here, Holds: gain.Here >= 6},
		{Text: "no site's acceptance falls by more than 1 point", Published: "NASA iPSC −0.19", Here: fmt.Sprintf("%s %s", s.sites[at].Name, reproduce.FormatDeviation(worst, reproduce.Percent)), Holds: worst >= -1},
	}
}

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
	earned := byPopulation("incentive, price × processors × time", reproduce.Millions, 2, func(o *outcome, site int) reproduce.Number { return reproduce.Number(o.earnedBy(site) / 1e6) })
	earnedPaper := byPopulation("incentive, eq. 3", reproduce.Millions, 3, func(o *outcome, site int) reproduce.Number { return o.incentive(site) / 1e6 })
	rejected := byPopulation("jobs rejected", reproduce.Jobs, 0, func(o *outcome, site int) reproduce.Number { return reproduce.Number(o.stats(site).Rejected) })
	response := s.withAlone("response time", reproduce.Seconds, 0, publishedResponse, func(u users) reproduce.Number { return reproduce.Ratio(u.response, float64(u.jobs)) })
	accepted := s.withAlone("response time, accepted jobs", reproduce.Seconds, 0, nil, func(u users) reproduce.Number { return reproduce.Ratio(u.responseAccepted, float64(u.accepted)) })
	budget := s.withAlone("budget spent, price × processors × time", reproduce.Credits, 0, publishedBudget, func(u users) reproduce.Number { return reproduce.Ratio(u.spentByWidth, float64(u.jobs)) })
	budgetPaper := s.withAlone("budget spent, eq. 3", reproduce.Credits, 0, nil, func(u users) reproduce.Number { return reproduce.Ratio(u.spent, float64(u.jobs)) })
	total := reproduce.Table{
		Title: "Total incentive of all owners", Columns: populationNames(),
		Note: "By eq. 3 as it is printed a job is charged for its time whatever its width. The published totals are of the order of price × processors × time, as are the budgets. " +
			"The schedule is the same either way: in table 1 the price is nearly proportional to the speed (0.0057 a MIPS everywhere), so computing costs the same at all sites and no budget, twice the cost at home, is ever reached; " +
			"by time, what differs is only the tenth of it that is communication, cheap where the network is fast.",
		Measures: []reproduce.Measure{
			s.byPopulation("price × processors × time", reproduce.Millions, 0, publishedIncentive, func(o *outcome) reproduce.Number { return reproduce.Number(o.earnedBy(siteAll) / 1e6) }),
			s.byPopulation("the same, for work done within the two days", reproduce.Millions, 0, publishedIncentive, func(o *outcome) reproduce.Number { return reproduce.Number(o.timely / 1e6) }),
			s.byPopulation("eq. 3 as printed", reproduce.Millions, 1, publishedIncentive, func(o *outcome) reproduce.Number { return o.incentive(siteAll) / 1e6 }),
		},
	}
	names := s.siteNames()
	plots := []reproduce.Plot{
		s.sitePlot("Figure 3 (a)", "Average resource utilisation by population.", "utilisation, %", seriesOf(util)...),
		s.sitePlot("Figure 3 (b)", "Total incentive by population (price × processors × time).", "million credits", seriesOf(earned)...),
		s.sitePlot("Figure 4 (a)", "Jobs rejected, by home and population.", "jobs", seriesOf(rejected)...),
		s.sitePlot("Figure 4 (b)", "Average response time by home; rejected jobs count as if they had run at home at once.", "seconds", seriesOf(response)...),
		s.sitePlot("Figure 4 (c)", "Average budget spent by home (price × processors × time); rejected jobs count as if they had run at home.", "credits", seriesOf(budget)...),
	}
	return reproduce.Experiment{
		Title:  "Experiment 3: with federation and economy",
		Text:   []string{"OFC: the cheapest site that can meet the deadline. OFT: the fastest within the budget, twice the cost at home (eq. 4). Of 50/50, half of the users seek each."},
		Claims: s.claimsEconomy(),
		Plots:  plots,
		Tables: []reproduce.Table{
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
func (s *federationStudy) withAlone(name string, unit reproduce.Unit, decimals int, published map[int][4]reproduce.Number, f func(users) reproduce.Number) []reproduce.Measure {
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
			if i == 0 {
				return f(w.alone.usersOf(site))
			}
			return f(w.economy[i-1].usersOf(site))
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

// cheapSites are those that "earned significant incentives" under OFC, fastSites
// those that "remained largely underutilized".
var (
	cheapSites = []int{siteCTC, siteCM5, siteOrigin, sitePar96, siteBlue}
	fastSites  = []int{siteKTH, siteNASA, siteSP2}
)

// claimsEconomy is what the text says of experiment 3.
func (s *federationStudy) claimsEconomy() []reproduce.Claim {
	w := s.windows[0]
	ofc, mixed, oft := w.economy[0], w.economy[1], w.economy[2]
	var claims []reproduce.Claim
	order := func(model string, f func(o *outcome) reproduce.Number) {
		a, b, c := f(ofc), f(mixed), f(oft)
		claims = append(claims, reproduce.Claim{
			Text: "total incentive: OFT > 50/50 > OFC, " + model, Published: "2.31e9 > 2.16e9 > 2.12e9",
			Here: "OFT " + scientific(c) + ", 50/50 " + scientific(b) + ", OFC " + scientific(a), Holds: c > b && b > a,
		})
	}
	order("price × processors × time", func(o *outcome) reproduce.Number { return reproduce.Number(o.earnedBy(siteAll)) })
	order("eq. 3", func(o *outcome) reproduce.Number { return o.incentive(siteAll) })

	cheap := 0.0
	for _, site := range cheapSites {
		cheap += ofc.earnedBy(site)
	}
	all := ofc.earnedBy(siteAll)
	top := []int{0, 1, 2, 3, 4, 5, 6, 7}
	slices.SortStableFunc(top, func(a, b int) int { return -cmp.Compare(ofc.earnedBy(a), ofc.earnedBy(b)) })
	least := slices.MinFunc(cheapSites, func(a, b int) int { return cmp.Compare(ofc.earnedBy(a), ofc.earnedBy(b)) })
	most := slices.MaxFunc(fastSites, func(a, b int) int { return cmp.Compare(ofc.earnedBy(a), ofc.earnedBy(b)) })
	claims = append(claims, reproduce.Claim{
		Text: "under OFC the cheap sites earn more than any fast one", Published: "CTC, CM5, Origin, Par96 and Blue earn, KTH, NASA and SP2 do not",
		Here:  fmt.Sprintf("the five earn %s %%, most %s; least of them %s, most of the others %s", reproduce.Format(reproduce.Number(100*cheap/all), 1), s.namesOf(top[:2]), s.sites[least].Name, s.sites[most].Name),
		Holds: ofc.earnedBy(least) > ofc.earnedBy(most),
	})
	var idle []int
	for site := range siteAll {
		if oft.earnedBy(site) == 0 {
			idle = append(idle, site)
		}
	}
	claims = append(claims, reproduce.Claim{Text: "under OFT every site earns", Published: "every owner", Here: "without: " + s.namesOf(idle), Holds: len(idle) == 0})

	moved := func(text, published string, from, to reproduce.Number, falls bool) {
		claims = append(claims, reproduce.Claim{Text: text, Published: published, Here: reproduce.Change(from, to, 0), Holds: (to < from) == falls})
	}
	responseAccepted := func(o *outcome, site int) reproduce.Number {
		u := o.usersOf(site)
		return reproduce.Ratio(u.responseAccepted, float64(u.accepted))
	}
	response := func(o *outcome, site int) reproduce.Number {
		u := o.usersOf(site)
		return reproduce.Ratio(u.response, float64(u.jobs))
	}
	budget := func(o *outcome, site int) reproduce.Number {
		u := o.usersOf(site)
		return reproduce.Ratio(u.spentByWidth, float64(u.jobs))
	}
	moved("response time of LANL Origin's users falls from OFC to OFT", "7 865 → 6 201 s (−21.2 %)", responseAccepted(ofc, siteOrigin), responseAccepted(oft, siteOrigin), true)
	moved("response time of NASA iPSC's users rises from alone to OFT", "1 268 → 1 553 s (+22.5 %)", response(w.alone, siteNASA), response(oft, siteNASA), false)
	moved("response time of all users falls from alone to OFT", "12 070 → 11 710 s (−3.0 %)", response(w.alone, siteAll), response(oft, siteAll), true)
	moved("budget of LANL Origin's users rises from alone to OFC", "485 100 → 518 900 (+7.0 %)", budget(w.alone, siteOrigin), budget(ofc, siteOrigin), false)
	moved("budget of all users falls from alone to OFC", "935 900 → 887 400 (−5.2 %)", budget(w.alone, siteAll), budget(ofc, siteAll), true)
	moved("users spend more under OFT than under OFC", "stated", budget(ofc, siteAll), budget(oft, siteAll), false)
	return claims
}

// experiment4 is the messages by site (figure 5).
func (s *federationStudy) experiment4() reproduce.Experiment {
	e := reproduce.Experiment{
		Title: "Experiment 4: messages by site",
		Text: []string{"Local messages are those that a site sends and receives to place its own users' jobs, remote ones those about jobs of others. " +
			"Counted are the paper's four types: negotiate, reply, job-submission and job-completion. A site that serves its own user needs none. Each message is local at one site and remote at another."},
		Claims: s.claimsMessages(),
	}
	t := reproduce.Table{Title: "Figure 5: local and remote messages, by site", Columns: s.siteNames()}
	for p := range populations {
		var published []reproduce.Number
		if p == 0 {
			published = []reproduce.Number{reproduce.None, reproduce.None, reproduce.None, publishedOriginRemote, reproduce.None, reproduce.None, reproduce.None, reproduce.None, reproduce.None}
		}
		local := s.bySite("local, "+populations[p].name, reproduce.Messages, 0, nil, func(w *federationWindow, site int) reproduce.Number {
			return reproduce.Number(w.economy[p].stats(site).MessagesLocal)
		})
		remote := s.bySite("remote, "+populations[p].name, reproduce.Messages, 0, published, func(w *federationWindow, site int) reproduce.Number {
			return reproduce.Number(w.economy[p].stats(site).MessagesRemote)
		})
		t.Measures = append(t.Measures, local, remote)
		e.Plots = append(e.Plots, s.sitePlot(fmt.Sprintf("Figure 5 (%c)", 'a'+p), "Local and remote messages, all users "+populations[p].name+".", "messages", barsOf(&local, "local"), barsOf(&remote, "remote")))
	}
	e.Plots[1].Title = "Local and remote messages, half of the users OFC, half OFT."
	e.Tables = []reproduce.Table{{
		Title: "Messages in all", Columns: populationNames(),
		Measures: []reproduce.Measure{s.byPopulation("messages", reproduce.Messages, 0, publishedMessages, (*outcome).messages)},
	}, t}
	return e
}

// claimsMessages is what the text says of experiment 4.
func (s *federationStudy) claimsMessages() []reproduce.Claim {
	w := s.windows[0]
	byRemote := func(o *outcome) []int {
		order := []int{0, 1, 2, 3, 4, 5, 6, 7}
		slices.SortStableFunc(order, func(a, b int) int { return -cmp.Compare(o.stats(a).MessagesRemote, o.stats(b).MessagesRemote) })
		return order
	}
	ofc, oft := byRemote(w.economy[0]), byRemote(w.economy[2])
	return []reproduce.Claim{
		{Text: "under OFC LANL Origin, then LANL CM5, have most remote messages", Published: "LANL Origin, LANL CM5", Here: s.namesOf(ofc[:2]), Holds: slices.Equal(ofc[:2], []int{siteOrigin, siteCM5})},
		{Text: "under OFT NASA iPSC, then SDSC SP2, have most remote messages", Published: "NASA iPSC, SDSC SP2", Here: s.namesOf(oft[:2]), Holds: slices.Equal(oft[:2], []int{siteNASA, siteSP2})},
		{Text: "OFT takes more messages than OFC", Published: "10 240 → 19 640 (+91.8 %)", Here: reproduce.Change(w.economy[0].messages(), w.economy[2].messages(), 0), Holds: w.economy[2].messages() > w.economy[0].messages()},
	}
}
