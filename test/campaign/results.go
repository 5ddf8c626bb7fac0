package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// outcome is what came of a round: a line of the file of results.
type outcome struct {
	Kind    string         `json:"kind"`
	Seed    uint64         `json:"seed"`
	Commit  string         `json:"commit"`
	At      time.Time      `json:"at"`
	Seconds float64        `json:"seconds"`
	Strikes int            `json:"strikes"`
	Jobs    int            `json:"jobs"`             // acknowledged
	What    map[string]int `json:"what,omitempty"`   // by name: what was struck, and what came of it
	Broken  []string       `json:"broken,omitempty"` // promises
}

// note counts something.
func (o *outcome) note(what string) {
	if o.What == nil {
		o.What = map[string]int{}
	}
	o.What[what]++
}

func (o *outcome) breaks(format string, args ...any) {
	o.Broken = append(o.Broken, fmt.Sprintf(format, args...))
}

func (o *outcome) String() string {
	text := fmt.Sprintf("%d strikes, %d jobs, %.0f s, %v", o.Strikes, o.Jobs, o.Seconds, o.What)
	if len(o.Broken) > 0 {
		text += "\n  BROKEN: " + strings.Join(o.Broken, "\n  BROKEN: ")
	}
	return text
}

// results is the file of what came of all rounds. Of two lines about a round, which its kind and seed name, the
// later counts: it was run again.
type results struct {
	file *os.File

	mu  sync.Mutex
	all []outcome // one of each round
}

func openResults(path string) (*results, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	s := &results{file: f}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		var o outcome
		if json.Unmarshal(line, &o) == nil { // the last line of a run that was killed may be torn
			s.put(o)
		}
	}
	if n := len(text); n > 0 && text[n-1] != '\n' {
		_, err = f.WriteString("\n")
	}
	return s, err
}

func (s *results) close() { _ = s.file.Close() }

func (s *results) add(o outcome) error {
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(o)
	_, err = s.file.Write(append(line, '\n'))
	return err
}

// put enters what came of a round, in place of what came of it before.
func (s *results) put(o outcome) {
	for i, old := range s.all {
		if old.Kind == o.Kind && old.Seed == o.Seed {
			s.all[i] = o
			return
		}
	}
	s.all = append(s.all, o)
}

// strikes returns how many strikes of a kind there were.
func (s *results) strikes(kind string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.all {
		if o.Kind == kind {
			n += o.Strikes
		}
	}
	return n
}

// ran says whether a round was run.
func (s *results) ran(kind string, seed uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.all, func(o outcome) bool { return o.Kind == kind && o.Seed == seed })
}

// broken returns the rounds that broke a promise.
func (s *results) broken() (list []outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.all {
		if len(o.Broken) > 0 {
			list = append(list, o)
		}
	}
	return list
}

// row is a kind in the table.
type row struct {
	Kind    string         `json:"kind"`
	Strike  string         `json:"strike"` // what is counted
	Rounds  int            `json:"rounds"`
	Strikes int            `json:"strikes"`
	Want    int            `json:"want"`
	Jobs    int            `json:"jobs"`
	Minutes float64        `json:"minutes"`
	What    map[string]int `json:"what"`
	Commits []string       `json:"commits"`
	Broken  []string       `json:"broken"` // with the seed
}

func tabulate(chosen []kind, found *results) (rows []row) {
	for _, k := range chosen {
		r := row{Kind: k.name, Strike: k.strike, Want: k.want, What: map[string]int{}}
		for _, o := range found.all {
			if o.Kind != k.name {
				continue
			}
			r.Rounds++
			r.Strikes += o.Strikes
			r.Jobs += o.Jobs
			r.Minutes += o.Seconds / 60
			for what, n := range o.What {
				r.What[what] += n
			}
			if !slices.Contains(r.Commits, o.Commit) {
				r.Commits = append(r.Commits, o.Commit)
			}
			for _, text := range o.Broken {
				r.Broken = append(r.Broken, fmt.Sprintf("seed %d: %s", o.Seed, text))
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// formats is how rows are printed.
var formats = map[string]func(io.Writer, []row) error{"table": printTable, "json": printJSON}

func printJSON(w io.Writer, rows []row) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(rows)
}

func printTable(w io.Writer, rows []row) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "KIND\tSTRIKES\tOF\tROUNDS\tJOBS\tMINUTES\tBROKEN\tWHAT")
	for _, r := range rows {
		var what []string
		for _, name := range slices.Sorted(maps.Keys(r.What)) {
			what = append(what, fmt.Sprintf("%s %d", name, r.What[name]))
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%.1f\t%d\t%s\n", r.Kind, r.Strikes, r.Want, r.Rounds, r.Jobs, r.Minutes, len(r.Broken), strings.Join(what, ", "))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range rows {
		for _, text := range r.Broken {
			fmt.Fprintf(w, "%s, %s\n", r.Kind, text)
		}
	}
	return nil
}
