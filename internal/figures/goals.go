package main

import (
	"context"
	"fmt"
	"strings"
)

// goals is a table of what is to be reached beside what was measured, and behind it the tables of
// the benchmarks that it is taken from.
type goals struct {
	title, text string
	rows        []goal
	parts       []bench
}

// goal is a row: what is measured, what is to be reached, and what was, here and by whom it is
// compared with; nil: with nobody.
type goal struct {
	what, target string
	here, theirs func(taken) string
}

// taken are the medians of benchmarks, by name and unit.
type taken map[[2]string]string

// unmeasured stands for a figure that no benchmark gave.
const unmeasured = "not measured"

// of takes figures, each "NAME UNIT", into a text with a %s for each.
func of(text string, names ...string) func(taken) string {
	return func(t taken) string {
		var all []any
		for _, n := range names {
			name, unit, _ := strings.Cut(n, " ")
			v, found := t[[2]string{name, unit}]
			if !found {
				return unmeasured
			}
			all = append(all, v)
		}
		return fmt.Sprintf(text, all...)
	}
}

func (g goals) measure(ctx context.Context, run runner) (string, error) {
	t := make(taken)
	var commands, sections []string
	for _, p := range g.parts {
		tables, err := p.tables(ctx, run)
		if err != nil {
			return "", err
		}
		for _, table := range tables {
			for _, row := range table[1:] {
				for i, unit := range table[0][1:] {
					t[[2]string{row[0], unit}] = row[i+1]
				}
			}
		}
		commands = append(commands, p.command)
		sections = append(sections, p.section(tables))
	}
	table := grid{{"measured", "to be reached", "gridnode", "Slurm"}}
	for _, r := range g.rows {
		theirs := "-"
		if r.theirs != nil {
			theirs = r.theirs(t)
		}
		table = append(table, []string{r.what, r.target, r.here(t), theirs})
	}
	return section(g.title, g.text, table.markdown(), commands) + "\n" + strings.Join(sections, "\n"), nil
}
