package scale

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"gridnode/testnet/reproduce"
	"gridnode/testnet/scenario/scale"
)

// Report is what Measure gives.
type Report struct {
	Options     Options
	Results     []*scale.Result // by population, then by size
	Live        []Comparison    // with Options.Live
	WallSeconds float64

	configs []scale.Config
}

// Write prints the report as "table", "json" or "csv".
func (r *Report) Write(w io.Writer, format string) error {
	switch format {
	case "table":
		return r.page().Write(w, "table")
	case "json":
		return r.writeJSON(w)
	case "csv":
		return r.writeCSV(w)
	}
	return fmt.Errorf("output %q: want table, json or csv", format)
}

// writeJSON prints the measurements; keys are stable.
func (r *Report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	var grow []Growth
	for _, oft := range r.Options.OFT {
		grow = append(grow, r.growths(oft)...)
	}
	return e.Encode(struct {
		Command     string          `json:"command"`
		Results     []*scale.Result `json:"results"`
		Live        []Comparison    `json:"live,omitempty"`
		Growth      []Growth        `json:"growth,omitempty"`
		Targets     []Target        `json:"targets"`
		WallSeconds float64         `json:"wallSeconds"`
	}{r.Options.command(), r.Results, r.Live, grow, r.Targets(), r.WallSeconds})
}

// writeCSV prints a line per measurement, with Options.Live for the virtual networks, too.
func (r *Report) writeCSV(w io.Writer) error {
	figures := columns()
	heads := []string{"mode", "placement", "oft", "sites", "seed"}
	for _, f := range figures {
		heads = append(heads, f.name)
	}
	rows := [][]string{heads}
	list := slices.Clone(r.Results)
	for _, c := range r.Live {
		list = append(list, c.virtual...)
	}
	for _, m := range list {
		row := []string{m.Mode, m.Placement, fmt.Sprint(m.OFT), fmt.Sprint(m.Sites), fmt.Sprint(m.Seed)}
		for _, f := range figures {
			row = append(row, fmt.Sprint(f.of(m)))
		}
		rows = append(rows, row)
	}
	return csv.NewWriter(w).WriteAll(rows)
}

// Save writes scale.html, scale.csv and scale.json into a directory, which it makes
// if need be, and returns the path of the first.
func (r *Report) Save(dir string) (string, error) {
	html, err := r.page().Save(dir) // its own CSV and JSON are replaced
	if err != nil {
		return "", err
	}
	for _, f := range []struct {
		name  string
		write func(io.Writer) error
	}{{"scale.csv", r.writeCSV}, {"scale.json", r.writeJSON}} {
		if err := save(filepath.Join(dir, f.name), f.write); err != nil {
			return "", fmt.Errorf("save report: %w", err)
		}
	}
	return html, nil
}

func save(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// page arranges the report as reproduce prints it.
func (r *Report) page() *reproduce.Report {
	targets := reproduce.Experiment{Title: "Targets"}
	if r.Options.Placement == "paper" {
		targets.Text = []string{"They are those of coordinated placement; the published loop is not expected to meet them."}
	}
	for _, t := range r.Targets() {
		targets.Claims = append(targets.Claims, reproduce.Claim{Text: t.Text, Published: t.Wanted, Here: t.Here, Holds: t.Met})
	}
	if len(targets.Claims) == 0 && r.Options.Live {
		targets.Text = append(targets.Text, fmt.Sprintf("Of no type were there %d messages: measure more nodes, or more jobs (--live-jobs).", few))
	}
	page := &reproduce.Report{
		Paper: "scale", Title: "Messages against the number of sites", Command: r.Options.command(), Seed: r.Options.Seed,
		Intro:  "How to read the report stands in docs/performance.md.",
		Wanted: "target", Notes: r.notes(), Runs: len(r.Results), WallSeconds: reproduce.Number(r.WallSeconds),
		Experiments: []reproduce.Experiment{targets},
	}
	if r.Options.Live {
		page.Experiments = append(page.Experiments, r.comparisons())
	}
	for _, oft := range r.Options.OFT {
		if len(r.of(oft)) > 0 {
			page.Experiments = append(page.Experiments, r.population(oft))
		}
	}
	return page
}

// notes says how it was measured.
func (r *Report) notes() []string {
	if r.Options.Live {
		return []string{
			fmt.Sprintf("Real nodes in one process, joined in memory, replay the first %d jobs for each node of the two days of table 1, those longer than two hours left out, so fast that %d arrive a second. ", r.Options.LiveJobs, r.Options.LiveRate) +
				fmt.Sprintf("They begin %v after the nodes have found each other. Look-ups are counted as kad-dht's requests.", r.Options.LiveRest),
			"Virtual networks of the same sites get the same jobs at the same instants, are as old when the first one comes, and are measured for as long.",
		}
	}
	phase := "Rounds of table 1 begin at instants spread over the two days, so that every size sees the same mixture of busy and quiet hours."
	if r.Options.InStep {
		phase = "All rounds of table 1 live through the same hours in step, from noon of the first day: replicas submit the same jobs at the same instants."
	}
	return []string{
		fmt.Sprintf("Table 1 of Grid-Federation, again and again, each round one authority of eight siblings that gossip their load. Each size is measured for %d site-hours, at least %v and at most 48 hours, after ten minutes in which the sites find each other. ", r.Options.SiteHours, SpanMin) + phase +
			" Jobs that would be running when the measurement begins are there, each at its own site, and are not counted.",
		"A message counts once, when it arrives. Negotiation messages are the four kinds that Grid-Federation counts; a completion that is still to come when the measurement ends is counted.",
	}
}

// population makes the tables and plots of one population of users.
func (r *Report) population(oft int) reproduce.Experiment {
	list := r.of(oft)
	e := reproduce.Experiment{Title: fmt.Sprintf("%d %% of the users want the fastest site", oft)}
	var columns []string
	for _, m := range list {
		columns = append(columns, fmt.Sprint(m.Sites))
	}
	for _, group := range groups() {
		t := reproduce.Table{Title: group.title, Note: group.note, Columns: columns}
		for _, f := range group.figures {
			if !f.virtual || !r.Options.Live {
				t.Measures = append(t.Measures, measureOf(f, list))
			}
		}
		if len(t.Measures) > 0 {
			e.Tables = append(e.Tables, t)
		}
	}
	e.Tables = append(e.Tables, typesTable("Messages per job by type", "", list, columns, func(m *scale.Result) (map[string]int64, float64) {
		return m.ByType, float64(max(m.Jobs, 1))
	}), typesTable("What the busiest site sends and receives, by type", "Messages an hour of the site that handles most of all kinds.", list, columns, busiest))
	if grow := r.growths(oft); len(grow) > 0 {
		e.Tables = append(e.Tables, growthTable(grow, list[len(list)-1].Sites))
	}
	for _, p := range plots() {
		plot := reproduce.Plot{Figure: p.title, Title: p.note, X: "sites", Y: p.axis, Columns: columns}
		for _, f := range p.figures {
			s := reproduce.Series{Name: f.name}
			for _, m := range list {
				s.Values = append(s.Values, reproduce.Number(f.of(m)))
			}
			plot.Series = append(plot.Series, s)
		}
		e.Plots = append(e.Plots, plot)
	}
	return e
}

func measureOf(f figure, list []*scale.Result) reproduce.Measure {
	m := reproduce.Measure{Name: f.name, Decimals: f.decimals}
	for _, result := range list {
		m.Cells = append(m.Cells, reproduce.Cell{Published: reproduce.None, Here: reproduce.Number(f.of(result))})
	}
	return m
}

// typesTable has a line for each type of message: counts over what divides them.
func typesTable(title, note string, list []*scale.Result, columns []string, of func(*scale.Result) (counts map[string]int64, over float64)) reproduce.Table {
	var names []string
	for _, m := range list {
		counts, _ := of(m)
		for name := range counts {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	t := reproduce.Table{Title: title, Note: note, Columns: columns}
	for _, name := range slices.Compact(names) {
		t.Measures = append(t.Measures, measureOf(figure{name: name, decimals: 2, of: func(m *scale.Result) float64 {
			counts, over := of(m)
			return float64(counts[name]) / over
		}}, list))
	}
	return t
}

// busiest returns what the busiest site handled of each type, and the hours measured.
func busiest(m *scale.Result) (counts map[string]int64, hours float64) {
	for _, l := range m.MessagesPerSite {
		if l.ByType != nil {
			counts = l.ByType
		}
	}
	return counts, max(m.SpanSeconds.Float(), 1) / 3600
}
