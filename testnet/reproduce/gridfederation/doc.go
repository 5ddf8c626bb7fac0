// Package gridfederation repeats the evaluation of Grid-Federation (2004): its tables and
// experiments 1 to 5, readings of what the paper leaves open, and what coordinated
// placement and demand pricing change.
package gridfederation
