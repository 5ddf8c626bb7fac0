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
	if len(r.Experiments) != 8 {
		t.Fatalf("%d experiments, want figures 4 to 7, sizes, readings, the variant and the optimum", len(r.Experiments))
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
					if i < 7 && (cell.Spread == nil || cell.Here < cell.Spread.Min || cell.Here > cell.Spread.Max) {
						t.Errorf("%s: %s of %s is %v, in a spread of %+v", table.Title, m.Name, table.Columns[c], cell.Here, cell.Spread)
					}
				}
			}
		}
	}
	if plots != 2+4+2+2+2 {
		t.Errorf("%d plots, want those of figures 4 to 7, and figure 4 with the variant", plots)
	}
	// What holds with the paper's number of jobs holds with few: MUSCLE is ahead in MCP,
	// and in PB of DLL from 60 jobs on.
	ahead := 0
	for _, e := range r.Experiments[:5] {
		for _, c := range e.Claims {
			if (strings.Contains(c.Text, "MCP") || strings.Contains(c.Text, "from 60 jobs on")) && c.Published == "always" {
				ahead++
				if !c.Holds {
					t.Errorf("%s: %s: %s", e.Title, c.Text, c.Here)
				}
			}
		}
	}
	if ahead != 2+2+1+1+2 {
		t.Errorf("%d claims that MUSCLE is ahead", ahead)
	}
	// Margins stand beside the published ones, with the reason where they depart.
	for experiment, published := range map[int][]string{
		0: {"12.1", "8.4", "56.7", "48.9"}, 2: {"15.6", "57.5", "13.7"}, 5: {"12.1", "8.4", "56.7", "48.9", "13.7"},
	} {
		text := strings.Join(r.Experiments[experiment].Text, "\n")
		for _, margin := range published {
			if !strings.Contains(text, "(published "+margin+" %") {
				t.Errorf("%s does not name the published margin of %s %%:\n%s", r.Experiments[experiment].Title, margin, text)
			}
		}
		if !strings.Contains(text, "off by more than half") {
			t.Errorf("%s names no margin that departs by more than half:\n%s", r.Experiments[experiment].Title, text)
		}
	}
	margins := &r.Experiments[0].Tables[0].Measures[3]
	if got := margins.Cells[1]; got.Published != 12.1 || margins.Cells[0].Published.Known() {
		t.Errorf("the margin over DLL at 40 jobs is %+v, want it beside 12.1", got)
	}
	for _, m := range r.Experiments[7].Tables[0].Measures {
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
	if settings := 8 + 8 + 2*2 + 3 + 4; r.Runs != 3*settings || len(r.Experiments) != 5 {
		t.Errorf("%d runs and %d experiments, want 3 policies in %d settings, and 5", r.Runs, len(r.Experiments), settings)
	}
}
