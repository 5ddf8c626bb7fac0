package reproduce

import (
	"strings"
	"testing"
)

// scored has figures at all distances, one of another reading, a claim of each kind,
// one of our own, and an experiment beyond the paper.
func scored() []Experiment {
	cells := func(pairs ...float64) (c []Cell) {
		for i := 0; i < len(pairs); i += 2 {
			c = append(c, Cell{Published: Number(pairs[i]), Here: Number(pairs[i+1])})
		}
		return c
	}
	tables := []Table{{Columns: []string{"a", "b", "c", "d"}, Measures: []Measure{
		{Unit: Jobs, Cells: cells(100, 105, 200, 220, 300, 375, 400, 900)}, // 5, 10, 25 and 125 %, in order
		{Unit: Jobs, Cells: cells(100, 500, 200, 50)},                      // the wrong way round
		{Unit: Percent, Cells: cells(10, 15, 50, 80)},                      // in points: 5, and 30, in order
		{Unit: Jobs, Cells: cells(100, 101), Alternative: true},
		{Unit: Jobs, Cells: []Cell{{Published: None, Here: 3}, {Published: 3, Here: None}}},
	}}}
	return []Experiment{
		{Tables: tables, Claims: []Claim{
			{Published: "so", Holds: true}, {Published: "so", Shape: true}, {Published: "so"}, {Published: unsaid, Holds: true},
		}},
		{Tables: tables, Claims: []Claim{{Published: "so", Holds: true}}, Beyond: true},
	}
}

func TestScore(t *testing.T) {
	want := Score{Figures: 9, Within5: 2, Within10: 3, Within25: 4, Shape: 6, Claims: 3, Hold: 1, ClaimsShape: 2}
	if got := ScoreOf(scored()); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestSizedClaims: what the paper gives a size of holds from half of it to twice as much,
// and not at all the other way.
func TestSizedClaims(t *testing.T) {
	for _, tt := range []struct {
		published, here Number
		holds, shape    bool
	}{
		{-3, -1.5, true, true}, {-3, -6, true, true}, {-3, -1.4, false, true}, {-3, -6.1, false, true},
		{-3, 3, false, false}, {32, 1.3, false, true}, {32, 0, false, false}, {32, None, false, false},
	} {
		if c := Sized("", tt.published, tt.here, "", ""); c.Holds != tt.holds || c.Shape != tt.shape {
			t.Errorf("%v where %v is published: holds %v, in shape %v", tt.here, tt.published, c.Holds, c.Shape)
		}
	}
	c := Moved("it falls", [2]Number{100, 97}, [2]Number{50, 49}, 0)
	if !c.Holds || c.Published != "100 → 97 (−3.0 %)" || c.Here != "50 → 49 (−2.0 %)" {
		t.Errorf("%+v", c)
	}
}

// TestSummary: the page has a line for each paper, their sum, and their readings.
func TestSummary(t *testing.T) {
	var s Summary
	for _, name := range []string{"first", "second"} {
		s.Add(&Report{Paper: name, Score: ScoreOf(scored()), Readings: []Reading{{Of: "days of " + name, Sentence: "two days", Chosen: "by load"}}})
	}
	var text strings.Builder
	if err := s.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first", "second", "days of second: “two days”. Read as: by load.", "18", "12 (67 %)", "16 (67 %)"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in:\n%s", want, text.String())
		}
	}
	if _, err := s.Save(t.TempDir()); err != nil {
		t.Error(err)
	}
}
