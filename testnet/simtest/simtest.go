// Package simtest has what tests and benchmarks of simulations share.
package simtest

import (
	"syscall"
	"testing"
	"time"
)

// Alone leaves a simulation out of the short run of the tests, which is the one under
// the race detector: it has one goroutine, others like it stay, and with less time or
// fewer seeds it would say nothing.
func Alone(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a simulation in one goroutine")
	}
}

// ProcessorTime returns what this process has used of the processors so far. On a
// busy machine it says more than the time on the wall.
func ProcessorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// ReportEvents reports how fast events were, by the wall and by processor time.
func ReportEvents(b *testing.B, events int64, busy time.Duration) {
	b.Helper()
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(busy.Nanoseconds())/float64(events), "cpu-ns/event")
}
