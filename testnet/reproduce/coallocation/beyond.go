package coallocation

import (
	"fmt"

	"gridnode/testnet/reproduce"
)

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
