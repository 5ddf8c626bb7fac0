package workload

import (
	"fmt"
	"strings"

	"gridnode/grid"
)

// NoEstimate says what becomes of a job whose user gave no estimate.
type NoEstimate uint8

const (
	// NoEstimateDrop leaves it out.
	NoEstimateDrop NoEstimate = iota
	// NoEstimateRunTime takes its run time for the estimate.
	NoEstimateRunTime
)

// ParseNoEstimate reads "drop" or "runtime".
func ParseNoEstimate(s string) (NoEstimate, error) {
	switch s {
	case "drop":
		return NoEstimateDrop, nil
	case "runtime":
		return NoEstimateRunTime, nil
	}
	return 0, fmt.Errorf("%q: want drop (leave out jobs without an estimate) or runtime (their run time is the estimate)", s)
}

// String returns "drop" or "runtime".
func (n NoEstimate) String() string {
	if n == NoEstimateRunTime {
		return "runtime"
	}
	return "drop"
}

// Filter makes jobs of records, or says why not. It is the published one of
// resource delegation (release before the log's start, no run time, no or too
// many processors: dropped), in the reading that meets its table: the size is
// what was requested, else what was allocated; a job is killed at its estimate.
// The zero value drops only what cannot be run at all, and jobs without estimate.
type Filter struct {
	Processors int64 // of the machine: wider jobs are dropped; 0 if there is no bound
	NoEstimate NoEstimate
	Until      grid.Time // jobs submitted at or after it are dropped; 0 if there is no end
}

// Reason is why a record became no job.
type Reason uint8

// Reasons, in the order in which they are looked for.
const (
	Kept              Reason = iota
	WithoutSubmit            // submit time unknown
	Late                     // submitted at or after Until
	WithoutRunTime           // run time unknown or zero
	WithoutProcessors        // processors unknown or zero
	TooWide                  // more processors than the machine has
	WithoutEstimate          // and NoEstimate says drop
	reasonMax
)

var reasonNames = [reasonMax]string{
	"kept", "no submit time", "submitted too late", "no run time", "no processors", "wider than the machine", "no estimate",
}

// String returns the reason in words.
func (r Reason) String() string { return reasonNames[r] }

// Counts is the number of records by Reason.
type Counts [reasonMax]int64

// Total returns the number of records.
func (c *Counts) Total() int64 {
	var total int64
	for _, n := range c {
		total += n
	}
	return total
}

// String prints what is not zero, as in "77199 kept, 17 no run time".
func (c *Counts) String() string {
	var parts []string
	for reason, n := range c {
		if n != 0 || Reason(reason) == Kept {
			parts = append(parts, fmt.Sprintf("%d %v", n, Reason(reason)))
		}
	}
	return strings.Join(parts, ", ")
}

// Job makes a job of a record. It fills *job, User excepted, only if it returns Kept.
func (f *Filter) Job(r *Record, job *Job) Reason {
	processors := r.ProcessorsRequested
	if processors <= 0 {
		processors = r.Processors
	}
	estimate := r.TimeRequested
	switch {
	case r.Submit < 0:
		return WithoutSubmit
	case f.Until > 0 && r.Submit >= f.Until:
		return Late
	case r.RunTime <= 0:
		return WithoutRunTime
	case processors <= 0:
		return WithoutProcessors
	case f.Processors > 0 && processors > f.Processors:
		return TooWide
	case estimate <= 0 && f.NoEstimate == NoEstimateDrop:
		return WithoutEstimate
	case estimate <= 0:
		estimate = r.RunTime
	}
	*job = Job{
		Number:     r.Number,
		Submit:     r.Submit,
		RunTime:    min(r.RunTime, estimate),
		Estimate:   estimate,
		Processors: processors,
		Memory:     max(r.MemoryRequested, 0),
	}
	return Kept
}
