package muscle

import (
	"errors"
	"fmt"

	"gridnode/grid"
	"gridnode/internal/lrms/titan"
)

// Bounds of a Batch.
const (
	JobsMax       = titan.JobsMax
	ProcessorsMax = titan.ProcessorsMax // of one cluster
	ClustersMax   = 1024
	HeldMax       = 1 << 20 // jobs that one cluster has
)

// SlackMax bounds what the slack of one job counts in ε, and is what a job without a
// deadline counts: a week lies beyond most batches, and is far from infinite, so that
// such jobs do not hide how pressed the others are.
const SlackMax = 7 * grid.Day

// ErrBatch is wrapped by the errors of Batch.Validate, which name the field at fault.
var ErrBatch = errors.New("muscle: invalid batch")

// Cluster is one that takes part.
type Cluster struct {
	Processors int           // identical ones, 1 to ProcessorsMax
	Free       []grid.Time   // when each is free, counted from the batch's zero; nil if all are
	Weights    titan.Weights // of its CP

	// Has are jobs that it was given before and that are not done. They count in ε:
	// "p_i: the number of jobs" and the rest are of all "jobs allocated to cluster C_i"
	// (section 4.3).
	Has []Held

	// Queued is processor time of jobs that it is to be given, of which Free knows
	// nothing. It counts in the load of DLL.
	Queued grid.Time
}

// Held is a job that a cluster has.
type Held struct {
	Processors        int
	Span              grid.Time // its run time
	Arrival, Deadline grid.Time // as those of a Job
}

// Job is a rigid parallel job.
type Job struct {
	Processors int
	Arrival    grid.Time // when it was submitted, from the batch's zero: 0 or before
	Deadline   grid.Time // by when it should have finished, from the batch's zero; grid.Never if it has none

	// Spans is its run time at each cluster; 0 where it may not run at all.
	Spans []grid.Time
}

// Batch is what is shared out at once.
type Batch struct {
	Clusters []Cluster
	Jobs     []Job
}

// Validate returns an error wrapping ErrBatch or titan.ErrWeights if b is out of
// bounds. A job that is too wide for every cluster is no error: it is not placed.
func (b *Batch) Validate() error {
	if n := len(b.Clusters); n < 1 || n > ClustersMax {
		return fmt.Errorf("%w: %d clusters, want 1 to %d", ErrBatch, n, ClustersMax)
	}
	if len(b.Jobs) > JobsMax {
		return fmt.Errorf("%w: %d jobs, want at most %d", ErrBatch, len(b.Jobs), JobsMax)
	}
	for i, c := range b.Clusters {
		p := titan.Problem{Processors: c.Processors, Free: c.Free, Weights: c.Weights}
		if err := p.ValidateFields(); err != nil {
			return fmt.Errorf("%w: cluster %d: %w", ErrBatch, i, err)
		}
		for _, j := range c.Has {
			if j.Processors < 1 || j.Processors > ProcessorsMax || j.Span < 0 || j.Span > grid.SpanMax {
				return fmt.Errorf("%w: cluster %d has a job of %d processors for %v", ErrBatch, i, j.Processors, j.Span)
			}
		}
		if len(c.Has) > HeldMax || c.Queued < 0 {
			return fmt.Errorf("%w: cluster %d has %d jobs and %v queued, want at most %d and no less than 0", ErrBatch, i, len(c.Has), c.Queued, HeldMax)
		}
	}
	for i := range b.Jobs {
		j := &b.Jobs[i]
		switch {
		case j.Processors < 1:
			return fmt.Errorf("%w: job %d needs %d processors, want at least 1", ErrBatch, i, j.Processors)
		case j.Arrival > 0 || j.Arrival < -grid.SpanMax:
			return fmt.Errorf("%w: job %d came %v after the batch, want at most %v before it", ErrBatch, i, j.Arrival, grid.SpanMax)
		case len(j.Spans) != len(b.Clusters):
			return fmt.Errorf("%w: job %d has run times for %d clusters of %d", ErrBatch, i, len(j.Spans), len(b.Clusters))
		}
		for k, span := range j.Spans {
			if span < 0 || span > grid.SpanMax {
				return fmt.Errorf("%w: job %d runs for %v at cluster %d, want 0 to %v", ErrBatch, i, span, k, grid.SpanMax)
			}
		}
	}
	return nil
}

// fits reports whether a job may run at a cluster.
func (b *Batch) fits(job, cluster int) bool {
	j := &b.Jobs[job]
	return j.Spans[cluster] > 0 && j.Processors <= b.Clusters[cluster].Processors
}

// held is a job as it will be at a cluster.
func (b *Batch) held(job, cluster int) Held {
	j := &b.Jobs[job]
	return Held{Processors: j.Processors, Span: j.Spans[cluster], Arrival: j.Arrival, Deadline: j.Deadline}
}

// slack returns how long a job can wait without missing its deadline, 0 if it cannot,
// at most SlackMax. "The slack of a job is its deadline minus its execution time and its
// arrival time" (section 4.3): it does not shrink while the job waits, so that ε has
// something to be divided by however long jobs are collected. By the rule Urgent it is
// what is left of it.
func (rule Rule) slack(j Held) grid.Time {
	if j.Deadline == grid.Never {
		return SlackMax
	}
	if rule == Urgent {
		j.Arrival = 0
	}
	return min(max(j.Deadline-j.Span-j.Arrival, 0), SlackMax)
}

// Share is what one cluster gets of a batch.
type Share struct {
	Jobs []int32 // of the batch, in the order in which they were allocated

	// Seed is a schedule of Problem(share): MUSCLE's. It has no columns if the policy
	// makes none.
	Seed titan.Schedule
}

// Problem describes the share of a cluster to TITAN. Its jobs are those of the share,
// in that order.
func (b *Batch) Problem(cluster int, share *Share) *titan.Problem {
	c := &b.Clusters[cluster]
	p := &titan.Problem{Processors: c.Processors, Free: c.Free, Weights: c.Weights, Jobs: make([]titan.Job, len(share.Jobs))}
	for i, job := range share.Jobs {
		j := &b.Jobs[job]
		p.Jobs[i] = titan.Job{Processors: j.Processors, Span: j.Spans[cluster], Deadline: j.Deadline}
	}
	return p
}
