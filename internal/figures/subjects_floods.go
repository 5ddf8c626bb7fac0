package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
)

func floods() subject {
	return subject{
		name: "floods", title: "Floods of real daemons", takes: "8 min",
		intro: "Two real daemons on loopback, one of which is flooded by one and by twenty. [floods.md](../floods.md) says what is done about that.",
		parts: []part{flooded{
			title: "What the others saw",
			text: "Half of the negotiations of an honest peer, and 99 of 100, within so many milliseconds, idle and under the flood; the same of jobs of " +
				"another site, or under submit of another user, one after the other. Lost: of both. Memory of the flooded daemon at its most, in MiB; " +
				"seconds from the end of the flood until negotiations are as fast as before. The flooders run on the same processors, and get what time is left there. " +
				"Where there are fewer than a hundred, 99 of 100 is the slowest.",
			command: "go run ./test/flood",
		}},
	}
}

// flooded is the table of what floods did (test/flood).
type flooded struct{ title, text, command string }

// floodRow is what is taken from one flood.
type floodRow struct {
	Flood                  string
	Peers                  int
	IdleP50, IdleP99       float64
	FloodP50, FloodP99     float64
	JobIdleP50, JobIdleP99 float64
	JobFloodP50            float64
	JobFloodP99            float64
	Lost, JobsLost         int
	MemoryPeak             int64
	Recovery               float64
	Fate                   string
}

func (t flooded) measure(ctx context.Context, run runner) (string, error) {
	text, err := run.output(ctx, t.command+" -o json")
	if err != nil {
		return "", err
	}
	var rows []floodRow
	if err := json.Unmarshal(text, &rows); err != nil {
		return "", fmt.Errorf("%s: %w", t.command, err)
	}
	if len(rows) == 0 {
		return "", fmt.Errorf("%s: it told of no flood", t.command)
	}
	pair := func(a, b float64) string { return fmt.Sprintf("%.1f / %.1f", a, b) }
	table := grid{{"flood", "idle", "under it", "jobs idle", "jobs under it", "lost", "memory", "idle after", "flooders"}}
	for _, r := range rows {
		table = append(table, []string{
			fmt.Sprintf("%s by %d", r.Flood, r.Peers), pair(r.IdleP50, r.IdleP99), pair(r.FloodP50, r.FloodP99),
			pair(r.JobIdleP50, r.JobIdleP99), pair(r.JobFloodP50, r.JobFloodP99), strconv.Itoa(r.Lost + r.JobsLost),
			strconv.FormatInt(r.MemoryPeak>>20, 10), fmt.Sprintf("%.1f", r.Recovery), r.Fate,
		})
	}
	return section(t.title, t.text, table.markdown(), []string{t.command}), nil
}
