package reproduce

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// Number is a figure of a report; None if there is none.
type Number float64

// None is the absence of a figure. It is not equal to itself: ask Known.
var None = Number(math.NaN())

// Known reports whether n is a figure.
func (n Number) Known() bool { return !math.IsNaN(float64(n)) && !math.IsInf(float64(n), 0) }

// MarshalJSON implements json.Marshaler: a number, or null.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.Known() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// Spread is what a figure was over several workloads.
type Spread struct {
	Mean Number `json:"mean"`
	Min  Number `json:"min"`
	Max  Number `json:"max"`
	N    int    `json:"n"` // workloads that gave the figure
}

// SpreadOf returns the spread of those numbers that are known.
func SpreadOf(numbers []Number) Spread {
	s := Spread{Mean: None, Min: None, Max: None}
	sum := 0.0
	for _, n := range numbers {
		if !n.Known() {
			continue
		}
		if s.N++; s.N == 1 {
			s.Min, s.Max = n, n
		}
		s.Min, s.Max = min(s.Min, n), max(s.Max, n)
		sum += float64(n)
	}
	if s.N > 0 {
		s.Mean = Number(sum / float64(s.N))
	}
	return s
}

// Cell is one figure: published, ours, and ours over several workloads.
type Cell struct {
	Published Number  `json:"published"`
	Here      Number  `json:"here"`
	Spread    *Spread `json:"spread,omitempty"` // nil: there was one workload
}

// Unit says what a measure counts, which decides how a deviation is given.
type Unit string

// Units.
const (
	Percent  Unit = "%" // deviations are in points
	Seconds  Unit = "s"
	Credits  Unit = "credits"
	Millions Unit = "million credits"
	Jobs     Unit = "jobs"
	Sites    Unit = "sites"
	Messages Unit = "messages"
	Area     Unit = "processor-s"
	Size     Unit = "processors"
)

// Measure is a row of a table.
type Measure struct {
	Name     string `json:"name"`
	Unit     Unit   `json:"unit"`
	Decimals int    `json:"decimals"`
	Cells    []Cell `json:"cells"` // by column of the table

	// Alternative: it is of a reading that is not the chosen one, or shows again what
	// stands elsewhere; it is not counted.
	Alternative bool `json:"alternative,omitempty"`
}

// Published reports whether the paper prints any figure of m.
func (m *Measure) Published() bool {
	for i := range m.Cells {
		if m.Cells[i].Published.Known() {
			return true
		}
	}
	return false
}

// spread reports whether any figure of m has a spread.
func (m *Measure) spread() bool {
	for i := range m.Cells {
		if m.Cells[i].Spread != nil {
			return true
		}
	}
	return false
}

// Deviation returns how far ours is from the published figure: in points if the
// unit is percent, else in percent of the published figure. It is None if either is
// unknown, or if the published figure is zero and ours is not.
func (m *Measure) Deviation(i int) Number {
	c := &m.Cells[i]
	switch {
	case !c.Published.Known() || !c.Here.Known():
		return None
	case m.Unit == Percent || c.Published == c.Here:
		return c.Here - c.Published
	case c.Published == 0:
		return None
	}
	return 100 * (c.Here - c.Published) / c.Published
}

// Table is measures by column.
type Table struct {
	Title    string    `json:"title"`
	Note     string    `json:"note,omitempty"`
	Columns  []string  `json:"columns"`
	Measures []Measure `json:"measures"`
}

// Claim is what a paper says in words.
type Claim struct {
	Text      string `json:"text"`
	Published string `json:"published"`
	Here      string `json:"here"`
	Holds     bool   `json:"holds"`
	Shape     bool   `json:"shape,omitempty"` // it goes the way that is said, though its size is another
}

// Experiment is one of a paper, or an appendix to it.
type Experiment struct {
	Title  string   `json:"title"`
	Text   []string `json:"text,omitempty"` // paragraphs
	Claims []Claim  `json:"claims,omitempty"`
	Tables []Table  `json:"tables,omitempty"`
	Plots  []Plot   `json:"-"`
	Beyond bool     `json:"beyond,omitempty"` // it is not in the paper, or tries other readings: not counted
}

// Reading says how a paper is read where its text is open: a choice that the code makes
// in one place.
type Reading struct {
	Of       string `json:"of"`       // what is open
	Sentence string `json:"sentence"` // of the paper; empty if it says nothing
	Chosen   string `json:"chosen"`
}

// String returns the reading as one line.
func (r Reading) String() string {
	said := "the paper does not say"
	if r.Sentence != "" {
		said = "“" + r.Sentence + "”"
	}
	return r.Of + ": " + said + ". Read as: " + r.Chosen + "."
}

// Format prints a number with that many decimals, large ones with spaces between
// thousands, and "–" for None.
func Format(n Number, decimals int) string {
	if !n.Known() {
		return "–"
	}
	text := strconv.FormatFloat(math.Abs(float64(n)), 'f', decimals, 64)
	whole := len(text)
	if decimals > 0 {
		whole -= decimals + 1
	}
	for at := whole - 3; at > 0; at -= 3 {
		text = text[:at] + " " + text[at:] // thin, and never at the end of a line
	}
	if n < 0 && strings.ContainsAny(text, "123456789") { // what is rounded to nothing has no sign
		return "−" + text
	}
	return text
}

// FormatDeviation prints a deviation with its sign and unit.
func FormatDeviation(n Number, unit Unit) string {
	if !n.Known() {
		return "–"
	}
	suffix := " %"
	if unit == Percent {
		suffix = ""
	}
	text := Format(Number(math.Abs(float64(n))), 1) + suffix
	switch {
	case text == "0.0"+suffix:
		return text
	case n < 0:
		return "−" + text
	}
	return "+" + text
}

// FormatRange prints the least and the greatest.
func FormatRange(s *Spread, decimals int) string {
	if s == nil || s.N == 0 {
		return "–"
	}
	return Format(s.Min, decimals) + "…" + Format(s.Max, decimals)
}
