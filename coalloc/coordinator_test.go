package coalloc

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/lease"
)

// noteBook is a book that notes what it is asked, and fails where it is told to.
type noteBook struct {
	asker
	full     grid.SiteID // it cannot ask this one
	gone     uint64      // the lease of that number is not there to be claimed
	claimed  []uint64
	released []uint64
}

func (b *noteBook) Request(now grid.Time, lender grid.SiteID, w lease.Want, out *grid.Outbox) (lease.ID, error) {
	if lender == b.full {
		return lease.ID{}, fmt.Errorf("ask %s: %w", lender, lease.ErrBounds)
	}
	return b.asker.Request(now, lender, w, out)
}

func (b *noteBook) Claim(_ grid.Time, id lease.ID, _ *grid.Outbox) error {
	if id.Number == b.gone {
		return fmt.Errorf("claim %d: %w", id.Number, lease.ErrUnknown)
	}
	b.claimed = append(b.claimed, id.Number)
	return nil
}

func (b *noteBook) Release(_ grid.Time, id lease.ID, _ *grid.Outbox) error {
	b.released = append(b.released, id.Number)
	return nil
}

// bench is a coordinator of sites a, b and c, which have 4, 9 and 7 idle processors, on
// a noteBook.
type bench struct {
	t    *testing.T
	book noteBook
	view *View
	*Coordinator
	out grid.Outbox
}

func newBench(t *testing.T, cfg CoordinatorConfig) *bench {
	t.Helper()
	b := &bench{t: t, view: viewOf(nil, 4, 9, 7)}
	cfg.Queue.Policy = PolicyFCM
	var err error
	if b.Coordinator, err = NewCoordinator(cfg, b.view, &b.book, rand.New(rand.NewPCG(1, 2))); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) step(now grid.Time, in grid.Input) { b.Step(now, in, &b.out) }

func leaseOf(number uint64) lease.Lease {
	return lease.Lease{ID: lease.ID{Borrower: "x", Number: number}}
}

// submit hands a job over that needs all three sites.
func (b *bench) submit(now grid.Time) grid.TaskID {
	task := grid.TaskID{Job: jobID(1), Epoch: 1}
	b.step(now, &Submit{Task: task, Request: &Request{Processors: 20}, Estimate: grid.Minute})
	return task
}

// waits checks that the job waits, that nothing is claimed, and what is idle.
func (b *bench) waits() {
	b.t.Helper()
	if b.Claiming() != 0 || b.Queue().Waiting(jobID(1)) == nil || len(b.byLease) != 0 || b.view.Free() != 20 {
		b.t.Errorf("%d jobs are being claimed with %d leases, the job waits: %v, %d processors are idle, want 20",
			b.Claiming(), len(b.byLease), b.Queue().Waiting(jobID(1)) != nil, b.view.Free())
	}
}

// TestSiteThatCannotBeAsked: the parts that were asked for are released, and the job
// waits; later it is tried anew.
func TestSiteThatCannotBeAsked(t *testing.T) {
	b := newBench(t, CoordinatorConfig{})
	b.book.full = "b"
	b.submit(0)
	b.waits()
	if len(b.book.asked) != 1 || !slices.Equal(b.book.released, []uint64{1}) || len(b.out.Locals) != 0 {
		t.Errorf("asked %v, released %v, told %v", b.book.asked, b.book.released, b.out.Locals)
	}
	b.book.full = ""
	b.step(grid.Minute, grid.Tick{})
	for number := uint64(2); number <= 4; number++ {
		b.step(grid.Minute, &lease.Granted{Lease: leaseOf(number)})
	}
	if !slices.Equal(b.book.claimed, []uint64{2, 3, 4}) {
		t.Errorf("claimed %v", b.book.claimed)
	}
}

// TestHoldThatIsGoneWhenClaimed: nothing starts, every other part is released, the
// decision is taken back, and the owner hears that nothing of the job runs.
func TestHoldThatIsGoneWhenClaimed(t *testing.T) {
	b := newBench(t, CoordinatorConfig{})
	b.book.gone = 2
	task := b.submit(0)
	for number := uint64(1); number <= 3; number++ {
		b.step(grid.Second, &lease.Granted{Lease: leaseOf(number)})
	}
	b.waits()
	if !slices.Equal(b.book.claimed, []uint64{1}) || !slices.Equal(b.book.released, []uint64{1, 3}) {
		t.Errorf("claimed %v, released %v, want 1 claimed, 1 and 3 released", b.book.claimed, b.book.released)
	}
	if last := b.out.Effects[len(b.out.Effects)-1]; last.Kind != grid.EffectDelete || len(b.out.Effects) != 2 {
		t.Errorf("effects %+v, want the decision saved and deleted", b.out.Effects)
	}
	if len(b.out.Locals) != 1 || b.out.Locals[0].(*Aborted).Task != task {
		t.Errorf("told %v", b.out.Locals)
	}
	b.step(grid.Second, &lease.Claimed{Lease: leaseOf(1)}) // it was on its way
	if !slices.Equal(b.book.released, []uint64{1, 3, 1}) {
		t.Errorf("released %v: a late confirmation is not answered", b.book.released)
	}
}

// TestDecisions: of an execution it is told that its parts are claimed once all are held, and that it
// has started once all claims are confirmed, in whatever order that is.
func TestDecisions(t *testing.T) {
	for _, order := range [][]uint64{{1, 2, 3}, {3, 2, 1}, {2, 3, 1}} {
		b := newBench(t, CoordinatorConfig{})
		task := b.submit(0)
		check := func(what string, want ...bool) {
			t.Helper()
			var got []bool
			for id, started := range b.Decisions {
				if got = append(got, started); id != task {
					t.Errorf("%s: there is a decision for %v", what, id)
				}
			}
			if _, started := b.Started(task.Job); !slices.Equal(got, want) || started != slices.Contains(want, true) {
				t.Errorf("%s, in order %v: decided and started %v, started %v; want %v", what, order, got, started, want)
			}
		}
		for _, number := range order {
			check("not all are held")
			b.step(0, &lease.Granted{Lease: leaseOf(number)})
		}
		for _, number := range order {
			check("not all are claimed", false)
			b.step(0, &lease.Claimed{Lease: leaseOf(number)})
		}
		check("all are claimed", true)

		// After a restart it is known from its record, among those of others.
		record := b.out.Records[len(b.out.Records)-1]
		again := newBench(t, CoordinatorConfig{})
		stored := func(yield func(string, []byte) bool) {
			_ = yield("job/1", []byte("of another kind")) && yield(record.RecordKey(), record.AppendRecord(nil))
		}
		if err := again.Recover(stored, &again.out); err != nil {
			t.Fatal(err)
		}
		if got, started := again.Started(task.Job); !started || got != task {
			t.Errorf("after a restart %v has started: %v", got, started)
		}
	}
}

// TestWithdraw: wherever a job stands, all that it holds is released and nothing more is
// heard of it.
func TestWithdraw(t *testing.T) {
	for stage, name := range []string{"waiting", "holding", "claiming", "started"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, CoordinatorConfig{})
			if stage == 0 {
				b.view.SetFree(0, 0)
			}
			task := b.submit(0)
			for number := uint64(1); number <= 3 && stage >= 2; number++ {
				b.step(0, &lease.Granted{Lease: leaseOf(number)})
			}
			for number := uint64(1); number <= 3 && stage >= 3; number++ {
				b.step(0, &lease.Claimed{Lease: leaseOf(number)})
			}
			if got, started := b.Started(task.Job); started != (stage == 3) || started && got != task {
				t.Errorf("started: %v, %v", got, started)
			}
			b.out.Reset()
			b.step(grid.Second, &Withdraw{task.Job})
			want := []uint64{1, 2, 3}
			if stage == 0 {
				want = nil
			}
			if b.Knows(task.Job) || len(b.byLease) != 0 || len(b.out.Locals) != 0 || !slices.Equal(b.book.released, want) {
				t.Errorf("it is known: %v; released %v, told %v", b.Knows(task.Job), b.book.released, b.out.Locals)
			}
			if deleted := len(b.out.Effects) == 1; deleted != (stage >= 2) {
				t.Errorf("effects %+v", b.out.Effects)
			}
			b.step(grid.Hour, grid.Tick{})
			if len(b.out.Locals) != 0 || b.NextTimer() != grid.Never {
				t.Errorf("told %v, next timer %v", b.out.Locals, b.NextTimer())
			}
		})
	}
}

// TestSubmitRefused: what can never be placed, is known already, or is one too many.
func TestSubmitRefused(t *testing.T) {
	b := newBench(t, CoordinatorConfig{Queue: QueueConfig{Max: 2}})
	wf, unknown := PolicyWF, policyLast+1
	b.submit(0)
	for _, tt := range []struct {
		name     string
		job      int
		request  Request
		estimate grid.Time
		is       error
		want     string
	}{
		{"no time", 2, Request{Processors: 1}, 0, ErrRequest, "an estimate of"},
		{"more time than any lease has", 2, Request{Processors: 1}, lease.SpanLimit, ErrRequest, "an estimate of"},
		{"wider than a site, by a policy that does not split", 2, Request{Processors: 101, Policy: &wf}, grid.Minute, ErrRequest, "wf does not place it even if all sites are idle"},
		{"a policy of tomorrow", 2, Request{Processors: 1, Policy: &unknown}, grid.Minute, ErrRequest, "policy 5"},
		{"it is being claimed", 1, Request{Processors: 1}, grid.Minute, ErrKnown, "is being claimed"},
		{"the second of two", 2, Request{Processors: 1, Splits: []Split{{{1, "c"}}}}, grid.Minute, nil, ""},
		{"the third of two", 3, Request{Processors: 1}, grid.Minute, ErrQueueFull, "2 jobs wait or run"},
	} {
		b.out.Reset()
		b.step(0, &Submit{Task: grid.TaskID{Job: jobID(tt.job), Epoch: 1}, Request: &tt.request, Estimate: tt.estimate})
		var got error
		for _, in := range b.out.Locals {
			got = in.(*Rejected).Err
		}
		if !errors.Is(got, tt.is) || got != nil && !strings.Contains(got.Error(), tt.want) {
			t.Errorf("%s: %v, want one with %q", tt.name, got, tt.want)
		}
	}
}

// TestCoordinatorConfig: what is out of range is an error that says so.
func TestCoordinatorConfig(t *testing.T) {
	for _, cfg := range []CoordinatorConfig{
		{Hold: 1}, {Hold: lease.HoldLimit + 1}, {Slack: -1}, {Slack: grid.Day + 1}, {Queue: QueueConfig{Max: -1}},
	} {
		if _, err := NewCoordinator(cfg, viewOf(nil, 1), &asker{}, nil); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
	for _, cfg := range []SurveyConfig{
		{Within: -1}, {Within: LatencyMax + 1}, {Interval: 1}, {Interval: reportAge + 1}, {Report: 1}, {Report: reportAge}, {Probes: -1}, {Probes: probesMax + 1},
	} {
		if _, err := NewSurvey(cfg, nil); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}

// TestSplitJobsMayTakeLonger: a job at several sites gets its processors for as long as it may be slowed
// down by that, one at a single site for its estimate.
func TestSplitJobsMayTakeLonger(t *testing.T) {
	const doubt = 250 // thousandths
	for _, tt := range []struct {
		processors int64
		want       grid.Time
	}{{3, grid.Minute}, {20, grid.Minute + grid.Minute/4}} {
		b := newBench(t, CoordinatorConfig{Doubt: doubt})
		b.step(0, &Submit{Task: grid.TaskID{Job: jobID(1), Epoch: 1}, Request: &Request{Processors: tt.processors}, Estimate: grid.Minute})
		if got := b.jobs[jobID(1)].limit; got != tt.want {
			t.Errorf("%d processors are wanted for %v, want %v", tt.processors, got, tt.want)
		}
	}
}

// TestRecalledPartIsGivenBack: a part that its lender wants back while others are asked is released, too:
// its lease goes on until then.
func TestRecalledPartIsGivenBack(t *testing.T) {
	b := newBench(t, CoordinatorConfig{})
	b.submit(0)
	var first lease.ID
	for id := range b.byLease {
		if first == (lease.ID{}) || id.Number < first.Number {
			first = id
		}
	}
	b.step(1, &lease.Recalled{Lease: lease.Lease{ID: first, End: grid.Minute}})
	if !slices.Contains(b.book.released, first.Number) {
		t.Errorf("%v are released, want %d, too", b.book.released, first.Number)
	}
}
