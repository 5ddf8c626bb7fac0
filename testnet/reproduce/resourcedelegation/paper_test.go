package resourcedelegation

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gridnode/grid"

	"gridnode/testnet/reproduce"
	"gridnode/testnet/reproduce/reproducetest"
	"gridnode/testnet/workload/tracestest"
)

// TestResourceDelegation repeats the paper with the real logs if they are there, else
// with generated jobs, and looks at what the report says.
func TestResourceDelegation(t *testing.T) {
	o := reproduce.DefaultOptions()
	dir := tracestest.Dir(t)
	if _, err := os.Stat(filepath.Join(dir, machines[0].log)); err == nil && !testing.Short() { // a run of a year of them takes minutes under the race detector
		o.Traces = dir
	}
	if reproducetest.Begins(t, Paper, o) {
		return
	}
	r, err := reproduce.Reproduce(context.Background(), Paper, o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Runs != 9 || len(r.Experiments) != 3 {
		t.Fatalf("%d runs and %d experiments, want 9 and 3", r.Runs, len(r.Experiments))
	}
	pairs := r.Experiments[1]
	within := []float64{3, 1}
	for p, table := range pairs.Tables[:len(delegationPolicies)] {
		if len(table.Columns) != 6 {
			t.Fatalf("%s has columns %v, want two sites of three set-ups", table.Title, table.Columns)
		}
		for i := range table.Columns {
			awrt, leased := &table.Measures[0], &table.Measures[5]
			if u := table.Measures[1].Cells[i].Here; u <= 0 || u > 100 {
				t.Errorf("%s, %s: the utilisation is %v %%: executions are counted more than once", table.Title, table.Columns[i], u)
			}
			if !awrt.Cells[i].Here.Known() || awrt.Cells[i].Here <= 0 || leased.Cells[i].Here <= 0 {
				t.Errorf("%s, %s: AWRT %v, leased area %v", table.Title, table.Columns[i], awrt.Cells[i].Here, leased.Cells[i].Here)
			}
			queue := &table.Measures[6]
			if off := math.Abs(float64(queue.Deviation(i))); o.Traces != "" && !(off <= 13) || queue.Cells[i].Here <= 0 {
				t.Errorf("%s, %s: the mean queue %v is %.1f %% off", table.Title, table.Columns[i], queue.Cells[i].Here, off)
			}
			if off := float64(awrt.Deviation(i)); o.Traces != "" && math.Abs(off) > within[p] {
				t.Errorf("%s, %s: AWRT is %.2f %% off", table.Title, table.Columns[i], off)
			}
		}
	}
	if o.Traces != "" && (r.Score.Claims != 25 || r.Score.Within10 < 85) {
		t.Errorf("the score is %+v, want 25 claims and most figures within 10 %%", r.Score)
	}
	if plots := len(pairs.Plots) + len(r.Experiments[2].Plots); plots != 5 {
		t.Errorf("%d plots, want figures 3 (a), 3 (b), 4 (a), 4 (b) and 5", plots)
	}
	var text strings.Builder
	if err := r.Write(&text, "table"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Save(t.TempDir()); err != nil {
		t.Fatal(err)
	}
}

func TestResourceDelegationWantsItsLogs(t *testing.T) {
	o := reproduce.DefaultOptions()
	o.Traces = t.TempDir()
	if _, err := reproduce.Reproduce(context.Background(), Paper, o); err == nil || !strings.Contains(err.Error(), "--traces") {
		t.Errorf("%v, want an error about --traces", err)
	}
}

// TestReconfiguration: 10 processors; 6 of them are lent from day 2 to 3, 5 borrowed
// from day 3 to 8.
func TestReconfiguration(t *testing.T) {
	r := newReconfiguration(10)
	r.lease(2*grid.Day, 0, 6)
	r.lease(3*grid.Day, 5, 0)
	r.lease(8*grid.Day, 0, 0)
	r.until(10 * grid.Day)
	for permille, want := range map[int64]reproduce.Number{0: 4, 100: 4, 101: 10, 500: 10, 501: 15, 1000: 15} {
		if got := r.sizes.quantile(permille); got != want {
			t.Errorf("quantile %d of the size is %v, want %v", permille, got, want)
		}
	}
	if got := r.sizes.mean(); math.Abs(float64(got)-11.9) > 1e-9 { // (4·10 + 4 + 5·15) / 10
		t.Errorf("mean size %v, want 11.9", got)
	}
	if got := r.leased.mean(); math.Abs(float64(got)-2.5) > 1e-9 {
		t.Errorf("mean leased %v, want 2.5", got)
	}
	p := r.plot(0)
	if len(p.At) != 2 || p.Series[1].Values[0] != 4 || p.Series[2].Values[0] != 15 || p.Series[1].Values[1] != 10 {
		t.Errorf("weeks %v: %+v", p.At, p.Series)
	}
	if mean := float64(p.Series[0].Values[1]); math.Abs(mean-35.0/3) > 1e-9 { // (15 + 2·10) / 3
		t.Errorf("mean of the second week is %v, want 11.67", mean)
	}
}

// TestPrintedAreasContradictU: what the U of either site of a set-up says of the net area
// is the same, and for the set-ups with KTH the printed leased areas say something else.
func TestPrintedAreasContradictU(t *testing.T) {
	for p := range delegationPolicies {
		published := &publishedLeasing[p]
		for setup := range setups {
			u, makespan, leased := ofSites(published.utilization, setup), ofSites(published.makespan, setup), ofSites(published.leased, setup)
			first, second := netOfFirst(setup, u, makespan), netOfSecond(setup, u, makespan)
			if math.Abs(first/second-1) > 0.01 {
				t.Errorf("policy %d, set-up %d: %.0f by the first U and %.0f by the second", p, setup+1, first, second)
			}
			if factor := (leased[0] - leased[1]) / first; (factor > 1.2) != (setup < 2) {
				t.Errorf("policy %d, set-up %d: the areas give %.2f times what U gives", p, setup+1, factor)
			}
		}
	}
}
