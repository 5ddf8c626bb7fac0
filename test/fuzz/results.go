package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"gridnode/internal/atomicfile"
)

// result is what came of a target's turns: a line of the file of results.
type result struct {
	Target     string    `json:"target"`
	Commit     string    `json:"commit"` // of the last turn
	At         time.Time `json:"at"`     // begin of the last turn
	Seconds    float64   `json:"seconds"`
	Executions int64     `json:"executions"`
	Kept       int       `json:"kept"` // inputs
	Want       int64     `json:"want,omitempty"`

	had int // inputs before the turn
}

// results is the file of what came of all turns.
type results struct {
	path string
	all  map[string]result // by target
}

func readResults(path string) (*results, error) {
	s := &results{path: path, all: map[string]result{}}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var r result
		if err := d.Decode(&r); errors.Is(err, io.EOF) {
			return s, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		s.all[r.Target] = r
	}
}

// add counts a turn, and returns what came of all turns of its target.
func (s *results) add(r result) (result, error) {
	old := s.all[r.Target]
	r.Executions, r.Seconds = r.Executions+old.Executions, r.Seconds+old.Seconds
	s.all[r.Target] = r
	var text []byte
	for _, name := range slices.Sorted(maps.Keys(s.all)) {
		line, err := json.Marshal(s.all[name])
		if err != nil {
			return r, err
		}
		text = append(append(text, line...), '\n')
	}
	return r, atomicfile.Write(s.path, text, 0o644)
}

// leastFirst sorts targets by how often they were executed.
func (s *results) leastFirst(targets []target) {
	slices.SortStableFunc(targets, func(a, b target) int {
		return cmp.Compare(s.all[a.String()].Executions, s.all[b.String()].Executions)
	})
}

// rows returns what came of all turns of targets, by their names.
func (s *results) rows(targets []target) (rows []result) {
	for _, t := range targets {
		r := s.all[t.String()]
		r.Target, r.Want = t.String(), wanted
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b result) int { return cmp.Compare(a.Target, b.Target) })
	return rows
}

// formats is how rows are printed.
var formats = map[string]func(io.Writer, []result) error{"table": printTable, "json": printJSON}

func printJSON(w io.Writer, rows []result) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(rows)
}

func printTable(w io.Writer, rows []result) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "TARGET\tEXECUTIONS\tOF\tMINUTES\tKEPT\tCOMMIT")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%d\t%d\t%.1f\t%d\t%s\n", r.Target, r.Executions, r.Want, r.Seconds/60, r.Kept, r.Commit)
	}
	return t.Flush()
}
