package node

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
	"gridnode/lease"
	"gridnode/node/run"
	"gridnode/node/site"
)

// gangOf returns what the pilot of a task is told about the gang it belongs to.
func gangOf(t *grid.Task) *wirepb.Gang {
	if t.Rank == nil {
		return nil
	}
	return wire.GangProto(t.Rank.Gang, true)
}

func rankOf(t *grid.Task) uint32 {
	if t.Rank == nil {
		return 0
	}
	return uint32(t.Rank.Number)
}

// rankOfOrder reads it, and sets task.Rank if the task is of a gang.
func rankOfOrder(o *wirepb.PilotOrder, task *grid.Task) error {
	id, number, ranked := grid.GangOf(task.ID)
	g, err := wire.GangFromProto(id, o.Gang)
	switch {
	case err != nil:
		return err
	case ranked != (g != nil) || ranked && uint32(number) != o.Rank:
		return wire.Malformed("order to a pilot: task %d of a gang, as task %d", number, o.Rank)
	case !ranked:
		return nil
	}
	if part, _, _ := g.Part(number); part < 0 || task.Job.Processors != g.Each {
		return wire.Malformed("order to a pilot: task %d on %d processors is not one of its gang", number, task.Job.Processors)
	}
	task.Rank = &grid.Rank{Gang: g, Number: number}
	return nil
}

// join has a task of a gang reach the others; any other task needs nothing.
func (p *pilotSession) join(at awayID, task *grid.Task) (err error) {
	if task.Rank == nil {
		return nil
	}
	if part, _, _ := task.Rank.Gang.Part(task.Rank.Number); task.Rank.Gang.Parts[part].Site != p.h.id {
		return wire.Malformed("task %d is to run at %s", task.Rank.Number, task.Rank.Gang.Parts[part].Site)
	}
	if task.Rank.Addresses, err = p.h.gangs.enter(at.key, p.from, task.Rank.Gang); err != nil {
		return err
	}
	// The pilot may have ended since the lease was looked up: then nobody vacates it any more.
	there := false
	if err = p.h.Do(p.ctx, func(s *site.Site) { there = s.Pilot(at.key) }); err == nil && !there {
		p.h.gangs.vacate(at.key)
		err = errors.New("the lease has ended")
	}
	return err
}

// prepare makes everything ready for a task of a gang, and says so, or why it is not.
func (p *pilotSession) prepare(at awayID, task *grid.Task) error {
	if task.Rank == nil {
		return wire.Malformed("order to a pilot: prepare a task of no gang")
	}
	switch known, room := p.enter(p.preparing, at, grid.RanksMax); {
	case known:
		return nil
	case !room:
		p.refuse(at, fmt.Sprintf("%d tasks of this borrower are being prepared already", grid.RanksMax))
		return nil
	}
	p.wg.Go(func() {
		p.with(at, func(l *run.PilotLink, held lease.Lease) {
			if err := p.join(at, task); err != nil {
				p.refuse(at, run.ShortReason(err))
				return
			}
			if err := p.bring(l, held, task); err == nil {
				p.tell(at, &wirepb.PilotReport{Kind: reportReady})
			} else if p.ctx.Err() == nil {
				p.tell(at, notStarted(err))
			}
		})
		p.mu.Lock()
		delete(p.preparing, at)
		p.mu.Unlock()
	})
	return nil
}

// bring sets where a task finds what it reads, once that is at this site. It takes no
// longer than the lease lasts.
func (p *pilotSession) bring(l *run.PilotLink, held lease.Lease, task *grid.Task) (err error) {
	if task.Rank == nil || len(task.Job.Inputs) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(p.ctx, max(held.Limit-p.h.Now(), 0).Duration())
	defer cancel()
	task.Rank.Inputs, err = p.h.bring.inputs(ctx, task.Job.Inputs, filepath.Join(l.Dir, pilotInputs))
	return err
}

// pilotInputs is the directory of copies of what the tasks of a pilot read.
const pilotInputs = "inputs"

// notStarted says that a task has ended without having begun.
func notStarted(err error) *wirepb.PilotReport {
	return &wirepb.PilotReport{Kind: reportEnded, Result: wire.ResultProto(grid.Result{ExitCode: run.ExitNoStart, Reason: run.ShortReason(err)})}
}
