package point

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// census says how often kinds of orders came in many runs: lines of a name and a number. "make census" writes it.
//
//go:embed census.csv
var census string

// weights are how much seldomer kinds of orders came than the mean of all did, by name.
var weights = sync.OnceValue(func() map[string]float64 {
	w, err := read(census)
	if err != nil {
		panic(err) // a test reads it
	}
	return w
})

// Bounds of weights: what nobody has met yet has the largest.
const (
	weightLeast = 0.1
	weightMost  = 20000
)

// read reads a census.
func read(text string) (map[string]float64, error) {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("census: %w", err)
	}
	w := make(map[string]float64)
	total := 0.0
	for i, row := range rows {
		seen, err := strconv.ParseInt(row[len(row)-1], 10, 64)
		if err != nil || len(row) != 2 || seen < 1 {
			return nil, fmt.Errorf("census: line %d: %q: want a name and a number that is not 0", i+1, row)
		}
		w[row[0]] = float64(seen)
		total += float64(seen)
	}
	for name, seen := range w {
		w[name] = min(max(total/float64(len(rows))/seen, weightLeast), weightMost)
	}
	return w, nil
}

// weightOf returns how much likelier a daemon is to die at such an order than at others.
func weightOf(o order) float64 {
	if w, known := weights()[o.String()]; known {
		return w
	}
	return weightMost
}
