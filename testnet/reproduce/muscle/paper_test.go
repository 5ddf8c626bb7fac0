package muscle

import (
	"context"
	"strings"
	"testing"

	"gridnode/testnet/reproduce"
	"gridnode/testnet/reproduce/reproducetest"
)

// TestMuscle repeats the paper with few jobs, and looks at what the report says.
func TestMuscle(t *testing.T) {
	o := reproduce.DefaultOptions()
	o.Windows, o.Jobs = 2, 120
	if reproducetest.Begins(t, Paper, o) {
		return
	}
	r, err := reproduce.Reproduce(context.Background(), Paper, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Experiments) != 9 {
		t.Fatalf("%d experiments, want the case study, figures 4 to 7, sizes, readings, the variant and the optimum", len(r.Experiments))
	}
	plots := 0
	for i, e := range r.Experiments {
		plots += len(e.Plots)
		for _, table := range e.Tables {
			for _, m := range table.Measures {
				if len(m.Cells) != len(table.Columns) {
					t.Errorf("%s: %s has %d cells for %d columns", table.Title, m.Name, len(m.Cells), len(table.Columns))
				}
				for c, cell := range m.Cells {
					if !cell.Here.Known() {
						t.Errorf("%s: %s of %s is unknown", table.Title, m.Name, table.Columns[c])
					}
					if i < 8 && (cell.Spread == nil || cell.Here < cell.Spread.Min || cell.Here > cell.Spread.Max) {
						t.Errorf("%s: %s of %s is %v, in a spread of %+v", table.Title, m.Name, table.Columns[c], cell.Here, cell.Spread)
					}
				}
			}
		}
	}
	if plots != 2+4+2+2+2 {
		t.Errorf("%d plots, want those of figures 4 to 7, and figure 4 with the variant", plots)
	}
	// All that the text prints is compared: four margins of figure 4 and three of figure 6.
	if r.Score.Figures != 7 || r.Score.Claims != 26 {
		t.Errorf("%d figures and %d claims are compared, want 7 and 26", r.Score.Figures, r.Score.Claims)
	}
	for _, c := range r.Experiments[0].Claims {
		if !c.Holds {
			t.Errorf("%s: %s", c.Text, c.Here)
		}
	}
	// What holds with the paper's number of jobs holds with few: of policies at the same
	// load MUSCLE leaves fewer jobs waiting, and more with more load.
	in := func(measure int) []reproduce.Cell { return r.Experiments[1].Tables[0].Measures[measure].Cells }
	for i := range muscleQueues {
		ours, dll, wrand := in(5)[i].Here, in(6)[i].Here, in(7)[i].Here
		if i > 2 && (ours >= dll || ours >= wrand) || i > 0 && ours <= in(5)[0].Here {
			t.Errorf("at %d jobs %v wait with MUSCLE, %v with DLL, %v with WRAND", muscleQueues[i], ours, dll, wrand)
		}
	}
	margins := &r.Experiments[1].Tables[0].Measures[3]
	if got := margins.Cells[1]; got.Published != 12.1 || margins.Cells[0].Published.Known() {
		t.Errorf("the margin over DLL at 40 jobs is %+v, want it beside 12.1", got)
	}
	for _, m := range r.Experiments[8].Tables[0].Measures {
		for i, c := range m.Cells {
			if c.Here < -1e-9 {
				t.Errorf("%s is %v %% better than the optimum of %s", m.Name, -c.Here, exactSettings[i].name)
			}
		}
	}
	if _, err := r.Save(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := r.Write(&text, "table"); err != nil || !strings.Contains(text.String(), "Figure 7") {
		t.Errorf("error %v, text of %d bytes", err, text.Len())
	}
}

// TestMuscleQuick: without what the paper does not have, the variant is not run.
func TestMuscleQuick(t *testing.T) {
	o := reproduce.DefaultOptions()
	o.Windows, o.Jobs, o.Quick = 1, 1, true
	r, err := reproduce.Reproduce(context.Background(), Paper, o)
	if err != nil {
		t.Fatal(err)
	}
	if settings := 8 + 2*3 + 2*2 + 3 + 4; r.Runs != 3*settings || len(r.Experiments) != 6 {
		t.Errorf("%d runs and %d experiments, want 3 policies in %d settings, and 6", r.Runs, len(r.Experiments), settings)
	}
}
