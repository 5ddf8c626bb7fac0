package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

// paper is all that repeating a published evaluation gives: one table of what the
// paper prints beside ours, then what stands below its experiments and the figures
// that the paper does not print.
type paper struct {
	name string
	logs bool // it reads logs
}

// What a deviation is called. It is in percent of the published figure, or in points
// where that is a percentage itself.
const (
	metWithin   = 5.0
	nearWithin  = 10.0
	roughWithin = 25.0
)

// verdictText explains them on the page.
var verdictText = fmt.Sprintf("A figure is met if it is within %.0f %% of the published one, near within %.0f %%, rough within %.0f %%; "+
	"what is a percentage itself is compared in points. A figure is in shape if it is rough at least, or above and below the same others of its row as in the paper. "+
	"What a paper says in words holds if it is so here and, where the paper gives its size, at least half and at most twice as large; "+
	"it is in shape if it goes the way that is said.", metWithin, nearWithin, roughWithin)

// paperReport is the JSON of gridnode testnet reproduce, as far as it is used here.
type paperReport struct {
	Title    string   `json:"title"`
	Notes    []string `json:"notes"`
	Readings []struct{ Of, Sentence, Chosen string }
	Runs     int `json:"runs"`
	Score    struct {
		Figures, Within5, Within10, Within25, Shape int
		Claims, Hold, ClaimsShape                   int
	}
	Experiments []paperExperiment `json:"experiments"`
}

// paperExperiment is one of a paper, or beyond it.
type paperExperiment struct {
	Title  string       `json:"title"`
	Text   []string     `json:"text"`
	Beyond bool         `json:"beyond"`
	Claims []paperClaim `json:"claims"`
	Tables []paperTable `json:"tables"`
}

type paperClaim struct {
	Text, Published, Here string
	Holds, Shape          bool
}

func (c *paperClaim) verdict() string {
	switch {
	case c.Holds:
		return "holds"
	case c.Shape:
		return "in shape"
	}
	return "departs"
}

type paperTable struct {
	Title    string         `json:"title"`
	Note     string         `json:"note"`
	Columns  []string       `json:"columns"`
	Measures []paperMeasure `json:"measures"`
}

type paperMeasure struct {
	Name     string      `json:"name"`
	Unit     string      `json:"unit"`
	Decimals int         `json:"decimals"`
	Cells    []paperCell `json:"cells"`

	Alternative bool `json:"alternative"` // of a reading that was not chosen
}

type paperCell struct {
	Published, Here *float64
	Spread          *struct{ Min, Max *float64 }
}

func (p paper) measure(ctx context.Context, run runner) (string, error) {
	command := "gridnode testnet reproduce " + p.name + " " + seed
	if p.logs {
		command += " --traces " + logsName
	}
	text, err := run.output(ctx, command+" -o json")
	if err != nil {
		return "", err
	}
	var r paperReport
	if err := json.Unmarshal(text, &r); err != nil {
		return "", fmt.Errorf("%s: %w", command, err)
	}
	return r.markdown(command), nil
}

// markdown writes the report.
func (r *paperReport) markdown(command string) string {
	var b strings.Builder
	c := &r.Score
	text := fmt.Sprintf("Of %d figures %d are met, %d within %.0f %%, %d within %.0f %%, and %d in shape. Of %d things that the paper says in words %d hold, and %d are in shape. ",
		c.Figures, c.Within5, c.Within10, nearWithin, c.Within25, roughWithin, c.Shape, c.Claims, c.Hold, c.ClaimsShape)
	b.WriteString(section("Published and ours", text+verdictText, r.beside().markdown(), []string{command}))
	b.WriteString("\n## How it was done\n\n")
	b.WriteString(wrap(r.Title+".", widthMax))
	for _, note := range r.Notes {
		b.WriteString("\n" + wrap(note, widthMax))
	}
	if len(r.Readings) > 0 {
		b.WriteString("\n**Readings that were chosen**\n\n")
	}
	for _, reading := range r.Readings {
		said := "the paper does not say"
		if reading.Sentence != "" {
			said = "“" + reading.Sentence + "”"
		}
		line := wrap("- "+reading.Of+": "+said+". Read as: "+reading.Chosen+".", widthMax-2)
		b.WriteString(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\n", "\n  ") + "\n")
	}
	for i := range r.Experiments {
		b.WriteString(r.Experiments[i].own())
	}
	return b.String()
}

// own writes what stands below an experiment's figures: its text, what the paper does not
// print, and other readings.
func (e *paperExperiment) own() string {
	var own strings.Builder
	for _, text := range e.Text {
		own.WriteString("\n" + wrap(text, widthMax))
	}
	if e.Beyond && len(e.Claims) > 0 {
		out := grid{{"what is looked at", "published", "ours", "verdict"}}
		for _, c := range e.Claims {
			out = append(out, grid{{c.Text, c.Published, c.Here, c.verdict()}}.wrapped(36, 19, 44, 8)...)
		}
		own.WriteString("\n" + out.markdown())
	}
	for _, t := range e.Tables {
		if rows := t.ours(e.Beyond); len(rows) > 1 {
			own.WriteString("\n**" + t.Title + "**\n\n")
			if t.Note != "" {
				own.WriteString(wrap(t.Note, widthMax) + "\n")
			}
			own.WriteString(rows.markdown())
		}
	}
	if own.Len() == 0 {
		return ""
	}
	return "\n## " + e.Title + "\n" + own.String()
}

// beside returns the table of all that the paper prints.
func (r *paperReport) beside() (out grid) {
	out = grid{{"figure", "published", "ours", "deviation", "verdict"}}
	limits := []int{46, 19, 19, 12, 8}
	for _, e := range r.Experiments {
		if e.Beyond {
			continue
		}
		for _, c := range e.Claims {
			out = append(out, grid{{c.Text, c.Published, c.Here, "", c.verdict()}}.wrapped(limits...)...)
		}
		for _, t := range e.Tables {
			for _, m := range t.Measures {
				for i, c := range m.Cells {
					if m.Alternative || c.Published == nil || i >= len(t.Columns) {
						continue
					}
					row := []string{r.short(t.Title) + ", " + m.label() + ": " + t.Columns[i], m.number(c.Published), m.number(c.Here), "–", "none"}
					if c.Here != nil {
						row[3], row[4] = m.deviation(*c.Published, *c.Here)
					}
					out = append(out, grid{row}.wrapped(limits...)...)
				}
			}
		}
	}
	return out
}

// short is the part of a table's title before the colon ("Table 2"), or all of it if
// another table begins the same.
func (r *paperReport) short(title string) string {
	head, _, _ := strings.Cut(title, ":")
	same := 0
	for _, e := range r.Experiments {
		for _, t := range e.Tables {
			if strings.HasPrefix(t.Title, head+":") {
				same++
			}
		}
	}
	if same > 1 {
		return strings.ReplaceAll(title, ": ", ", ")
	}
	return head
}

// ours returns the table of those measures of which the paper prints nothing, or that
// are of other readings; where a figure is printed for all of a row, it stands with its
// name.
func (t *paperTable) ours(beyond bool) grid {
	out := grid{append([]string{"figure"}, t.Columns...)}
	for _, m := range t.Measures {
		name, published := m.label(), 0
		same := true
		row := []string{""}
		for _, c := range m.Cells {
			if c.Published != nil {
				published++
				same = same && m.Cells[0].Published != nil && *c.Published == *m.Cells[0].Published
			}
			row = append(row, m.number(c.Here))
		}
		if published > 0 && same && published == len(m.Cells) {
			name += " (published " + m.number(m.Cells[0].Published) + ")"
		}
		row[0] = name
		if (published == 0 || m.Alternative || beyond) && len(row) == len(out[0]) {
			out = append(out, row)
		}
	}
	return out
}

// label is the name of a measure with its unit, unless the name says it.
func (m *paperMeasure) label() string {
	if m.Unit == "" || m.Unit == "jobs" || m.Unit == "messages" {
		return m.Name
	}
	return m.Name + ", " + m.Unit
}

func (m *paperMeasure) number(v *float64) string {
	if v == nil {
		return "–"
	}
	return number(*v, m.Decimals)
}

// deviation returns how far ours is from the published figure, and what that is called.
func (m *paperMeasure) deviation(published, here float64) (text, verdict string) {
	off, unit := here-published, " %"
	switch {
	case m.Unit == "%":
		unit = " points"
	case published != 0:
		off *= 100 / published
	case off != 0:
		return "–", "departs"
	}
	text = number(off, 1) + unit
	if !strings.HasPrefix(text, "−") && off != 0 && !strings.HasPrefix(text, "0.0") {
		text = "+" + text
	}
	switch {
	case math.Abs(off) <= metWithin:
		return text, "met"
	case math.Abs(off) <= nearWithin:
		return text, "near"
	case math.Abs(off) <= roughWithin:
		return text, "rough"
	}
	return text, "departs"
}
