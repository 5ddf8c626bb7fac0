package main

import (
	"fmt"
	"strconv"
	"strings"
)

// arrayMax bounds the jobs of one array; the daemon has the same bound.
const arrayMax = 10_000

const arrayWant = `want indices and ranges, like 0-199, 1,3,5 or 0-20:2, and perhaps how many at a time, like 0-99%10`

// parseArray reads the indices of a job array, and how many of its jobs may run at a time; 0:
// any number.
func parseArray(s string) (indices []int64, most int64, err error) {
	list, limit, limited := strings.Cut(s, "%")
	if limited {
		if most, err = strconv.ParseInt(limit, 10, 32); err != nil || most < 1 {
			return nil, 0, fmt.Errorf("%q: want a number of at least 1 behind %%", s)
		}
	}
	indices, err = parseIndices(list)
	return indices, most, err
}

// parseIndices reads the indices of a job array as Slurm's --array takes them, in
// the order given. Each may stand there once.
func parseIndices(s string) ([]int64, error) {
	var indices []int64
	seen := make(map[int64]bool)
	for part := range strings.SplitSeq(s, ",") {
		first, last, step, err := parseRange(part)
		if err != nil {
			return nil, err
		}
		if (last-first)/step >= arrayMax {
			return nil, fmt.Errorf("%q: more than %d jobs in one array", s, arrayMax)
		}
		for i := first; i <= last; i += step {
			if seen[i] {
				return nil, fmt.Errorf("%q: index %d stands there twice", s, i)
			}
			if len(indices) == arrayMax {
				return nil, fmt.Errorf("%q: more than %d jobs in one array", s, arrayMax)
			}
			seen[i] = true
			indices = append(indices, i)
		}
	}
	return indices, nil
}

// parseRange reads N, N-M or N-M:S.
func parseRange(s string) (first, last, step int64, err error) {
	span, stepText, stepped := strings.Cut(s, ":")
	from, to, ranged := strings.Cut(span, "-")
	first, err = index(from, s)
	last, step = first, 1
	if ranged && err == nil {
		last, err = index(to, s)
	}
	if stepped && err == nil {
		step, err = index(stepText, s)
	}
	switch {
	case err != nil:
		return 0, 0, 0, err
	case stepped && !ranged, step < 1:
		return 0, 0, 0, fmt.Errorf("%q is not a range of indices: %s", s, arrayWant)
	case last < first:
		return 0, 0, 0, fmt.Errorf("%q is empty: %d comes before %d", s, last, first)
	}
	return first, last, step, nil
}

func index(digits, s string) (int64, error) {
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n < 0 || digits[0] == '+' {
		return 0, fmt.Errorf("%q is not an index or a range of them: %s", s, arrayWant)
	}
	return n, nil
}
