package main

import "fmt"

// nearest returns the one of names that word was most likely meant to be, or ""
// if none is near enough to be worth suggesting. The first of equals wins.
func nearest(word string, names []string) string {
	best, bestDistance := "", max(len(word)/2, 2)+1
	for _, name := range names {
		d := editDistance(word, name)
		if d < bestDistance && d < max(len(name), len(word)) {
			best, bestDistance = name, d
		}
	}
	return best
}

// didYouMean returns "; did you mean X?" or "".
func didYouMean(prefix, word string, names []string) string {
	if n := nearest(word, names); n != "" {
		return fmt.Sprintf("; did you mean %s%s?", prefix, n)
	}
	return ""
}

// editDistance returns how many bytes must be inserted, removed, replaced or
// swapped with their neighbour to turn a into b.
func editDistance(a, b string) int {
	before, prev := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(prev[j]+cost, prev[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, prev = prev, row
	}
	return prev[len(b)]
}
