package coallocation

import (
	"cmp"
	"fmt"
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
	wf := s.mean(coallocationCase{policy: "wf", application: c.application, utilization: c.utilization, background: c.background})
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
	e := []reproduce.Experiment{
		experimentFigure2(), s.experimentNetwork(), s.experimentSpeeds(), s.experimentRunTimes(), s.experimentReal(),
		s.experimentApplications(), s.experimentCCR(), s.experimentRealCA(), s.experimentCA(),
	}
	if !s.o.Quick {
		e = append(e, s.experimentBackgrounds(), s.experimentAdaptive())
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

// list prints figures as changes in percent.
func list(values []reproduce.Number) string {
	var words []string
	for _, v := range values {
		words = append(words, reproduce.FormatDeviation(v, reproduce.Percent))
	}
	return strings.Join(words, ", ")
}

// all reports whether there are values and all of them are as wanted.
func all(values []reproduce.Number, wanted func(reproduce.Number) bool) bool {
	for _, v := range values {
		if !wanted(v) {
			return false
		}
	}
	return len(values) > 0
}

func descending(a, b reproduce.Number) int { return cmp.Compare(b, a) }
