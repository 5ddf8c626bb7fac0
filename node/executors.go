package node

import (
	"gridnode/grid"
	"gridnode/node/site"
)

// executors runs tasks on this site's own processors, on those it has on lease, and on
// both at once.
type executors struct {
	own   Executor
	away  *away
	gangs *gangs
}

// Recover implements Executor. What ran on borrowed processors is in the site's
// records.
func (x *executors) Recover() ([]site.Adopted, []grid.TaskEnded, error) {
	running, ended, err := x.own.Recover()
	running, ended = x.gangs.Recover(running, ended)
	return running, ended, err
}

func (x *executors) of(task *grid.Task) starter {
	if task.Gang != nil || task.Abandon || x.gangs.has(task.ID) {
		return x.gangs
	}
	if task.Job != nil && task.Pilot.Key != 0 {
		return x.away
	}
	return x.own
}

// starter is what all three do.
type starter interface {
	Start(task grid.Task)
	Kill(task grid.Task)
}

// Start implements Executor.
func (x *executors) Start(task grid.Task) { x.of(&task).Start(task) }

// Kill implements Executor.
func (x *executors) Kill(task grid.Task) { x.of(&task).Kill(task) }

// Acknowledge implements Executor.
func (x *executors) Acknowledge(ended []grid.TaskID) {
	x.own.Acknowledge(ended)
	x.away.Acknowledge(ended)
	x.gangs.Acknowledge(ended)
}

// Close implements Executor.
func (x *executors) Close() error {
	x.gangs.Close()
	err := x.away.Close()
	if own := x.own.Close(); own != nil {
		err = own
	}
	return err
}
