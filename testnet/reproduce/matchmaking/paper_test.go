package matchmaking

import (
	"context"
	"math"
	"strings"
	"testing"

	"gridnode/testnet/measure"
	"gridnode/testnet/reproduce"
	"gridnode/testnet/reproduce/reproducetest"
	"gridnode/testnet/scenario/delegation"
)

// TestDelegatedMatchmaking repeats one load level with two sets, which is enough to
// see every architecture and the claims about it.
func TestDelegatedMatchmaking(t *testing.T) {
	o := reproduce.DefaultOptions()
	o.Windows, o.Sizes = 1, []int{50}
	if reproducetest.Begins(t, Paper, o) {
		return
	}
	r, err := reproduce.Reproduce(context.Background(), Paper, o)
	if err != nil {
		t.Fatal(err)
	}
	if want := 18 + 2*len(setLoads); r.Runs != want || len(r.Experiments) != 3 {
		t.Fatalf("%d runs and %d experiments, want %d (six architectures, two sets and the long run, and the sets that are counted) and 3", r.Runs, len(r.Experiments), want)
	}
	e := r.Experiments[0]
	if jf := e.Tables[0].Measures[4]; len(e.Plots) != 2 || len(e.Claims) != 7 || len(jf.Cells) != 6 || jf.Cells[0].Here != 100 {
		t.Errorf("four months: %d plots and %d claims, want 2 and 7; jobs finished %+v", len(e.Plots), len(e.Claims), jf)
	}
	if jobs := r.Experiments[1].Tables[0].Measures[0].Cells[1]; jobs.Here < 10_000 || jobs.Here > 14_000 {
		t.Errorf("sets have %v jobs in the mean, want about %v", jobs.Here, jobs.Published)
	}
	e = r.Experiments[2]
	for _, table := range e.Tables[:4] {
		for _, m := range table.Measures {
			if here := m.Cells[0].Here; !here.Known() || here < 0 {
				t.Errorf("%s of %s is %v", table.Title, m.Name, here)
			}
		}
	}
	if len(e.Claims) < 3 || len(e.Plots) != 5 {
		t.Errorf("%d claims, %d plots", len(e.Claims), len(e.Plots))
	}
	var text strings.Builder
	if err := r.Write(&text, "table"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Save(t.TempDir()); err != nil {
		t.Fatal(err)
	}
}

func TestHalfWidth(t *testing.T) {
	// Five numbers with a standard deviation of √2.5: t(4) = 2.776.
	if got, want := halfWidth([]reproduce.Number{1, 2, 3, 4, 5}), 2.776*math.Sqrt(2.5/5); math.Abs(float64(got)-want) > 1e-9 {
		t.Errorf("half width %v, want %v", got, want)
	}
	if got := halfWidth([]reproduce.Number{1}); got.Known() {
		t.Errorf("half width of one number is %v", got)
	}
}

// TestMatchmakingPlan checks the size of the whole evaluation: six architectures at 17
// load points, and what is beside them.
func TestMatchmakingPlan(t *testing.T) {
	o := reproduce.DefaultOptions()
	o.Quick = true
	study, err := planMatchmaking(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, r := range study.Runs {
		if strings.Contains(r.Name, "threshold 100, binding 0 s, neighbours, 1 days") {
			compared++
		}
	}
	if compared != 6*16*10 { // 17 load points; 60 % and 60/60 are one
		t.Errorf("%d runs of the comparison, want 960", compared)
	}
}

// TestMatchmakingReport makes the whole report of runs that are far too short, in which
// little is as published: what departs must be explained, and in whole sentences.
func TestMatchmakingReport(t *testing.T) {
	results := map[string]*measure.Result{}
	for _, a := range delegation.Architectures {
		cfg := delegation.Default()
		cfg.Architecture, cfg.LoadDAS, cfg.LoadG5K, cfg.Days = a, 100, 100, 0.2
		r, err := delegation.Run(context.Background(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		results[a] = r
	}
	s := newMatchStudy(reproduce.DefaultOptions())
	for _, c := range s.cases() {
		for set := range s.sets {
			c.set = set + 1
			s.results[c] = results[c.architecture]
		}
	}
	s.sizes = []setSize{{953, 5000, 953}, {39_550, 240_000, 39_550}}
	departs := 0
	r := reproduce.Report{Paper: "delegated-matchmaking", Notes: s.notes(), Experiments: s.report()}
	for _, e := range r.Experiments {
		for _, c := range e.Claims {
			if !c.Holds {
				departs++
			}
		}
	}
	var text strings.Builder
	if err := r.Write(&text, "table"); err != nil {
		t.Fatal(err)
	}
	if len(r.Experiments) != 10 || departs < 10 || strings.Count(text.String(), "Not as published:") < 8 {
		t.Errorf("%d experiments, %d claims depart, %d explained", len(r.Experiments), departs, strings.Count(text.String(), "Not as published:"))
	}
	if at := strings.Index(text.String(), "%!"); at >= 0 {
		t.Errorf("the report has a verb without its value: …%s…", text.String()[max(at-80, 0):at+20])
	}
	if strings.Contains(text.String(), "NaN") {
		t.Error("the report has a figure that is no number")
	}
}
