package coallocation

import (
	"fmt"

	"gridnode/testnet/reproduce"
)

// realRun is a real run with jobs of 8, 16 and 32 nodes.
func realRun(policy, application string, background int) coallocationCase {
	return coallocationCase{policy: policy, application: application, utilization: realUtilization, background: background}
}

// realRun is the real run of a curve of figure 10, with jobs of 64 nodes.
func (c namedCase) realRun(background int) coallocationCase {
	r := c.coallocationCase
	r.utilization, r.sizes, r.background = realUtilization, widest, background
	return r
}

// measured are the figures that are shown of real runs.
var measured = []struct {
	name     string
	unit     reproduce.Unit
	decimals int
	of       func(o *coallocationOutcome) reproduce.Number
}{
	{"response", reproduce.Seconds, 1, response},
	{"wait", reproduce.Seconds, 1, func(o *coallocationOutcome) reproduce.Number { return o.wait }},
	{"of it in the placement queue", reproduce.Seconds, 1, func(o *coallocationOutcome) reproduce.Number { return o.queue }},
	{"jobs that are split", reproduce.Percent, 1, func(o *coallocationOutcome) reproduce.Number { return o.split }},
	{"they run longer by", reproduce.Percent, 0, func(o *coallocationOutcome) reproduce.Number { return o.longer }},
	{"placements tried, per job", "", 2, func(o *coallocationOutcome) reproduce.Number { return o.tries }},
	{"claims that failed, per job", "", 3, func(o *coallocationOutcome) reproduce.Number { return o.failures }},
	{"observed utilization", reproduce.Percent, 1, func(o *coallocationOutcome) reproduce.Number { return o.observed }},
	{"background load", reproduce.Percent, 1, func(o *coallocationOutcome) reproduce.Number { return o.busy }},
}

// tableMeasured shows the figures of set-ups side by side.
func (s *coallocationStudy) tableMeasured(title string, columns []string, cases []coallocationCase) reproduce.Table {
	t := reproduce.Table{Title: title, Columns: columns}
	for _, f := range measured {
		m := reproduce.Measure{Name: f.name, Unit: f.unit, Decimals: f.decimals}
		for _, c := range cases {
			m.Cells = append(m.Cells, s.of(c, f.of))
		}
		t.Measures = append(t.Measures, m)
	}
	return t
}

// figure returns one of measured, by its name, of a set-up.
func (s *coallocationStudy) figure(name string, c coallocationCase) reproduce.Number {
	for _, f := range measured {
		if f.name == name {
			return s.of(c, f.of).Here
		}
	}
	panic("coallocation: no figure " + name)
}

// experimentReal is section VI-B: figure 6, and the real runs of table V.
func (s *coallocationStudy) experimentReal() reproduce.Experiment {
	changes := reproduce.Table{Title: "Table V: change in mean response in the real runs, at 40 % and a background load"}
	m := reproduce.Measure{Name: "change, FCM against WF", Unit: reproduce.Percent, Decimals: 1}
	var columns []string
	var cases []coallocationCase
	for i, application := range applicationsMPI {
		changes.Columns = append(changes.Columns, application)
		m.Cells = append(m.Cells, reproduce.Cell{Published: publishedChange[i].change, Here: s.change(realRun("fcm", application, realBackground))})
		for _, policy := range []string{"wf", "fcm"} {
			columns, cases = append(columns, application+", "+policy), append(cases, realRun(policy, application, realBackground))
		}
	}
	changes.Measures = []reproduce.Measure{m}
	return reproduce.Experiment{
		Title: "Real runs: co-allocation or not (section VI-B)",
		Text: []string{"Four hours of jobs of 8, 16 and 32 nodes at a net utilization of 40 %, on DAS-3 without Delft, beside local users who keep a fifth of the nodes busy. " +
			"What KOALA has seen idle may be gone when it claims it: then it tries again."},
		Claims: s.claimsReal(cases),
		Tables: []reproduce.Table{changes, s.tableMeasured("Figure 6, and what stands behind it", columns, cases)},
	}
}

// claimsReal is what the text says of figure 6.
func (s *coallocationStudy) claimsReal(cases []coallocationCase) []reproduce.Claim {
	pair := func(name, application string) (wf, fcm reproduce.Number) {
		return s.figure(name, realRun("wf", application, realBackground)), s.figure(name, realRun("fcm", application, realBackground))
	}
	arrow := func(from, to reproduce.Number) string {
		return reproduce.Format(from, 0) + " → " + reproduce.Format(to, 0)
	}
	primeWF, primeFCM := pair("response", "prime")
	poissonWF, poissonFCM := pair("response", "poisson")
	waveWF, waveFCM := pair("response", "wave")
	primeWaitWF, primeWaitFCM := pair("wait", "prime")
	poissonWaitWF, poissonWaitFCM := pair("wait", "poisson")
	waveWaitWF, waveWaitFCM := pair("wait", "wave")
	observedWF, observedFCM := pair("observed utilization", "wave")
	dominated, least, most := 0, reproduce.Number(100), reproduce.Number(0)
	for i, c := range cases {
		if queue := s.figure("of it in the placement queue", c); queue > s.figure("wait", c)/2 {
			dominated++
		}
		if i%2 == 1 {
			split := s.figure("jobs that are split", c)
			least, most = min(least, split), max(most, split)
		}
	}
	wait := reproduce.NewClaim("the wait is dominated by the time in the placement queue (workloads and policies in which it is more than half)", "dominated", dominated == len(cases), "%d of %d", dominated, len(cases))
	wait.Shape = 2*dominated > len(cases)
	return []reproduce.Claim{
		wait,
		reproduce.NewClaim("the response of Prime and Poisson is lower with FCM", "lower", primeFCM < primeWF && poissonFCM < poissonWF, "%s s and %s s", arrow(primeWF, primeFCM), arrow(poissonWF, poissonFCM)),
		reproduce.NewClaim("the response of Wave is higher with FCM", "higher", waveFCM > waveWF, "%s s", arrow(waveWF, waveFCM)),
		reproduce.NewClaim("a substantial reduction in the wait of Prime and Poisson (a quarter and more)", "substantial", primeWaitFCM <= 0.75*primeWaitWF && poissonWaitFCM <= 0.75*poissonWaitWF, "%s s and %s s", arrow(primeWaitWF, primeWaitFCM), arrow(poissonWaitWF, poissonWaitFCM)),
		reproduce.NewClaim("Wave: the observed utilization increases, and with it the wait", "both increase", observedFCM > observedWF && waveWaitFCM > waveWaitWF, "%s %% and %s s", arrow(observedWF, observedFCM), arrow(waveWaitWF, waveWaitFCM)),
		reproduce.NewClaim("a relatively small fraction of the jobs is co-allocated (less than a third)", "relatively small", most < 100.0/3, "%s to %s %%", reproduce.Format(least, 0), reproduce.Format(most, 0)),
	}
}

// experimentRealCA is section VII-A: figure 9.
func (s *coallocationStudy) experimentRealCA() reproduce.Experiment {
	t := reproduce.Table{Title: "Figure 9: by how much the mean response is longer with FCM than with CA", Columns: []string{"without Delft", "with Delft"}}
	gap := reproduce.Measure{Name: "FCM − CA", Unit: reproduce.Seconds}
	groups := reproduce.Measure{Name: "FCM − CA in groups", Unit: reproduce.Seconds, Alternative: true}
	var columns []string
	var cases []coallocationCase
	var longer [2][2]reproduce.Number // of split jobs, by Delft and policy
	for i, with := range []bool{false, true} {
		var mean [3]reproduce.Number
		for k, c := range curves(with) {
			r := c.realRun(realBackground)
			mean[k] = s.mean(r)
			columns, cases = append(columns, c.name+", "+t.Columns[i]), append(cases, r)
			if k < 2 {
				longer[i][k] = s.figure("they run longer by", r)
			}
		}
		gap.Cells = append(gap.Cells, reproduce.Cell{Published: publishedGap[i], Here: mean[0] - mean[1]})
		groups.Cells = append(groups.Cells, reproduce.Cell{Published: publishedGap[i], Here: mean[0] - mean[2]})
	}
	t.Measures = []reproduce.Measure{gap, groups}
	without, with := gap.Cells[0].Here, gap.Cells[1].Here
	seconds := reproduce.Format(without, 0) + " s and " + reproduce.Format(with, 0) + " s"
	major := reproduce.NewClaim("the difference is moderate without Delft and major with it", "50 s and 230 s", without > 0 && with >= 2*without, "%s", seconds)
	major.Shape = without > 0 && with > without
	delft := s.of(cases[3], func(o *coallocationOutcome) reproduce.Number { return o.delft }).Here
	print := func(n reproduce.Number) string { return "+" + reproduce.Format(n, 0) }
	return reproduce.Experiment{
		Title: "Real runs: FCM and CA (section VII-A)",
		Text: []string{"Four hours of Wave with jobs of 64 nodes at a net utilization of 40 %, beside local users who keep a fifth of the nodes busy. " +
			"Why CA is not better here once jobs wait stands below, with figure 10."},
		Claims: []reproduce.Claim{
			reproduce.NewClaim("CA outperforms FCM, irrespective of Delft (FCM − CA)", "outperforms", without > 0 && with > 0, "%s", seconds),
			major,
			reproduce.NewClaim("FCM combines slower clusters, so its split jobs run longer (FCM against CA, without Delft, with Delft)", "longer", longer[0][0] > longer[0][1] && longer[1][0] > longer[1][1],
				"%s against %s %%, %s against %s %%", print(longer[0][0]), print(longer[0][1]), print(longer[1][0]), print(longer[1][1])),
			reproduce.NewClaim("with Delft the increase is more severe, as it is involved in many co-allocations of FCM (half and more)", "many", longer[1][0] > longer[0][0] && delft >= 50,
				"%s → %s %%, in %s %% of them", print(longer[0][0]), print(longer[1][0]), reproduce.Format(delft, 0)),
		},
		Tables: []reproduce.Table{t, s.tableMeasured("Figure 9, and what stands behind it", columns, cases)},
	}
}

// experimentBackgrounds is the real runs at the ends of the range of the background load.
func (s *coallocationStudy) experimentBackgrounds() reproduce.Experiment {
	t := reproduce.Table{Title: "The real runs by their background load"}
	changes := make([]reproduce.Measure, len(applicationsMPI))
	var gaps [2]reproduce.Measure
	for _, background := range []int{otherBackgrounds[0], realBackground, otherBackgrounds[1]} {
		t.Columns = append(t.Columns, fmt.Sprintf("%d %%", background))
		for i, application := range applicationsMPI {
			changes[i].Name, changes[i].Unit, changes[i].Decimals = "change, FCM against WF, "+application, reproduce.Percent, 1
			changes[i].Cells = append(changes[i].Cells, reproduce.Cell{Published: publishedChange[i].change, Here: s.change(realRun("fcm", application, background))})
		}
		for i, with := range []bool{false, true} {
			all := curves(with)
			gaps[i].Name, gaps[i].Unit = "FCM − CA, "+[2]string{"without Delft", "with Delft"}[i], reproduce.Seconds
			gaps[i].Cells = append(gaps[i].Cells, reproduce.Cell{Published: publishedGap[i], Here: s.mean(all[0].realRun(background)) - s.mean(all[1].realRun(background))})
		}
	}
	t.Measures = append(changes, gaps[:]...)
	return reproduce.Experiment{
		Title:  "Other readings of the background load",
		Text:   []string{"The paper keeps it between 10 and 30 %. The chosen reading is the middle."},
		Tables: []reproduce.Table{t}, Beyond: true,
	}
}
