package node

import (
	"gridnode/grid"
	"gridnode/node/site"
)

// Executor runs tasks for a host. Only the host's loop calls it, and no method may
// block for long. There are two: processes under a shim, and the testnet's timers.
type Executor interface {
	// Recover returns the tasks of an earlier run of the host: those that still run,
	// and those that ended and were not acknowledged. It is called once, first. The
	// end of a running one is reported like any other.
	Recover() (running []site.Adopted, ended []grid.TaskEnded, err error)
	// Start begins a task. Its end is reported once, also if it could not begin. The
	// job belongs to the caller and does not change.
	Start(task grid.Task)
	// Kill ends a task and everything it started. The end is reported as usual. A
	// task that is not there is reported as lost.
	Kill(task grid.Task)
	// Acknowledge says that the ends of these tasks are durable: they may be forgotten.
	Acknowledge(ended []grid.TaskID)
	// Close lets go of the tasks. Processes run on, to be recovered by the next host.
	Close() error
}
