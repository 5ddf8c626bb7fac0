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
	metWithin  = 5.0
	nearWithin = 15.0
)

// verdictText explains them on the page.
var verdictText = fmt.Sprintf("A figure is met if it is within %.0f %% of the published one, near within %.0f %%; "+
	"what is a percentage itself is compared in points. What a paper says in words holds or does not.", metWithin, nearWithin)

// paperReport is the JSON of gridnode testnet reproduce, as far as it is used here.
type paperReport struct {
	Title       string   `json:"title"`
	Notes       []string `json:"notes"`
	Runs        int      `json:"runs"`
	Experiments []struct {
		Title  string   `json:"title"`
		Text   []string `json:"text"`
		Claims []struct {
			Text, Published, Here string
			Holds                 bool
		} `json:"claims"`
		Tables []paperTable `json:"tables"`
	} `json:"experiments"`
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
	beside, count := r.beside()
	text := fmt.Sprintf("Of the figures %d are met, %d near and %d depart. Of what the paper says in words, %d hold and %d depart. ",
		count["met"], count["near"], count["departs"]+count["none"], count["holds"], count["fails"])
	b.WriteString(section("Published and ours", text+verdictText, beside.markdown(), []string{command}))
	b.WriteString("\n## How it was done\n\n")
	b.WriteString(wrap(r.Title+".", widthMax))
	for _, note := range r.Notes {
		b.WriteString("\n" + wrap(note, widthMax))
	}
	for _, e := range r.Experiments {
		var own strings.Builder
		for _, text := range e.Text {
			own.WriteString("\n" + wrap(text, widthMax))
		}
		for _, t := range e.Tables {
			if rows := t.ours(); len(rows) > 1 {
				own.WriteString("\n**" + t.Title + "**\n\n")
				if t.Note != "" {
					own.WriteString(wrap(t.Note, widthMax) + "\n")
				}
				own.WriteString(rows.markdown())
			}
		}
		if own.Len() > 0 {
			b.WriteString("\n## " + e.Title + "\n" + own.String())
		}
	}
	return b.String()
}

// beside returns the table of all that the paper prints, and how many rows have which
// verdict; what the paper says in words and does not hold is counted as "fails".
func (r *paperReport) beside() (out grid, count map[string]int) {
	count = map[string]int{}
	out = grid{{"figure", "published", "ours", "deviation", "verdict"}}
	limits := []int{46, 19, 19, 12, 8}
	for _, e := range r.Experiments {
		for _, c := range e.Claims {
			verdict := "holds"
			if c.Holds {
				count["holds"]++
			} else {
				verdict = "departs"
				count["fails"]++
			}
			out = append(out, grid{{c.Text, c.Published, c.Here, "", verdict}}.wrapped(limits...)...)
		}
		for _, t := range e.Tables {
			for _, m := range t.Measures {
				for i, c := range m.Cells {
					if c.Published == nil || i >= len(t.Columns) {
						continue
					}
					row := []string{r.short(t.Title) + ", " + m.label() + ": " + t.Columns[i], m.number(c.Published), m.number(c.Here), "–", "none"}
					if c.Here != nil {
						row[3], row[4] = m.deviation(*c.Published, *c.Here)
					}
					count[row[4]]++
					out = append(out, grid{row}.wrapped(limits...)...)
				}
			}
		}
	}
	return out, count
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

// ours returns the table of those measures of which the paper prints nothing.
func (t *paperTable) ours() grid {
	out := grid{append([]string{"figure"}, t.Columns...)}
	for _, m := range t.Measures {
		row, published := []string{m.label()}, false
		for _, c := range m.Cells {
			published = published || c.Published != nil
			row = append(row, m.number(c.Here))
		}
		if !published && len(row) == len(out[0]) {
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
	}
	return text, "departs"
}
