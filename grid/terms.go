package grid

import (
	"errors"
	"fmt"
	"strings"
)

// Terms say when the job of an owner may be placed, and what becomes of it when an
// execution has failed. Only its home looks at them, but for the Signal and Nice. The zero value
// asks for nothing: it is placed at once.
type Terms struct {
	After     []Dependency // jobs that have to end first; at most DependenciesMax
	Any       bool         // one of After is enough
	Drop      bool         // once After can never be met, the job is cancelled; else it waits on, until its owner cancels it
	Singleton bool         // not before all earlier jobs of its user and name are over, but for tasks of its own array
	Begin     Time         // not before that instant on home's clock; 0: at once
	Held      bool         // not before its owner releases it
	Retries   int32        // how often it is run again when it fails; at most RetriesMax
	Once      bool         // an execution that vanished is not run again
	Signal    Signal       // sent before its limit
	Nice      int32        // by how much it lets others go before it where Slurm orders the queue, as its --nice; 0 to NiceMax
	Lease     Time         // for how long an execution at another site goes on of which home hears nothing: LeaseMin to SpanMax; 0: as its home says; NoLease: until its end
	Notify    string       // command of a shell that runs at home when the job is over, as its owner; at most NotifyMax bytes, empty: none
}

// LeaseMin bounds Terms.Lease; NoLease is that of a job which another site has until the job's limit ends it,
// whether its home hears of it or not.
const (
	LeaseMin      = 10 * Second
	NoLease  Time = -1
)

// LeaseKill is how long whoever runs a task whose lease has ended waits for it to stop before it
// kills it.
const LeaseKill = 2 * Second

// Bounds of Terms.
const (
	DependenciesMax = 256
	RetriesMax      = 100
	SignalMax       = 64 // highest number of a signal
	NotifyMax       = 4 << 10
	NiceMax         = 1<<31 - 3 // the highest that Slurm takes
)

// Condition is how a job has to end for another one to begin, or that it has begun.
type Condition uint8

// Conditions, by Slurm's names. Numbers are stored: append, never renumber.
const (
	AfterOK    Condition = iota + 1 // with exit code 0
	AfterNotOK                      // in any other way
	AfterAny                        // in any way
	After                           // it need not have ended: it has begun, or is over
)

var conditionNames = [...]string{"", "afterok", "afternotok", "afterany", "after"}

// String returns the name users type after --dependency.
func (c Condition) String() string { return conditionNames[c] }

// ParseCondition is the inverse of String.
func ParseCondition(s string) (Condition, error) {
	for c, name := range conditionNames {
		if s == name && c > 0 {
			return Condition(c), nil
		}
	}
	return 0, fmt.Errorf("%q: want afterok, afternotok, afterany or after", s)
}

// Dependency is what one job waits for.
type Dependency struct {
	Condition Condition
	Job       JobID // or the ID of an array: all its jobs
}

// Signal is sent to a job some time before its limit ends it, so that it can save what it has.
// The zero value is none.
type Signal struct {
	Number int32 // 1 to SignalMax
	Before Time  // the limit; 1 to SpanMax
	First  bool  // to the first process only: else to all
}

// Array is the place of a job in an array of jobs.
type Array struct {
	ID     JobID  // of the array; no job has it
	Number uint64 // of the array at its home: that of the first of its jobs that was taken; 0: its home numbers none
	Index  int64  // of this one
	Count  int64  // of the array's jobs
	Min    int64  // of the array's indices
	Max    int64
	Step   int64 // between indices, 1 if that differs
	Most   int64 // how many of them may run at a time; 0: any number
}

// Check returns an error that names the first field out of bounds.
func (t *Terms) Check() error {
	if t == nil {
		return nil
	}
	switch {
	case len(t.After) > DependenciesMax:
		return fmt.Errorf("%d dependencies, at most %d", len(t.After), DependenciesMax)
	case t.Begin < 0 || t.Begin > SpanMax:
		return fmt.Errorf("begin at %d µs", int64(t.Begin))
	case t.Retries < 0 || t.Retries > RetriesMax:
		return fmt.Errorf("%d retries, want 0 to %d", t.Retries, RetriesMax)
	case t.Lease != 0 && t.Lease != NoLease && (t.Lease < LeaseMin || t.Lease > SpanMax):
		return fmt.Errorf("a lease of %v, want at least %v", t.Lease, LeaseMin)
	case t.Signal.Number < 0 || t.Signal.Number > SignalMax:
		return fmt.Errorf("signal %d, want 1 to %d", t.Signal.Number, SignalMax)
	case t.Signal.Before < 0 || t.Signal.Before > SpanMax:
		return fmt.Errorf("signal %d µs before the limit", int64(t.Signal.Before))
	case t.Nice < 0 || t.Nice > NiceMax:
		return fmt.Errorf("nice %d, want 0 to %d", t.Nice, NiceMax)
	case len(t.Notify) > NotifyMax:
		return fmt.Errorf("notify: a command of %d bytes, at most %d", len(t.Notify), NotifyMax)
	case strings.IndexByte(t.Notify, 0) >= 0:
		return errors.New("notify: a command with a byte of zero")
	}
	for _, d := range t.After {
		if d.Condition < AfterOK || d.Condition > After || d.Job.IsZero() {
			return fmt.Errorf("dependency %d on job %s", d.Condition, d.Job)
		}
	}
	return nil
}

// Check returns an error that names the first field out of bounds.
func (a *Array) Check() error {
	switch {
	case a == nil:
		return nil
	case a.ID.IsZero():
		return fmt.Errorf("array without an id")
	case a.Index < a.Min || a.Index > a.Max || a.Min < 0 || a.Count < 1 || a.Step < 1 || a.Most < 0:
		return fmt.Errorf("index %d of %d from %d to %d by %d, %d at a time", a.Index, a.Count, a.Min, a.Max, a.Step, a.Most)
	}
	return nil
}

// Title returns the name of a job, without its index if it is one of an array.
func (j *Job) Title() string {
	if i := strings.LastIndexByte(j.Name, '['); j.Array != nil && i >= 0 {
		return j.Name[:i]
	}
	return j.Name
}
