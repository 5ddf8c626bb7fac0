package muscle

import (
	"fmt"
	"slices"
	"testing"

	"gridnode/grid"
	"gridnode/internal/lrms/titan"

	"pgregory.net/rapid"
)

func jobOf(id uint64, processors int64, span, deadline grid.Time) *grid.Job {
	j := &grid.Job{ID: grid.JobID{Lo: id}, Estimate: span, Deadline: deadline, Budget: grid.NoBudget, Tasks: processors}
	j.Processors = processors
	j.Work = grid.WorkOf(span, 0, grid.Rating{Speed: 1000, Bandwidth: 1000})
	return j
}

func memberOf(site string, processors int64) Member {
	return Member{
		Site: grid.SiteID(site), Name: site, Processors: processors, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000},
		Weights: titan.DefaultWeights, Widest: processors,
	}
}

func newHeadFor(t interface{ Fatal(...any) }, cfg HeadConfig) *Head {
	h, err := NewHead(cfg, draws(1))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestHeadWindow: the window opens with the first job, closes after its span or when a
// batch is full, and a job that is withdrawn is in none.
func TestHeadWindow(t *testing.T) {
	h := newHeadFor(t, HeadConfig{Window: 10 * grid.Second, Batch: 3})
	if h.NextTimer() != grid.Never {
		t.Errorf("nothing waits, but the window closes at %v", h.NextTimer())
	}
	job := func(id uint64) *grid.Job { return jobOf(id, 1, grid.Second, grid.Never) }
	h.Collect(100*grid.Second, job(1), nil, nil, 0)
	h.Collect(105*grid.Second, job(2), nil, nil, 0)
	if n, closes := h.Waiting(); n != 2 || closes != 110*grid.Second {
		t.Errorf("%d jobs wait until %v, want 2 until 1m50s", n, closes)
	}
	h.Withdraw(grid.JobID{Lo: 1})
	h.Collect(106*grid.Second, job(3), nil, nil, 0)
	if _, closes := h.Waiting(); closes != 110*grid.Second {
		t.Errorf("two jobs of a batch of three wait until %v", closes)
	}
	h.Collect(107*grid.Second, job(4), nil, nil, 0)
	if h.NextTimer() != 107*grid.Second {
		t.Errorf("the batch is full, and the window closes at %v", h.NextTimer())
	}
	w := h.Close(107*grid.Second, []Member{memberOf("a", 4)})
	if len(w.Allotments) != 3 || w.Packed != 3 || w.Clusters != 1 || h.NextTimer() != grid.Never {
		t.Errorf("window %+v, then %v", w, h.NextTimer())
	}
	if h.Withdraw(grid.JobID{Lo: 2}) {
		t.Error("a job that was shared out could be withdrawn")
	}
}

// TestHeadLooksAgain: what no member could take is looked at again when a job has come,
// when a member has, and when a bar of one window is over.
func TestHeadLooksAgain(t *testing.T) {
	h := newHeadFor(t, HeadConfig{Window: grid.Second})
	a, b := memberOf("a", 4), memberOf("b", 10)
	b.Presence = Silent
	now := grid.Time(0)
	shared := func(members ...Member) (ids []uint64) {
		now = max(now+grid.Second, h.NextTimer())
		if now == grid.Never {
			t.Fatal("nothing waits")
		}
		for _, allotment := range h.Close(now, members).Allotments {
			ids = append(ids, allotment.Job.ID.Lo)
		}
		return ids
	}
	h.Collect(now, jobOf(1, 8, grid.Second, grid.Never), nil, nil, 0)
	for range 3 {
		if got := shared(a, b); got != nil || !h.Left(grid.JobID{Lo: 1}) {
			t.Errorf("%v shared out, want nothing: job 1 is left", got)
		}
	}
	h.Collect(now, jobOf(2, 4, grid.Second, grid.Never), nil, nil, 0)
	if got := shared(a, b); !slices.Equal(got, []uint64{2}) {
		t.Errorf("%v shared out, want the job that has come", got)
	}
	h.Collect(now, jobOf(3, 4, grid.Second, grid.Never), []grid.SiteID{"a"}, nil, 1)
	if got := shared(a, b); got != nil {
		t.Errorf("%v shared out to a member that is barred", got)
	}
	if got := shared(a, b); !slices.Equal(got, []uint64{3}) {
		t.Errorf("%v shared out, want the job whose bar is over", got)
	}
	b.Presence = Present
	if got := shared(a, b); !slices.Equal(got, []uint64{1}) || h.Left(grid.JobID{Lo: 1}) {
		t.Errorf("%v shared out, want the wide job", got)
	}
}

// TestHeadNothingIsLost: whatever comes, leaves and is refused, a job is in exactly one
// place: it waits, or it was allotted once, to a member where it may run; and a job is
// given up only if no member will ever have room.
func TestHeadNothingIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := HeadConfig{
			Window: grid.Time(rapid.IntRange(0, 20).Draw(t, "window")) * grid.Second, Batch: rapid.IntRange(1, 12).Draw(t, "batch"),
			Policy: Policy(rapid.IntRange(0, len(PolicyNames)-1).Draw(t, "policy")),
		}
		h := newHeadFor(t, cfg)
		waiting := map[grid.JobID]bool{}
		now := grid.Hour
		var next uint64
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			now += grid.Time(rapid.IntRange(0, 3000).Draw(t, "pause")) * grid.Millisecond
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				for id := range waiting {
					if id.Lo%3 == 0 && !h.Withdraw(id) {
						t.Fatalf("job %v waited and could not be withdrawn", id)
					} else if id.Lo%3 == 0 {
						delete(waiting, id)
					}
				}
			case 1:
				w := h.Close(now, drawMembers(t, now))
				checkWindow(t, &cfg, w, waiting)
			default:
				next++
				deadline := grid.Never
				if rapid.Bool().Draw(t, "has deadline") {
					deadline = now + grid.Time(rapid.Int64Range(-int64(grid.Hour), int64(grid.Hour)).Draw(t, "deadline"))
				}
				span := grid.Time(rapid.Int64Range(1, int64(grid.SpanMax)).Draw(t, "span"))
				job := jobOf(next, rapid.Int64Range(1, 5000).Draw(t, "processors"), span, deadline)
				var barred []grid.SiteID
				if rapid.Bool().Draw(t, "barred") {
					barred = []grid.SiteID{"m0"}
				}
				h.Collect(now, job, barred, nil, len(barred))
				waiting[job.ID] = true
			}
			if n, closes := h.Waiting(); n != len(waiting) || (n > 0) != (closes < grid.Never) {
				t.Fatalf("%d jobs wait until %v, want %d", n, closes, len(waiting))
			}
		}
		// Once everybody is there, all that waits is shared out.
		for rounds := 0; len(waiting) > 0; rounds++ {
			if rounds > 100 {
				t.Fatalf("%d jobs wait for ever", len(waiting))
			}
			now = max(now, h.NextTimer())
			checkWindow(t, &cfg, h.Close(now, []Member{memberOf("m0", 6000), memberOf("m1", 100)}), waiting)
		}
	})
}

func drawMembers(t *rapid.T, now grid.Time) (members []Member) {
	for i := range rapid.IntRange(0, 4).Draw(t, "members") {
		m := memberOf(fmt.Sprint("m", i), rapid.Int64Range(0, 6000).Draw(t, "width"))
		m.Presence = Presence(rapid.IntRange(0, int(Unresolved)).Draw(t, "presence"))
		m.Widest = rapid.Int64Range(0, 7000).Draw(t, "widest")
		m.Wait = grid.Time(rapid.Int64Range(-int64(grid.Hour), int64(grid.SpanMax)).Draw(t, "wait"))
		m.Weights = titan.Weights{OverDeadline: rapid.Int64Range(-1, 4).Draw(t, "weight")}
		for range rapid.IntRange(0, 3).Draw(t, "booked") {
			start := grid.Time(rapid.Int64Range(0, int64(grid.Hour)).Draw(t, "start"))
			m.Booked = append(m.Booked, Booking{Processors: rapid.Int64Range(0, 7000).Draw(t, "of"), Start: start, Finish: start + grid.Hour, Deadline: grid.Never})
		}
		members = append(members, m)
	}
	return members
}

func checkWindow(t *rapid.T, cfg *HeadConfig, w *Window, waiting map[grid.JobID]bool) {
	if w.Packed > cfg.Batch {
		t.Fatalf("%d jobs are packed, the batch is %d", w.Packed, cfg.Batch)
	}
	packed := 0
	for _, a := range w.Allotments {
		if !waiting[a.Job.ID] {
			t.Fatalf("job %v is shared out twice, or never waited", a.Job.ID)
		}
		delete(waiting, a.Job.ID)
		if a.Member < 0 {
			for _, m := range w.Members {
				if m.Presence == Unheard || m.Presence == Unresolved || (m.Presence == Present || m.Presence == Silent) && m.Processors >= a.Job.Processors {
					t.Fatalf("a job of %d processors is given up, although %+v", a.Job.Processors, m)
				}
			}
			continue
		}
		packed++
		if m := w.Members[a.Member]; m.Presence != Present || m.Processors < a.Job.Processors {
			t.Fatalf("a job of %d processors is given to %+v", a.Job.Processors, m)
		}
	}
	if packed != w.Packed || w.Left != len(waiting) {
		t.Fatalf("%d packed of %d; %d left of %d", packed, w.Packed, w.Left, len(waiting))
	}
}

// TestHeadBars: a job is not given to a member that has just refused it, is the next
// time, and never to one that it does not fit.
func TestHeadBars(t *testing.T) {
	h := newHeadFor(t, HeadConfig{Window: grid.Second})
	members := []Member{memberOf("a", 8), memberOf("b", 4)}
	site := func(w *Window) string {
		if len(w.Allotments) == 0 {
			return "waits"
		}
		if w.Allotments[0].Member < 0 {
			return "none"
		}
		return string(members[w.Allotments[0].Member].Site)
	}
	job := jobOf(1, 2, grid.Second, grid.Never)
	h.Collect(0, job, []grid.SiteID{"a"}, nil, 1)
	if got := site(h.Close(h.NextTimer(), members)); got != "b" {
		t.Errorf("refused by a: %s", got)
	}
	h.Collect(0, job, []grid.SiteID{"a", "b"}, nil, 1)
	if got := site(h.Close(h.NextTimer(), members)); got != "waits" {
		t.Errorf("refused by both: %s", got)
	}
	if got := site(h.Close(h.NextTimer(), members)); got != "a" {
		t.Errorf("a window later: %s", got)
	}
	for refusals, want := range []grid.Time{1: grid.Second, 2: 4 * grid.Second, 3: 8 * grid.Second, 99: 2 * grid.Minute} {
		if want > 0 {
			h.Collect(0, job, nil, nil, refusals)
			if h.NextTimer() != want {
				t.Errorf("refused %d times it waits for %v, want %v", refusals, h.NextTimer(), want)
			}
			h.Withdraw(job.ID)
		}
	}
	h.Collect(0, job, nil, []grid.SiteID{"a", "b"}, 1)
	if got := site(h.Close(h.NextTimer(), members)); got != "none" {
		t.Errorf("fits neither: %s", got)
	}
}

// TestHeadRefusedAtOnce: jobs that are refused at the instant at which they are shared out, more than
// a batch holds, wait for a later window, without the member that has refused them.
func TestHeadRefusedAtOnce(t *testing.T) {
	const now, jobs = 5 * grid.Second, 5
	h := newHeadFor(t, HeadConfig{Window: grid.Second, Batch: 2})
	members := []Member{memberOf("a", 8), memberOf("b", 8)}
	for id := range uint64(jobs) {
		h.Collect(now-grid.Second, jobOf(id+1, 2, grid.Second, grid.Never), nil, nil, 0)
	}
	from := make(map[grid.JobID]int) // who has refused a job
	for range jobs {
		if h.NextTimer() > now {
			break
		}
		for _, a := range h.Close(now, members).Allotments {
			if _, again := from[a.Job.ID]; again {
				t.Errorf("job %v is shared out once more at once", a.Job.ID)
			}
			from[a.Job.ID] = a.Member
			h.Collect(now, a.Job, []grid.SiteID{members[a.Member].Site}, nil, 1)
		}
	}
	if at := h.NextTimer(); at <= now || len(from) != jobs {
		t.Fatalf("%d of %d jobs are shared out, and the next window closes at %v", len(from), jobs, at)
	}
	for at := h.NextTimer(); len(from) > 0 && h.NextTimer() == at; {
		list := h.Close(at, members).Allotments
		if len(list) == 0 {
			t.Fatalf("%d jobs are shared out to nobody", len(from))
		}
		for _, a := range list {
			if a.Member == from[a.Job.ID] {
				t.Errorf("job %v is given to %s, which has refused it", a.Job.ID, members[a.Member].Site)
			}
			delete(from, a.Job.ID)
		}
	}
}

// TestMemberFree: what a member says and what it was given are put together, the later
// instant for each processor.
func TestMemberFree(t *testing.T) {
	m := memberOf("a", 4)
	m.Widest, m.Wait = 2, 10*grid.Second
	if got, want := m.free(1), []grid.Time{0, 0, 5 * grid.Second, 10 * grid.Second}; !slices.Equal(got, want) {
		t.Errorf("two of four startable: %v, want %v", got, want)
	}
	m.Booked = []Booking{{Processors: 3, Finish: 7 * grid.Second}, {Processors: 1, Finish: 3 * grid.Second}}
	if got, want := m.free(1), []grid.Time{3 * grid.Second, 7 * grid.Second, 7 * grid.Second, 10 * grid.Second}; !slices.Equal(got, want) {
		t.Errorf("booked besides: %v, want %v", got, want)
	}
	m.Booked = append(m.Booked, Booking{Processors: 4, Start: 7 * grid.Second, Finish: 9 * grid.Second})
	if got, want := m.free(2), []grid.Time{9 * grid.Second, 10 * grid.Second}; !slices.Equal(got, want) {
		t.Errorf("in units of two: %v, want %v", got, want)
	}
}

// TestHeadConfig: settings are taken up to their bounds.
func TestHeadConfig(t *testing.T) {
	for _, cfg := range []HeadConfig{
		{Window: -1}, {Window: WindowMax + 1}, {Collect: Collect(len(CollectNames))}, {Threshold: -1}, {Threshold: ThresholdMax + 1},
		{Batch: -1}, {Batch: BatchMax + 1}, {Policy: Policy(len(PolicyNames))},
	} {
		if h, err := NewHead(cfg, draws(1)); err == nil || h != nil {
			t.Errorf("%+v was taken", cfg)
		}
	}
	for _, cfg := range []HeadConfig{
		{}, {Window: WindowMax}, {Collect: CollectMakespan}, {Threshold: ThresholdMax}, {Batch: 1}, {Batch: BatchMax}, {Policy: PolicyWRAND},
	} {
		if _, err := NewHead(cfg, draws(1)); err != nil {
			t.Error(err)
		}
	}
}

// TestHeadUnits: a cluster of more processors than are planned one by one is planned in units,
// and what is said of it is in processors. Windows are counted, and a preview is none.
func TestHeadUnits(t *testing.T) {
	h := newHeadFor(t, HeadConfig{Window: grid.Second})
	members := []Member{memberOf("a", 2*unitsMax-1)}
	h.Collect(0, jobOf(1, 2*unitsMax-1, grid.Minute, grid.Hour), nil, nil, 0)
	h.Collect(0, jobOf(2, 9, grid.Minute, grid.Hour), nil, nil, 0)
	for number := range uint64(2) {
		rows := map[uint64]int{}
		for _, w := range []*Window{h.Preview(grid.Second, jobOf(3, 4, grid.Minute, grid.Hour), members), h.Close(grid.Second, members)} {
			if w.Number != number+1 {
				t.Errorf("window %d is called %d", number+1, w.Number)
			}
			for _, a := range w.Allotments {
				if p := a.Placement; p.Space > 2*unitsMax-1 || int64(p.Row) < a.Job.Processors || p.Row > p.Space {
					t.Errorf("a job of %d processors was found in row %d for a space of %d", a.Job.Processors, p.Row, p.Space)
				}
				rows[a.Job.ID.Lo]++
			}
		}
		if want := []int{2, 2, 1}; number == 0 && (rows[1] != want[0] || rows[2] != want[1] || rows[3] != want[2]) {
			t.Errorf("jobs are so often in the preview and the window: %v", rows)
		}
	}
}

// TestMemberHas: what a cluster was given is counted in units, and in spans and instants that
// can be added.
func TestMemberHas(t *testing.T) {
	m := memberOf("a", 8)
	for _, c := range []struct {
		booked Booking
		want   Held
	}{
		{Booking{Processors: 3, Start: 10, Finish: 25, Arrival: -5, Deadline: 40}, Held{Processors: 2, Span: 15, Arrival: -5, Deadline: 40}},
		{Booking{Processors: 4, Start: -10, Finish: 25, Deadline: grid.Never}, Held{Processors: 2, Span: 35, Deadline: grid.Never}},
		{Booking{Processors: 0, Start: 25, Finish: 10, Arrival: 5, Deadline: -40}, Held{Processors: 1, Deadline: -40}},
		{
			Booking{Processors: 100, Start: -spanMax, Finish: spanMax, Arrival: -spanMax - 1, Deadline: spanMax + 1},
			Held{Processors: 4, Span: spanMax, Arrival: -spanMax, Deadline: spanMax},
		},
		{Booking{Processors: 1, Deadline: -spanMax - 1}, Held{Processors: 1, Deadline: -spanMax}},
	} {
		m.Booked = []Booking{c.booked}
		if got := m.has(2); len(got) != 1 || got[0] != c.want {
			t.Errorf("%+v is %+v, want %+v", c.booked, got, c.want)
		}
	}
	for processors, want := range map[int64]int64{0: 1, 1: 1, unitsMax: 1, unitsMax + 1: 2, 2 * unitsMax: 2, 2*unitsMax + 1: 3} {
		m.Processors = processors
		if got := m.unit(); got != want {
			t.Errorf("%d processors are counted by %d, want %d", processors, got, want)
		}
	}
}

// TestTooWide: a job waits for a cluster that may take it some day.
func TestTooWide(t *testing.T) {
	for presence, tooWide := range map[Presence][2]bool{ // a job that is wide enough, and one that is wider
		Present: {false, true}, Silent: {false, true}, Unheard: {false, false}, Unresolved: {false, false}, Unwilling: {true, true},
	} {
		m := memberOf("b", 4)
		m.Presence = presence
		for i, processors := range []int64{4, 5} {
			if got := TooWide(jobOf(1, processors, 1, grid.Hour), []Member{memberOf("a", 2), m}); got != tooWide[i] {
				t.Errorf("%d processors, a member with 4 %v: too wide %t", processors, presence, got)
			}
		}
	}
}

// TestHeadPressedFirst: on one cluster the plan starts the job that is pressed first.
func TestHeadPressedFirst(t *testing.T) {
	h := newHeadFor(t, HeadConfig{Window: grid.Second})
	h.Collect(0, jobOf(1, 4, grid.Minute, grid.Hour), nil, nil, 0)
	h.Collect(0, jobOf(2, 4, grid.Minute, 2*grid.Minute), nil, nil, 0)
	w := h.Close(grid.Second, []Member{memberOf("a", 4)})
	if w.Allotments[0].Job.ID.Lo != 2 || w.Allotments[0].Finish != grid.Second+grid.Minute || w.Allotments[1].Finish != grid.Second+2*grid.Minute {
		t.Errorf("planned %+v", w.Allotments)
	}
	if got := w.Alone(grid.Second, w.Allotments[1].Job, 0); got != grid.Second+grid.Minute {
		t.Errorf("alone it would be done at %v", got)
	}
}

func BenchmarkHeadClose(b *testing.B) {
	for _, size := range []struct{ jobs, members, width int }{{40, 3, 20}, {100, 10, 64}, {500, 10, 1000}, {1000, 10, 4000}} {
		b.Run(fmt.Sprintf("jobs=%d/members=%d/width=%d", size.jobs, size.members, size.width), func(b *testing.B) {
			h := newHeadFor(b, HeadConfig{Window: grid.Second, Batch: BatchMax, Policy: PolicyUrgent})
			rng := draws(1)
			var members []Member
			for i := range size.members {
				members = append(members, memberOf(fmt.Sprint("m", i), int64(size.width)))
			}
			var jobs []*grid.Job
			for i := range size.jobs {
				span := grid.Time(5+rng.IntN(95)) * grid.Second
				jobs = append(jobs, jobOf(uint64(i+1), 1+rng.Int64N(int64(size.width)), span, span*grid.Time(1+rng.IntN(6))))
			}
			b.ReportAllocs()
			for b.Loop() {
				for _, j := range jobs {
					h.Collect(0, j, nil, nil, 0)
				}
				if w := h.Close(0, members); w.Packed != size.jobs {
					b.Fatalf("%d of %d jobs packed", w.Packed, size.jobs)
				}
			}
		})
	}
}

// TestArrivals: a job of a window has come as long ago as it was submitted, within what a plan can say,
// and not later than now, by whatever clock.
func TestArrivals(t *testing.T) {
	const now = grid.Day
	w := &Window{Members: []Member{memberOf("a", 4)}, free: [][]grid.Time{make([]grid.Time, 4)}, unit: 1}
	for submit, want := range map[grid.Time]grid.Time{now - grid.Hour: -grid.Hour, now: 0, now + grid.Minute: 0, -2 * spanMax: -spanMax} {
		job := jobOf(1, 2, grid.Minute, grid.Never)
		job.Submit = submit
		if b, _ := w.describe(now, []*ticket{{job: job}}); b.Jobs[0].Arrival != want {
			t.Errorf("submitted at %v, it has arrived at %v, want %v", submit, b.Jobs[0].Arrival, want)
		}
	}
}
