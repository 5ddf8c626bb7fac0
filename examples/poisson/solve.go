package main

import (
	"fmt"
	"math"
)

// problem is what is to be solved, and how exactly.
type problem struct {
	n          int // inner points in each direction
	iterations int // at most; 0: no limit
	tolerance  float64
}

// result is what all tasks agree on.
type result struct {
	iterations int
	distance   float64 // largest difference from the exact solution
	checksum   uint64  // of all values
}

// checkEvery is how many iterations pass between two looks at how much changes.
const checkEvery = 32

// solve solves the problem together with the other tasks of the team.
func solve(t *team, p problem) (result, error) {
	if p.n < t.size {
		return result{}, fmt.Errorf("%d rows for %d tasks: want at least one each", p.n, t.size)
	}
	first := p.n*t.rank/t.size + 1 // own rows, counted from 1
	last := p.n * (t.rank + 1) / t.size
	rows := make([][]float64, last-first+3) // and one at each side
	source := make([][]float64, len(rows))
	h := 1 / float64(p.n+1)
	for i := range rows {
		rows[i] = make([]float64, p.n+2)
		source[i] = make([]float64, p.n+2)
		for j := range source[i] {
			source[i][j] = h * h * 2 * math.Pi * math.Pi * exact(first-1+i, j, h)
		}
	}
	var r result
	for r.iterations = 0; p.iterations == 0 || r.iterations < p.iterations; {
		var change float64
		for colour := range 2 {
			change = max(change, sweep(rows, source, first+colour))
			if err := t.exchange(rows); err != nil {
				return r, err
			}
		}
		r.iterations++
		if r.iterations%checkEvery != 0 {
			continue
		}
		largest, err := t.reduce(change, math.Max)
		if err != nil {
			return r, err
		}
		if largest <= p.tolerance {
			break
		}
	}
	return r, judge(t, rows, first, h, &r)
}

// exact is the solution at an inner point.
func exact(i, j int, h float64) float64 {
	return math.Sin(math.Pi*float64(i)*h) * math.Sin(math.Pi*float64(j)*h)
}

// sweep updates the points of one colour and returns the largest change.
func sweep(rows, source [][]float64, parity int) (change float64) {
	for i := 1; i < len(rows)-1; i++ {
		up, row, down, f := rows[i-1], rows[i], rows[i+1], source[i]
		for j := 1 + (i+parity)%2; j < len(row)-1; j += 2 {
			v := ((up[j] + down[j]) + (row[j-1] + row[j+1]) + f[j]) / 4
			change = max(change, math.Abs(v-row[j]))
			row[j] = v
		}
	}
	return change
}

// judge compares with the exact solution and adds all values up, bit by bit: the sum
// does not depend on the order.
func judge(t *team, rows [][]float64, first int, h float64, r *result) error {
	var low, high uint32
	for i := 1; i < len(rows)-1; i++ {
		for j := 1; j < len(rows[i])-1; j++ {
			r.distance = max(r.distance, math.Abs(rows[i][j]-exact(first-1+i, j, h)))
			bits := math.Float64bits(rows[i][j])
			low, high = low+uint32(bits), high+uint32(bits>>32)
		}
	}
	var err error
	if r.distance, err = t.reduce(r.distance, math.Max); err != nil {
		return err
	}
	for _, part := range []*uint32{&low, &high} {
		sum, err := t.reduce(float64(*part), func(a, b float64) float64 { return float64(uint32(a) + uint32(b)) })
		if err != nil {
			return err
		}
		*part = uint32(sum)
	}
	r.checksum = uint64(high)<<32 | uint64(low)
	return nil
}
