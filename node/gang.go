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
		removeRankOutputs(x.h, e.Ranks)
		_ = os.RemoveAll(x.inputsDir(e.Gang)) // pruned later if not now
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

// gather makes addresses for a gang's tasks here, and brings what they read.
func (x *pilots) gather(e pilot.Gather) {
	answer := &pilot.Gathered{Gang: e.Task.ID}
	var err error
	answer.Addresses, err = x.forward.Add(forward.Group{ID: forward.ID{Home: x.h.id, Task: e.Task.ID}, Sites: e.Task.Gang.Sites()})
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
		if answer.Inputs, err = x.h.bring.inputs(ctx, e.Task.Job.Inputs, x.inputsDir(e.Task.ID)); err != nil {
			answer.Why = run.ShortReason(err)
		}
		if x.ctx.Err() == nil {
			x.tell(answer)
		}
	})
}

// collect makes the outputs of a gang until they are to be complete.
func (x *pilots) collect(e pilot.Collect) {
	complete := make(chan struct{})
	x.collects[e.Gang] = complete
	output := newGangOutput(x.h, e.Gang, e.Ranks)
	x.wg.Go(func() {
		tick := time.NewTicker(outputPoll * time.Duration(1+e.Ranks/32))
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				output.merge(false)
			case <-complete:
				output.merge(true)
				x.tell(&pilot.Collected{Gang: e.Gang})
				return
			case <-x.ctx.Done():
				output.close()
				return
			}
		}
	})
}
