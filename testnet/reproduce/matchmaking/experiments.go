package matchmaking

import (
	"fmt"

	"gridnode/testnet/measure"
	"gridnode/testnet/reproduce"
	"gridnode/testnet/scenario/delegation"
)

// report makes the experiments.
func (s *matchStudy) report() []reproduce.Experiment {
	var list []reproduce.Experiment
	if !s.o.Quick {
		list = append(list, s.long())
	}
	list = append(list, s.balanced())
	if s.o.Sizes != nil {
		return list
	}
	list = append(list, s.imbalanced(), s.threshold(), s.messages(), s.binding())
	if !s.o.Quick {
		list = append(list, s.beyond())
	}
	return list
}

// compared adds tables and plots of the usual metrics for all architectures.
func (s *matchStudy) compared(e *reproduce.Experiment, figure, x string, at []int, of func(architecture string, at int) matchCase) {
	for _, m := range []matchMetric{metricGoodput, metricJF, metricAWT, metricASD} {
		t, p := s.compare(figure, m.name, x, at, m, delegation.Architectures, of)
		e.Tables, e.Plots = append(e.Tables, t), append(e.Plots, p)
	}
}

// others are the architectures DMM is compared with.
var others = delegation.Architectures[1:]

// bestOther returns the alternative with the greatest mean of a metric.
func (s *matchStudy) bestOther(das, g5k int, m matchMetric, among []string) (name string, best reproduce.Number) {
	best = reproduce.None
	for _, a := range among {
		if v := s.mean(plain(a, das, g5k), m); v.Known() && (!best.Known() || v > best) {
			name, best = a, v
		}
	}
	return name, best
}

// whyFcondor is why fcondor does better here than in the paper.
const whyFcondor = "As fcondor is read here, a job manager that tries a random site every 300 s finds room within a few rounds and passes over jobs that do not fit, as DMM does by delegating them; the paper gives it “an optimistic performance estimation”, too, but not its numbers of users and of requests a round."

// balanced is §6.2 and figure 8.
func (s *matchStudy) balanced() reproduce.Experiment {
	e := reproduce.Experiment{Title: "The influence of the load level (§6.2, figure 8)"}
	s.compared(&e, "Figure 8", "load (%)", s.loads, func(a string, load int) matchCase { return plain(a, load, load) })
	t, p := s.list("Figure 8", "delegations", "load (%)", s.loads, []matchMetric{metricPer, metricChain}, func(load int) matchCase { return plain("dmm", load, load) })
	e.Tables, e.Plots = append(e.Tables, t), append(e.Plots, p)

	for _, load := range s.loads {
		if load < 50 {
			continue
		}
		dmm := plain("dmm", load, load)
		name, best := s.bestOther(load, load, metricGoodput, others)
		published := "best"
		if load == 80 {
			published = "best, +32 % over fcondor"
		}
		e.Claims = append(e.Claims, reproduce.NewClaim(fmt.Sprintf("goodput of dmm at %d %%", load), published, s.mean(dmm, metricGoodput) > best, "%s over %s", s.over(dmm, plain(name, load, load), metricGoodput), name))
		e.Because("Half the width of the confidence interval of the difference stands in parentheses: a job of some hundred processors more or less decides it. %s", whyFcondor)
	}
	for _, load := range s.loads {
		if load < 50 {
			continue
		}
		dmm := s.mean(plain("dmm", load, load), metricJF)
		name, best := s.bestOther(load, load, metricJF, []string{"cern", "central", "condor", "sep-c"})
		e.Claims = append(e.Claims, reproduce.NewClaim(fmt.Sprintf("jobs finished by dmm at %d %%, but for fcondor", load), "most", dmm > best, "%s over %s", reproduce.Gain(dmm, best), name))
		fc := s.mean(plain("fcondor", load, load), metricJF)
		e.Claims = append(e.Claims, reproduce.NewClaim(fmt.Sprintf("jobs finished, dmm against fcondor, at %d %%", load), "0 to 4 points more", dmm >= fc, "%s points", reproduce.FormatDeviation(dmm-fc, reproduce.Percent)))
		e.Because("%s %% of the jobs could finish before the last one arrives if none waited; dmm finishes %s %% and fcondor %s %%, so there is next to nothing to gain. %s",
			reproduce.Format(s.mean(plain("dmm", load, load), metricBound), 2), reproduce.Format(dmm, 2), reproduce.Format(fc, 2), whyFcondor)
	}
	var low, high reproduce.Number = reproduce.None, reproduce.None
	for _, load := range s.loads {
		if v := s.mean(plain("dmm", load, load), metricChain); v.Known() && load <= 80 {
			if !low.Known() {
				low, high = v, v
			}
			low, high = min(low, v), max(high, v)
		}
	}
	mid := (low + high) / 2
	e.Claims = append(e.Claims, reproduce.NewClaim("delegations per delegated job up to 80 %", "roughly constant", high <= 1.2*mid, "%s to %s (±%s %% of the middle)", reproduce.Format(low, 2), reproduce.Format(high, 2), reproduce.Format(100*(high-mid)/mid, 0)))
	return e
}

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
	of := func(load int) matchCase { return plain("dmm", dasLoad, load) }
	t, p := s.list("Figure 10", "components of goodput with dmm", "load of Grid'5000 (%)", imbalancedLoads, parts, of)
	e.Tables, e.Plots = append(e.Tables, t), append(e.Plots, p)
	t, p = s.list("Figure 9", "delegations", "load of Grid'5000 (%)", imbalancedLoads, []matchMetric{metricPer, metricChain}, of)
	e.Tables, e.Plots = append(e.Tables, t), append(e.Plots, p)

	best := reproduce.None
	for _, load := range imbalancedLoads {
		dmm, fc := s.mean(of(load), metricGoodput), s.mean(plain("fcondor", dasLoad, load), metricGoodput)
		if g := 100 * (dmm - fc) / fc; !best.Known() || g > best {
			best = g
		}
	}
	e.Claims = append(e.Claims, reproduce.NewClaim("most goodput of dmm over fcondor", "60 %", best > 0, "%s", reproduce.FormatDeviation(best, reproduce.Jobs)))
	for _, load := range []int{100, 120, 150, 200} {
		dmm := s.mean(of(load), metricJF)
		name, second := s.bestOther(dasLoad, load, metricJF, others)
		e.Claims = append(e.Claims, reproduce.NewClaim(fmt.Sprintf("jobs finished by dmm at 60/%d", load), "most, up to 26 % more", dmm > second, "%s over %s", s.over(of(load), plain(name, dasLoad, load), metricJF), name))
		e.Because("%s %% of the jobs could finish if none waited; dmm finishes %s %% and %s %s %%. %s", reproduce.Format(s.mean(of(load), metricBound), 2), reproduce.Format(dmm, 2), name, reproduce.Format(second, 2), whyFcondor)
	}
	at150 := s.mean(of(150), metricJF)
	e.Claims = append(e.Claims, reproduce.NewClaim("jobs finished by dmm at 60/150", "over 95 %", at150 > 95, "%s %% (± %s)", reproduce.Format(at150, 1), reproduce.Format(halfWidth(s.numbers(of(150), metricJF)), 1)))
	load := reproduce.SpreadOf(s.numbers(of(150), metricLoad))
	e.Because("%s %% is the most that could finish if none waited, and the sets have a load of %s %% (%s to %s %%) over the day, most of it between 9 and 20 h: what is submitted then waits behind as much again, as both FCFS and delegation serve the oldest first. %s",
		reproduce.Format(s.mean(of(150), metricBound), 1), reproduce.Format(load.Mean, 0), reproduce.Format(load.Min, 0), reproduce.Format(load.Max, 0), s.counted())
	share := reproduce.None
	for _, load := range imbalancedLoads {
		site, grid, other := s.mean(of(load), parts[1]), s.mean(of(load), parts[2]), s.mean(of(load), parts[3])
		if v := 100 * other / (site + grid + other); !share.Known() || v > share {
			share = v
		}
	}
	e.Claims = append(e.Claims, reproduce.NewClaim("greatest share of the other grid in goodput on leased processors", "37 %", share >= 20 && share <= 55, "%s %%", reproduce.Format(share, 1)))
	e.Because("Requests go up to the roots only after all siblings have refused, and the DAS has 400 of 3326 processors of which 40 %% are left.")
	return e
}

// counted says what becomes of the imbalanced loads if the sets are to have as few jobs
// as the paper's.
func (s *matchStudy) counted() string {
	dmm, fcondor := plain("dmm", countedDAS, countedG5K), plain("fcondor", countedDAS, countedG5K)
	jf := s.mean(dmm, metricJF)
	if !jf.Known() {
		return ""
	}
	return fmt.Sprintf("The paper's sets have 11 827 jobs in the mean of its load levels, and an hour of mean run time; the same model gives 21 700 such jobs for these loads. With loads that give the printed number of jobs, %d/%d, dmm finishes %s %% and has %s goodput over fcondor.",
		countedDAS, countedG5K, reproduce.Format(jf, 1), s.over(dmm, fcondor, metricGoodput))
}

// threshold is §6.4 and figure 11.
func (s *matchStudy) threshold() reproduce.Experiment {
	e := reproduce.Experiment{Title: "The influence of the delegation threshold (§6.4, figure 11)", Text: []string{"Columns are the threshold in percent."}}
	var names []string
	loads := map[string]int{}
	for _, load := range thresholdLoads {
		name := fmt.Sprintf("load %d %%", load)
		names, loads[name] = append(names, name), load
	}
	of := func(name string, t int) matchCase {
		c := plain("dmm", loads[name], loads[name])
		c.threshold = t
		return c
	}
	for _, m := range []matchMetric{metricGoodput, metricJF, metricAWT, metricASD} {
		t, p := s.compare("Figure 11", m.name, "threshold (%)", thresholds, m, names, of)
		e.Tables, e.Plots = append(e.Tables, t), append(e.Plots, p)
	}
	for _, m := range []struct {
		matchMetric
		most bool
	}{{metricGoodput, true}, {metricAWT, false}, {metricASD, false}} {
		best, at := reproduce.None, 0
		for _, t := range thresholds {
			v := s.mean(of("load 70 %", t), m.matchMetric)
			if !best.Known() || m.most && v > best || !m.most && v < best {
				best, at = v, t
			}
		}
		here, one := of("load 70 %", at), of("load 70 %", 100)
		e.Claims = append(e.Claims, reproduce.NewClaim("best threshold for "+m.name+" at 70 %", "1.0", at == 100, "%.2f (%s there, %s at 1.0)", float64(at)/100, reproduce.Format(best, m.decimals), reproduce.Format(s.mean(one, m.matchMetric), m.decimals)))
		gain, half := s.pairs(here, one, m.matchMetric)
		verdict := "The difference is real: a site that delegates a little later keeps the processors next to it for those who need them more."
		if half.Known() && max(gain, -gain) < half {
			verdict = "The difference is within its confidence interval: these sets cannot tell the two thresholds apart."
		}
		e.Because("Set by set the difference is %s %%. %s", s.over(here, one, m.matchMetric), verdict)
	}
	return e
}

// messages is §6.5 and figure 12.
func (s *matchStudy) messages() reproduce.Experiment {
	e := reproduce.Experiment{Title: "The message overhead (§6.5, figure 12)", Text: []string{
		"A job manager per user, a site manager per site and a resource manager per processor, as in §4.2 (“each resource is managed by a resource manager”): at a site of ours they are one process, so all but the messages of DMM are counted where they would be sent. Keep-alives go both ways every 300 s for each processor that runs a job.",
	}}
	kinds := []matchMetric{
		messageCount("notify broker", func(o delegation.Overhead) int64 { return o.NotifyBroker }),
		messageCount("negotiate", func(o delegation.Overhead) int64 { return o.Negotiate }),
		messageCount("job data exchange", func(o delegation.Overhead) int64 { return o.JobData }),
		messageCount("resource match, claim, release", func(o delegation.Overhead) int64 { return o.Claim }),
		messageCount("DMM", func(o delegation.Overhead) int64 { return o.DMM }),
		messageCount("keep-alive", func(o delegation.Overhead) int64 { return o.KeepAlive }),
	}
	byLoad := func(load int) matchCase { return plain("dmm", load, load) }
	byThreshold := func(t int) matchCase {
		c := plain("dmm", messagesLoad, messagesLoad)
		c.threshold = t
		return c
	}
	for _, f := range []struct {
		figure, x string
		at        []int
		of        func(int) matchCase
	}{{"Figure 12 (a)", "load (%)", defaultLoads, byLoad}, {"Figure 12 (b)", "threshold (%)", thresholds, byThreshold}} {
		t, p := s.list(f.figure, "messages by type, "+f.x, f.x, f.at, kinds, f.of)
		e.Tables, e.Plots = append(e.Tables, t), append(e.Plots, p)
		t, p = s.list(f.figure, "share of DMM, "+f.x, f.x, f.at, []matchMetric{metricShare, metricOver}, f.of)
		e.Tables, e.Plots = append(e.Tables, t), append(e.Plots, p)
	}
	most := func(at []int, of func(int) matchCase, m matchMetric, below int) reproduce.Number {
		best := reproduce.None
		for _, v := range at {
			if n := s.mean(of(v), m); v <= below && (!best.Known() || n > best) {
				best = n
			}
		}
		return best
	}
	share := most(defaultLoads, byLoad, metricShare, 1000)
	e.Claims = append(e.Claims, reproduce.NewClaim("DMM messages of all, greatest over the loads", "at most 16 %", share <= 16, "%s %%", reproduce.Format(share, 1)))
	e.Because("Over the messages of workload management, where no keep-alives count, DMM's are at most %s %%, and 97 %% as published: the departure is in the keep-alives, of which the paper prints no interval. At 90 %% load the share is %s %%.",
		reproduce.Format(most(defaultLoads, byLoad, metricOver, 1000), 1), reproduce.Format(s.mean(byLoad(90), metricShare), 1))
	low, high := most(defaultLoads, byLoad, metricOver, 59), most(defaultLoads, byLoad, metricOver, 1000)
	e.Claims = append(e.Claims, reproduce.NewClaim("DMM messages over workload management below 60 %", "up to 19 %", low <= 19, "%s %%", reproduce.Format(low, 1)))
	e.Claims = append(e.Claims, reproduce.NewClaim("the same above", "up to 97 %", high <= 97, "%s %%", reproduce.Format(high, 1)))
	falls := s.mean(byThreshold(60), metricShare) > s.mean(byThreshold(125), metricShare)
	e.Claims = append(e.Claims, reproduce.NewClaim("their share falls with the threshold, at 70 %", "16 to 7 %", falls, "%s to %s %%", reproduce.Format(s.mean(byThreshold(60), metricShare), 1), reproduce.Format(s.mean(byThreshold(125), metricShare), 1)))
	return e
}

// binding is §6.6, table 4 and figure 13.
func (s *matchStudy) binding() reproduce.Experiment {
	e := reproduce.Experiment{Title: "The influence of the resource binding duration (§6.6, table 4, figure 13)", Text: []string{
		"Load 70 %. Table 4: ideal 0 s, light 5 to 10 s, heavy 30 to 180 s.",
	}}
	of := func(b int) matchCase {
		c := plain("dmm", messagesLoad, messagesLoad)
		c.bind = b
		return c
	}
	for _, m := range []matchMetric{metricAWT, metricASD, metricGoodput} {
		t, p := s.list("Figure 13", m.name, "binding (s)", bindings, []matchMetric{m}, of)
		e.Tables, e.Plots = append(e.Tables, t), append(e.Plots, p)
	}
	ideal, heavy := s.mean(of(0), metricAWT), s.mean(of(180), metricAWT)
	change := 100 * (heavy - ideal) / ideal
	e.Claims = append(e.Claims, reproduce.NewClaim("mean wait with 180 s against 0 s", "no significant increase", change < 10, "%s (%s to %s s)", reproduce.FormatDeviation(change, reproduce.Jobs), reproduce.Format(ideal, 1), reproduce.Format(heavy, 1)))
	share := s.mean(of(180), metricLent)
	plainly := 180 * share / 100
	e.Because("%s %% of the jobs run on borrowed processors and begin 180 s later each: %s s in the mean of all jobs, whatever the policy; the other %s s are what those waits do to jobs behind them. Of a mean wait of 1283 s, as published for dmm in table 3, those %s s would be %s %%; the mean wait at 70 %% is not printed, but as high a one makes the increase insignificant.",
		reproduce.Format(share, 1), reproduce.Format(plainly, 1), reproduce.Format(heavy-ideal-plainly, 1), reproduce.Format(plainly, 1), reproduce.Format(100*plainly/1283, 1))
	return e
}

// beyond compares target site orderings.
func (s *matchStudy) beyond() reproduce.Experiment {
	e := reproduce.Experiment{Title: "Beyond the paper: whom to ask first", Text: []string{
		"The paper considers “policy exploration and tuning outside the scope”. neighbours: the directly connected ones in random order; most-free and best-fit: in the order of the free processors they last spoke of; gossip: any cluster that has gossiped enough free processors, the tightest fit first, and nobody if there is none.",
	}}
	of := func(o string, load int) matchCase {
		c := plain("dmm", load, load)
		c.ordering = o
		return c
	}
	for _, m := range []matchMetric{metricGoodput, metricJF, metricAWT, metricPer, metricOver} {
		t, p := s.compare("Orderings", m.name, "load (%)", beyondLoads, m, orderings, of)
		e.Tables, e.Plots = append(e.Tables, t), append(e.Plots, p)
	}
	for _, load := range beyondLoads {
		a, b := of("gossip", load), of("neighbours", load)
		better := s.mean(a, metricGoodput) > s.mean(b, metricGoodput) || s.mean(a, metricAWT) < s.mean(b, metricAWT)
		fewer := s.mean(a, metricPer) < s.mean(b, metricPer)
		e.Claims = append(e.Claims, reproduce.NewClaim(fmt.Sprintf("gossip against neighbours at %d %%: goodput or wait better with fewer delegations", load), "–", better && fewer,
			"goodput %s, wait %s, delegations per job %s", s.over(a, b, metricGoodput), s.over(a, b, metricAWT), s.over(a, b, metricPer)))
	}
	return e
}
