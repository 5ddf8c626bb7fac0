package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// bench is a table of Go benchmarks: the median of each unit.
type bench struct {
	title, text string
	command     string // go test … -bench …
	logs        bool   // it is skipped where there are no logs
}

func (t bench) measure(ctx context.Context, run runner) (string, error) {
	tables, err := t.tables(ctx, run)
	if err != nil {
		return "", err
	}
	return t.section(tables), nil
}

// tables measures.
func (t bench) tables(ctx context.Context, run runner) ([]grid, error) {
	text, err := run.output(ctx, t.command)
	if err != nil {
		return nil, err
	}
	tables := benchmarks(text)
	switch {
	case len(tables) == 0 && t.logs:
		return nil, fmt.Errorf("%w: %s", errLogs, t.command)
	case len(tables) == 0:
		return nil, fmt.Errorf("%s: no benchmark ran", t.command)
	}
	return tables, nil
}

func (t bench) section(tables []grid) string {
	var texts []string
	for _, table := range tables {
		texts = append(texts, table.markdown())
	}
	return section(t.title, t.text, strings.Join(texts, "\n"), []string{t.command})
}

// benchLine is "BenchmarkName/case-2   100   12.3 ns/op   4 B/op".
var benchLine = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.+)$`)

// benchmarks reads the output of go test -bench: a table for those that report the
// same units.
func benchmarks(text []byte) (tables []grid) {
	var names []string
	units := map[string][]string{} // by benchmark
	values := map[[2]string][]float64{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		m := benchLine.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		name, words := m[1], strings.Fields(m[2])
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		for i := 0; i+1 < len(words); i += 2 {
			v, err := strconv.ParseFloat(words[i], 64)
			if err != nil {
				break
			}
			unit := words[i+1]
			if !slices.Contains(units[name], unit) {
				units[name] = append(units[name], unit)
			}
			values[[2]string{name, unit}] = append(values[[2]string{name, unit}], v)
		}
	}
	for _, name := range names {
		head, row := append([]string{"benchmark"}, units[name]...), []string{name}
		for _, unit := range units[name] {
			row = append(row, measured(median(values[[2]string{name, unit}])))
		}
		at := slices.IndexFunc(tables, func(g grid) bool { return slices.Equal(g[0], head) })
		if at < 0 {
			at = len(tables)
			tables = append(tables, grid{head})
		}
		tables[at] = append(tables[at], row)
	}
	return tables
}

// median returns the middle of the values, NaN if there is none.
func median(list []float64) float64 {
	if len(list) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(list))
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}

// measured prints a figure with about three digits.
func measured(v float64) string {
	switch size := math.Abs(v); {
	case v == math.Trunc(v) || size >= 100:
		return number(v, 0)
	case size >= 10:
		return number(v, 1)
	default:
		return number(v, 2)
	}
}

// printed is what a test prints of what it measured (go test -v), line by line.
type printed struct {
	title, text string
	command     string
}

// logLine is "    file_test.go:12: what it says".
var logLine = regexp.MustCompile(`^\s+\w+_test\.go:\d+: (.+)$`)

func (t printed) measure(ctx context.Context, run runner) (string, error) {
	text, err := run.output(ctx, t.command)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if m := logLine.FindStringSubmatch(lines.Text()); m != nil {
			line := m[1]
			if utf8.RuneCountInString(line) > widthMax {
				line = strings.ReplaceAll(strings.TrimSpace(wrap(line, widthMax-4)), "\n", "\n    ")
			}
			b.WriteString(line + "\n")
		}
	}
	if b.Len() == 0 {
		return "", fmt.Errorf("%s: it printed no figure", t.command)
	}
	return section(t.title, t.text, "```\n"+b.String()+"```\n", []string{t.command}), nil
}
