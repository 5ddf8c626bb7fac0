package run

import (
	"context"
	"log/slog"

	"gridnode/grid"
	"gridnode/node/sandbox"
	"gridnode/node/site"
)

// Engine runs the tasks of a host, and keeps what it lends: the boundary between a site
// and whatever its processors are. A task of site.IsPilot is a pilot: it holds processors
// and ends with what it runs; what becomes of pilots and of what they run is told as
// inputs of pilot.Core. Only the host's loop calls an engine, and no method may block for
// long.
//
// There are three: [Processes] under a shim on this machine, the jobs of a Slurm cluster
// (package gridnode/node/run/slurm), and the testnet's timers. Another one is one folder
// with an [Opener].
type Engine interface {
	// Traits says what kind of engine it is.
	Traits() Traits

	// Recover adopts the tasks of an earlier run of the host: those that still run, and
	// those that ended and were not acknowledged. It may name some that were, of late. It is
	// called once, first. The end of a running one is reported like any other.
	Recover() (running []Found, ended []Ended, err error)
	// Start begins a task, or all of a squad; a pilot that is there lasts longer. The end of
	// each, with what it used, is reported once to Setup.Ended, also if it could not begin.
	// The job belongs to the caller and does not change.
	Start(task grid.Task)
	// Renew has a task that was started with a lease go on for a span from now, whatever is
	// left of it. What is not there, or is being ended, it leaves alone. In what Start gets
	// Task.Lease is such a span, too: a task is ended when it is over, whatever has become of
	// the host, and Ended has Lapsed set.
	Renew(id grid.TaskID, span grid.Time)
	// Kill signals a task and everything it started to stop, and ends what does not. The end
	// is reported as usual. A task that is not there is reported as lost, a squad with
	// pilot.Whole.
	Kill(task grid.Task)
	// Acknowledge says that the ends of these tasks are durable: they may be forgotten.
	Acknowledge(ended []grid.TaskID)
	// Close lets go of the tasks: they run on, to be recovered by the next host.
	Close() error

	// DialPilot connects to a pilot, which may be starting: pilot.Up is told, and an
	// Over for each of its tasks that has ended, or pilot.Down; and Down once it is gone.
	DialPilot(key uint64)
	// Launch starts a task, or a squad, under a pilot; pilot.Over is told when it has ended.
	Launch(key uint64, task *grid.Task)
	// Stop ends one under a pilot. What is not there is none.
	Stop(key uint64, id grid.TaskID, reason string)
	// Forget says that the end of one under a pilot is known to its borrower.
	Forget(key uint64, id grid.TaskID)
	// PilotDir is where a pilot's tasks have their files; empty if they have none.
	PilotDir(key uint64) string
}

// Traits is what an engine is.
type Traits struct {
	// Scheduler says to whom the site's processors belong. It is the one place where this is
	// said: the site plans with lrms in both cases, and where they are Theirs it counts what
	// Setup.Room reports as taken.
	Scheduler Scheduler
	// Files: tasks are processes, and write files where Setup.Files says.
	Files bool
}

// Scheduler says whose processors are.
type Scheduler uint8

// Whose processors are.
const (
	Ours   Scheduler = iota // nobody but this site gives them away
	Theirs                  // another scheduler's, which has other users, too
)

// Setup is what a host gives its engine.
type Setup struct {
	Files  Files
	Name   string // of the site, for people
	Logger *slog.Logger

	Accounts Accounts // of the zero value all jobs run as the daemon's account, but for the sandbox

	Guest func(home grid.SiteID) (name string) // of a site that has a task here, in its certificate; nil: none has one

	Job func(id grid.JobID) *grid.Job // that the host knows of before a restart; nil if it knows none. For Recover only

	Rules Rules          // nil: jobs of other sites inside walls, with the default limits
	Walls sandbox.Kind   // for those that Rules wants inside; empty: the best there are
	Means *sandbox.Means // of this machine; nil: looked for when they are first needed

	Modules Modules // zero: none are run
	GPUs    []GPU   // of the site

	// What the engine tells, from any goroutine.
	Ended  func(*Ended)     // each end, once
	Pilots func(grid.Input) // what pilots say: inputs of a pilot.Keeper, those of one pilot in order
	Room   func(*site.Room) // what another scheduler leaves; only if its Scheduler is Theirs
}

// Opener makes the engine of a host. ctx bounds the opening only.
type Opener func(ctx context.Context, setup Setup) (Engine, error)
