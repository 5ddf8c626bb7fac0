package matchmaking

import (
	"fmt"

	"gridnode/testnet/reproduce"
	"gridnode/testnet/scenario/delegation"
)

var (
	centralized = []string{"cern", "central"}
	independent = []string{"sep-c", "condor"}
)

// balanced is §6.2 and figure 8.
func (s *matchStudy) balanced() reproduce.Experiment {
	e := reproduce.Experiment{Title: "The influence of the load level (§6.2, figure 8)"}
	s.compared(&e, "Figure 8", "load (%)", s.loads, func(a string, load int) matchCase { return plain(a, load, load) })
	t, p := s.list("Figure 8", "delegations", "load (%)", s.loads, []matchMetric{metricPer, metricChain}, func(load int) matchCase { return plain("dmm", load, load) })
	e.Tables, e.Plots = append(e.Tables, t), append(e.Plots, p)
	s.goodputClaims(&e)
	s.waitClaims(&e)
	s.finishedClaims(&e)
	s.independentClaims(&e)
	s.chainClaims(&e, "balanced loads", s.loads, 90, func(load int) matchCase { return plain("dmm", load, load) })
	return e
}

// goodputClaims are about who has the most goodput.
func (s *matchStudy) goodputClaims(e *reproduce.Experiment) {
	largest, at := reproduce.None, 0
	for _, load := range s.loads {
		if load < 50 {
			continue
		}
		dmm := plain("dmm", load, load)
		name, best := s.bestOther(load, load, metricGoodput, others)
		e.Claims = append(e.Claims, reproduce.NewClaim(fmt.Sprintf("goodput of dmm at %d %%", load), "best", s.mean(dmm, metricGoodput) > best, "%s over %s", s.over(dmm, plain(name, load, load), metricGoodput), name))
		if gain, _ := s.pairs(dmm, plain("fcondor", load, load), metricGoodput); gain.Known() && (!largest.Known() || gain > largest) {
			largest, at = gain, load
		}
	}
	if s.has(80) {
		e.Claims = append(e.Claims, reproduce.NewClaim("the largest difference of goodput to fcondor", "at 80 %", at == 80, "%s at %d %%", percent(largest), at))
		gain, _ := s.pairs(plain("dmm", 80, 80), plain("fcondor", 80, 80), metricGoodput)
		e.Claims = append(e.Claims, reproduce.Sized("goodput of dmm over fcondor at 80 %", 32, gain, "+32 %", s.over(plain("dmm", 80, 80), plain("fcondor", 80, 80), metricGoodput)))
		e.Because("Half the width of the confidence interval of the difference stands in parentheses. At 80 %% no scheduler can have more than what ends in time if no job waits; of that dmm has %s %% and fcondor %s %%. What both lack are wide jobs that find no cluster empty enough. %s",
			reproduce.Format(s.ofPossible("dmm", 80), 0), reproduce.Format(s.ofPossible("fcondor", 80), 0), whyFcondor)
	}
	if s.has(30) {
		name, best := s.bestOther(30, 30, metricGoodput, []string{"fcondor"})
		if dmm := s.mean(plain("dmm", 30, 30), metricGoodput); dmm > best {
			name = "dmm"
		}
		gain, _ := s.pairs(plain("cern", 30, 30), plain(name, 30, 30), metricGoodput)
		e.Claims = append(e.Claims, reproduce.Sized("goodput of cern at 30 % over the better of dmm and fcondor", 24, gain, "+24 %", s.over(plain("cern", 30, 30), plain(name, 30, 30), metricGoodput)+" over "+name))
		e.Because("At 30 %% dmm finishes %s %% of what can be finished, so there is no room for 24 %%.", reproduce.Format(s.ofPossible("dmm", 30), 1))
	}
	lower, of := 0, 0
	for _, load := range s.loads {
		for _, a := range centralized {
			if load == 30 && a == "cern" {
				continue
			}
			of++
			if s.mean(plain(a, load, load), metricGoodput) < s.mean(plain("dmm", load, load), metricGoodput) {
				lower++
			}
		}
	}
	e.Claims = append(e.Claims, reproduce.NewClaim("goodput of cern and central against dmm, but for cern at 30 %", "in general lower", 4*lower >= 3*of, "lower at %d of %d points", lower, of))
}

// whyFcondor is why fcondor does better here than in the paper.
const whyFcondor = "The paper calls its fcondor “an optimistic performance estimation”, and prints neither its numbers of users nor in which order they go to the sites."

// waitClaims are about mean wait and slowdown.
func (s *matchStudy) waitClaims(e *reproduce.Experiment) {
	for _, m := range []matchMetric{metricAWT, metricASD} {
		similar, least, most := true, reproduce.None, reproduce.None
		for _, load := range s.loads {
			central := (s.mean(plain("cern", load, load), m) + s.mean(plain("central", load, load), m)) / 2
			ratio := reproduce.Ratio(float64(s.mean(plain("dmm", load, load), m)), float64(central))
			similar = similar && ratio >= 0.5 && ratio <= 2
			if !least.Known() || ratio < least {
				least = ratio
			}
			if !most.Known() || ratio > most {
				most = ratio
			}
		}
		e.Claims = append(e.Claims, reproduce.NewClaim(m.name+" of dmm over the mean of cern and central", "similar at all loads", similar, "%s to %s times", reproduce.Format(least, 2), reproduce.Format(most, 2)))
		e.Because("At low load a central queue serves at once, where dmm waits for a round; from medium load on its head blocks it. Similar is read as at least half and at most twice.")
	}
	for _, m := range []matchMetric{metricAWT, metricASD} {
		holds, texts := true, ""
		for _, load := range s.loads {
			if load <= 70 {
				continue
			}
			dmm, fc := s.mean(plain("dmm", load, load), m), s.mean(plain("fcondor", load, load), m)
			holds = holds && dmm < fc
			texts += fmt.Sprintf(", %s : %s at %d %%", reproduce.Format(dmm, m.decimals), reproduce.Format(fc, m.decimals), load)
		}
		if texts != "" {
			e.Claims = append(e.Claims, reproduce.NewClaim(m.name+" of dmm against fcondor at loads over 70 %", "lower", holds, "%s", texts[2:]))
		}
	}
	holds, at := true, ""
	for _, load := range s.loads {
		if load < 50 {
			continue
		}
		dmm := s.mean(plain("dmm", load, load), metricAWT)
		for _, a := range others {
			if !(dmm < s.mean(plain(a, load, load), metricAWT)) {
				holds, at = false, fmt.Sprintf(", not than %s at %d %%", a, load)
			}
		}
	}
	e.Claims = append(e.Claims, reproduce.NewClaim("mean wait of dmm from 50 to 98 % (§7)", "lower than all others", holds, "%s", map[bool]string{true: "lower", false: "lower" + at}[holds]))
}

// finishedClaims are about how many jobs finish.
func (s *matchStudy) finishedClaims(e *reproduce.Experiment) {
	for _, of := range []struct {
		text      string
		below     int
		published reproduce.Number
		size      string
	}{{"below 60 %", 59, 93, "up to 93 % more"}, {"up to 98 %", 98, 378, "up to 378 % more"}} {
		most, text := reproduce.None, "–"
		for _, load := range s.loads {
			for _, a := range centralized {
				if gain, _ := s.pairs(plain("dmm", load, load), plain(a, load, load), metricJF); load <= of.below && gain.Known() && (!most.Known() || gain > most) {
					most, text = gain, fmt.Sprintf("%s over %s at %d %%", s.over(plain("dmm", load, load), plain(a, load, load), metricJF), a, load)
				}
			}
		}
		if most.Known() {
			e.Claims = append(e.Claims, reproduce.Sized("jobs finished by dmm over cern and central, loads "+of.text, of.published, most, of.size, text))
			e.Because("How much the queue of cern and central is blocked hangs on how often a job comes that is nearly as wide as the widest clusters, whose sizes are not printed.")
		}
	}
	most, text := reproduce.None, "–"
	for _, load := range s.loads {
		for _, a := range others {
			if gain, _ := s.pairs(plain("dmm", load, load), plain(a, load, load), metricJF); gain.Known() && (!most.Known() || gain > most) {
				most, text = gain, fmt.Sprintf("%s times those of %s at %d %%", reproduce.Format(1+gain/100, 1), a, load)
			}
		}
	}
	e.Claims = append(e.Claims, reproduce.Sized("jobs finished by dmm, most against any other (§7)", 300, most, "up to four times", text))
	least, greatest := reproduce.None, reproduce.None
	for _, load := range s.loads {
		d := s.mean(plain("dmm", load, load), metricJF) - s.mean(plain("fcondor", load, load), metricJF)
		if !least.Known() || d < least {
			least = d
		}
		if !greatest.Known() || d > greatest {
			greatest = d
		}
	}
	e.Claims = append(e.Claims, reproduce.NewClaim("jobs finished, dmm less fcondor, all loads", "0 to 4 points", least >= -0.5 && greatest < 4.5, "%s to %s points", signed(least), signed(greatest)))
}

// independentClaims are about the clusters by themselves.
func (s *matchStudy) independentClaims(e *reproduce.Experiment) {
	for _, m := range []struct {
		matchMetric
		more bool // is better
	}{{metricGoodput, true}, {metricJF, true}, {metricAWT, false}, {metricASD, false}} {
		worse, at := 0, ""
		for _, load := range s.loads {
			sign := reproduce.Number(1)
			if !m.more {
				sign = -1
			}
			best, worst := reproduce.None, reproduce.None
			for _, a := range delegation.Architectures {
				v := sign * s.mean(plain(a, load, load), m.matchMetric)
				switch alone := a == independent[0] || a == independent[1]; {
				case alone && (!best.Known() || v > best):
					best = v
				case !alone && (!worst.Known() || v < worst):
					worst = v
				}
			}
			if best < worst {
				worse++
			} else {
				at += fmt.Sprintf(" %d", load)
			}
		}
		text := fmt.Sprintf("at %d of %d loads", worse, len(s.loads))
		if at != "" {
			text += ", not at" + at + " %"
		}
		e.Claims = append(e.Claims, reproduce.NewClaim(m.name+" of sep-c and condor against all others", "worse at all loads", worse == len(s.loads), "%s", text))
	}
	e.Because("cern and central with a blocked queue finish less than clusters by themselves; so they must in the paper, too, if dmm finishes four times as many jobs as they do.")
}

// chainClaims are about the number of delegations: roughly constant below a load, and
// linear beyond.
func (s *matchStudy) chainClaims(e *reproduce.Experiment, what string, loads []int, flat int, of func(load int) matchCase) {
	low, high, beyond, first := reproduce.None, reproduce.None, reproduce.None, reproduce.None
	for _, load := range loads {
		v := s.mean(of(load), metricChain)
		if load > flat || load == flat && what == "balanced loads" {
			if !first.Known() {
				first = v
			}
			beyond = v
			continue
		}
		if !low.Known() {
			low, high = v, v
		}
		low, high = min(low, v), max(high, v)
	}
	mid := (low + high) / 2
	e.Claims = append(e.Claims, reproduce.NewClaim("delegations of a job, "+what+" up to where the system is overloaded", "roughly constant", high <= 1.2*mid, "%s to %s (±%s %% of the middle)", reproduce.Format(low, 2), reproduce.Format(high, 2), reproduce.Format(100*(high-mid)/mid, 0)))
	if beyond.Known() && first.Known() {
		e.Claims = append(e.Claims, reproduce.NewClaim("delegations of a job, "+what+" beyond", "increase linearly with the load", beyond > high, "at most %s before, %s to %s beyond", reproduce.Format(high, 2), reproduce.Format(first, 2), reproduce.Format(beyond, 2)))
		e.Because("With the load more jobs are delegated (delegations per job), but their chains are no longer: a request that nobody has room for is sent anew, and not further.")
	}
}

// has reports whether a load level is run.
func (s *matchStudy) has(load int) bool {
	for _, l := range s.loads {
		if l == load {
			return true
		}
	}
	return false
}

// ofPossible returns the goodput of an architecture in percent of what it could be if no
// job waited.
func (s *matchStudy) ofPossible(architecture string, load int) reproduce.Number {
	c := plain(architecture, load, load)
	return 100 * s.mean(c, metricGoodput) / s.mean(c, metricPossible)
}

// percent prints a gain.
func percent(n reproduce.Number) string { return reproduce.FormatDeviation(n, reproduce.Jobs) }

// signed prints points with their sign.
func signed(n reproduce.Number) string { return reproduce.FormatDeviation(n, reproduce.Percent) }
