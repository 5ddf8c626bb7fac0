package lrms

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"gridnode/grid"

	"pgregory.net/rapid"
)

func id(n int) grid.TaskID { return grid.TaskID{Job: grid.JobID{Hi: 1, Lo: uint64(n)}, Epoch: 1} }

// pair drives the cluster and its naive equal through the same calls.
type pair struct {
	t     *rapid.T
	fast  *Cluster
	slow  *naive
	now   grid.Time
	count int
	limit grid.Time                 // longest estimate drawn
	open  []grid.TaskID             // reservations
	ends  map[grid.TaskID]grid.Time // of running tasks, by estimate
}

func newPair(t *rapid.T) *pair {
	cfg := Config{
		Processors: int64(rapid.SampledFrom([]int{1, 4, 8, 13, 100}).Draw(t, "processors")),
		Discipline: Discipline(rapid.IntRange(0, 1).Draw(t, "discipline")),
		QueueMax:   rapid.SampledFrom([]int{3, 1000}).Draw(t, "queueMax"),
		Hold:       grid.Time(rapid.SampledFrom([]int{0, 0, 1, 5}).Draw(t, "hold")),
		Nominal:    grid.Time(rapid.SampledFrom([]int{1, 7, 100}).Draw(t, "nominal")),
	}
	fast, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &pair{t: t, fast: fast, slow: &naive{cfg: cfg}, ends: map[grid.TaskID]grid.Time{},
		limit: grid.Time(rapid.SampledFrom([]int{5, 30}).Draw(t, "estimateMax"))}
}

func (p *pair) request() Request {
	p.count++
	name := p.count
	if rapid.IntRange(0, 20).Draw(p.t, "again") == 0 {
		name = rapid.IntRange(1, p.count).Draw(p.t, "name")
	}
	widest := p.slow.cfg.Processors
	if rapid.Bool().Draw(p.t, "narrow") {
		widest = (widest + 3) / 4
	}
	return Request{
		ID:         id(name),
		Processors: rapid.Int64Range(1, widest).Draw(p.t, "width"),
		Estimate:   grid.Time(rapid.Int64Range(1, int64(p.limit)).Draw(p.t, "estimate")),
	}
}

func (p *pair) same(what string, fast, slow any) {
	p.t.Helper()
	if fmt.Sprint(fast) != fmt.Sprint(slow) {
		p.t.Fatalf("at %d: %s = %v, naive says %v", int64(p.now), what, fast, slow)
	}
}

func (p *pair) sameError(what string, fast, slow error) {
	p.t.Helper()
	var a, b TooLate
	if errors.As(slow, &b) {
		if !errors.As(fast, &a) || a != b || !errors.Is(fast, ErrTooLate) {
			p.t.Fatalf("at %d: %s: %v, naive says %v", int64(p.now), what, fast, slow)
		}
	} else if !errors.Is(fast, slow) {
		p.t.Fatalf("at %d: %s: %v, naive says %v", int64(p.now), what, fast, slow)
	}
}

func (p *pair) schedule() {
	fast, slow := p.fast.Schedule(p.now, nil), p.slow.Schedule(p.now)
	p.same("started", fast, slow)
	for _, r := range fast {
		p.ends[r.ID] = p.now + r.Estimate
		p.open = slices.DeleteFunc(p.open, func(id grid.TaskID) bool { return id == r.ID })
	}
}

func (p *pair) ended(id grid.TaskID) {
	p.same("ended", p.fast.Ended(p.now, id), p.slow.Ended(p.now, id))
	delete(p.ends, id)
}

// runningTask returns a running task, the one that ends first by its estimate or another.
func (p *pair) runningTask(first bool) (grid.TaskID, bool) {
	if len(p.slow.running) == 0 {
		return grid.TaskID{}, false
	}
	i := 0
	if first {
		for j, t := range p.slow.running {
			if t.end < p.slow.running[i].end {
				i = j
			}
		}
	} else {
		i = rapid.IntRange(0, len(p.slow.running)-1).Draw(p.t, "which")
	}
	return p.slow.running[i].ID, true
}

// endDue ends what has reached its estimate.
func (p *pair) endDue() {
	for _, t := range slices.Clone(p.slow.running) {
		if t.end <= p.now {
			p.ended(t.ID)
		}
	}
}

func (p *pair) actions(overruns bool) map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"submit": func(t *rapid.T) {
			r := p.request()
			p.sameError("submit", p.fast.Submit(p.now, r), p.slow.Submit(p.now, r))
		},
		"burst": func(t *rapid.T) {
			for range rapid.IntRange(1, 20).Draw(t, "jobs") {
				r := p.request()
				p.sameError("submit", p.fast.Submit(p.now, r), p.slow.Submit(p.now, r))
			}
			p.schedule()
		},
		"reserve": func(t *rapid.T) {
			r := p.request()
			by := grid.Never
			if rapid.IntRange(0, 3).Draw(t, "bounded") == 0 {
				by = p.now + grid.Time(rapid.IntRange(0, 60).Draw(t, "by"))
			}
			admit := rapid.IntRange(0, 3).Draw(t, "admit") == 0
			reserve, naively := p.fast.Reserve, p.slow.Reserve
			if admit {
				reserve, naively = p.fast.Admit, p.slow.Admit
			}
			fast, err := reserve(p.now, r, by)
			slow, want := naively(p.now, r, by)
			p.sameError("reserve", err, want)
			p.same("reserve", fast, slow)
			if err == nil && !admit {
				p.open = append(p.open, r.ID)
			}
		},
		"commit": func(t *rapid.T) {
			if len(p.open) > 0 {
				id := rapid.SampledFrom(p.open).Draw(t, "id")
				p.sameError("commit", p.fast.Commit(p.now, id), p.slow.Commit(p.now, id))
			}
		},
		"cancel": func(t *rapid.T) {
			id := id(rapid.IntRange(0, p.count+1).Draw(t, "id"))
			p.same("cancel", p.fast.Cancel(p.now, id), p.slow.Cancel(p.now, id))
			p.open = slices.DeleteFunc(p.open, func(other grid.TaskID) bool { return id == other })
		},
		"end": func(t *rapid.T) {
			if id, ok := p.runningTask(rapid.Bool().Draw(t, "first")); ok {
				p.ended(id)
			}
		},
		"schedule": func(t *rapid.T) { p.schedule() },
		"tick": func(t *rapid.T) {
			p.now += grid.Time(rapid.IntRange(1, 8).Draw(t, "span"))
			if !overruns {
				p.endDue()
			}
		},
		"step": func(t *rapid.T) { // to the next end or timer, as a driver does
			next := p.fast.NextTimer()
			if id, ok := p.runningTask(true); ok {
				next = min(next, p.ends[id])
			}
			if next > p.now && next != grid.Never {
				p.now = next
			}
			if !overruns || rapid.Bool().Draw(t, "end") {
				p.endDue()
			}
			p.schedule()
		},
		"adopt": func(t *rapid.T) {
			r := p.request()
			started := p.now - grid.Time(rapid.IntRange(-1, 4).Draw(t, "ago"))
			if !overruns {
				started = p.now
			}
			fast, slow := p.fast.Adopt(p.now, r, started), p.slow.Adopt(p.now, r, started)
			p.sameError("adopt", fast, slow)
			if fast == nil {
				p.ends[r.ID] = min(started, p.now) + r.Estimate
			}
		},
		"lend": func(t *rapid.T) {
			r := p.request()
			fast, slow := p.fast.Lend(p.now, r), p.slow.Lend(p.now, r)
			p.sameError("lend", fast, slow)
			if fast == nil {
				p.ends[r.ID] = p.now + r.Estimate
			}
		},
		"extend": func(t *rapid.T) {
			if id, ok := p.runningTask(false); ok {
				end := p.now + grid.Time(rapid.IntRange(1, 20).Draw(t, "end"))
				p.same("extend", p.fast.Extend(p.now, id, end), p.slow.Extend(p.now, id, end))
				p.ends[id] = end
			}
		},
		"borrow": func(t *rapid.T) {
			r := p.request()
			if rapid.Bool().Draw(t, "known") {
				r.ID = id(rapid.IntRange(1, p.count+1).Draw(t, "id"))
			}
			p.sameError("borrow", p.fast.Borrow(p.now, r), p.slow.Borrow(p.now, r))
		},
		"return": func(t *rapid.T) {
			if len(p.slow.guests) > 0 {
				p.ended(p.slow.guests[rapid.IntRange(0, len(p.slow.guests)-1).Draw(t, "guest")].ID)
			}
		},
		"park": func(t *rapid.T) {
			id := id(rapid.IntRange(1, p.count+1).Draw(t, "id"))
			if len(p.slow.queue) > 0 && rapid.IntRange(0, 3).Draw(t, "any") > 0 {
				id = rapid.SampledFrom(p.slow.queue).Draw(t, "waiting").ID
			}
			p.same("park", p.fast.Park(p.now, id), p.slow.Park(p.now, id))
		},
		"unpark": func(t *rapid.T) {
			id := id(rapid.IntRange(1, p.count+1).Draw(t, "id"))
			if len(p.slow.parked) > 0 && rapid.IntRange(0, 3).Draw(t, "any") > 0 {
				id = rapid.SampledFrom(p.slow.parked).Draw(t, "parked").ID
			}
			p.same("unpark", p.fast.Unpark(p.now, id), p.slow.Unpark(p.now, id))
		},
		"look": func(t *rapid.T) {
			processors := rapid.Int64Range(1, p.slow.cfg.Processors).Draw(t, "width")
			span := grid.Time(rapid.Int64Range(1, 40).Draw(t, "span"))
			p.same("earliest start", p.fast.EarliestStart(p.now, processors, span), p.slow.EarliestStart(p.now, processors, span))
			id := id(rapid.IntRange(1, p.count+1).Draw(t, "id"))
			fast, ok := p.fast.Planned(id)
			slow, okay := p.slow.Planned(id)
			p.same("planned", []any{fast, ok}, []any{slow, okay})
			p.same("waiting", slices.Collect(p.fast.Waiting), p.slow.Waiting())
			p.same("state", fmt.Sprintf("%+v", p.fast.State(p.now)), fmt.Sprintf("%+v", p.slow.State(p.now)))
		},
		"": func(t *rapid.T) {
			p.same("next timer", p.fast.NextTimer(), p.slow.NextTimer())
			p.fast.verify(t)
		},
	}
}

// verify compares what the structures keep with what can be counted.
func (c *Cluster) verify(t *rapid.T) {
	if sum := c.profile.free + c.profile.overrun + c.profile.ahead.sum(); sum != c.cfg.Processors {
		t.Fatalf("processors in the end: %d of %d", sum, c.cfg.Processors)
	}
	c.profile.ahead.verify(t, c.profile.ahead.root, c.profile.ahead.height, c.profile.ahead.first, grid.Never)
	checkIndex(t, &c.queue, c.tasks.slab)
	if want := c.queue.size + c.queue.parked + c.agenda.size + c.runs + c.guests; len(c.tasks.index) != want {
		t.Fatalf("%d tasks known, %d counted", len(c.tasks.index), want)
	}
}

func (l *timeline) verify(t *rapid.T, node int32, height int, from, to grid.Time) {
	if height == 0 {
		b := &l.leaves[node]
		for i := range b.n {
			if b.change[i] == 0 || b.time[i] < from || b.time[i] >= to || i > 0 && b.time[i] <= b.time[i-1] {
				t.Fatalf("leaf %v %v outside [%d, %d) or disordered", b.time[:b.n], b.change[:b.n], from, to)
			}
		}
		return
	}
	b := &l.branches[node]
	if b.n == 0 {
		t.Fatal("empty branch")
	}
	for i := range b.n {
		if b.first[i] != l.firstOf(b.child[i], height-1) || b.totals[i] != l.totalsOf(b.child[i], height-1) {
			t.Fatalf("branch entry %d is stale", i)
		}
		end := to
		if i+1 < b.n {
			end = b.first[i+1]
		}
		l.verify(t, b.child[i], height-1, b.first[i], end)
	}
}

// weights says how often each action comes, of the sum. Promises and completions
// prevail: the more of them there are at a time, the more there is to get wrong.
var weights = []struct {
	name  string
	times int
}{
	{"submit", 4}, {"burst", 1}, {"reserve", 6}, {"commit", 6}, {"cancel", 1}, {"end", 3},
	{"schedule", 4}, {"tick", 3}, {"step", 3}, {"adopt", 1}, {"look", 2},
	{"lend", 2}, {"extend", 1}, {"borrow", 1}, {"return", 1}, {"park", 3}, {"unpark", 3},
}

func TestEqualsNaive(t *testing.T) {
	var names []string
	for _, w := range weights {
		for range w.times {
			names = append(names, w.name)
		}
	}
	for _, overruns := range []bool{false, true} {
		for round := range 10 { // of rapid's usual number of checks
			t.Run(fmt.Sprintf("overruns=%v/%d", overruns, round), rapid.MakeCheck(func(t *rapid.T) {
				p := newPair(t)
				actions := p.actions(overruns)
				for range rapid.IntRange(1, 150).Draw(t, "calls") {
					actions[rapid.SampledFrom(names).Draw(t, "call")](t)
					actions[""](t)
				}
			}))
		}
	}
}
