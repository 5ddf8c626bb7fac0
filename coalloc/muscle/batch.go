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
}

// Job is a rigid parallel job.
type Job struct {
	Processors int
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
	}
	for i := range b.Jobs {
		j := &b.Jobs[i]
		switch {
		case j.Processors < 1:
			return fmt.Errorf("%w: job %d needs %d processors, want at least 1", ErrBatch, i, j.Processors)
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

// slack returns how long a job can wait at a cluster without missing its deadline
// (section 4.3), 0 if it will miss it, at most SlackMax.
func (b *Batch) slack(job, cluster int) grid.Time {
	j := &b.Jobs[job]
	if j.Deadline == grid.Never {
		return SlackMax
	}
	return min(max(j.Deadline-j.Spans[cluster], 0), SlackMax)
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
