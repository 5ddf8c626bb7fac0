package matchmaking

import (
	"gridnode/testnet/measure"
	"gridnode/testnet/reproduce"
)

// unbalanced is dmm with the DAS at its load and Grid'5000 at another.
func unbalanced(load int) matchCase { return plain("dmm", dasLoad, load) }

// imbalanced is §6.3, figures 9 and 10.
func (s *matchStudy) imbalanced() reproduce.Experiment {
	e := reproduce.Experiment{Title: "The influence of the inter-grid load imbalance (§6.3, figures 9 and 10)", Text: []string{
		"The DAS stays at a load of 60 %; columns are the load of Grid'5000.",
	}}
	s.compared(&e, "Figure 9", "load of Grid'5000 (%)", imbalancedLoads, func(a string, load int) matchCase { return plain(a, dasLoad, load) })
	parts := []matchMetric{
		metricGoodput,
		goodputPart("on processors of the same site", func(r *measure.Result) measure.Decimal { return r.Total.GoodputIntraSite }),
		goodputPart("of the same grid", func(r *measure.Result) measure.Decimal { return r.Total.GoodputIntraGrid }),
		goodputPart("of the other grid", func(r *measure.Result) measure.Decimal { return r.Total.GoodputInterGrid }),
	}
	t, p := s.list("Figure 10", "components of goodput with dmm", "load of Grid'5000 (%)", imbalancedLoads, parts, unbalanced)
	e.Tables, e.Plots = append(e.Tables, t), append(e.Plots, p)
	t, p = s.list("Figure 9", "delegations", "load of Grid'5000 (%)", imbalancedLoads, []matchMetric{metricPer, metricChain}, unbalanced)
	e.Tables, e.Plots = append(e.Tables, t), append(e.Plots, p)
	s.overloadClaims(&e)
	s.chainClaims(&e, "imbalanced loads", imbalancedLoads, 100, unbalanced)
	s.interGridClaims(&e, parts)
	return e
}

// overloadClaims are about who finishes what.
func (s *matchStudy) overloadClaims(e *reproduce.Experiment) {
	started := s.mean(unbalanced(100), metricStarted)
	name, second := s.bestOther(dasLoad, 100, metricStarted, others)
	e.Claims = append(e.Claims, reproduce.NewClaim("jobs started at 60/100", "all by dmm alone, the others “suffocate”", started >= 99 && second < 99, "%s %% by dmm, %s %% by %s", reproduce.Format(started, 1), reproduce.Format(second, 1), name))
	e.Because("All is read as 99 %%: a job waits for a round. At 60/100 the two grids have a load of 95 %%. %s", whyFcondor)
	at150 := s.mean(unbalanced(150), metricJF)
	e.Claims = append(e.Claims, reproduce.NewClaim("jobs finished by dmm at 60/150", "over 95 %", at150 > 95, "%s %% (± %s)", reproduce.Format(at150, 1), reproduce.Format(halfWidth(s.numbers(unbalanced(150), metricJF)), 1)))
	e.Because("%s %% is the most that could finish if none waited.", reproduce.Format(s.mean(unbalanced(150), metricBound), 1))
	name, second = s.bestOther(dasLoad, 150, metricJF, others)
	e.Claims = append(e.Claims, reproduce.NewClaim("who finishes more than 80 % at 60/150", "only dmm", at150 > 80 && second <= 80, "dmm %s %%, %s %s %%", reproduce.Format(at150, 1), name, reproduce.Format(second, 1)))
	e.Because("%s", whyFcondor)
	for _, m := range []struct {
		matchMetric
		size reproduce.Number
		text string
	}{{metricGoodput, 60, "up to 60 % more"}, {metricJF, 26, "up to 26 % more"}} {
		wins, most, at := 0, reproduce.None, 0
		for _, load := range imbalancedLoads {
			_, best := s.bestOther(dasLoad, load, m.matchMetric, others)
			if s.mean(unbalanced(load), m.matchMetric) > best {
				wins++
			}
			if gain, _ := s.pairs(unbalanced(load), plain("fcondor", dasLoad, load), m.matchMetric); gain.Known() && (!most.Known() || gain > most) {
				most, at = gain, load
			}
		}
		e.Claims = append(e.Claims, reproduce.NewClaim(m.name+" of dmm, imbalanced loads", "superior to all alternatives", wins == len(imbalancedLoads), "at %d of %d loads", wins, len(imbalancedLoads)))
		text := "–"
		if at > 0 {
			text = s.over(unbalanced(at), plain("fcondor", dasLoad, at), m.matchMetric) + " at 60/" + reproduce.Format(reproduce.Number(at), 0)
		}
		e.Claims = append(e.Claims, reproduce.Sized(m.name+" of dmm over fcondor, imbalanced loads", m.size, most, m.text, text))
		if m.size == 60 {
			e.Because("Both fill the processors with jobs that fit. 60 %% more goodput than fcondor would be more than what the processors can give. %s", whyFcondor)
		}
	}
	share := s.mean(plain("cern", dasLoad, 200), metricStarted)
	cern, dmm := s.mean(plain("cern", dasLoad, 200), metricASD), s.mean(unbalanced(200), metricASD)
	e.Claims = append(e.Claims, reproduce.NewClaim("mean slowdown of cern at 60/200", "lower, as it does not start most jobs", share < 50 && cern < dmm, "%s against %s of dmm; it starts %s %% of the jobs", reproduce.Format(cern, 0), reproduce.Format(dmm, 0), reproduce.Format(share, 0)))
	e.Because("cern does not start most jobs here, either, but those that it starts have waited for long; dmm starts nearly all within rounds.")
}

// interGridClaims are about figure 10.
func (s *matchStudy) interGridClaims(e *reproduce.Experiment, parts []matchMetric) {
	share := func(load int) reproduce.Number {
		site, grid, other := s.mean(unbalanced(load), parts[1]), s.mean(unbalanced(load), parts[2]), s.mean(unbalanced(load), parts[3])
		return 100 * other / (site + grid + other)
	}
	best, below, above := reproduce.None, reproduce.None, reproduce.None
	for _, load := range imbalancedLoads {
		v := share(load)
		if !best.Known() || v > best {
			best = v
		}
		if load < 100 && (!below.Known() || v > below) {
			below = v
		}
		if load > 100 && (!above.Known() || v < above) {
			above = v
		}
	}
	e.Claims = append(e.Claims, reproduce.Sized("share of the other grid in goodput on leased processors", 37, best, "up to 37 %", reproduce.Format(best, 1)+" %"))
	e.Because("Requests go up to the roots only after all siblings have refused, and the DAS has 400 of 3326 processors of which 40 %% are left.")
	e.Claims = append(e.Claims, reproduce.NewClaim("the same share below 100 % of Grid'5000, and above", "low, then rises", below < above, "at most %s %% below, at least %s %% above", reproduce.Format(below, 1), reproduce.Format(above, 1)))
	e.Because("The site's and the grid's parts rise as much: siblings are asked first at any load.")
	for i, name := range []string{"the same site", "the same grid"} {
		low, high := s.mean(unbalanced(imbalancedLoads[0]), parts[i+1]), reproduce.None
		for _, load := range imbalancedLoads {
			if v := s.mean(unbalanced(load), parts[i+1]); !high.Known() || v > high {
				high = v
			}
		}
		e.Claims = append(e.Claims, reproduce.NewClaim("goodput on processors leased from "+name+", from 60/60 on", "rises", high > low, "from %s to %s CPU days", reproduce.Format(low, 0), reproduce.Format(high, 0)))
	}
}
