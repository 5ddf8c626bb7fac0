// Package stream tells of changes of jobs in a form that goes on where it has broken off: which jobs
// have changed since a place (Changes), and how that is written (Writer).
package stream
