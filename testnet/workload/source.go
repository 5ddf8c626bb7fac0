package workload

import "gridnode/grid"

// Job is what a workload gives to a simulator or a test network: one rigid job,
// already filtered.
type Job struct {
	Number     int64     // in its source; with Site it identifies the job
	Site       int       // index of the source it came from; 0 unless merged
	Submit     grid.Time // instant, never negative
	RunTime    grid.Time // how long it really runs, at least 1
	Estimate   grid.Time // the user's bound on it, at least RunTime
	Processors int64     // at least 1
	Memory     int64     // bytes per processor; 0 if the source does not say
	User       string    // empty if the source does not say
}

// Source is a stream of jobs in submission order. Next fills *job and returns
// true, or returns false at the end or with an error, after which it returns the
// same again. *job is the caller's: a source does not keep it.
//
// Trace, Generator, Merge, Window, Batches and Jobs are sources.
type Source interface {
	Next(job *Job) (ok bool, err error)
}

// each reads a source to its end. The job is visit's only until it returns.
func each(src Source, visit func(job *Job)) error {
	var job Job
	for {
		ok, err := src.Next(&job)
		if err != nil || !ok {
			return err
		}
		visit(&job)
	}
}

// Jobs is a source of jobs in memory, which must stand in submission order. It
// consumes itself.
type Jobs []Job

// Next implements Source.
func (j *Jobs) Next(job *Job) (bool, error) {
	if len(*j) == 0 {
		return false, nil
	}
	*job = (*j)[0]
	*j = (*j)[1:]
	return true, nil
}

// Window is the part of a source that was submitted within a span, shifted so
// that the span starts at instant 0.
type Window struct {
	Source Source
	Start  grid.Time
	Span   grid.Time
}

// Next implements Source. The first call reads past everything before Start.
func (w *Window) Next(job *Job) (bool, error) {
	for {
		ok, err := w.Source.Next(job)
		if !ok || job.Submit >= w.Start.Add(w.Span) {
			return false, err
		}
		if job.Submit >= w.Start {
			job.Submit -= w.Start
			return true, nil
		}
	}
}

// Later is a source that begins later.
type Later struct {
	Source Source
	By     grid.Time
}

// Next implements Source.
func (l *Later) Next(job *Job) (bool, error) {
	ok, err := l.Source.Next(job)
	job.Submit += l.By
	return ok, err
}

// First is the first Left jobs of a source.
type First struct {
	Source Source
	Left   int64
}

// Next implements Source.
func (f *First) Next(job *Job) (bool, error) {
	if f.Left <= 0 {
		return false, nil
	}
	f.Left--
	return f.Source.Next(job)
}
