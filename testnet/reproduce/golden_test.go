package reproduce

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write testdata anew")

// example is a report with every kind of figure.
func example() *Report {
	return &Report{
		Paper: "example", Title: "A. Author: An example <&> (2004)", Command: "gridnode testnet reproduce example", Seed: 1, Runs: 3, WallSeconds: 1.5,
		Notes:    []string{"A note."},
		Readings: []Reading{{"days", "two days", "by load"}, {"wait", "", "none"}},
		Inputs:   []Input{{1, "a", "a.swf", 86400, 1234, 56.7, "1234 kept, 1 repaired"}},
		Experiments: []Experiment{{
			Title: "Experiment 1: all of it", Text: []string{"A paragraph."},
			Claims: []Claim{{"it rises", "1 → 2", "1 → 3", true, false}, {"it falls", "2 → 1", "1 → 3", false, false}, {"it doubles", "1 → 2", "1 → 9", false, true}},
			Tables: []Table{{
				Title: "Table 1", Note: "A note.", Columns: []string{"a", "b"},
				Measures: []Measure{
					{"accepted", Percent, 2, []Cell{{90.3, 93.87, &Spread{92, 90, 94.5, 5}}, {100, 100, nil}}, false},
					{"incentive", Credits, 0, []Cell{{2.12e9, 2.385e9, nil}, {None, -1234.5, nil}}, true},
					{"messages", Messages, 1, []Cell{{0, 1, nil}, {None, None, nil}}, false},
				},
			}},
			Plots: []Plot{
				{Figure: "Figure 1 (a)", Title: "Bars.", Y: "jobs", Columns: []string{"a", "b<c"}, Series: []Series{{Name: "published", Values: []Number{1, None}, Published: true}, {Name: "here", Values: []Number{2, 3}}}},
				{Figure: "Figure 1 (b)", Title: "Lines.", X: "sites", Y: "messages", At: []float64{10, 50}, Series: []Series{{Name: "mean", Values: []Number{5, 17}}, {Name: "most", Values: []Number{14, 94}, Bound: true}, {Name: "published", Values: []Number{5.55, 17.38}, Published: true}}},
			},
		}},
	}
}

// TestGolden: the pieces of a report look as they did when they were last looked at.
func TestGolden(t *testing.T) {
	for _, tt := range []struct {
		file  string
		write func(*bytes.Buffer) error
	}{
		{"example.txt", func(b *bytes.Buffer) error { return example().Write(b, "table") }},
		{"example.json", func(b *bytes.Buffer) error { return example().Write(b, "json") }},
		{"example.csv", func(b *bytes.Buffer) error { return example().writeCSV(b) }},
		{"example.html", func(b *bytes.Buffer) error { return example().writeHTML(b) }},
	} {
		t.Run(tt.file, func(t *testing.T) {
			var b bytes.Buffer
			if err := tt.write(&b); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", tt.file)
			if *rewrite {
				if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(b.Bytes(), want) {
				t.Errorf("differs from %s; see with -rewrite and git diff. Got\n%s", path, b.Bytes())
			}
		})
	}
}

// TestPageStandsAlone: the page refers to nothing outside itself, and texts are escaped.
func TestPageStandsAlone(t *testing.T) {
	var b bytes.Buffer
	if err := example().writeHTML(&b); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, bad := range []string{"<script", "<link", "src=", "url(", "@import", "<&>", "b<c"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for _, host := range strings.Split(page, "http")[1:] {
		if !strings.HasPrefix(host, "://www.w3.org/") { // names of XML, not addresses
			t.Errorf("the page refers to http%.40s", host)
		}
	}
	if n := strings.Count(page, "<figcaption>"); n != 2 || strings.Count(page, "</svg>") < n {
		t.Errorf("%d plots", n)
	}
}

// TestDeviation: points of percentages, percent of everything else.
func TestDeviation(t *testing.T) {
	for _, tt := range []struct {
		unit            Unit
		published, here Number
		want            Number
		text            string
	}{
		{Percent, 90.3, 93.87, 3.57, "+3.6"},
		{Percent, 100, 99.98, -0.02, "0.0"},
		{Jobs, 417, 400, -4.0767, "−4.1 %"},
		{Jobs, 0, 0, 0, "0.0 %"},
		{Jobs, 0, 5, None, "–"},
		{Credits, 2.12e9, 2.12e9 * 1.25, 25, "+25.0 %"},
		{Seconds, None, 5, None, "–"},
		{Seconds, 5, None, None, "–"},
	} {
		m := Measure{Unit: tt.unit, Cells: []Cell{{Published: tt.published, Here: tt.here}}}
		got := m.Deviation(0)
		if got.Known() != tt.want.Known() || got.Known() && math.Abs(float64(got-tt.want)) > 1e-3 {
			t.Errorf("%v %v against %v: deviation %v, want %v", tt.here, tt.unit, tt.published, got, tt.want)
		}
		if text := FormatDeviation(got, tt.unit); text != tt.text {
			t.Errorf("deviation %v prints as %q, want %q", got, text, tt.text)
		}
	}
}

func TestSpread(t *testing.T) {
	if s := SpreadOf([]Number{3, None, 1, 8}); s != (Spread{4, 1, 8, 3}) {
		t.Errorf("got %+v, want mean 4, 1 to 8, of 3", s)
	}
	if s := SpreadOf([]Number{None}); s.N != 0 || s.Mean.Known() || s.Min.Known() || s.Max.Known() {
		t.Errorf("spread of nothing is %+v", s)
	}
}

func TestNumber(t *testing.T) {
	for _, tt := range []struct {
		n        Number
		decimals int
		want     string
	}{
		{0, 0, "0"}, {999, 0, "999"}, {1000, 0, "1 000"}, {1234567.891, 2, "1 234 567.89"}, {-1234, 0, "−1 234"}, {0.5, 1, "0.5"}, {-0.04, 1, "0.0"}, {-0.06, 1, "−0.1"}, {None, 2, "–"},
	} {
		if got := strings.ReplaceAll(Format(tt.n, tt.decimals), " ", " "); got != tt.want {
			t.Errorf("%v prints as %q, want %q", float64(tt.n), got, tt.want)
		}
	}
	text, err := json.Marshal([]Number{None, 1.5, Number(math.Inf(1))})
	if err != nil || string(text) != "[null,1.5,null]" {
		t.Errorf("%s, %v", text, err)
	}
}

// TestTicks: four to ten even steps within the axis.
func TestTicks(t *testing.T) {
	for _, most := range []float64{1e-9, 0.7, 1, 3, 95.24, 100, 817, 12_416, 1.42e9} {
		marks := ticks{}.Ticks(0, most)
		if len(marks) < 4 || len(marks) > 11 || marks[0].Value != 0 || marks[len(marks)-1].Value > most {
			t.Errorf("axis to %v has %+v", most, marks)
		}
	}
}
