// Package kept bounds what is kept of what jobs write to their standard output and errors.
//
// A log holds the first bytes of a stream, up to a bound. One that was longer ends with a note
// that says so, and that is how everybody knows: who reads the log, and who asks whether it is
// whole. A log with its note is never longer than Most of its bound.
//
// The site that runs a job applies its own bound while the job writes; the job's home and the
// borrower of leased processors apply theirs to what reaches them, so a log has one note: that
// of the lower bound.
package kept
