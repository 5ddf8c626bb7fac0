package reproduce

import (
	"bytes"
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"
	"sync"
	"text/tabwriter"
)

// Summary is one page about the reports of several papers: how many of their figures
// and claims are met, and how they were read where they are open.
type Summary struct {
	Papers []Summarised `json:"papers"`
	Total  Score        `json:"total"`
}

// Summarised is what a Summary says of one paper.
type Summarised struct {
	Paper    string    `json:"paper"`
	Score    Score     `json:"score"`
	Readings []Reading `json:"readings,omitempty"`
}

// Add enters a report.
func (s *Summary) Add(r *Report) {
	s.Papers = append(s.Papers, Summarised{Paper: r.Paper, Score: r.Score, Readings: r.Readings})
	s.Total.Plus(r.Score)
}

// summaryHeads are the columns of the page, and summaryText what they mean.
var summaryHeads = []string{"paper", "figures", "≤ 5 %", "≤ 10 %", "≤ 25 %", "in shape", "claims", "hold", "in shape", "all in shape"}

const summaryText = "Figures are those that the papers print; one that is a percentage itself is compared in points. " +
	"A figure is in shape if it is within 25 %, or above and below the same others of its row as in the paper. " +
	"A claim is what a paper says in words: it holds if it is so here and, where the paper gives its size, at least half and at most twice as large; " +
	"it is in shape if it goes the way that is said. Readings other than those chosen are not counted."

// rows returns the lines of the table.
func (s *Summary) rows() [][]string {
	row := func(name string, c *Score) []string {
		all, in := c.Shapes()
		of := func(n, all int) string {
			return fmt.Sprintf("%d (%s %%)", n, Format(PercentOf(int64(n), int64(all)), 0))
		}
		return []string{
			name, fmt.Sprint(c.Figures), of(c.Within5, c.Figures), of(c.Within10, c.Figures), of(c.Within25, c.Figures), of(c.Shape, c.Figures),
			fmt.Sprint(c.Claims), of(c.Hold, c.Claims), of(c.ClaimsShape, c.Claims), of(in, all),
		}
	}
	var rows [][]string
	for i := range s.Papers {
		rows = append(rows, row(s.Papers[i].Paper, &s.Papers[i].Score))
	}
	return append(rows, row("all", &s.Total))
}

// WriteText prints the page for a terminal.
func (s *Summary) WriteText(w io.Writer) error {
	var b bytes.Buffer
	b.WriteString("\nSummary\n=======\n" + wrap(summaryText, 110) + "\n")
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{summaryHeads}, s.rows()...) {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprint(t, cell)
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, p := range s.Papers {
		if len(p.Readings) > 0 {
			b.WriteString("\nHow " + p.Paper + " is read where it is open:\n")
			writeReadings(&b, p.Readings)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// writeReadings prints a line for each reading.
func writeReadings(b *bytes.Buffer, readings []Reading) {
	for _, r := range readings {
		b.WriteString(wrap("- "+r.String(), 110))
	}
}

var summaryPage = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("summary").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>How near the papers are met</title>
<style>body{font:15px/1.5 sans-serif;max-width:70em;margin:2em auto;padding:0 1em}table{border-collapse:collapse}
td,th{padding:.2em .8em;text-align:right;border-bottom:1px solid #ccc}td:first-child,th:first-child{text-align:left}</style></head><body>
<h1>How near the papers are met</h1><p>{{.Text}}</p>
<table><tr>{{range .Heads}}<th>{{.}}</th>{{end}}</tr>{{range .Rows}}<tr>{{range .}}<td>{{.}}</td>{{end}}</tr>{{end}}</table>
{{range .Papers}}{{if .Readings}}<h2>{{.Paper}}: how it is read where it is open</h2><ul>{{range .Readings}}<li>{{.}}</li>{{end}}</ul>{{end}}{{end}}
</body></html>
`))
})

// Save writes summary.html into a directory and returns its path.
func (s *Summary) Save(dir string) (html string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("save summary: %w", err)
	}
	path := filepath.Join(dir, "summary.html")
	err = save(path, func(w io.Writer) error {
		return summaryPage().Execute(w, struct {
			Text   string
			Heads  []string
			Rows   [][]string
			Papers []Summarised
		}{summaryText, summaryHeads, s.rows(), s.Papers})
	})
	if err != nil {
		return "", fmt.Errorf("save summary: %w", err)
	}
	return path, nil
}
