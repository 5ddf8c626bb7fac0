package coallocation

import (
	"strings"

	"gridnode/testnet/reproduce"
)

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
		Claims: s.claimsApplications(),
		Tables: []reproduce.Table{sat, s.tableV(), changes, observed},
		Plots:  []reproduce.Plot{a, b},
	}
}

// tableV compares the change at the utilizations of table V.
func (s *coallocationStudy) tableV() reproduce.Table {
	t := reproduce.Table{Title: "Table V, simulation: change in mean response at the net utilization where the paper's has it"}
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

// experimentCCR is figure 8.
func (s *coallocationStudy) experimentCCR() reproduce.Experiment {
	columns, at := columnsOf(s.utilizations)
	t := reproduce.Table{Title: "Figure 8: change in mean response, FCM against WF, by CCR", Columns: columns}
	p := reproduce.Plot{Figure: "Figure 8", Title: "Change in mean response with FCM against WF.", X: "net utilization, %", Y: "change, %", At: at}
	for _, application := range applicationsCCR {
		name := "CCR " + strings.TrimPrefix(application, "ccr=")
		c := coallocationCase{policy: "fcm", application: application}
		m := byUtilization(name, reproduce.Percent, s.utilizations, func(u int) reproduce.Cell {
			c.utilization = u
			return reproduce.Cell{Published: reproduce.None, Here: s.change(c)}
		})
		t.Measures = append(t.Measures, m)
		p.Series = append(p.Series, m.Line(name, -100, changeShown))
	}
	return reproduce.Experiment{
		Title:  "By how much an application communicates (section VI-C)",
		Text:   []string{"The synthetic application takes 180 s in one cluster, CCR/(1+CCR) of it for communication. " + changeGaps},
		Claims: s.claimsCCR(),
		Tables: []reproduce.Table{t},
		Plots:  []reproduce.Plot{p},
	}
}
