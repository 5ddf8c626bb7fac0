package lease

import (
	"container/heap"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
	"gridnode/internal/lrms"
)

func strdID(n int) grid.TaskID {
	return grid.TaskID{Job: grid.JobID{Hi: 1, Lo: uint64(n)}, Epoch: 1}
}

func strdDomain(t testing.TB, policy Policy, processors int64) *Domain {
	c, err := lrms.New(lrms.Config{Processors: processors})
	if err != nil {
		t.Fatal(err)
	}
	return NewDomain(c, policy)
}

func strdSubmit(t testing.TB, d *Domain, now grid.Time, id int, processors int64, estimate grid.Time) []Started {
	started, err := d.Submit(now, lrms.Request{ID: strdID(id), Processors: processors, Estimate: estimate}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return started
}

func strdIDs(started []Started) (ids []int) {
	for _, s := range started {
		ids = append(ids, int(s.ID.Job.Lo))
	}
	return ids
}

// TestSTRDExample is figure 2: "a new job j with a demand of m_j = 4 and p̄_j = 100 is
// submitted to Site 1. Since the job cannot be scheduled on local resources directly,
// Site 1 requests two additional resources for a timespan of p̄_j from Site 2, which in
// turn accepts the request and grants two resources to Site 1. … it is started
// immediately on two local and two remote resources." Three jobs wait already.
func TestSTRDExample(t *testing.T) {
	for _, tt := range []struct {
		policy  Policy
		started []int // at the submission of job 5
		leased  int64
	}{
		{Local, nil, 0},
		{SSTRD, []int{5}, 2},
		{XSTRD, nil, 0}, // the head of the queue lacks four, which the partner has not got idle
	} {
		t.Run(tt.policy.String(), func(t *testing.T) {
			one, two := strdDomain(t, tt.policy, 6), strdDomain(t, Local, 6)
			one.Join(two)
			strdSubmit(t, two, 0, 101, 3, 1000)
			two.Schedule(0, nil, nil)
			strdSubmit(t, one, 0, 1, 4, 1000)
			if got := strdIDs(one.Schedule(0, nil, nil)); !slices.Equal(got, []int{1}) {
				t.Fatalf("started %v at first, want job 1", got)
			}
			for i := 2; i <= 4; i++ { // they wait: neither site has what they lack
				if got := strdSubmit(t, one, 0, i, 6, 1000); len(got) > 0 {
					t.Fatalf("job %d starts although four processors are lacking and three idle: %v", i, got)
				}
			}
			got := strdSubmit(t, one, 10, 5, 4, 100)
			if !slices.Equal(strdIDs(got), tt.started) {
				t.Fatalf("started %v, want %v", strdIDs(got), tt.started)
			}
			if tt.leased == 0 {
				return
			}
			if got[0].Leased != tt.leased || got[0].Lender != 0 {
				t.Errorf("leased %d of partner %d, want %d of partner 0", got[0].Leased, got[0].Lender, tt.leased)
			}
			if a, b := one.cluster.Idle(10), two.cluster.Idle(10); a != 0 || b != 1 {
				t.Errorf("idle %d and %d, want 0 and 1", a, b)
			}
			// "After completion of the job, which is not necessarily equal to the user
			// estimate, leased resources are returned."
			if lender := one.Ended(40, strdID(5)); lender != 0 {
				t.Errorf("the lender is %d, want 0", lender)
			}
			if a, b := one.cluster.Idle(40), two.cluster.Idle(40); a != 2 || b != 3 {
				t.Errorf("idle %d and %d after the job, want 2 and 3", a, b)
			}
		})
	}
}

// TestXSTRDOrder: "applied for each job in the queue (including the new job), starting
// at the queue's head. … already waiting jobs … considered first".
func TestXSTRDOrder(t *testing.T) {
	one, two := strdDomain(t, XSTRD, 4), strdDomain(t, Local, 5)
	one.Join(two)
	strdSubmit(t, two, 0, 101, 5, 1000)
	two.Schedule(0, nil, nil)
	strdSubmit(t, one, 0, 1, 4, 1000)
	one.Schedule(0, nil, nil)
	strdSubmit(t, one, 0, 2, 3, 500)
	strdSubmit(t, one, 0, 3, 4, 500)
	strdSubmit(t, one, 0, 4, 1, 500)
	two.Ended(5, strdID(101))
	// Five are idle there: three for job 2; job 3 lacks four and ends the walk, so that
	// neither job 4 nor job 5 gets one although two are left.
	if got := strdIDs(strdSubmit(t, one, 5, 5, 1, 500)); !slices.Equal(got, []int{2}) {
		t.Errorf("started %v, want job 2 only", got)
	}
	if want := (Requests{Sent: 3 + 2, Granted: 1}); one.Requests() != want {
		t.Errorf("requests %+v, want %+v", one.Requests(), want)
	}
}

// strdEnd is an end to come.
type strdEnd struct {
	at     grid.Time
	id     int
	domain int
}

type strdEnds []strdEnd

func (h strdEnds) Len() int { return len(h) }
func (h strdEnds) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].id < h[j].id
}
func (h strdEnds) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *strdEnds) Push(x any)   { *h = append(*h, x.(strdEnd)) }
func (h *strdEnds) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// TestSTRDConserves: whatever is submitted, each job runs once, on as many processors
// as it asked for; no site runs more than it has; everything comes back.
func TestSTRDConserves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := rapid.SampledFrom([]Policy{Local, SSTRD, XSTRD}).Draw(t, "policy")
		sizes := rapid.SliceOfN(rapid.Int64Range(1, 8), 2, 3).Draw(t, "sizes")
		var domains []*Domain
		for _, p := range sizes {
			c, err := lrms.New(lrms.Config{Processors: p})
			if err != nil {
				t.Fatal(err)
			}
			domains = append(domains, NewDomain(c, policy))
		}
		partner := func(d, i int) int { // index of domain d's i-th partner
			if i >= d {
				i++
			}
			return i
		}
		for d := range domains {
			for i := range len(domains) - 1 {
				domains[d].Join(domains[partner(d, i)])
			}
		}
		busy, ends := make([]int64, len(sizes)), &strdEnds{}
		width, runs, parts := map[int]int64{}, map[int]grid.Time{}, map[int][]int64{}
		begin := func(now grid.Time, d int, started []Started) {
			for _, s := range started {
				id := int(s.ID.Job.Lo)
				if parts[id] != nil {
					t.Fatalf("job %d starts twice", id)
				}
				if s.Processors != width[id] || s.Leased < 0 || s.Leased > s.Processors {
					t.Fatalf("job %d asked for %d processors and has %d, %d of them leased", id, width[id], s.Processors, s.Leased)
				}
				parts[id] = make([]int64, len(sizes))
				parts[id][d] = s.Processors - s.Leased
				if s.Leased > 0 {
					parts[id][partner(d, s.Lender)] = s.Leased
				}
				for i, p := range parts[id] {
					if busy[i] += p; busy[i] > sizes[i] {
						t.Fatalf("at %d site %d runs %d processors, it has %d", now, i, busy[i], sizes[i])
					}
				}
				heap.Push(ends, strdEnd{now + runs[id], id, d})
			}
		}
		pass := func(now grid.Time) {
			for d := range domains {
				begin(now, d, domains[d].Schedule(now, nil, nil))
			}
		}
		now, jobs := grid.Time(0), rapid.IntRange(1, 40).Draw(t, "jobs")
		finish := func(until grid.Time) {
			for ends.Len() > 0 && (*ends)[0].at <= until {
				e := heap.Pop(ends).(strdEnd)
				domains[e.domain].Ended(e.at, strdID(e.id))
				for i, p := range parts[e.id] {
					busy[i] -= p
				}
				pass(e.at)
				now = max(now, e.at)
			}
		}
		for id := 1; id <= jobs; id++ {
			at := now + grid.Time(rapid.IntRange(0, 5).Draw(t, "gap"))
			finish(at)
			now = max(now, at)
			d := rapid.IntRange(0, len(domains)-1).Draw(t, "site")
			width[id] = rapid.Int64Range(1, sizes[d]).Draw(t, "width")
			estimate := grid.Time(rapid.IntRange(1, 20).Draw(t, "estimate"))
			runs[id] = grid.Time(rapid.IntRange(1, int(estimate)).Draw(t, "run"))
			started, err := domains[d].Submit(now, lrms.Request{ID: strdID(id), Processors: width[id], Estimate: estimate}, nil)
			if err != nil {
				t.Fatal(err)
			}
			begin(now, d, started)
			if rapid.Bool().Draw(t, "pass") {
				pass(now)
			}
		}
		pass(now)
		finish(grid.Never)
		for id := range width {
			if parts[id] == nil {
				t.Errorf("job %d never ran", id)
			}
		}
		for i, d := range domains {
			if idle := d.cluster.Idle(now); idle != sizes[i] || len(d.loans) != 0 {
				t.Errorf("site %d has %d of %d processors at the end, %d loans", i, idle, sizes[i], len(d.loans))
			}
		}
	})
}

func TestParsePolicy(t *testing.T) {
	for _, p := range []Policy{Local, SSTRD, XSTRD} {
		if got, err := ParsePolicy(p.String()); got != p || err != nil {
			t.Errorf("%q: %v, %v", p.String(), got, err)
		}
	}
	if _, err := ParsePolicy("y-strd"); err == nil {
		t.Error("y-strd is accepted")
	}
}
