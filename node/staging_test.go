package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
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

// TestFilesComeWhenDescriptorsDo: what no descriptor was left for is tried again until there is no
// more time; another error is one at once.
func TestFilesComeWhenDescriptorsDo(t *testing.T) {
	scarce := fmt.Errorf("its files: %w", &fs.PathError{Op: "open", Path: "input", Err: syscall.EMFILE})
	other := errors.New("it is not there")
	for _, tt := range []struct {
		name   string
		tries  []error
		pauses int // that there is time for
		want   error
		left   int // pauses that are not made
	}{
		{"at once", []error{nil}, 3, nil, 3},
		{"the third time", []error{scarce, scarce, nil}, 3, nil, 1},
		{"something else", []error{other, nil}, 3, other, 3},
		{"no more time", []error{scarce, scarce, nil}, 1, scarce, 0},
	} {
		n := 0
		err := whileScarce(func() error { n++; return tt.tries[n-1] }, func() error {
			if tt.pauses--; tt.pauses < 0 {
				tt.pauses = 0
				return context.DeadlineExceeded
			}
			return nil
		})
		if !errors.Is(err, tt.want) || tt.pauses != tt.left {
			t.Errorf("%s: %v after %d tries, %d pauses left; want %v, %d", tt.name, err, n, tt.pauses, tt.want, tt.left)
		}
	}
}
