package gridfederation

import (
	"fmt"

	"gridnode/testnet/reproduce"
)

// experiment1 is every site by itself (table 2).
func (s *federationStudy) experiment1() reproduce.Experiment {
	offered := s.bySite("load offered", reproduce.Percent, 1, implied(), func(w *federationWindow, site int) reproduce.Number { return s.load(w.days, site) })
	offered.Alternative = true // the paper does not print it
	util := s.bySite("utilisation", reproduce.Percent, 2, publishedAlone.utilization, func(w *federationWindow, site int) reproduce.Number {
		return reproduce.Number(100 * w.alone.stats(site).Utilization.Float())
	})
	return reproduce.Experiment{
		Title: "Experiment 1: independent resources",
		Text: []string{"Every job runs at home within its deadline, twice its time there (eq. 5), or is rejected. Utilisation is over the two days. " +
			"The last measure is what the days are chosen by, beside the number of jobs: the processor-seconds of the jobs over those of the site; “published” is what table 2 implies if rejected jobs were as large as others (utilisation / share accepted).",
			s.rejectedCompared(publishedAlone.accepted, s.windows[0].alone)},
		Claims: s.claimsAlone(),
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
		Text: []string{
			"A job that home cannot finish by its deadline is offered to the other sites by falling speed. " +
				"The mean acceptance of the paper is that over all jobs, as its tables show.",
			s.rejectedCompared(publishedFederated.accepted, s.windows[0].federated),
			fmt.Sprintf("The utilisation of table 3 is %s %% of all processors, more than the load that table 2 implies (%s %%), so it cannot be over the same two days and jobs; ours is bounded by the load offered.",
				reproduce.Format(weighted(s, publishedFederated.utilization), 1), reproduce.Format(weighted(s, implied()), 1)),
		},
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
