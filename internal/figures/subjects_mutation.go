package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

func mutation() subject {
	return subject{
		name: "mutation", title: "Small changes of the cores", takes: "an hour",
		intro: "Operators, conditions, results and statements of the cores are changed, a sample of them, and the tests of the package look for each. " +
			"[mutants.md](../mutants.md) says how.",
		parts: []part{sampled{
			title: "What the tests of a package see",
			text: "The score is the part of the changes that the package's own tests see, among them those that do not end with it. " +
				"What only tests of other folders see, as chaos does, counts as lived, and so does a change that nobody could notice. " +
				"What an earlier run has found of the same change counts.",
			command: "go run ./test/mutants -sample 60 -by package",
		}},
	}
}

// sampled is the table of what tests see of a sample of changes (test/mutants).
type sampled struct{ title, text, command string }

// sampledRow is what is taken from one change.
type sampledRow struct {
	Room string
	Ways struct {
		Package *struct {
			Seen, Idle bool
			By         string
		}
	}
}

func (t sampled) measure(ctx context.Context, run runner) (string, error) {
	text, err := run.output(ctx, t.command+" -o json")
	if err != nil {
		return "", err
	}
	var rows []sampledRow
	if err := json.Unmarshal(text, &rows); err != nil {
		return "", fmt.Errorf("%s: %w", t.command, err)
	}
	table := grid{{"package", "changes", "killed", "no end", "lived", "not executed", "score"}}
	for len(rows) > 0 {
		n := slices.IndexFunc(rows, func(r sampledRow) bool { return r.Room != rows[0].Room })
		if n < 0 {
			n = len(rows)
		}
		line, err := countSampled(rows[:n])
		if err != nil {
			return "", fmt.Errorf("%s: %w", t.command, err)
		}
		table, rows = append(table, line), rows[n:]
	}
	if len(table) == 1 {
		return "", fmt.Errorf("%s: it told of no change", t.command)
	}
	return section(t.title, t.text, table.markdown(), []string{t.command}), nil
}

// countSampled returns the line of a package.
func countSampled(rows []sampledRow) ([]string, error) {
	var killed, endless, lived, idle int
	for _, r := range rows {
		w := r.Ways.Package
		switch {
		case w == nil:
			return nil, fmt.Errorf("%s has a change that nothing looked for", r.Room)
		case w.Seen && w.By == "no end":
			endless++
		case w.Seen:
			killed++
		case w.Idle:
			idle++
		default:
			lived++
		}
	}
	line := []string{rows[0].Room}
	for _, n := range []int{len(rows), killed, endless, lived, idle} {
		line = append(line, number(float64(n), 0))
	}
	return append(line, fmt.Sprintf("%d %%", 100*(killed+endless)/len(rows))), nil
}
