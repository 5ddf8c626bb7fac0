package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

func realSites() subject {
	return subject{
		name: "campaign", title: "Real sites under damage", takes: "seconds, once the campaign has run for hours",
		intro: "What real daemons went through, and what it broke. [campaign.md](../campaign.md) says what each kind of damage is and what is checked after it. " +
			"A promise that was broken ends the command with an error, and this page could not be written.",
		parts: []part{damaged{
			title: "Damages so far",
			text: "Of a whole campaign, as far as it has come. What jobs wrote themselves was compared with every record. " +
				"Of a round that broke a promise only the run after its cause was mended is in it.",
			command: "go run ./test/campaign -show",
		}},
	}
}

// damaged is the table of what real sites went through (test/campaign), as far as that has come: the
// command that runs it takes hours, and keeps a file of results.
type damaged struct{ title, text, command string }

// damagedRow is what is taken from one kind of damage.
type damagedRow struct {
	Kind, Strike                string
	Rounds, Strikes, Want, Jobs int
	Minutes                     float64
	What                        map[string]int
	Commits                     []string
	Broken                      []string
}

func (d damaged) measure(ctx context.Context, run runner) (string, error) {
	text, err := run.output(ctx, d.command+" -o json")
	if err != nil {
		return "", err
	}
	var rows []damagedRow
	if err := json.Unmarshal(text, &rows); err != nil {
		return "", fmt.Errorf("%s: %w", d.command, err)
	}
	table := grid{{"kind", "strikes", "of", "what is counted", "jobs", "minutes", "broken"}}
	var details strings.Builder
	for _, r := range rows {
		if len(r.Broken) > 0 {
			return "", fmt.Errorf("%s: %s broke %d promises", d.command, r.Kind, len(r.Broken))
		}
		count := func(n int) string { return number(float64(n), 0) }
		table = append(table, []string{r.Kind, count(r.Strikes), count(r.Want), r.Strike, count(r.Jobs), number(r.Minutes, 0), count(len(r.Broken))})
		if r.Rounds == 0 {
			continue
		}
		var what []string
		for _, name := range slices.Sorted(maps.Keys(r.What)) {
			what = append(what, fmt.Sprintf("%s %d", name, r.What[name]))
		}
		details.WriteString("\n" + wrap(fmt.Sprintf("%s, %d rounds at %s: %s.", r.Kind, r.Rounds, strings.Join(r.Commits, ", "), strings.Join(what, "; ")), widthMax))
	}
	return section(d.title, d.text, table.markdown(), []string{d.command}) + details.String(), nil
}
