package main

import (
	"context"
	"encoding/json"
	"fmt"
)

func fuzzed() subject {
	return subject{
		name: "fuzz", title: "What fuzz targets have executed", takes: "seconds, once they have run for hours",
		intro: "Whatever takes bytes of a peer, of a disk or of a user is fed with what a fuzzer makes of such bytes. `make fuzz` runs all of it and counts. " +
			"What reached code that nothing else had reached is kept, and tests execute it each time.",
		parts: []part{fuzzTable{
			title: "Executions so far",
			text: "In all runs together. In a quarter of a run the whole program is traced, which finds inputs that reach new code and takes most of the time " +
				"of each; in the rest nothing is traced, and each input is executed together with 127 that lie near it: some of its bytes, or of the fields of " +
				"a message, are changed, left out, doubled or moved. The commit is that of the last run.",
			command: "go run ./test/fuzz -show",
		}},
	}
}

// fuzzTable is the table of what fuzz targets have executed (test/fuzz), as far as that has come.
type fuzzTable struct{ title, text, command string }

func (f fuzzTable) measure(ctx context.Context, run runner) (string, error) {
	text, err := run.output(ctx, f.command+" -o json")
	if err != nil {
		return "", err
	}
	var rows []struct {
		Target, Commit   string
		Seconds          float64
		Executions, Want int64
		Kept             int
	}
	if err := json.Unmarshal(text, &rows); err != nil {
		return "", fmt.Errorf("%s: %w", f.command, err)
	}
	table := grid{{"target", "executions", "of", "minutes", "inputs kept", "commit"}}
	count := func(n int64) string { return number(float64(n), 0) }
	for _, r := range rows {
		table = append(table, []string{r.Target, count(r.Executions), count(r.Want), number(r.Seconds/60, 1), count(int64(r.Kept)), r.Commit})
	}
	return section(f.title, f.text, table.markdown(), []string{f.command}), nil
}
