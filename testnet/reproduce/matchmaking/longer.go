package matchmaking

import (
	"fmt"

	"gridnode/testnet/measure"
	"gridnode/testnet/reproduce"
	"gridnode/testnet/scenario/delegation"
)

// Longer durations: "we have repeated some of the experiments in Sections 6.2 and 6.4 for
// traces with the duration of 1 week and 1 month, with similar results" (§5.3). Which ones
// is not said; here they are loads of which the paper speaks, and the thresholds at the load
// for which it names the best.
const (
	week  = 7
	month = 30
)

var (
	longerLoads      = map[int][]int{week: {50, 80, 98}, month: {80}}
	longerThresholds = []int{60, 100, 125}
	longerImbalanced = []int{150} // of Grid'5000, for a week
)

// lasting is a case of so many days.
func lasting(c matchCase, days int) matchCase {
	c.days = days
	return c
}

func longerCases() (list []matchCase) {
	for _, days := range []int{week, month} {
		for _, a := range delegation.Architectures {
			for _, load := range longerLoads[days] {
				list = append(list, lasting(plain(a, load, load), days))
			}
		}
		for _, t := range longerThresholds {
			c := plain("dmm", messagesLoad, messagesLoad)
			c.threshold = t
			list = append(list, lasting(c, days))
		}
	}
	for _, a := range delegation.Architectures {
		for _, load := range longerImbalanced {
			list = append(list, lasting(plain(a, dasLoad, load), week))
		}
	}
	return list
}

// longer compares a week and a month with a day.
func (s *matchStudy) longer() reproduce.Experiment {
	e := reproduce.Experiment{Title: "A week and a month (§5.3 of §6.2 and §6.4)", Text: []string{
		"Goodput is in CPU days for each day of submissions. Each has one set.",
	}}
	for _, d := range []struct {
		days int
		name string
	}{{week, "a week"}, {month, "a month"}} {
		for _, m := range []matchMetric{perDayOf(metricGoodput, d.days), metricJF, metricAWT, metricASD} {
			t, p := s.compare("Figure 8 over "+d.name, m.name, "load (%)", longerLoads[d.days], m, delegation.Architectures, func(a string, load int) matchCase { return lasting(plain(a, load, load), d.days) })
			e.Tables, e.Plots = append(e.Tables, t), append(e.Plots, p)
		}
		of := func(t int) matchCase {
			c := plain("dmm", messagesLoad, messagesLoad)
			c.threshold = t
			return lasting(c, d.days)
		}
		t, p := s.list("Figure 11 over "+d.name, "thresholds at 70 %", "threshold (%)", longerThresholds, []matchMetric{perDayOf(metricGoodput, d.days), metricAWT, metricASD}, of)
		e.Tables, e.Plots = append(e.Tables, t), append(e.Plots, p)
		s.longerClaims(&e, d.name, d.days, of)
	}
	for _, m := range []matchMetric{perDayOf(metricGoodput, week), metricJF, metricAWT} {
		t, p := s.compare("Figure 9 over a week", m.name, "load of Grid'5000 (%)", longerImbalanced, m, delegation.Architectures, func(a string, load int) matchCase { return lasting(plain(a, dasLoad, load), week) })
		e.Tables, e.Plots = append(e.Tables, t), append(e.Plots, p)
	}
	return e
}

// longerClaims says whether the results are similar: what holds for a day.
func (s *matchStudy) longerClaims(e *reproduce.Experiment, name string, days int, of func(threshold int) matchCase) {
	best, text := 0, ""
	for _, load := range longerLoads[days] {
		dmm := s.mean(lasting(plain("dmm", load, load), days), metricGoodput)
		other, at := reproduce.None, ""
		for _, a := range others {
			if v := s.mean(lasting(plain(a, load, load), days), metricGoodput); v.Known() && (!other.Known() || v > other) {
				other, at = v, a
			}
		}
		if dmm > other {
			best++
		}
		text += fmt.Sprintf(", %s over %s at %d %%", reproduce.Gain(dmm, other), at, load)
	}
	e.Claims = append(e.Claims, reproduce.NewClaim("goodput of dmm over "+name, "similar: best from 50 % on", best == len(longerLoads[days]), "%s", text[2:]))
	for _, m := range []struct {
		matchMetric
		most bool
	}{{metricGoodput, true}, {metricAWT, false}} {
		least, at := reproduce.None, 0
		for _, t := range longerThresholds {
			v := s.mean(of(t), m.matchMetric)
			if !least.Known() || m.most && v > least || !m.most && v < least {
				least, at = v, t
			}
		}
		e.Claims = append(e.Claims, reproduce.NewClaim("best threshold for "+m.name+" over "+name, "similar: 1.0", at == 100, "%.2f (%s over 1.0)", float64(at)/100, reproduce.Gain(least, s.mean(of(100), m.matchMetric))))
	}
}

// perDayOf is a metric by day of submissions.
func perDayOf(m matchMetric, days int) matchMetric {
	of := m.of
	m.of = func(r *measure.Result) reproduce.Number { return of(r) / reproduce.Number(days) }
	return m
}
