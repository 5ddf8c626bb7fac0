package gridfederation

import (
	"context"
	"fmt"

	"gridnode/testnet/reproduce"
)

// The paper leaves to future work "how pricing policies for resources lead to varied
// utility of the system" (§4). Here its economy is run with prices that follow demand,
// beside the fixed ones.

// pricingCase are the runs of one placement, by population: fixed and by demand.
type pricingCase struct {
	placement string
	outcomes  [len(populations)][2]*outcome
}

var pricings = [2]string{"fixed", "demand"}

// pricingRuns are those of experiment 3 on the first window, charged by processors ×
// time, with prices fixed and by demand.
func (s *federationStudy) pricingRuns() (runs []reproduce.Run) {
	s.pricing = []*pricingCase{{placement: "paper"}, {placement: "coordinated"}}
	for _, c := range s.pricing {
		for p := range populations {
			for k, pricing := range pricings {
				f := federationCase{
					mode: "economy", oft: populations[p].oft, sites: len(s.sites), placement: c.placement, pricing: pricing, cost: "processor-time",
				}
				runs = append(runs, reproduce.Run{Name: pricing + " prices, " + c.placement + ": " + f.name(), Weight: f.weight(), Result: &c.outcomes[p][k], Do: func(ctx context.Context) (err error) {
					c.outcomes[p][k], err = s.run(ctx, s.windows[0].days, f)
					return err
				}})
			}
		}
	}
	return runs
}

// earnsShare is from which part of all incentive, in percent, a site counts as one
// that earns.
const earnsShare = 1

// comparePricing shows what prices by demand do.
func (s *federationStudy) comparePricing() reproduce.Experiment {
	e := reproduce.Experiment{
		Title: "Beyond the paper: prices that follow demand", Beyond: true,
		Text: []string{
			"Experiment 3 again, with prices that are fixed as in table 1 and with prices that begin there and follow demand: every ten minutes by up to 5 %, up when more than 70 % of the processors are busy or work waits, down when fewer are, from half to twice the price of table 1. Jobs' budgets are those of eq. 4 at the prices of table 1. Sites charge price × processors × time, so what they earn is what users pay; a rejected job pays nothing.",
			fmt.Sprintf("A site counts as one that earns from %d %% of all incentive on.", earnsShare),
		},
	}
	for _, c := range s.pricing {
		t := reproduce.Table{Title: "Fixed prices and prices by demand, placement " + c.placement}
		for p := range populations {
			for _, name := range pricings {
				t.Columns = append(t.Columns, populations[p].name+", "+name)
			}
		}
		measure := func(name string, unit reproduce.Unit, decimals int, f func(o *outcome) reproduce.Number) {
			m := reproduce.Measure{Name: name, Unit: unit, Decimals: decimals}
			for p := range populations {
				for k := range pricings {
					m.Cells = append(m.Cells, reproduce.Cell{Published: reproduce.None, Here: f(c.outcomes[p][k])})
				}
			}
			t.Measures = append(t.Measures, m)
		}
		measure("jobs accepted", reproduce.Percent, 2, (*outcome).acceptedAll)
		measure("total incentive", reproduce.Millions, 0, func(o *outcome) reproduce.Number { return o.charged(siteAll) / 1e6 })
		measure("sites that earn", reproduce.Sites, 0, func(o *outcome) reproduce.Number { return reproduce.Number(len(o.earners())) })
		measure("incentive of the site that earns most, share", reproduce.Percent, 1, func(o *outcome) reproduce.Number {
			most := reproduce.Number(0)
			for site := range siteAll {
				most = max(most, o.charged(site))
			}
			return 100 * most / o.charged(siteAll)
		})
		measure("utilisation of the fast sites (KTH, NASA, SP2)", reproduce.Percent, 1, func(o *outcome) reproduce.Number {
			busy, processors := 0.0, 0.0
			for _, site := range fastSites {
				busy += o.stats(site).Utilization.Float() * float64(s.sites[site].Processors)
				processors += float64(s.sites[site].Processors)
			}
			return reproduce.Number(100 * busy / processors)
		})
		measure("mean response time, accepted jobs", reproduce.Seconds, 0, func(o *outcome) reproduce.Number {
			u := o.usersOf(siteAll)
			return reproduce.Ratio(u.responseAccepted, float64(u.accepted))
		})
		measure("mean paid for an accepted job", reproduce.Credits, 0, func(o *outcome) reproduce.Number { return o.charged(siteAll) / reproduce.Number(o.Total.Accepted) })
		measure("messages per job", reproduce.Messages, 2, (*outcome).perJob)
		e.Tables = append(e.Tables, t)
		if c.placement == "paper" {
			e.Plots = s.pricingPlots(c)
		}
	}
	e.Claims = s.claimsPricing()
	return e
}

// pricingPlots shows who earns, by population.
func (s *federationStudy) pricingPlots(c *pricingCase) (plots []reproduce.Plot) {
	for p := range populations {
		series := make([]reproduce.Series, len(pricings))
		for k, name := range pricings {
			series[k].Name = name
			for site := range siteAll {
				series[k].Values = append(series[k].Values, c.outcomes[p][k].charged(site)/1e6)
			}
		}
		plots = append(plots, s.sitePlot("Figure 3 ("+string(rune('c'+p))+")",
			"Incentive by site with fixed prices and with prices by demand, "+populations[p].name+" (placement paper).", "million credits", series...))
	}
	return plots
}

// earners are the sites that earn.
func (o *outcome) earners() (sites []int) {
	for site := range siteAll {
		if o.charged(site) >= o.charged(siteAll)*earnsShare/100 {
			sites = append(sites, site)
		}
	}
	return sites
}

// claimsPricing says what one would expect of prices by demand, and whether it came.
func (s *federationStudy) claimsPricing() []reproduce.Claim {
	c := s.pricing[0]
	fixed, demand := c.outcomes[0][0], c.outcomes[0][1]
	spread := reproduce.Claim{
		Text: "under OFC more sites earn with prices by demand", Published: "–",
		Here:  fmt.Sprintf("fixed %d (not %s), demand %d", len(fixed.earners()), s.namesOf(without(fixed.earners())), len(demand.earners())),
		Holds: len(demand.earners()) > len(fixed.earners()),
	}
	worst, at := reproduce.Number(100), 0
	for p := range populations {
		if d := c.outcomes[p][1].acceptedAll() - c.outcomes[p][0].acceptedAll(); d < worst {
			worst, at = d, p
		}
	}
	return []reproduce.Claim{spread, {
		Text: "acceptance does not fall by more than 1 point", Published: "–",
		Here: fmt.Sprintf("%s at worst, under %s", reproduce.FormatDeviation(worst, reproduce.Percent), populations[at].name), Holds: worst >= -1,
	}}
}

// without returns the other sites of table 1.
func without(sites []int) (others []int) {
	for site := range siteAll {
		found := false
		for _, s := range sites {
			found = found || s == site
		}
		if !found {
			others = append(others, site)
		}
	}
	return others
}
