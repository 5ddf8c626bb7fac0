// Package tally counts what has happened to jobs, for those who watch a node.
package tally

import (
	"sync/atomic"

	"gridnode/grid"
)

// Counts is what has happened to jobs since a node started.
type Counts struct {
	Events    [grid.EventKinds]int64 // by kind
	Succeeded int64                  // executions that ended here with exit code 0
	Failed    int64                  // with another one

	OwnTime, OthersTime grid.Time // processor-time of executions that ended here, by whose job it was
}

// Counter counts. One goroutine adds to it, and anybody reads it.
type Counter struct {
	events            [grid.EventKinds]atomic.Int64
	succeeded, failed atomic.Int64
	own, others       atomic.Int64
}

// Note counts events.
func (t *Counter) Note(self grid.SiteID, events []grid.Event) {
	for i := range events {
		e := &events[i]
		t.events[e.Kind].Add(1)
		if e.Kind != grid.JobEnded || e.Site != self {
			continue
		}
		if e.Result.ExitCode == 0 {
			t.succeeded.Add(1)
		} else {
			t.failed.Add(1)
		}
		time := int64(max(e.Result.End-e.Result.Start, 0)) * e.Job.Processors
		if e.Job.Home == self {
			t.own.Add(time)
		} else {
			t.others.Add(time)
		}
	}
}

// Read returns what has happened so far.
func (t *Counter) Read() Counts {
	c := Counts{
		Succeeded: t.succeeded.Load(), Failed: t.failed.Load(),
		OwnTime: grid.Time(t.own.Load()), OthersTime: grid.Time(t.others.Load()),
	}
	for i := range c.Events {
		c.Events[i] = t.events[i].Load()
	}
	return c
}
