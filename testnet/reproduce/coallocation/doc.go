// Package coallocation repeats the evaluation of processor co-allocation with KOALA (2008):
// the applications on DAS-3, figures 2 and 7, table V, and communication-aware placement.
package coallocation
