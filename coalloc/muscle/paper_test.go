package muscle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/internal/lrms/titan"
)

func draws(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// worked is the worked example (table 1).
func worked() *Batch {
	b := &Batch{Clusters: []Cluster{{Processors: 4, Weights: titan.DefaultWeights}, {Processors: 6, Weights: titan.DefaultWeights}}}
	sizes, times, slacks := []int{2, 1, 4, 3, 1, 2}, []grid.Time{2, 4, 4, 6, 2, 4}, []grid.Time{6, 8, 14, 12, 4, 8}
	for i := range sizes {
		span := times[i] * grid.Second
		b.Jobs = append(b.Jobs, Job{Processors: sizes[i], Deadline: slacks[i]*grid.Second + span, Spans: []grid.Time{span, span}})
	}
	return b
}

func sizesOf(b *Batch) (sizes []int) {
	for i := range b.Jobs {
		sizes = append(sizes, b.Jobs[i].Processors)
	}
	return sizes
}

// TestTable2: "Table 2 shows the composition table after filling these jobs."
func TestTable2(t *testing.T) {
	table := NewTable(sizesOf(worked()), 6)
	for row, want := range []string{
		1: "{J2} {J5}",
		2: "{J1} {J5 J2} {J6}",
		3: "{J2 J1} {J4} {J6 J5}",
		4: "{J3} {J4 J2} {J6 J1}",
		5: "{J3 J2} {J4 J1}",
		6: "{J3 J1} {J6 J4 J2}",
	} {
		if row == 0 {
			continue
		}
		var got []string
		for _, composition := range table.Row(row) {
			var names []string
			for _, job := range composition {
				names = append(names, fmt.Sprintf("J%d", job+1))
			}
			got = append(got, "{"+strings.Join(names, " ")+"}")
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("row %d is %s, want %s", row, text, want)
		}
	}
}

// TestFigure3: "Figure 3 shows the evolution of the job scheduling in C1 and C2."
// By the stated rules: ε is 0 for both clusters, so the larger one, C2, is first and
// gets row 6, J3 and J1; C1 gets the first composition of row 4 without an allocated
// job, J4 and J2; then ε is 72/120 for C2 and 80/80 for C1, so C2 gets J6 behind J1
// and then, with 240/168 against 80/80, C1 gets J5 behind J2.
func TestFigure3(t *testing.T) {
	b := worked()
	packing, err := Pack(b, Published, draws(1))
	if err != nil {
		t.Fatal(err)
	}
	want := []Placement{
		{1, 0, 6, 6, 1, 0}, {0, 0, 4, 4, 1, 0}, {1, 0, 6, 6, 1, 0},
		{0, 0, 4, 4, 1, 0}, {0, 4 * grid.Second, 1, 1, 0, 80.0 / 80}, {1, 2 * grid.Second, 2, 2, 0, 72.0 / 120},
	}
	for i, got := range packing.Placements {
		if got != want[i] {
			t.Errorf("J%d: %+v, want %+v", i+1, got, want[i])
		}
	}
	for c, jobs := range [][]int32{{3, 1, 4}, {2, 0, 5}} {
		if got := packing.Shares[c].Jobs; !slices.Equal(got, jobs) {
			t.Errorf("C%d gets %v, want %v", c+1, got, jobs)
		}
		p := b.Problem(c, &packing.Shares[c])
		if err := packing.Shares[c].Seed.Validate(p); err != nil {
			t.Fatal(err)
		}
		f := p.Measure(&packing.Shares[c].Seed)
		idle := []grid.Time{0, 8 * grid.Second}[c] // C1 is full; in C2 four processors wait from 4 to 6
		if f.Makespan != 6*grid.Second || f.Idle != idle || f.Missed != 0 {
			t.Errorf("C%d: %+v, want a makespan of 6 s, %v idle and no deadline missed", c+1, f, idle)
		}
	}
}

// TestEquations checks equations 1, 7 and 8 on numbers worked out by hand.
func TestEquations(t *testing.T) {
	f := titan.Performance{OverDeadline: 10 * grid.Second, Makespan: 6 * grid.Second, Idle: 8 * grid.Second}
	if got := f.CP(titan.Weights{OverDeadline: 4, Makespan: 3, Idle: 1}); got != (4*10+3*6+1*8)/8.0 {
		t.Errorf("CP is %v, want 8.25", got)
	}
	cp, jobs := []float64{10, 20, 40}, []int{1, 2, 1}
	if got := MCP(cp, jobs); got != 22.5 {
		t.Errorf("MCP is %v, want 22.5", got)
	}
	if got, want := PB(cp, jobs), math.Sqrt((12.5*12.5+2.5*2.5+17.5*17.5)/2); got != want {
		t.Errorf("PB is %v, want %v", got, want)
	}
	if MCP(nil, nil) != 0 || PB(cp[:1], jobs[:1]) != 0 {
		t.Error("no cluster, or one, has no balance")
	}
}
