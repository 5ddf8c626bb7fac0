package node

import (
	"testing"
	"testing/synctest"
	"time"

	"gridnode/grid"
	"gridnode/node/run"
)

// TestLeaseWhileFilesCome: a task waits for what it needs no longer than its lease, which may
// be renewed meanwhile, and begins with what is left of it.
func TestLeaseWhileFilesCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &Host{ctx: t.Context(), inbox: newInbox(), ended: make(chan struct{}), loop: loop{clock: clock{time.Now()}}}
		var ended []*run.Ended
		g := &staging{h: h, modules: &modules{h: h}, ended: func(e *run.Ended) { ended = append(ended, e) }, waiting: make(map[stagedTask]*waiting)}
		turn := func(after time.Duration) {
			<-time.After(after)
			synctest.Wait()
			for _, in := range h.inbox.takeOwn(nil, 10) {
				in.(*look).at(nil)
			}
		}
		module := &grid.Job{Command: &grid.Command{Module: &grid.Module{Digest: "x", Size: 1}}} // it never comes: nobody answers
		late := grid.Task{ID: grid.TaskID{Job: grid.JobID{Lo: 1}, Epoch: 1}, Job: module, Lease: 10 * grid.Second}
		g.Start(late)
		turn(8 * time.Second)
		g.Renew(late.ID, 10*grid.Second)
		if turn(10*time.Second - time.Millisecond); len(ended) != 0 {
			t.Fatalf("%+v, although its lease was renewed", ended[0])
		}
		if turn(time.Millisecond); len(ended) != 1 || ended[0].ID != late.ID || !ended[0].Lapsed {
			t.Fatalf("%+v, want the end of its lease", ended)
		}
		begins := grid.Task{ID: grid.TaskID{Job: grid.JobID{Lo: 2}, Epoch: 1}, Job: module, Lease: 10 * grid.Second}
		left := grid.Time(0)
		g.begin(stagedTask{id: begins.ID}, &begins, func(error) { left = begins.Lease })
		turn(4 * time.Second)
		close(h.ended) // an answer
		if turn(0); left != 6*grid.Second {
			t.Errorf("it begins with a lease of %v, want 6 s", left)
		}
		g.wg.Wait()
	})
}
