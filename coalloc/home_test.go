package coalloc

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/internal/corpus"
	"gridnode/internal/lrms"
	"gridnode/lease"
)

func newTestHome(t *testing.T, processors int64) (*Home, *lrms.Cluster, *grid.Outbox) {
	t.Helper()
	cluster, err := lrms.New(lrms.Config{Processors: processors})
	if err != nil {
		t.Fatal(err)
	}
	return NewHome("h", cluster, &asker{}, 0), cluster, &grid.Outbox{}
}

// told returns the only local of a step, and forgets it.
func told[T any](t *testing.T, out *grid.Outbox) T {
	t.Helper()
	if len(out.Locals) != 1 {
		t.Fatalf("told %v", out.Locals)
	}
	in, ok := out.Locals[0].(T)
	if !ok {
		t.Fatalf("told %T", out.Locals[0])
	}
	out.Reset()
	return in
}

func wantOf(n int64) lease.Want {
	return lease.Want{Processors: n, Span: grid.Hour, Hold: grid.Minute, Subject: jobID(1)}
}

// TestHomeHolds: what is held at home is counted, refused beyond what is idle, and
// comes back by itself; what was asked of others goes to the book.
func TestHomeHolds(t *testing.T) {
	h, cluster, out := newTestHome(t, 5)
	now := grid.Hour
	if _, err := h.Request(now, "h", wantOf(3), out); err != nil {
		t.Fatal(err)
	}
	granted := told[*lease.Granted](t, out)
	if free := cluster.Idle(now); free != 2 || !Own(granted.ID) {
		t.Errorf("%d are idle and %+v is held, want 2", free, granted)
	}
	for n, why := range map[int64]lease.Reason{3: lease.Busy, 6: lease.TooWide} {
		if _, err := h.Request(now, "h", wantOf(n), out); err != nil {
			t.Fatal(err)
		}
		if refused := told[*lease.Refused](t, out); refused.Reason != why || refused.Free != 2 {
			t.Errorf("%d more: %+v, want %v", n, refused, why)
		}
	}
	for _, change := range []func(w *lease.Want){
		func(w *lease.Want) { w.Processors = 0 },
		func(w *lease.Want) { w.Span = 0 },
		func(w *lease.Want) { w.Span = lease.SpanLimit + 1 },
		func(w *lease.Want) { w.Hold = 0 },
		func(w *lease.Want) { w.Hold = lease.HoldLimit + 1 },
	} {
		want := wantOf(1)
		change(&want)
		if _, err := h.Request(now, "h", want, out); !errors.Is(err, lease.ErrBounds) {
			t.Errorf("asked for %+v: %v", want, err)
		}
	}
	if id, err := h.Request(now, "elsewhere", wantOf(1), out); err != nil || Own(id) {
		t.Errorf("asked of another site as %v, %v", id, err)
	}
	h.Tick(now+grid.Minute-1, out)
	if len(out.Locals) != 0 || h.NextTimer() != now+grid.Minute {
		t.Errorf("told %v, next at %v", out.Locals, h.NextTimer())
	}
	h.Tick(now+grid.Minute, out)
	if ended := told[*lease.Ended](t, out); ended.ID != granted.ID || ended.Cause != lease.Unheld {
		t.Errorf("%+v", ended)
	}
	if free := cluster.Idle(now + grid.Minute); free != 5 {
		t.Errorf("%d are idle after the hold, want all", free)
	}
	if err := h.Claim(now+grid.Minute, granted.ID, out); !errors.Is(err, lease.ErrUnknown) {
		t.Errorf("claim after the hold: %v", err)
	}
}

// TestHomeClaims: a claim outlives the hold and a restart, and its processors come back
// when nothing runs there any more, not before.
func TestHomeClaims(t *testing.T) {
	h, _, out := newTestHome(t, 5)
	id, err := h.Request(0, "h", wantOf(3), out)
	if err != nil {
		t.Fatal(err)
	}
	told[*lease.Granted](t, out)
	if err := h.Claim(grid.Second, id, out); err != nil {
		t.Fatal(err)
	}
	if err := h.Claim(grid.Second, id, out); err != nil {
		t.Errorf("claimed twice: %v", err)
	}
	saved := make(map[string][]byte)
	for _, r := range out.Records {
		saved[r.RecordKey()] = r.AppendRecord(nil)
	}
	told[*lease.Claimed](t, out)
	if h.NextTimer() != grid.Never || len(saved) != 1 {
		t.Errorf("next timer %v, %d records", h.NextTimer(), len(saved))
	}

	again, cluster, out := newTestHome(t, 5)
	if err := again.Recover(2*grid.Minute, maps.All(saved), out); err != nil {
		t.Fatal(err)
	}
	if claimed := told[*lease.Claimed](t, out); claimed.ID != id || cluster.Idle(2*grid.Minute) != 2 {
		t.Errorf("recovered %+v, %d are idle", claimed, cluster.Idle(2*grid.Minute))
	}
	again.Vacated(3*grid.Minute, jobID(1), out) // an earlier execution
	if free := cluster.Idle(3 * grid.Minute); free != 2 {
		t.Errorf("%d are idle though nobody has released the claim, want 2", free)
	}
	for range 2 {
		if err := again.Release(3*grid.Minute, id, out); err != nil {
			t.Fatal(err)
		}
	}
	again.Vacated(3*grid.Minute, jobID(2), out)
	if free := cluster.Idle(3 * grid.Minute); free != 2 {
		t.Errorf("%d are idle while something may run there, want 2", free)
	}
	again.Vacated(4*grid.Minute, jobID(1), out)
	if free := cluster.Idle(4 * grid.Minute); free != 5 || len(again.Leases()) != 0 {
		t.Errorf("%d are idle after the end, %v is left", free, again.Leases())
	}
	if err := again.Release(4*grid.Minute, id, out); !errors.Is(err, lease.ErrUnknown) {
		t.Errorf("released after the end: %v", err)
	}

	small, _, out := newTestHome(t, 2)
	if err := small.Recover(2*grid.Minute, maps.All(saved), out); err != nil {
		t.Fatal(err)
	}
	if ended := told[*lease.Ended](t, out); ended.ID != id || len(small.Leases()) != 0 {
		t.Errorf("a smaller site recovers %+v", ended)
	}
	if err := small.Recover(0, maps.All(map[string][]byte{HomePrefix + "1": {1, 2}}), out); !errors.Is(err, errHome) {
		t.Errorf("half a record: %v", err)
	}
}

// FuzzDecodeHome: what is read back is what was saved, or an error.
func FuzzDecodeHome(f *testing.F) {
	e := &homeLease{Lease: lease.Lease{ID: lease.ID{Borrower: "h", Number: homeMark + 9}, Processors: 3, Limit: grid.Hour, State: lease.Active, Subject: jobID(4)}}
	f.Add((*homeRecord)(e).AppendRecord(nil))
	f.Add([]byte{1})
	corpus.Fuzz(f, func(t *testing.T, b []byte) {
		e, err := decodeHome("h", b)
		if err != nil {
			return
		}
		again, err := decodeHome("h", (*homeRecord)(e).AppendRecord(nil))
		if err != nil || again.Lease != e.Lease {
			t.Fatalf("%+v became %+v, %v", e.Lease, again, err)
		}
	})
}

// TestOfJob: what a job asks for is read, or refused with the reason.
func TestApplicationsOfJobs(t *testing.T) {
	job := func(user, name string, processors, tasks int64) *grid.Job {
		return &grid.Job{User: user, Name: name, Resources: grid.Resources{Processors: processors}, Tasks: tasks}
	}
	seen := map[string]bool{}
	for _, j := range []*grid.Job{
		job("ann", "wave", 4, 4), job("ben", "wave", 4, 4), job("ann", "heat", 4, 4), job("ann", "wave", 8, 4), job("ann", "wave", 4, 2),
	} {
		name := applicationOf(j)
		if again := applicationOf(job(j.User, j.Name, j.Processors, j.Tasks)); name == "" || seen[name] || again != name {
			t.Errorf("%+v is taken for application %q, and the next time for %q", j, name, again)
		}
		seen[name] = true
	}
	if name := applicationOf(job("ann", "", 4, 4)); name != "" {
		t.Errorf("a job without a name is taken for application %q", name)
	}
}

func TestOfJob(t *testing.T) {
	for _, tt := range []struct {
		name              string
		ask               grid.Coallocation
		processors, tasks int64
		want              Kind
		err               string
	}{
		{"fixed", grid.Coallocation{Components: "2@a,4@b"}, 6, 6, Fixed, ""},
		{"alternatives, two processors a task", grid.Coallocation{Components: "6|2@a,4", SitesMax: 2, Policy: "wf"}, 6, 3, NonFixed, ""},
		{"flexible", grid.Coallocation{Count: "2..4", PerSite: 2, CCR: CCRUnknown}, 9, 9, Flexible, ""},
		{"nothing", grid.Coallocation{}, 6, 6, 0, "neither components"},
		{"both", grid.Coallocation{Components: "6", Count: "2"}, 6, 6, 0, "components are given"},
		{"another sum", grid.Coallocation{Components: "2,3"}, 6, 6, 0, "components of 5 processors together, the job has 6"},
		{"half a task", grid.Coallocation{Components: "1,5"}, 6, 3, 0, "its tasks take 2 each"},
		{"flexible, wide tasks", grid.Coallocation{Count: "2..3"}, 6, 3, Flexible, ""},
		{"flexible, more components than wide tasks", grid.Coallocation{Count: "4"}, 6, 3, 0, "4 components of at least 2 processors each"},
		{"too many tasks", grid.Coallocation{Count: "2"}, 2048, 2048, 0, "at most 1024"},
		{"unknown policy", grid.Coallocation{Count: "2", Policy: "best"}, 6, 6, 0, "want wf"},
		{"too few sites", grid.Coallocation{Count: "3", SitesMax: 2}, 6, 6, 0, "at most 2 sites"},
		{"CCR", grid.Coallocation{Count: "3", CCR: 1 << 40}, 6, 6, 0, "thousandths"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := &grid.Job{Resources: grid.Resources{Processors: tt.processors}, Tasks: tt.tasks, Coallocate: &tt.ask}
			r, err := OfJob(j)
			switch {
			case tt.err == "" && (err != nil || r.Kind() != tt.want):
				t.Errorf("%+v, %v", r, err)
			case tt.err != "" && (!errors.Is(err, ErrRequest) || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("%v, want %q", err, tt.err)
			}
		})
	}
}
