package node

import (
	"context"
	"fmt"
	"os"
	"time"

	"gridnode/grid"
	"gridnode/node/forward"
	"gridnode/node/pilot"
	"gridnode/node/run"
)

// carryGang carries out what the home of a gang orders.
func (x *pilots) carryGang(e pilot.Effect) {
	switch e := e.(type) {
	case pilot.Gather:
		x.gather(e)
	case pilot.StartOwn:
		x.own.Start(e.Task)
	case pilot.KillOwn:
		x.own.Kill(e.Task)
	case pilot.AcknowledgeOwn:
		x.own.Acknowledge(e.IDs)
	case pilot.Collect:
		x.collect(e)
	case pilot.Finish:
		close(x.collects[e.Gang])
		delete(x.collects, e.Gang)
	case pilot.Clear:
		if !x.files() {
			break
		}
		removeOutputs(x.h, e.Squads)
		_ = os.RemoveAll(x.inputsDir(e.Gang)) // pruned later if not now
		if x.h.files.Shared != "" {
			_ = os.RemoveAll(x.h.files.SharedInputs(e.Gang))
		}
	case pilot.Disband:
		x.forward.Remove(forward.ID{Home: e.Home, Task: e.Gang})
	default:
		panic(fmt.Sprintf("node: unknown effect %T of a pilot's core", e))
	}
}

// inputsDir is where copies of what a job reads are at this site.
func (x *pilots) inputsDir(gang grid.TaskID) string {
	return x.h.files.Task(x.h.id, gang) + run.InputsSuffix
}

// connectTasks makes addresses here for the tasks of a gang; none if they are too many to
// speak to each other, or no processes.
func (x *pilots) connectTasks(home grid.SiteID, g *grid.Gang) ([]string, error) {
	if g.Tasks() > grid.PeersMax || !x.files() {
		return nil, nil
	}
	return x.forward.Add(forward.Group{ID: forward.ID{Home: home, Task: g.Task}, Sites: g.Sites()})
}

// gather makes addresses for a gang's tasks here, and brings what they read.
func (x *pilots) gather(e pilot.Gather) {
	answer := &pilot.Gathered{Gang: e.Task.ID}
	var err error
	answer.Addresses, err = x.connectTasks(x.h.id, e.Task.Gang)
	if err != nil {
		answer.Why = run.ShortReason(err)
	}
	if err != nil || !e.Bring {
		x.tell(answer)
		return
	}
	ctx, cancel := context.WithTimeout(x.ctx, max(e.Due-x.h.Now(), 0).Duration())
	x.wg.Go(func() {
		defer cancel()
		if answer.Inputs, err = x.bringTo(ctx, e.Task); err != nil {
			answer.Why = run.ShortReason(err)
		}
		if x.ctx.Err() == nil {
			x.tell(answer)
		}
	})
}

// bringTo brings what a gang reads to where its account gets at it.
func (x *pilots) bringTo(ctx context.Context, task *grid.Task) ([]string, error) {
	dir, err := x.h.files.InputsOf(task, &x.h.cfg.Accounts)
	if err != nil {
		return nil, err
	}
	paths, err := x.h.bring.inputs(ctx, task.Job.Inputs, dir)
	if err == nil {
		err = x.h.files.Give(task, &x.h.cfg.Accounts)
	}
	return paths, err
}

// collect makes the outputs of a gang until they are to be complete.
func (x *pilots) collect(e pilot.Collect) {
	complete := make(chan struct{})
	x.collects[e.Gang.Task] = complete
	if !x.files() {
		x.wg.Go(func() {
			select {
			case <-complete:
				x.tell(&pilot.Collected{Gang: e.Gang.Task})
			case <-x.ctx.Done():
			}
		})
		return
	}
	output := newGangOutput(x.h, e.Gang)
	x.wg.Go(func() {
		tick := time.NewTicker(outputPoll * pollsOf(e.Gang.Tasks()))
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				output.merge(false)
			case <-complete:
				output.merge(true)
				x.tell(&pilot.Collected{Gang: e.Gang.Task})
				return
			case <-x.ctx.Done():
				output.close()
				return
			}
		}
	})
}
