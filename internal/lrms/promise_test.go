package lrms

import (
	"errors"
	"slices"
	"testing"

	"gridnode/grid"
	"gridnode/internal/lrms/titan"

	"pgregory.net/rapid"
)

// world drives a cluster as a site does: it honours NextTimer, ends every task
// within its estimate, commits within the hold, and makes a pass after each turn.
type world struct {
	t       *rapid.T
	c       *Cluster
	now     grid.Time
	count   int
	running map[grid.TaskID]*worldTask
	waiting []*worldTask // queued, in order of submission
	promise map[grid.TaskID]*worldTask
}

type worldTask struct {
	Request
	submitted int       // position in the order of submission
	end       grid.Time // running: when it really ends
	latest    grid.Time // promise: when it has to start at the latest; head: its first plan
	until     grid.Time // promise: when its hold ends
	committed bool
}

func (w *world) draw() *worldTask {
	w.count++
	return &worldTask{
		Request: Request{
			ID:         id(w.count),
			Processors: rapid.Int64Range(1, w.c.cfg.Processors).Draw(w.t, "width"),
			Estimate:   grid.Time(rapid.Int64Range(1, 40).Draw(w.t, "estimate")),
		},
		submitted: w.count,
		latest:    grid.Never,
	}
}

func (w *world) submit() {
	task := w.draw()
	by := grid.Never
	if w.c.cfg.Discipline == TITAN && rapid.Bool().Draw(w.t, "deadline") {
		by = w.now + grid.Time(rapid.IntRange(-20, 100).Draw(w.t, "by"))
	}
	if err := w.c.SubmitBy(w.now, task.Request, by); err != nil {
		w.t.Fatal(err)
	}
	w.waiting = append(w.waiting, task)
}

func (w *world) reserve() {
	task := w.draw()
	by := w.now + grid.Time(rapid.IntRange(0, 120).Draw(w.t, "by"))
	reserve, admit := w.c.Reserve, rapid.Bool().Draw(w.t, "admit")
	if admit {
		reserve = w.c.Admit
	}
	start, err := reserve(w.now, task.Request, by)
	var late TooLate
	switch {
	case errors.As(err, &late):
		if late.Finish <= by {
			w.t.Fatalf("too late for %d, but can finish by %d", int64(by), int64(late.Finish))
		}
		return
	case err != nil:
		w.t.Fatal(err)
	case start < w.now || start+task.Estimate > by:
		w.t.Fatalf("at %d promised to start at %d for %d, by %d", int64(w.now), int64(start), int64(task.Estimate), int64(by))
	}
	task.latest, task.until, task.committed = start, w.now+w.c.cfg.Hold, admit
	w.promise[task.ID] = task
	w.commit(task)
}

// commit commits or cancels a promise, at the latest when its hold ends.
func (w *world) commit(task *worldTask) {
	if task.committed || w.now < task.until && rapid.IntRange(0, 2).Draw(w.t, "later") == 0 {
		return
	}
	if rapid.IntRange(0, 4).Draw(w.t, "cancel") == 0 {
		if !w.c.Cancel(w.now, task.ID) {
			w.t.Fatal("a promise is gone")
		}
		delete(w.promise, task.ID)
		return
	}
	if err := w.c.Commit(w.now, task.ID); err != nil {
		w.t.Fatal(err)
	}
	task.committed = true
	task.latest = max(task.latest, w.now)
}

// pass schedules and checks who starts.
func (w *world) pass() {
	for _, r := range w.c.Schedule(w.now, nil) {
		task := w.promise[r.ID]
		if task == nil {
			i := slices.IndexFunc(w.waiting, func(q *worldTask) bool { return q.ID == r.ID })
			if i < 0 {
				w.t.Fatalf("%v starts, but neither waits nor is promised", r)
			}
			if i > 0 && w.c.cfg.Discipline == FCFS {
				w.t.Fatalf("%d starts before %d", w.waiting[i].submitted, w.waiting[0].submitted)
			}
			task = w.waiting[i]
			w.waiting = slices.Delete(w.waiting, i, i+1)
		} else if !task.committed {
			w.t.Fatalf("%v starts without a commit", r)
		}
		if w.now > task.latest {
			w.t.Fatalf("%v starts at %d, later than %d", r, int64(w.now), int64(task.latest))
		}
		delete(w.promise, r.ID)
		task.end = w.now + grid.Time(rapid.Int64Range(1, int64(r.Estimate)).Draw(w.t, "run"))
		w.running[r.ID] = task
	}
	// TITAN's head may give way to jobs that come later.
	if len(w.waiting) > 0 && w.waiting[0].latest == grid.Never && w.c.cfg.Discipline != TITAN {
		start, ok := w.c.Planned(w.waiting[0].ID)
		if !ok || start <= w.now {
			w.t.Fatalf("the head waits at %d, planned for %d", int64(w.now), int64(start))
		}
		w.waiting[0].latest = start
	}
	checkIndex(w.t, &w.c.queue, w.c.tasks.slab)
	w.conserve()
}

func (w *world) conserve() {
	busy := int64(0)
	for _, task := range w.running {
		busy += task.Processors
	}
	committed := 0
	for _, task := range w.promise {
		if task.committed {
			committed++
		}
	}
	s := w.c.State(w.now)
	switch {
	case busy > s.Capacity || s.Busy != busy || s.Free < 0 || s.Held < 0 || s.Free+s.Held+s.Busy != s.Capacity:
		w.t.Fatalf("%d processors run jobs: %+v", busy, s)
	case s.Running != len(w.running) || s.Queued != len(w.waiting)+committed || s.Reserved != len(w.promise)-committed:
		w.t.Fatalf("%d running, %d waiting, %d of %d promises committed: %+v", len(w.running), len(w.waiting), committed, len(w.promise), s)
	case s.Late != 0 || s.Overdue != 0 || s.LateMax != 0:
		w.t.Fatalf("late although all estimates hold: %+v", s)
	case s.Widest > s.Free:
		w.t.Fatalf("widest job wider than what is free: %+v", s)
	}
}

// turn goes to the next instant at which something is due, or a little ahead.
func (w *world) turn() {
	next := min(w.c.NextTimer(), w.now+grid.Time(rapid.IntRange(1, 20).Draw(w.t, "span")))
	for _, task := range w.running {
		next = min(next, task.end)
	}
	for _, task := range w.promise {
		if !task.committed {
			next = min(next, max(task.until, w.now))
		}
	}
	w.now = max(next, w.now)
	w.each(w.running, func(task *worldTask) {
		if task.end == w.now {
			if !w.c.Ended(w.now, task.ID) {
				w.t.Fatal("a running task is gone")
			}
			delete(w.running, task.ID)
		}
	})
	w.each(w.promise, w.commit)
	w.pass()
}

func (w *world) each(tasks map[grid.TaskID]*worldTask, do func(*worldTask)) {
	for i := range w.count {
		if task := tasks[id(i+1)]; task != nil {
			do(task)
		}
	}
}

// While estimates hold and commits keep to their hold, whatever the mix of queue
// and reservations: processors are conserved and never shared, every promise
// starts in time, the head of the queue starts by the first plan made for it, and
// FCFS keeps the order.
func TestPromisesHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, err := New(Config{
			Processors: int64(rapid.SampledFrom([]int{1, 4, 10, 64}).Draw(t, "processors")),
			Discipline: rapid.SampledFrom([]Discipline{EASY, EASY, FCFS, FCFS, TITAN}).Draw(t, "discipline"),
			Hold:       grid.Time(rapid.SampledFrom([]int{0, 1, 10}).Draw(t, "hold")),
			Nominal:    10,
		})
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, c: c, running: map[grid.TaskID]*worldTask{}, promise: map[grid.TaskID]*worldTask{}}
		for range rapid.IntRange(1, 80).Draw(t, "turns") {
			for range rapid.IntRange(0, 3).Draw(t, "submissions") {
				w.submit()
			}
			w.pass()
			for range rapid.IntRange(0, 2).Draw(t, "reservations") {
				w.reserve()
				w.pass()
			}
			w.turn()
		}
		for len(w.running)+len(w.waiting)+len(w.promise) > 0 {
			w.turn()
		}
		if s := c.State(w.now); s.Free != s.Capacity || s.Widest != s.Capacity || s.Wait != 0 || s.QueuedWork != 0 || len(c.tasks.index) != 0 {
			t.Fatalf("in the end %+v", s)
		}
	})
}

func mustReserve(t *testing.T, c *Cluster, now grid.Time, n int, processors int64, span, want grid.Time) {
	t.Helper()
	start, err := c.Reserve(now, Request{ID: id(n), Processors: processors, Estimate: span}, grid.Never)
	if err != nil || start != want {
		t.Fatalf("reserve %d: starts at %d, %v; want %d", n, int64(start), err, int64(want))
	}
}

func mustCommit(t *testing.T, c *Cluster, now grid.Time, n int) {
	t.Helper()
	if err := c.Commit(now, id(n)); err != nil {
		t.Fatal(err)
	}
}

func wantStarts(t *testing.T, c *Cluster, now grid.Time, want ...int) {
	t.Helper()
	var got []int
	for _, r := range c.Schedule(now, nil) {
		got = append(got, int(r.ID.Job.Lo))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("at %d started %v, want %v", int64(now), got, want)
	}
}

func mustNew(t *testing.T, cfg Config) *Cluster {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A job past its estimate makes the promise behind it late, visibly, and only it:
// the cluster neither panics nor asks to be woken in vain.
func TestOverrunMakesPromiseLate(t *testing.T) {
	c := mustNew(t, Config{Processors: 10})
	if err := c.Submit(0, Request{ID: id(1), Processors: 4, Estimate: 100}); err != nil {
		t.Fatal(err)
	}
	wantStarts(t, c, 0, 1)
	mustReserve(t, c, 0, 2, 8, 50, 100)
	mustReserve(t, c, 0, 3, 2, 60, 0)
	mustCommit(t, c, 0, 2)
	mustCommit(t, c, 0, 3)
	wantStarts(t, c, 0, 3)
	if got := c.NextTimer(); got != 100 {
		t.Fatalf("next timer %d, want 100", int64(got))
	}
	wantStarts(t, c, 100) // job 1 should have ended
	if got := c.NextTimer(); got != grid.Never {
		t.Fatalf("next timer %d while only an end can help", int64(got))
	}
	if s := c.State(130); s.Overdue != 1 || s.Late != 0 || s.Free != 0 || s.Held != 4 || s.Busy != 6 {
		t.Fatalf("while blocked: %+v", s)
	}
	c.Ended(130, id(3))
	wantStarts(t, c, 130)
	mustReserve(t, c, 130, 4, 2, 10, 131) // beside the late one, which is expected from 131 to 181
	mustReserve(t, c, 130, 5, 10, 10, 181)
	c.Ended(140, id(1))
	wantStarts(t, c, 140, 2)
	if s := c.State(140); s.Overdue != 0 || s.Late != 1 || s.LateMax != 40 {
		t.Fatalf("after the late start: %+v", s)
	}
}

// Room that an early end leaves goes to the head first, then to promises in
// order, then to backfilling; nothing starts later than promised.
func TestEarlyEndMovesPromisesForward(t *testing.T) {
	c := mustNew(t, Config{Processors: 10})
	c.Submit(0, Request{ID: id(1), Processors: 10, Estimate: 100})
	wantStarts(t, c, 0, 1)
	mustReserve(t, c, 0, 2, 6, 50, 100)
	mustReserve(t, c, 0, 3, 6, 95, 150)
	mustReserve(t, c, 0, 4, 4, 50, 100)
	mustReserve(t, c, 0, 5, 4, 20, 150)
	mustCommit(t, c, 0, 3)
	mustCommit(t, c, 0, 4)
	mustCommit(t, c, 0, 5)
	wantStarts(t, c, 10)
	c.Ended(10, id(1))
	// 2 is not committed: it keeps its place. 3 would run into it, 5 does not.
	wantStarts(t, c, 10, 4, 5)
}

// A promise that starts early leaves room where it stood, and the head may need
// just that.
func TestHeadFollowsEarlyPromise(t *testing.T) {
	c := mustNew(t, Config{Processors: 10})
	c.Submit(0, Request{ID: id(1), Processors: 10, Estimate: 5})
	wantStarts(t, c, 0, 1)
	mustReserve(t, c, 0, 2, 4, 4, 5)
	mustReserve(t, c, 0, 3, 4, 4, 5)
	mustCommit(t, c, 0, 2)
	mustCommit(t, c, 0, 3)
	c.Submit(0, Request{ID: id(4), Processors: 5, Estimate: 10})
	wantStarts(t, c, 0)
	if start, ok := c.Planned(id(4)); !ok || start != 9 {
		t.Fatalf("head planned for %d, %v; want 9", int64(start), ok)
	}
	c.Ended(1, id(1))
	wantStarts(t, c, 1, 2, 4)
}

func TestExtremes(t *testing.T) {
	t.Run("far future", func(t *testing.T) {
		const now = 1_700_000_000 * grid.Second
		c := mustNew(t, Config{Processors: 3, Hold: HoldMax})
		refused := 0
		for n := range 2000 {
			_, err := c.Reserve(now, Request{ID: id(n), Processors: 3, Estimate: grid.SpanMax}, grid.Never)
			if errors.Is(err, ErrTooLate) {
				refused++
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if refused == 0 || refused == 2000 {
			t.Errorf("%d of 2000 refused", refused)
		}
		if err := c.Submit(now, Request{ID: id(3000), Processors: 3, Estimate: grid.SpanMax}); err != nil {
			t.Fatal(err)
		}
		if s := c.State(now); s.Wait <= 0 || s.Widest != 0 {
			t.Errorf("%+v", s)
		}
		if c.CanFinishBy(now, 1, grid.SpanMax, instantMax) {
			t.Error("finishes although nothing is free for ever")
		}
	})
	t.Run("no processors", func(t *testing.T) {
		c := mustNew(t, Config{})
		if err := c.Submit(0, Request{ID: id(1), Processors: 1, Estimate: 1}); !errors.Is(err, ErrTooWide) {
			t.Errorf("submit: %v", err)
		}
		if c.CanFinishBy(0, 1, 1, grid.Never) || len(c.Schedule(0, nil)) > 0 || c.NextTimer() != grid.Never {
			t.Error("a site without processors does something")
		}
		if s := c.State(0); s.Wait != grid.Never || s.Widest != 0 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("work saturates", func(t *testing.T) {
		c := mustNew(t, Config{Processors: ProcessorsMax})
		for n := range 3 {
			c.Submit(0, Request{ID: id(n), Processors: ProcessorsMax, Estimate: grid.SpanMax})
		}
		if s := c.State(0); s.QueuedWork != 1<<63-1 {
			t.Errorf("queued work %d", s.QueuedWork)
		}
		for n := range 3 {
			c.Cancel(0, id(n))
		}
		if s := c.State(0); s.QueuedWork != 0 {
			t.Errorf("queued work %d in the end", s.QueuedWork)
		}
	})
	t.Run("time goes back", func(t *testing.T) {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		c := mustNew(t, Config{Processors: 1})
		c.Schedule(5, nil)
		c.Schedule(4, nil)
	})
}

func TestErrors(t *testing.T) {
	c := mustNew(t, Config{Processors: 4, QueueMax: 2})
	c.Submit(0, Request{ID: id(1), Processors: 4, Estimate: 10})
	c.Schedule(0, nil)
	c.Submit(0, Request{ID: id(2), Processors: 4, Estimate: 10})
	for _, tt := range []struct {
		name string
		err  error
		want error
	}{
		{"no processors", c.Submit(0, Request{ID: id(9), Processors: 0, Estimate: 10}), ErrInvalid},
		{"no estimate", c.Submit(0, Request{ID: id(9), Processors: 1, Estimate: 0}), ErrInvalid},
		{"endless estimate", c.Submit(0, Request{ID: id(9), Processors: 1, Estimate: grid.SpanMax + 1}), ErrInvalid},
		{"too wide", c.Submit(0, Request{ID: id(9), Processors: 5, Estimate: 10}), ErrTooWide},
		{"runs", c.Submit(0, Request{ID: id(1), Processors: 1, Estimate: 10}), ErrKnown},
		{"waits", c.Adopt(0, Request{ID: id(2), Processors: 1, Estimate: 10}, 0), ErrKnown},
		{"no room to adopt", c.Adopt(0, Request{ID: id(9), Processors: 1, Estimate: 10}, 0), ErrTooWide},
		{"never reserved", c.Commit(0, id(9)), ErrUnknown},
		{"queued, not reserved", c.Commit(0, id(2)), ErrUnknown},
		{"running already", c.Commit(0, id(1)), nil},
		{"fits the queue", c.Submit(0, Request{ID: id(3), Processors: 1, Estimate: 10}), nil},
		{"queue full", c.Submit(0, Request{ID: id(9), Processors: 1, Estimate: 10}), ErrQueueFull},
		{"queue full for promises", second(c.Reserve(0, Request{ID: id(9), Processors: 1, Estimate: 10}, grid.Never)), ErrQueueFull},
	} {
		if !errors.Is(tt.err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, tt.err, tt.want)
		}
	}
	c.Cancel(0, id(3))
	_, err := c.Reserve(0, Request{ID: id(9), Processors: 4, Estimate: 10}, 29)
	var late TooLate
	if !errors.Is(err, ErrTooLate) || !errors.As(err, &late) || late.Finish != 30 {
		t.Errorf("too late: %v", err)
	}
	if _, err := c.Reserve(0, Request{ID: id(9), Processors: 4, Estimate: 10}, 30); err != nil {
		t.Errorf("just in time: %v", err)
	}

	for _, cfg := range []Config{
		{Processors: -1}, {Processors: ProcessorsMax + 1}, {Discipline: 3}, {Discipline: TITAN, Weights: titan.Weights{Idle: -1}}, {QueueMax: -1},
		{Hold: -1}, {Hold: HoldMax + 1}, {Nominal: -1}, {Nominal: grid.SpanMax + 1},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
	for _, d := range []Discipline{EASY, FCFS, TITAN} {
		if got, err := ParseDiscipline(d.String()); got != d || err != nil {
			t.Errorf("%v reads as %v, %v", d, got, err)
		}
	}
	if _, err := ParseDiscipline("lifo"); err == nil {
		t.Error("lifo is accepted")
	}
}

func second(_ grid.Time, err error) error { return err }
