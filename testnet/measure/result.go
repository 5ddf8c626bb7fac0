package measure

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"gridnode/grid"
)

// Result is what a run gives. Its JSON keys are stable.
type Result struct {
	Scenario       string       `json:"scenario"`
	Seed           uint64       `json:"seed"`
	Mode           string       `json:"mode"` // "virtual" or "live"
	Config         any          `json:"config"`
	TraceHash      string       `json:"traceHash"` // 16 hexadecimal digits; empty if live
	Total          Stats        `json:"total"`
	Sites          []SiteResult `json:"sites"`
	Messages       Messages     `json:"messages"`
	Events         int64        `json:"events"`
	VirtualSeconds Decimal      `json:"virtualSeconds"`
	WallSeconds    Decimal      `json:"wallSeconds"`

	// Beside is what was said live and in virtual networks of the same jobs, if that was
	// compared.
	Beside any `json:"beside,omitempty"`

	// Table prints the result as a table if the usual one does not suit it.
	Table func(w io.Writer, r *Result) error `json:"-"`
}

// SiteResult is one site's part of a Result.
type SiteResult struct {
	Name       string `json:"name"`
	Processors int64  `json:"processors"`
	Stats
}

// Messages is what was sent, by type, and what it cost.
type Messages struct {
	ByType            map[string]int64 `json:"byType"`            // "market.negotiate": messages sent
	PerJob            Spread           `json:"perJob"`            // of the types the paper counts, sent and received by the job's home
	DirectoryPerQuery Spread           `json:"directoryPerQuery"` // directory messages of a query, sent and received
}

// Spread describes a set of counts.
type Spread struct {
	Mean Decimal `json:"mean"`
	Min  int64   `json:"min"`
	Max  int64   `json:"max"`
	P99  int64   `json:"p99"`
}

// Site is a site as results name it.
type Site struct {
	Name       string
	Processors int64
}

// Result works out the Result of a run that took from begun until now.
func (c *Collector) Result(scenario string, config any, sites []Site, begun time.Time) *Result {
	r := &Result{
		Scenario: scenario, Seed: c.n.Seed(), Mode: "virtual", Config: config,
		TraceHash: fmt.Sprintf("%016x", c.n.TraceHash()),
		Events:    c.n.Events(), VirtualSeconds: Seconds(c.n.Now()),
		WallSeconds: Seconds(grid.FromDuration(time.Since(begun))),
	}
	queries := Queries(c.n)
	r.Messages = Messages{ByType: Sent(c.n).SentByName(), PerJob: c.perJob.Spread(), DirectoryPerQuery: queries.Spread()}
	var total Tally
	var processors int64
	for i := range c.tallies {
		t := &c.tallies[i]
		t.MessagesRemote = max(jobMessages(c.n, i)-t.Sent, 0)
		total.Plus(t)
		processors += sites[i].Processors
		r.Sites = append(r.Sites, SiteResult{sites[i].Name, sites[i].Processors, t.Stats(sites[i].Processors, c.window)})
	}
	r.Total = total.Stats(processors, c.window)
	return r
}

// Seconds rounds a span to hundredths of seconds.
func Seconds(t grid.Time) Decimal { return Decimal((t + grid.Second/200) / (grid.Second / 100)) }

// Save writes result.json and sites.csv into a directory, which it makes if need be.
func (r *Result) Save(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("save results: %w", err)
	}
	for _, f := range []struct {
		name  string
		write func(io.Writer) error
	}{{"result.json", r.writeJSON}, {"sites.csv", r.writeCSV}} {
		if err := writeFile(filepath.Join(dir, f.name), f.write); err != nil {
			return fmt.Errorf("save results: %w", err)
		}
	}
	return nil
}

func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return fmt.Errorf("write %s: %w", path, err)
	}
	return f.Close()
}

// Write prints the result as "table", "json" or "csv".
func (r *Result) Write(w io.Writer, format string) error {
	switch format {
	case "table":
		return r.writeTable(w)
	case "json":
		return r.writeJSON(w)
	case "csv":
		return r.writeCSV(w)
	}
	return fmt.Errorf("output %q: want table, json or csv", format)
}

func (r *Result) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}
