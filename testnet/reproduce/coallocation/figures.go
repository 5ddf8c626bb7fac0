package coallocation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gridnode/coalloc"
	"gridnode/grid"
	"gridnode/testnet/reproduce"
)

// of returns a figure of a set-up: the mean over the workloads, and their spread.
func (s *coallocationStudy) of(c coallocationCase, f func(o *coallocationOutcome) reproduce.Number) reproduce.Cell {
	outcomes := s.outcomes[c.base()]
	numbers := make([]reproduce.Number, len(outcomes))
	for i := range outcomes {
		numbers[i] = f(&outcomes[i])
	}
	spread := reproduce.SpreadOf(numbers)
	return reproduce.Cell{Published: reproduce.None, Here: spread.Mean, Spread: &spread}
}

func response(o *coallocationOutcome) reproduce.Number { return o.response }

// mean returns the mean response of a set-up.
func (s *coallocationStudy) mean(c coallocationCase) reproduce.Number { return s.of(c, response).Here }

// change returns by how many percent the mean response of c differs from that by WF.
func (s *coallocationStudy) change(c coallocationCase) reproduce.Number {
	wf := s.mean(coallocationCase{policy: "wf", application: c.application, utilization: c.utilization})
	return 100 * (s.mean(c)/wf - 1)
}

// saturated reports whether a set-up is.
func (s *coallocationStudy) saturated(c coallocationCase) bool {
	wait := s.of(c, func(o *coallocationOutcome) reproduce.Number { return o.wait }).Here
	run := s.of(c, func(o *coallocationOutcome) reproduce.Number { return o.runTime }).Here
	return wait > 1.5*run
}

// saturation returns the first of the utilizations at which a set-up is saturated and
// stays so, None if it is not at the last.
func (s *coallocationStudy) saturation(c coallocationCase, utilizations []int) reproduce.Number {
	at := reproduce.None
	for i := len(utilizations) - 1; i >= 0; i-- {
		c.utilization = utilizations[i]
		if !s.saturated(c) {
			break
		}
		at = reproduce.Number(utilizations[i])
	}
	return at
}

// interval prints the 5 % in which saturation sets in.
func interval(end reproduce.Number) string {
	if !end.Known() {
		return "not reached"
	}
	return fmt.Sprintf("%.0f–%.0f %%", float64(end-5), float64(end))
}

// byUtilization makes a measure with a cell for each utilization.
func byUtilization(name string, unit reproduce.Unit, utilizations []int, f func(u int) reproduce.Cell) reproduce.Measure {
	m := reproduce.Measure{Name: name, Unit: unit, Decimals: 1}
	for _, u := range utilizations {
		m.Cells = append(m.Cells, f(u))
	}
	return m
}

func columnsOf(utilizations []int) (columns []string, at []float64) {
	for _, u := range utilizations {
		columns, at = append(columns, fmt.Sprintf("%d %%", u)), append(at, float64(u))
	}
	return columns, at
}

func (s *coallocationStudy) report() []reproduce.Experiment {
	e := []reproduce.Experiment{experimentFigure2(), s.experimentApplications(), s.experimentCCR(), s.experimentCA()}
	if !s.o.Quick {
		e = append(e, s.experimentAdaptive())
	}
	return e
}

// changeShown bounds the changes, in percent, that plots show: beyond it a line has a gap.
const changeShown = 250

// changeGaps says so.
var changeGaps = fmt.Sprintf("Plots leave out changes of more than %d %%; the tables have them.", changeShown)

// experimentFigure2 is the example of section IV.
func experimentFigure2() reproduce.Experiment {
	sites := make([]coalloc.Site, 3)
	for i := range sites {
		sites[i] = coalloc.Site{ID: grid.SiteID(fmt.Sprint("cluster ", i+1)), Processors: 16, Free: 16}
	}
	view := coalloc.NewView(sites, nil)
	claim := func(policy coalloc.Policy, text, published string, r *coalloc.Request) reproduce.Claim {
		var words []string
		parts, _ := policy.Place(nil, r, view, grid.Hour)
		for _, p := range parts {
			words = append(words, fmt.Sprint(p.Processors))
		}
		here := fmt.Sprintf("%s on %d clusters", strings.Join(words, " + "), coalloc.Clusters(parts))
		return reproduce.Claim{Text: text, Published: published, Here: here, Holds: here == published}
	}
	thirds := coalloc.Split{{Processors: 8}, {Processors: 8}, {Processors: 8}}
	return reproduce.Experiment{
		Title: "An example of WF and FCM (section IV, figure 2)",
		Text:  []string{"A job of 24 on three clusters with 16 idle processors each: for WF in three components of 8, for FCM flexible."},
		Claims: []reproduce.Claim{
			claim(coalloc.PolicyWF, "WF puts one component on each cluster", "8 + 8 + 8 on 3 clusters", &coalloc.Request{Processors: 24, Splits: []coalloc.Split{thirds}}),
			claim(coalloc.PolicyFCM, "FCM combines two clusters", "16 + 8 on 2 clusters", &coalloc.Request{Processors: 24}),
		},
	}
}

// figure7 are the curves of figure 7 (a).
var figure7 = []struct {
	name, application string
	limit             int
}{{"Prime", "prime", 0}, {"Poisson", "poisson", 0}, {"Wave", "wave", 0}, {"Wave, limit 2", "wave", 2}}

// experimentApplications is section VI-C with the MPI applications: figure 7, tables IV and V.
func (s *coallocationStudy) experimentApplications() reproduce.Experiment {
	columns, at := columnsOf(s.utilizations)
	changes := reproduce.Table{Title: "Figure 7 (a): change in mean response, FCM against WF", Columns: columns}
	observed := reproduce.Table{Title: "Figure 7 (b): observed utilization with FCM, and jobs that are split", Columns: columns}
	a := reproduce.Plot{Figure: "Figure 7 (a)", Title: "Change in mean response with FCM against WF.", X: "net utilization, %", Y: "change, %", At: at}
	b := reproduce.Plot{Figure: "Figure 7 (b)", Title: "Observed utilization with FCM.", X: "net utilization, %", Y: "observed, %", At: at}
	sat := reproduce.Table{Title: "Table IV: end of the interval, 5 % wide, in which saturation sets in", Note: "“–”: not saturated at the highest utilization."}
	saturation := reproduce.Measure{Name: "net utilization", Unit: reproduce.Percent}
	wf := coallocationCase{policy: "wf", application: "prime"}
	sat.Columns = append(sat.Columns, "WF")
	saturation.Cells = append(saturation.Cells, reproduce.Cell{Published: publishedSaturation["WF"], Here: s.saturation(wf, s.utilizations)})
	for _, f := range figure7 {
		c := coallocationCase{policy: "fcm", application: f.application, limit: f.limit}
		m := byUtilization(f.name, reproduce.Percent, s.utilizations, func(u int) reproduce.Cell {
			c.utilization = u
			return reproduce.Cell{Published: reproduce.None, Here: s.change(c)}
		})
		o := byUtilization(f.name+", observed", reproduce.Percent, s.utilizations, func(u int) reproduce.Cell {
			c.utilization = u
			return s.of(c, func(o *coallocationOutcome) reproduce.Number { return o.observed })
		})
		split := byUtilization(f.name+", split", reproduce.Percent, s.utilizations, func(u int) reproduce.Cell {
			c.utilization = u
			return s.of(c, func(o *coallocationOutcome) reproduce.Number { return o.split })
		})
		changes.Measures = append(changes.Measures, m)
		observed.Measures = append(observed.Measures, o, split)
		a.Series, b.Series = append(a.Series, m.Line(f.name, -100, changeShown)), append(b.Series, o.Line(f.name, 0, 100))
		sat.Columns = append(sat.Columns, "FCM "+f.name)
		saturation.Cells = append(saturation.Cells, reproduce.Cell{Published: publishedSaturation["FCM "+f.name], Here: s.saturation(c, s.utilizations)})
	}
	sat.Measures = []reproduce.Measure{saturation}
	return reproduce.Experiment{
		Title:  "Co-allocation or not: Prime, Poisson and Wave (section VI-C)",
		Text:   []string{"Jobs of 8, 16 and 32 nodes, DAS-3 without Delft. WF does not split jobs, FCM does. " + changeGaps},
		Claims: s.claimsApplications(saturation.Cells),
		Tables: []reproduce.Table{sat, s.tableV(), changes, observed},
		Plots:  []reproduce.Plot{a, b},
	}
}

// tableV compares the change at the utilizations of table V.
func (s *coallocationStudy) tableV() reproduce.Table {
	t := reproduce.Table{Title: "Table V: change in mean response at the net utilization where the paper's simulation has it"}
	m := reproduce.Measure{Name: "change, FCM against WF", Unit: reproduce.Percent, Decimals: 1}
	for _, p := range publishedChange {
		t.Columns = append(t.Columns, p.application+" at "+p.text)
		m.Cells = append(m.Cells, reproduce.Cell{Published: p.change, Here: s.changeAt(p.application, p.at)})
	}
	t.Measures = []reproduce.Measure{m}
	return t
}

// changeAt returns the change at a utilization, between two by their mean.
func (s *coallocationStudy) changeAt(application string, at reproduce.Number) reproduce.Number {
	low, high := reproduce.None, reproduce.None
	for _, u := range s.utilizations {
		c := s.change(coallocationCase{policy: "fcm", application: application, utilization: u})
		if reproduce.Number(u) <= at {
			low = c
		}
		if reproduce.Number(u) >= at && !high.Known() {
			high = c
		}
	}
	return (low + high) / 2
}

// claimsApplications is what the text says of figure 7 and table IV.
func (s *coallocationStudy) claimsApplications(saturation []reproduce.Cell) []reproduce.Claim {
	var claims []reproduce.Claim
	names := append([]string{"WF"}, "FCM Prime", "FCM Poisson", "FCM Wave", "FCM Wave, limit 2")
	for i, c := range saturation {
		off := c.Here - c.Published
		claims = append(claims, reproduce.Claim{Text: names[i] + " saturates within one step of the published interval", Published: interval(c.Published), Here: interval(c.Here), Holds: off >= -5 && off <= 5})
	}
	change := func(application string, limit, u int) reproduce.Number {
		return s.change(coallocationCase{policy: "fcm", application: application, limit: limit, utilization: u})
	}
	list := func(application string, limit int, from, to int) (text string, values []reproduce.Number) {
		var words []string
		for _, u := range s.utilizations {
			if u >= from && u <= to {
				v := change(application, limit, u)
				values, words = append(values, v), append(words, reproduce.FormatDeviation(v, reproduce.Percent))
			}
		}
		return strings.Join(words, ", "), values
	}
	all := func(values []reproduce.Number, f func(reproduce.Number) bool) bool {
		for _, v := range values {
			if !f(v) {
				return false
			}
		}
		return len(values) > 0
	}
	text, values := list("prime", 0, 10, 40)
	claims = append(claims, reproduce.Claim{Text: "up to 40 % there is next to no difference (Prime, %)", Published: "no difference", Here: text, Holds: all(values, func(v reproduce.Number) bool { return v > -2 && v < 2 })})
	text, values = list("prime", 0, 45, 90)
	claims = append(claims, reproduce.Claim{Text: "Prime gains, more with the load (45 to 90 %)", Published: "gains", Here: text, Holds: all(values, func(v reproduce.Number) bool { return v < 0 }) && slices.IsSortedFunc(values, descending)})
	text, values = list("poisson", 0, 45, 65)
	claims = append(claims, reproduce.Claim{Text: "Poisson gains at first (45 to 65 %)", Published: "up to 75 %", Here: text, Holds: all(values, func(v reproduce.Number) bool { return v < 0 })})
	text, values = list("poisson", 0, 70, 85)
	loses := false
	for _, v := range values {
		loses = loses || v > 0
	}
	claims = append(claims, reproduce.Claim{Text: "Poisson loses before the system is full (70 to 85 %)", Published: "beyond 75 %", Here: text, Holds: loses})
	text, values = list("wave", 0, 45, 85)
	claims = append(claims, reproduce.Claim{Text: "Wave loses (45 to 85 %)", Published: "loses", Here: text, Holds: all(values, func(v reproduce.Number) bool { return v > 0 })})
	limited, between := list("wave", 2, 45, 85)
	lower := 0
	for i := range between {
		if between[i] < values[i] && between[i] > 0 {
			lower++
		}
	}
	claims = append(claims, reproduce.Claim{Text: "limited to two clusters Wave loses, but less (45 to 85 %)", Published: "in between", Here: limited, Holds: lower == len(between) && lower > 0})
	return append(claims, s.claimObserved())
}

func descending(a, b reproduce.Number) int { return cmp.Compare(b, a) }

// claimObserved is what the text says of figure 7 (b), at the utilization in the middle.
func (s *coallocationStudy) claimObserved() reproduce.Claim {
	u := s.utilizations[len(s.utilizations)/2]
	observed := func(application string) reproduce.Number {
		return s.of(coallocationCase{policy: "fcm", application: application, utilization: u}, func(o *coallocationOutcome) reproduce.Number { return o.observed }).Here
	}
	wave, prime := observed("wave"), observed("prime")
	return reproduce.Claim{
		Text: fmt.Sprintf("Wave raises the observed utilization, Prime does not (net %d %%)", u), Published: "raises",
		Here: reproduce.Format(wave, 1) + " % against " + reproduce.Format(prime, 1) + " %", Holds: wave > prime+1 && prime < reproduce.Number(u)+1,
	}
}

// experimentCCR is figure 8.
func (s *coallocationStudy) experimentCCR() reproduce.Experiment {
	columns, at := columnsOf(s.utilizations)
	t := reproduce.Table{Title: "Figure 8: change in mean response, FCM against WF, by CCR", Columns: columns}
	p := reproduce.Plot{Figure: "Figure 8", Title: "Change in mean response with FCM against WF.", X: "net utilization, %", Y: "change, %", At: at}
	below, above := true, true
	var lowText, highText []string
	var between []reproduce.Claim
	for _, application := range applicationsCCR {
		name := "CCR " + strings.TrimPrefix(application, "ccr=")
		c := coallocationCase{policy: "fcm", application: application}
		m := byUtilization(name, reproduce.Percent, s.utilizations, func(u int) reproduce.Cell {
			c.utilization = u
			return reproduce.Cell{Published: reproduce.None, Here: s.change(c)}
		})
		t.Measures = append(t.Measures, m)
		p.Series = append(p.Series, m.Line(name, -100, changeShown))
		if application == "ccr=0.25" || application == "ccr=0.5" {
			between = append(between, s.gainsThenLoses(name, m.Cells))
		}
		for i, u := range s.utilizations {
			v := m.Cells[i].Here
			if application == "ccr=0.1" {
				below = below && v < 0.05
				lowText = append(lowText, reproduce.FormatDeviation(v, reproduce.Percent))
			}
			if (application == "ccr=1" || application == "ccr=4") && u >= 40 && u <= 90 {
				above = above && v > 0
				if application == "ccr=1" {
					highText = append(highText, reproduce.FormatDeviation(v, reproduce.Percent))
				}
			}
		}
	}
	return reproduce.Experiment{
		Title: "By how much an application communicates (section VI-C)",
		Text:  []string{"The synthetic application takes 180 s in one cluster, CCR/(1+CCR) of it for communication. " + changeGaps},
		Claims: slices.Concat(
			[]reproduce.Claim{{Text: "CCR 0.1 always gains", Published: "always", Here: strings.Join(lowText, ", "), Holds: below}},
			between,
			[]reproduce.Claim{{Text: "above 0.5 it loses (CCR 1 and 4 at 40 to 90 %; CCR 1 shown)", Published: "loses", Here: strings.Join(highText, ", "), Holds: above}},
		),
		Tables: []reproduce.Table{t},
		Plots:  []reproduce.Plot{p},
	}
}

// gainsThenLoses is what the text says of CCR 0.25 and 0.5: "co-allocation is beneficial
// to a certain extent; … after some point it becomes disadvantageous". What is less than
// 0.1 % is neither. Beyond 85 % WF is saturated, too.
func (s *coallocationStudy) gainsThenLoses(name string, cells []reproduce.Cell) reproduce.Claim {
	var words []string
	gains, then := false, false
	for i, u := range s.utilizations {
		v := cells[i].Here
		if u > 85 {
			break
		}
		words = append(words, reproduce.FormatDeviation(v, reproduce.Percent))
		if v < -0.1 && !then {
			gains = true
		}
		if v > 0.1 {
			then = true
		}
	}
	return reproduce.Claim{Text: name + " gains, then loses (up to 85 %)", Published: "gains, then loses", Here: strings.Join(words, ", "), Holds: gains && then}
}

// experimentAdaptive compares the adaptive policy with the better of WF and FCM.
func (s *coallocationStudy) experimentAdaptive() reproduce.Experiment {
	columns, at := columnsOf(s.utilizations)
	t := reproduce.Table{Title: "Change in mean response, adaptive against the better of WF and FCM", Columns: columns}
	p := reproduce.Plot{Figure: "Beyond the paper", Title: "Change in mean response with adaptive against the better of WF and FCM.", X: "net utilization, %", Y: "change, %", At: at}
	worst, where := reproduce.Number(-100), ""
	for _, application := range append([]string{"prime", "wave"}, applicationsCCR...) {
		m := byUtilization(application, reproduce.Percent, s.utilizations, func(u int) reproduce.Cell {
			c := coallocationCase{policy: "adaptive", application: application, utilization: u}
			wf, fcm := c, c
			wf.policy, fcm.policy = "wf", "fcm"
			v := 100 * (s.mean(c)/min(s.mean(wf), s.mean(fcm)) - 1)
			if v > worst {
				worst, where = v, fmt.Sprintf("%s at %d %%", application, u)
			}
			return reproduce.Cell{Published: reproduce.None, Here: v}
		})
		t.Measures = append(t.Measures, m)
		p.Series = append(p.Series, m.Line(application, -100, 100))
	}
	return reproduce.Experiment{
		Title:  "Beyond the paper: split only if it pays",
		Text:   []string{"Adaptive splits a job only if it loses less by running longer than by waiting for a single cluster. Both are predicted, from the CCR and the latencies, and from the estimates of what runs."},
		Claims: []reproduce.Claim{{Text: "adaptive is at least as good as the better of WF and FCM, within 2 %", Published: "–", Here: fmt.Sprintf("worst %s (%s)", reproduce.FormatDeviation(worst, reproduce.Percent), where), Holds: worst <= 2}},
		Tables: []reproduce.Table{t},
		Plots:  []reproduce.Plot{p},
	}
}
