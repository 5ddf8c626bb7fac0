package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

func mutants() subject {
	return subject{
		name: "mutants", title: "Bugs planted on purpose", takes: "hours",
		intro: "Slips are made in the code, one at a time, and the tests look for them. [mutants.md](../mutants.md) says how, and how to plant another. " +
			"A bug that nothing sees ends the command with an error, and this page could not be written. What looked, and what it found, is kept with " +
			"the tree, a line each with the commit in which it looked; the command looks for what is missing there.",
		parts: []part{planted{
			title: "What saw them",
			text: "Bugs by the package that has them, and how many of them each kind of test saw, out of those that it could meet; chaos within " +
				"200 seeds of six sites and two hours. End-to-end is only tried on what nothing else saw.",
			command: "go run ./test/mutants -results test/mutants/results.jsonl",
		}},
	}
}

// planted is the table of what saw planted bugs (test/mutants).
type planted struct{ title, text, command string }

// mutantRow is what is taken from one bug.
type mutantRow struct {
	Name, Room, Title, Seen string
	Ways                    map[string]struct {
		Seen bool
		By   string
	}
}

// mutantWays are the columns.
var mutantWays = []string{"unit", "transcript", "chaos", "end-to-end"}

func (t planted) measure(ctx context.Context, run runner) (string, error) {
	text, err := run.output(ctx, t.command+" -o json")
	if err != nil {
		return "", err
	}
	var rows []mutantRow
	if err := json.Unmarshal(text, &rows); err != nil {
		return "", fmt.Errorf("%s: %w", t.command, err)
	}
	if len(rows) == 0 {
		return "", fmt.Errorf("%s: it told of no bug", t.command)
	}
	table := grid{append([]string{"package", "bugs", "seen"}, mutantWays...)}
	var rooms []string
	for _, r := range rows {
		if !slices.Contains(rooms, r.Room) {
			rooms = append(rooms, r.Room)
		}
	}
	slices.Sort(rooms)
	for _, room := range rooms {
		table = append(table, countMutants(room, slices.DeleteFunc(slices.Clone(rows), func(r mutantRow) bool { return r.Room != room })))
	}
	table = append(table, countMutants("all", rows))
	return section(t.title, t.text, table.markdown(), []string{t.command}) + pastChaos(rows), nil
}

// countMutants returns the line of a package.
func countMutants(name string, rows []mutantRow) []string {
	seen := 0
	looked, saw := make([]int, len(mutantWays)), make([]int, len(mutantWays))
	for _, r := range rows {
		if r.Seen == "yes" {
			seen++
		}
		for i, way := range mutantWays {
			if w, tried := r.Ways[way]; tried {
				looked[i]++
				if w.Seen {
					saw[i]++
				}
			}
		}
	}
	line := []string{name, number(float64(len(rows)), 0), number(float64(seen), 0)}
	for i := range mutantWays {
		cell := "-"
		if looked[i] > 0 {
			cell = fmt.Sprintf("%d / %d", saw[i], looked[i])
		}
		line = append(line, cell)
	}
	return line
}

// pastChaos lists the bugs that chaos could have met and did not see.
func pastChaos(rows []mutantRow) string {
	var b strings.Builder
	for _, r := range rows {
		if w, tried := r.Ways["chaos"]; !tried || w.Seen {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("\n## Not seen by chaos\n\n")
		}
		item := strings.TrimSuffix(wrap("- "+r.Name+": "+r.Title, widthMax-2), "\n")
		b.WriteString(strings.ReplaceAll(item, "\n", "\n  ") + "\n")
	}
	return b.String()
}
