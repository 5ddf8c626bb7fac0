// Package muscle repeats the evaluation of MUSCLE (2004): figures 4 to 7, readings of what
// the paper leaves open, and how far its answers are from the best there is.
package muscle
