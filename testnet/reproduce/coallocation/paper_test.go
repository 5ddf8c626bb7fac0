package coallocation

import (
	"context"
	"strings"
	"testing"

	"gridnode/testnet/reproduce"
	"gridnode/testnet/reproduce/reproducetest"
)

// TestCoAllocation: the report is complete, and its claims follow from its figures.
func TestCoAllocation(t *testing.T) {
	o := reproduce.DefaultOptions()
	o.Windows, o.Sizes = 1, []int{40, 80}
	if reproducetest.Begins(t, Paper, o) {
		return
	}
	r, err := reproduce.Reproduce(context.Background(), Paper, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Experiments) != 11 {
		t.Fatalf("%d experiments", len(r.Experiments))
	}
	holds := map[string]bool{}
	plots := 0
	for _, e := range r.Experiments {
		plots += len(e.Plots)
		for _, c := range e.Claims {
			holds[c.Text] = c.Holds
		}
		for _, table := range e.Tables {
			for _, m := range table.Measures {
				if len(m.Cells) != len(table.Columns) {
					t.Errorf("%s: %s has %d cells for %d columns", table.Title, m.Name, len(m.Cells), len(table.Columns))
				}
				for i, c := range m.Cells {
					if strings.HasPrefix(table.Title, "Figure 10 (") && !(c.Here > 200) {
						t.Errorf("%s: %s at %s is %v", table.Title, m.Name, table.Columns[i], c.Here)
					}
				}
			}
		}
	}
	for _, missed := range []string{"CCR 0.5 gains, then loses (up to 85 %)", "CA outperforms FCM, irrespective of Delft (FCM − CA)"} {
		if _, made := holds[missed]; !made {
			t.Errorf("nothing is said of %q", missed)
		}
	}
	if plots != 2+2+1+2+1 {
		t.Errorf("%d plots, want figures 3, 4, 7 (a), 7 (b), 8, 10 (a), 10 (b), and that of adaptive", plots)
	}
	for _, claim := range []string{
		"WF puts one component on each cluster", "FCM combines two clusters",
		"the execution time increases with the number of clusters combined", "a slight increase, by 7 % to 17 %",
		"the response of Prime and Poisson is lower with FCM", "the response of Wave is higher with FCM",
		"Wave: the response is longer with co-allocation (45 to 90 %)", "a limit of two clusters yields a better response of Wave (45 to 90 %)",
		"CCR 0.1 always benefits (at no utilization more than 0.05 % longer)",
		"restricting co-allocation to groups helps: CA in groups is below FCM, without Delft", "restricting co-allocation to groups helps: CA in groups is below FCM, with Delft",
		"adaptive is at least as good as the better of WF and FCM, within 2 %",
	} {
		if !holds[claim] {
			t.Errorf("%q does not hold, or is not made", claim)
		}
	}
}

// TestSaturation: the first utilization from which on the wait is too long.
func TestSaturation(t *testing.T) {
	s := &coallocationStudy{outcomes: map[coallocationCase][]coallocationOutcome{}}
	c := coallocationCase{policy: "fcm", application: "wave"}
	set := func(waits ...reproduce.Number) {
		for i, w := range waits {
			c.utilization = 70 + 5*i
			s.outcomes[c] = []coallocationOutcome{{wait: w - 10, runTime: 200}, {wait: w + 10, runTime: 200}}
		}
	}
	all := []int{70, 75, 80}
	for _, tt := range []struct {
		waits []reproduce.Number
		want  string
	}{
		{[]reproduce.Number{10, 299, 301}, "75–80 %"},
		{[]reproduce.Number{10, 301, 500}, "70–75 %"},
		{[]reproduce.Number{301, 10, 500}, "75–80 %"}, // one bad day
		{[]reproduce.Number{10, 20, 300}, "not reached"},
	} {
		set(tt.waits...)
		if got := interval(s.saturation(c, all)); got != tt.want {
			t.Errorf("waits %v saturate at %s, want %s", tt.waits, got, tt.want)
		}
	}
}
