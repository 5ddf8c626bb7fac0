package reproduce

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// writeText prints the report for a terminal.
func (r *Report) writeText(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n\n", r.Title)
	for _, note := range r.Notes {
		b.WriteString(wrap(note, 110))
	}
	writeReadings(&b, r.Readings)
	for i := range r.Experiments {
		e := &r.Experiments[i]
		fmt.Fprintf(&b, "\n%s\n%s\n", e.Title, strings.Repeat("=", len([]rune(e.Title))))
		for _, text := range e.Text {
			b.WriteString(wrap(text, 110))
		}
		if err := writeClaims(&b, r.wanted(), e.Claims); err != nil {
			return err
		}
		for j := range e.Tables {
			if err := e.Tables[j].write(&b); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(&b, "\n%s\n%d runs in %s s\n", r.Command, r.Runs, Format(r.WallSeconds, 1))
	_, err := w.Write(b.Bytes())
	return err
}

func writeClaims(w io.Writer, wanted string, claims []Claim) error {
	if len(claims) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nclaim\t%s\there\tholds\n", wanted)
	for _, c := range claims {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", c.Text, c.Published, c.Here, c.verdict())
	}
	return t.Flush()
}

// verdict is "yes", "NO", or that only the direction is as published.
func (c *Claim) verdict() string {
	switch {
	case c.Holds:
		return "yes"
	case c.Shape:
		return "NO, in shape"
	}
	return "NO"
}

// write prints a block of lines for each measure, a column for each of the table's.
func (t *Table) write(w io.Writer) error {
	fmt.Fprintf(w, "\n%s\n", t.Title)
	if t.Note != "" {
		io.WriteString(w, wrap(t.Note, 110))
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(out, "\t%s\t\n", strings.Join(t.Columns, "\t"))
	for i := range t.Measures {
		for _, line := range t.Measures[i].lines() {
			fmt.Fprintf(out, "%s\t%s\t\n", line.label, strings.Join(line.cells, "\t"))
		}
	}
	return out.Flush()
}

// line is one line of a measure, ready to be printed.
type line struct {
	label string
	kind  string // "published", "here", "deviation" or "spread"
	cells []string
}

// lines returns a measure as lines: what was published, ours, the deviation, and
// the spread, as far as there is any.
func (m *Measure) lines() []line {
	cells := func(text func(i int, c *Cell) string) []string {
		out := make([]string, len(m.Cells))
		for i := range m.Cells {
			out[i] = text(i, &m.Cells[i])
		}
		return out
	}
	name := m.Name
	if m.Unit != Jobs && m.Unit != Messages && m.Unit != "" { // the others say it themselves
		name += ", " + string(m.Unit)
	}
	here := line{name, "here", cells(func(_ int, c *Cell) string { return Format(c.Here, m.Decimals) })}
	var lines []line
	if m.Published() {
		here.label = "here"
		deviation := "deviation"
		if m.Unit == Percent {
			deviation = "deviation, points"
		}
		lines = append(lines,
			line{name + ": published", "published", cells(func(_ int, c *Cell) string { return Format(c.Published, m.Decimals) })}, here,
			line{deviation, "deviation", cells(func(i int, _ *Cell) string { return FormatDeviation(m.Deviation(i), m.Unit) })})
	} else {
		lines = append(lines, here)
	}
	if m.spread() {
		mean := line{"mean of windows", "spread", cells(func(_ int, c *Cell) string {
			if c.Spread == nil {
				return "–"
			}
			return Format(c.Spread.Mean, m.Decimals)
		})}
		if !slices.Equal(mean.cells, here.cells) {
			lines = append(lines, mean)
		}
		lines = append(lines, line{"range", "spread", cells(func(_ int, c *Cell) string { return FormatRange(c.Spread, m.Decimals) })})
	}
	return lines
}

// wrap breaks text into lines of at most width characters.
func wrap(text string, width int) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		n := len([]rune(word))
		if column > 0 && column+1+n > width {
			b.WriteByte('\n')
			column = 0
		} else if column > 0 {
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	b.WriteByte('\n')
	return b.String()
}
