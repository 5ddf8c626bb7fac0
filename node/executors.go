package node

import "gridnode/internal/grid"

// executors runs tasks on this site's own processors, and on those it has on lease.
type executors struct {
	own  Executor
	away *away
}

// Recover implements Executor. What ran on borrowed processors is in the site's
// records.
func (x *executors) Recover() ([]Adopted, []grid.TaskEnded, error) { return x.own.Recover() }

func (x *executors) of(task *grid.Task) Executor {
	if task.Job != nil && task.Pilot.Key != 0 {
		return x.away
	}
	return x.own
}

// Start implements Executor.
func (x *executors) Start(task grid.Task) { x.of(&task).Start(task) }

// Kill implements Executor.
func (x *executors) Kill(task grid.Task) { x.of(&task).Kill(task) }

// Acknowledge implements Executor.
func (x *executors) Acknowledge(ended []grid.TaskID) {
	x.own.Acknowledge(ended)
	x.away.Acknowledge(ended)
}

// Close implements Executor.
func (x *executors) Close() error {
	err := x.away.Close()
	if own := x.own.Close(); own != nil {
		err = own
	}
	return err
}
