package reproduce

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// Report is what repeating a paper gave. Its JSON keys are stable.
type Report struct {
	Paper       string       `json:"paper"`
	Title       string       `json:"title"`
	Command     string       `json:"command"` // gives the same report
	Seed        uint64       `json:"seed"`
	Notes       []string     `json:"notes"`
	Readings    []Reading    `json:"readings,omitempty"` // that were chosen
	Inputs      []Input      `json:"inputs"`
	Experiments []Experiment `json:"experiments"`
	Score       Score        `json:"score"`
	Runs        int          `json:"runs"`
	WallSeconds Number       `json:"wallSeconds"`

	// Intro says how to read the page, and Wanted heads the column of what a claim is
	// compared with; both default to what suits a published evaluation.
	Intro  string `json:"-"`
	Wanted string `json:"-"`
}

func (r *Report) wanted() string { return cmp.Or(r.Wanted, "published") }

// Write prints the report as "table" or "json".
func (r *Report) Write(w io.Writer, format string) error {
	switch format {
	case "table":
		return r.writeText(w)
	case "json":
		return r.writeJSON(w)
	}
	return fmt.Errorf("%w: --output: %q: want table or json", ErrConfig, format)
}

func (r *Report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// Save writes PAPER.html, PAPER.csv and PAPER.json into a directory, which it makes
// if need be, and returns the path of the first.
func (r *Report) Save(dir string) (html string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("save report: %w", err)
	}
	for _, f := range []struct {
		suffix string
		write  func(io.Writer) error
	}{{".html", r.writeHTML}, {".csv", r.writeCSV}, {".json", r.writeJSON}} {
		if err := save(filepath.Join(dir, r.Paper+f.suffix), f.write); err != nil {
			return "", fmt.Errorf("save report: %w", err)
		}
	}
	return filepath.Join(dir, r.Paper+".html"), nil
}

func save(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), f.Close())
	}
	return f.Close()
}

// writeCSV prints a line per figure.
func (r *Report) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	rows := [][]string{{"experiment", "table", "measure", "unit", "column", "published", "here", "deviation", "mean", "min", "max", "workloads"}}
	number := func(n Number) string {
		if !n.Known() {
			return ""
		}
		return strconv.FormatFloat(float64(n), 'g', 10, 64)
	}
	for _, e := range r.Experiments {
		for _, t := range e.Tables {
			for _, m := range t.Measures {
				for i, c := range m.Cells {
					if !c.Here.Known() && !c.Published.Known() {
						continue
					}
					s := Spread{Mean: c.Here, Min: c.Here, Max: c.Here, N: 1}
					if c.Spread != nil {
						s = *c.Spread
					}
					rows = append(rows, []string{
						e.Title, t.Title, m.Name, string(m.Unit), t.Columns[i], number(c.Published), number(c.Here), number(m.Deviation(i)),
						number(s.Mean), number(s.Min), number(s.Max), strconv.Itoa(s.N),
					})
				}
			}
		}
	}
	return out.WriteAll(rows)
}
