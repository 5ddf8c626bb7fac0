package matchmaking

import (
	"fmt"

	"gridnode/testnet/reproduce"
	"gridnode/testnet/scenario/delegation"
)

// report makes the experiments.
func (s *matchStudy) report() []reproduce.Experiment {
	var list []reproduce.Experiment
	if !s.o.Quick {
		list = append(list, s.long())
	}
	list = append(list, s.workload(), s.balanced())
	if s.o.Sizes != nil {
		return list
	}
	list = append(list, s.imbalanced(), s.threshold(), s.messages(), s.binding())
	if !s.o.Quick {
		list = append(list, s.longer(), s.otherReadings(), s.beyond())
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
		e.Because("Set by set the difference is %s. %s", s.over(here, one, m.matchMetric), verdict)
	}
	for _, m := range []matchMetric{metricAWT, metricASD} {
		late, one := s.mean(of("load 30 %", 125), m), s.mean(of("load 30 %", 100), m)
		e.Claims = append(e.Claims, reproduce.NewClaim(m.name+" at 30 % with a threshold above 1.0", "quick degradation", late > 1.1*one, "%s (1.25 against 1.0)", reproduce.Gain(late, one)))
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
		if f.figure == "Figure 12 (b)" {
			printed(&t.Measures[0], f.at, publishedShare)
			printed(&t.Measures[2], f.at, publishedOver)
		}
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
	e.Claims = append(e.Claims, reproduce.NewClaim("DMM messages of all, greatest over the loads", "at most 16 %", share <= 16.5, "%s %%", reproduce.Format(share, 1)))
	e.Because("Over the messages of workload management, where no keep-alives count, DMM's are at most %s %%. At 90 %% load the share is %s %%. Of the keep-alives the paper prints no interval.",
		reproduce.Format(most(defaultLoads, byLoad, metricOver, 1000), 1), reproduce.Format(s.mean(byLoad(90), metricShare), 1))
	low, high := most(defaultLoads, byLoad, metricOver, 59), most(defaultLoads, byLoad, metricOver, 1000)
	e.Claims = append(e.Claims, reproduce.NewClaim("DMM messages over workload management below 60 %", "up to 19 %", low <= 19.5, "%s %%", reproduce.Format(low, 1)))
	e.Because("A request that nobody has room for is sent anew after every cycle; wide jobs are such requests at any load.")
	e.Claims = append(e.Claims, reproduce.NewClaim("the same above", "up to 97 %", high <= 97.5, "%s %%", reproduce.Format(high, 1)))
	falls := true
	for i := range thresholds[1:] {
		falls = falls && s.mean(byThreshold(thresholds[i]), metricShare) > s.mean(byThreshold(thresholds[i+1]), metricShare)
	}
	e.Claims = append(e.Claims, reproduce.NewClaim("their share with a higher threshold, at 70 %", "decreases", falls, "%s to %s %%", reproduce.Format(s.mean(byThreshold(60), metricShare), 1), reproduce.Format(s.mean(byThreshold(125), metricShare), 1)))
	return e
}

// printed enters what the paper prints of a measure, by column.
func printed(m *reproduce.Measure, at []int, published map[int]reproduce.Number) {
	for i, v := range at {
		if p, ok := published[v]; ok {
			m.Cells[i].Published = p
		}
	}
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
