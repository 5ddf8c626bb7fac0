package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// row is one bug in the table.
type row struct {
	*mutant
	Seen string            `json:"seen"` // yes, no, or "" if not everything has looked yet
	Ways map[string]result `json:"ways"` // of those that looked; what cannot reach the bug does not look
}

// tabulate returns a row for each bug.
func tabulate(chosen []*mutant, found *results, by []way) (rows []row) {
	for _, m := range chosen {
		r := row{mutant: m, Ways: map[string]result{}}
		for _, w := range by {
			if x, ok := found.of(m, w.name); ok {
				r.Ways[w.name] = x
				if x.Seen {
					r.Seen = "yes"
				}
			}
		}
		if r.Seen == "" && len(r.Ways) > 0 {
			r.Seen = "no"
		}
		rows = append(rows, r)
	}
	return rows
}

// formats is how rows are printed.
var formats = map[string]func(io.Writer, []row, *garden) error{"table": printTable, "json": printJSON}

func printJSON(w io.Writer, rows []row, _ *garden) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(rows)
}

func printTable(w io.Writer, rows []row, g *garden) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprint(t, "bug")
	for _, way := range g.ways {
		fmt.Fprint(t, "\t", way.name)
	}
	fmt.Fprintln(t, "\tfirst seen by")
	for _, r := range rows {
		fmt.Fprint(t, r.Name)
		for _, way := range g.ways {
			fmt.Fprint(t, "\t", cell(r, way.name))
		}
		fmt.Fprintln(t, "\t"+firstSeen(r, g.ways))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n", summary(rows, g.ways))
	return err
}

// cell says what one way said: in how many seconds it saw the bug, or that it did not.
func cell(r row, way string) string {
	x, ok := r.Ways[way]
	switch {
	case !ok:
		return "-"
	case x.Seen && x.Seeds > 0:
		return fmt.Sprintf("seed %d, %.0f s", x.Seeds, x.Seconds)
	case x.Seen:
		return fmt.Sprintf("%.0f s", x.Seconds)
	case x.Idle:
		return "not executed"
	case x.Seeds > 0:
		return fmt.Sprintf("no (%d)", x.Seeds)
	}
	return "no"
}

func firstSeen(r row, by []way) string {
	for _, way := range by {
		if x := r.Ways[way.name]; x.Seen {
			return x.By
		}
	}
	if r.Seen == "no" {
		return "NOTHING: " + r.Title
	}
	return ""
}

// summary counts the bugs that each way saw.
func summary(rows []row, by []way) string {
	var parts []string
	for _, way := range by {
		seen, looked := 0, 0
		for _, r := range rows {
			if x, ok := r.Ways[way.name]; ok {
				looked++
				if x.Seen {
					seen++
				}
			}
		}
		parts = append(parts, fmt.Sprintf("%s %d of %d", way.name, seen, looked))
	}
	n := 0
	for _, r := range rows {
		if r.Seen == "yes" {
			n++
		}
	}
	return fmt.Sprintf("%d bugs, %d seen; of those that each could meet: %s.", len(rows), n, strings.Join(parts, ", "))
}
