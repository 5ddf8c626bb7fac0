package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

// runs is a table with a row for each run of a scenario (gridnode testnet run).
type runs struct {
	title, text string
	heads       []string // of the columns that say what was run
	rows        []oneRun
	figures     []figure
}

// oneRun is a row: what it is called, one text for each head, and the flags behind
// "gridnode testnet run".
type oneRun struct {
	labels []string
	flags  string
}

// figure is a column: what is taken from a result.
type figure struct {
	head     string
	decimals int
	of       func(r *result) float64
}

// result is what a run prints as JSON. The first key that is not there is kept.
type result struct {
	keys    map[string]any
	missing string
}

// at returns the number under a key such as "total.awt".
func (r *result) at(key string) float64 {
	var v any = r.keys
	for name := range strings.SplitSeq(key, ".") {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	n, ok := v.(float64)
	if !ok && r.missing == "" {
		r.missing = key
	}
	return n
}

// value is the number under a key.
func value(head, key string, decimals int) figure {
	return figure{head, decimals, func(r *result) float64 { return r.at(key) }}
}

// share is one number over another, in percent.
func share(head, part, whole string, decimals int) figure {
	return figure{head, decimals, func(r *result) float64 { return ratio(100*r.at(part), r.at(whole)) }}
}

// scaled is the number under a key times a factor.
func scaled(head, key string, factor float64, decimals int) figure {
	return figure{head, decimals, func(r *result) float64 { return factor * r.at(key) }}
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}

func (t runs) measure(ctx context.Context, run runner) (string, error) {
	head := append([]string{}, t.heads...)
	for _, f := range t.figures {
		head = append(head, f.head)
	}
	table := grid{head}
	var made []string
	for _, row := range t.rows {
		command := "gridnode testnet run " + row.flags + " " + seed
		if strings.Contains(row.flags, "--seed ") {
			command = "gridnode testnet run " + row.flags
		}
		made = append(made, command)
		text, err := run.output(ctx, command+" -o json")
		if err != nil {
			return "", err
		}
		r := new(result)
		if err := json.Unmarshal(text, &r.keys); err != nil {
			return "", fmt.Errorf("%s: %w", command, err)
		}
		cells := append([]string{}, row.labels...)
		for _, f := range t.figures {
			cells = append(cells, number(f.of(r), f.decimals))
		}
		if r.missing != "" {
			return "", fmt.Errorf("%s: the result has no number %q", command, r.missing)
		}
		table = append(table, cells)
	}
	return section(t.title, t.text, table.markdown(), made), nil
}
