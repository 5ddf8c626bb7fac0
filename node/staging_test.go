package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gridnode/grid"
	"gridnode/node/pilot"
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

// starter is an engine that notes what it is to start.
type starter struct {
	run.Engine
	started []grid.Task
}

func (s *starter) Start(task grid.Task)             { s.started = append(s.started, task) }
func (s *starter) Launch(_ uint64, task *grid.Task) { s.started = append(s.started, *task) }

// TestStoppedWhileFilesCome: each process of what is stopped before it begins ends, once, and none is started
// when its files are here.
func TestStoppedWhileFilesCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &Host{ctx: t.Context(), inbox: newInbox(), ended: make(chan struct{}), loop: loop{clock: clock{time.Now()}}}
		var ended, over []int
		engine := &starter{}
		g := &staging{Engine: engine, h: h, modules: &modules{h: h}, waiting: make(map[stagedTask]*waiting)}
		g.ended = func(e *run.Ended) {
			if e.Result.ExitCode != exitStopped || e.Result.Reason != "no more" || e.Lapsed {
				t.Errorf("ended with %+v", e)
			}
			ended = append(ended, e.Number)
		}
		g.tell = func(in grid.Input) {
			if o, yes := in.(*pilot.Over); !yes || o.Key != 7 || o.End.ExitCode != exitStopped || o.End.Reason != "no more" {
				t.Errorf("told %+v", in)
			} else {
				over = append(over, o.Number)
			}
		}
		settle := func() {
			synctest.Wait()
			for _, in := range h.inbox.takeOwn(nil, 10) {
				in.(*look).at(nil)
			}
		}
		module := &grid.Job{Command: &grid.Command{Module: &grid.Module{Digest: "x", Size: 1}}}
		squad := &grid.Squad{Gang: &grid.Gang{Each: 2, Parts: []grid.GangPart{{Processors: 6}}}}
		for i, s := range []*grid.Squad{nil, squad} {
			task := grid.Task{ID: grid.TaskID{Job: grid.JobID{Lo: uint64(i + 1)}, Epoch: 1}, Job: module, Squad: s, Cause: "no more"}
			g.Start(task)
			g.Kill(task)
			g.Launch(7, &task)
			g.Stop(7, task.ID, "no more")
			want := []int{0, 1, 2}
			if s == nil {
				want = want[:1]
			}
			if !slices.Equal(ended, want) || !slices.Equal(over, want) {
				t.Errorf("ended: %v, over: %v, want %v of each", ended, over, want)
			}
			ended, over = nil, nil
			settle()
		}
		if len(engine.started) > 0 || len(ended)+len(over) > 0 {
			t.Errorf("when they had been stopped, %v were started, %v ended, %v were over", engine.started, ended, over)
		}
		g.wg.Wait()
	})
}

// TestTimeWhileFilesCome: the time that they take is the task's.
func TestTimeWhileFilesCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct{ limit, left grid.Time }{{0, 0}, {10 * grid.Second, 6 * grid.Second}, {3 * grid.Second, -1}} {
			h := &Host{ctx: t.Context(), inbox: newInbox(), ended: make(chan struct{}), loop: loop{clock: clock{time.Now()}}}
			g := &staging{h: h, modules: &modules{h: h}, waiting: make(map[stagedTask]*waiting)}
			task := grid.Task{ID: grid.TaskID{Epoch: 1}, Job: &grid.Job{Command: &grid.Command{Module: &grid.Module{}}}, Limit: tt.limit}
			var err error
			g.begin(stagedTask{id: task.ID}, &task, func(failed error) { err = failed })
			time.Sleep(4 * time.Second)
			close(h.ended) // what it waits for is answered
			synctest.Wait()
			for _, in := range h.inbox.takeOwn(nil, 10) {
				in.(*look).at(nil)
			}
			if over := tt.left < 0; over && err == nil || !over && task.Limit != tt.left {
				t.Errorf("of %v %v are left after 4 s, error %v", tt.limit, task.Limit, err)
			}
			g.wg.Wait()
		}
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
