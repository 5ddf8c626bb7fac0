package coalloc

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gridnode/grid"
)

func jobID(n int) grid.JobID { return grid.JobID{Lo: uint64(n)} }

func newQueue(t testing.TB, cfg QueueConfig) *Queue {
	t.Helper()
	q, err := NewQueue(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// placedBy scans and returns the jobs that are placed, in order.
func placedBy(q *Queue, now grid.Time, v *View) string {
	var words []string
	q.Scan(now, v, func(w *Waiting, parts []Part) { words = append(words, fmt.Sprint(w.Job.Lo, ":", text(v, parts, true))) })
	return strings.Join(words, ", ")
}

// "The scheduler regularly scans the queue from head to tail to see whether it is able
// to place any job" (section III-A).
func TestQueueScan(t *testing.T) {
	q, v := newQueue(t, QueueConfig{Policy: PolicyFCM}), viewOf(nil, 10, 10)
	if q.NextTimer() != grid.Never {
		t.Error("an empty queue wants a scan")
	}
	for i, n := range []int64{30, 12, 8, 1} {
		if err := q.Add(grid.Time(i), jobID(i+1), &Request{Processors: n}, grid.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Add(9, jobID(2), &Request{Processors: 1}, 1); !errors.Is(err, ErrKnown) {
		t.Errorf("a second job of one ID: %v", err)
	}
	if q.NextTimer() != IntervalDefault {
		t.Errorf("the first scan is at %v", q.NextTimer())
	}
	if got := placedBy(q, IntervalDefault, v); got != "2:a:10 b:2, 3:b:8" {
		t.Errorf("placed %s, want jobs 2 and 3: the first is too wide and keeps nobody back, for the last there is no room", got)
	}
	if q.Len() != 2 || q.Waiting(jobID(1)).Tries != 1 || q.Waiting(jobID(2)) != nil || q.NextTimer() != 2*IntervalDefault {
		t.Errorf("%d jobs wait, the head was tried %d times", q.Len(), q.Waiting(jobID(1)).Tries)
	}
	v.SetFree(0, 100)
	if got := placedBy(q, 2*IntervalDefault, v); got != "1:a:30, 4:a:1" {
		t.Errorf("placed %s", got)
	}
	if q.NextTimer() != grid.Never || q.Remove(jobID(1)) {
		t.Error("the queue is not empty")
	}
	full := newQueue(t, QueueConfig{Max: 1})
	_ = full.Add(0, jobID(1), &Request{Processors: 1}, 1)
	if err := full.Add(0, jobID(2), &Request{Processors: 1}, 1); !errors.Is(err, ErrQueueFull) {
		t.Errorf("a job beyond the bound: %v", err)
	}
}

// A job whose claim failed keeps its place and is tried later and later.
// TestPlacementsOfOthersAreChecked: what another policy says and is not there is not claimed.
func TestPlacementsOfOthersAreChecked(t *testing.T) {
	for processors, want := range map[int64]string{10: "1:a:10", 11: "", 9: ""} {
		q := newQueue(t, QueueConfig{Place: func(dst []Part, _ *Request, _ *View, _ grid.Time) ([]Part, bool) {
			return append(dst, Part{0, 0, processors}), true
		}})
		_ = q.Add(0, jobID(1), &Request{Processors: 10}, grid.Hour)
		if got := placedBy(q, grid.Minute, viewOf(nil, 10)); got != want {
			t.Errorf("on %d processors of 10 for as many: placed %q, want %q", processors, got, want)
		}
	}
}

func TestQueueReturn(t *testing.T) {
	q, v := newQueue(t, QueueConfig{Policy: PolicyFCM, Interval: grid.Second}), viewOf(nil, 10)
	for i := range 3 {
		_ = q.Add(0, jobID(i+1), &Request{Processors: 10}, grid.Hour)
	}
	var claimed *Waiting
	q.Scan(grid.Second, v, func(w *Waiting, parts []Part) { claimed = w })
	if claimed.Job != jobID(1) || q.Len() != 2 {
		t.Fatalf("placed %v", claimed)
	}
	for n, want := range []grid.Time{1, 2, 4, 8} {
		v.SetFree(0, 10)
		q.Return(grid.Minute, claimed, 999)
		if span := claimed.After - grid.Minute; span < want*grid.Second || span > want*grid.Second*3/2 {
			t.Errorf("after %d failures it stays out for %v", n+1, span)
		}
		if q.waiting[0] != claimed || q.Len() != 3 {
			t.Fatal("it lost its place")
		}
		if n == 0 {
			if got := placedBy(q, claimed.After-1, v); !strings.HasPrefix(got, "2:") {
				t.Errorf("placed %q while the first is out", got)
			}
			v.SetFree(0, 10)
			_ = q.Add(0, jobID(2), &Request{Processors: 10}, grid.Hour)
		}
		placed := false
		q.Scan(claimed.After, v, func(w *Waiting, parts []Part) { placed = placed || w == claimed })
		if !placed {
			t.Error("it is not tried when its time has come")
		}
	}
	claimed.Failures = 60
	if q.Return(0, claimed, 0); claimed.After != BackoffMax {
		t.Errorf("after 61 failures it stays out for %v", claimed.After)
	}
}

// Narrow jobs keep every site busy for ever; with patience a wide one is placed all the
// same, without it never. Jobs that do not want its sites are not kept back.
func TestWideJobsDoNotStarve(t *testing.T) {
	run := func(patience grid.Time) (placed grid.Time, narrow int) {
		q, v := newQueue(t, QueueConfig{Policy: PolicyFCM, Patience: patience, Interval: 10 * grid.Second}), viewOf(nil, 100, 100, 40)
		v.Sites[2].Processors = 40
		rng := rand.New(rand.NewPCG(1, 2))
		type running struct {
			end   grid.Time
			parts []Part
		}
		var runs []running
		number := 1
		add := func(now grid.Time, n int64) {
			_ = q.Add(now, jobID(number), &Request{Processors: n}, 10*grid.Minute)
			number++
		}
		const wide = 1000
		for now := grid.Time(0); now < 12*grid.Hour; now += 10 * grid.Second {
			runs = slices.DeleteFunc(runs, func(r running) bool {
				if r.end <= now {
					v.Give(r.parts)
				}
				return r.end <= now
			})
			for q.Len() < 50 {
				add(now, 20)
			}
			if now == grid.Hour {
				_ = q.Add(now, grid.JobID{Hi: wide}, &Request{Processors: 200, ClustersMax: 2}, 10*grid.Minute)
			}
			q.Scan(now, v, func(w *Waiting, parts []Part) {
				if w.Job.Hi == wide {
					placed = now
				} else if placed == 0 && now > grid.Hour {
					narrow++
				}
				runs = append(runs, running{now + grid.Time(rng.Int64N(int64(10*grid.Minute))) + 1, slices.Clone(parts)})
			})
		}
		return placed, narrow
	}
	if at, _ := run(grid.Never); at != 0 {
		t.Fatalf("without patience it is placed at %v: the test is too easy", at)
	}
	at, narrow := run(2 * grid.Hour)
	// The jobs before it in the queue set aside first; each such turn is over within
	// the longest run.
	if at == 0 || at > 4*grid.Hour {
		t.Errorf("the wide job, submitted at 1h with a patience of 2h, is placed at %v", at)
	}
	if narrow == 0 {
		t.Error("nothing else was placed meanwhile, although the third site is not needed")
	}
}

func TestQueueConfig(t *testing.T) {
	for _, cfg := range []QueueConfig{{Max: -1}, {Interval: 1}, {Interval: grid.Day + 1}, {Patience: -1}, {Backoff: BackoffMax + 1}, {Policy: 99}} {
		if _, err := NewQueue(cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
	for _, name := range policyNames {
		p, err := ParsePolicy(name)
		if err != nil || p.String() != name {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	if _, err := ParsePolicy("bestfit"); err == nil || !strings.Contains(err.Error(), "want wf, cf, fcm, ca or adaptive") {
		t.Errorf("error %v", err)
	}
}
