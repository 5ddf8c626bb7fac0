package after

import (
	"fmt"
	"iter"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
)

// ward is a table of jobs for tests: the naive word on what becomes of each.
type ward struct {
	jobs  []*grid.Job
	turns map[grid.JobID]*Turn
	state map[grid.JobID]string // waits, goes, well, badly
	order map[grid.JobID]int
}

func newWard() *ward {
	return &ward{turns: map[grid.JobID]*Turn{}, state: map[grid.JobID]string{}, order: map[grid.JobID]int{}}
}

func (w *ward) of(id grid.JobID) (some []*grid.Job) {
	for _, j := range w.jobs {
		if j.ID == id || j.Array != nil && j.Array.ID == id {
			some = append(some, j)
		}
	}
	return some
}

func (w *ward) live(id grid.JobID) bool { return w.state[id] == "waits" || w.state[id] == "goes" }

func (w *ward) Fate(id grid.JobID) (f Fate) {
	for _, j := range w.of(id) {
		f.Known = true
		f.Live = f.Live || w.live(j.ID)
		f.Failed = f.Failed || w.state[j.ID] == "badly"
		begun := w.state[j.ID] != "waits" && w.state[j.ID] != "goes"
		f.Begun = begun && (f.Begun || j == w.of(id)[0])
	}
	return f
}

func (w *ward) Live(user string) func(func(*grid.Job) bool) {
	return func(yield func(*grid.Job) bool) {
		for _, j := range w.jobs {
			if j.User == user && w.live(j.ID) && !yield(j) {
				return
			}
		}
	}
}

func (w *ward) going(yield func(j *grid.Job, waits bool) bool) {
	for _, j := range w.jobs {
		if w.live(j.ID) && !yield(j, w.state[j.ID] == "waits") {
			return
		}
	}
}

var _ iter.Seq[*grid.Job] = (&ward{}).Live("")

// may says, by looking at every job, why one may not go; empty if it may.
func (w *ward) may(now grid.Time, j *grid.Job) Reason {
	turn, t := w.turns[j.ID], j.Terms
	if turn.Held {
		return Held
	}
	if t != nil && !turn.Met {
		if t.Begin > now {
			return NotBefore
		}
		met, never := 0, 0
		for _, d := range t.After {
			f := w.Fate(d.Job)
			switch {
			case d.Condition == grid.AfterOK && f.Failed, !f.Live && d.Condition == grid.AfterNotOK && !f.Failed:
				never++
			case !f.Live:
				met++
			}
		}
		n := len(t.After)
		switch {
		case n == 0, t.Any && met > 0, !t.Any && met == n:
		case !t.Any && never > 0, t.Any && never == n:
			return NeverMet
		default:
			return Dependent
		}
		for _, o := range w.jobs {
			same := o.Array != nil && j.Array != nil && o.Array.ID == j.Array.ID
			if t.Singleton && w.live(o.ID) && keyOf(o) == keyOf(j) && w.order[o.ID] < w.order[j.ID] && !same {
				return Single
			}
		}
	}
	if j.Array != nil && j.Array.Most > 0 {
		going := int64(0)
		for _, o := range w.of(j.Array.ID) {
			if w.state[o.ID] == "goes" {
				going++
			}
		}
		if going >= j.Array.Most {
			return ArrayFull
		}
	}
	return ""
}

// restarted returns a gate that knows what a restart leaves.
func (w *ward) restarted() *Gate {
	g := NewGate(nil)
	for _, j := range w.jobs {
		if w.live(j.ID) {
			g.Enter(j, w.state[j.ID] == "waits")
		}
	}
	for _, j := range w.jobs {
		if w.state[j.ID] == "waits" {
			turn := TurnFromProto(j, w.turns[j.ID].Proto())
			w.turns[j.ID] = &turn
			g.Wait(j, &turn, w)
		}
	}
	return g
}

// TestGateAgainstNaive: whatever happens, restarts included, exactly those jobs wait that
// must by looking at all of them.
func TestGateAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, g, now := newWard(), NewGate(nil), grid.Time(1000)
		pick := func(label string, want string) *grid.Job {
			var some []*grid.Job
			for _, j := range w.jobs {
				if w.state[j.ID] == want {
					some = append(some, j)
				}
			}
			if len(some) == 0 {
				return nil
			}
			return rapid.SampledFrom(some).Draw(t, label)
		}
		settle := func() {
			for {
				id, verdict, more := g.Next(now)
				if !more {
					break
				}
				j := w.of(id)[0]
				why := w.may(now, j)
				if verdict == Go && why != "" || verdict == Drop && (why != NeverMet || !j.Terms.Drop) {
					t.Fatalf("%s: verdict %d, but %q", id.Short(), verdict, why)
				}
				if verdict == Go {
					w.state[id] = "goes"
					continue
				}
				w.state[id] = "badly"
				g.Leave(j, false)
			}
			for _, j := range w.jobs {
				if w.state[j.ID] != "waits" {
					continue
				}
				why := w.may(now, j)
				if got, _ := g.Why(j.ID); why == "" || got != why {
					t.Fatalf("%s waits for %q, want %q", j.ID.Short(), got, why)
				}
			}
		}
		add := func(j *grid.Job) {
			w.order[j.ID], w.jobs = len(w.jobs), append(w.jobs, j)
			turn := TurnOf(j)
			w.turns[j.ID], w.state[j.ID] = &turn, "goes"
			waits := g.Waits(j)
			if waits {
				w.state[j.ID] = "waits"
			}
			g.Enter(j, waits)
			if waits {
				g.Wait(j, &turn, w)
			}
		}
		number := uint64(0)
		for step := range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += grid.Time(rapid.IntRange(0, 50).Draw(t, "pass"))
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 0, 1: // a job, or an array
				var terms *grid.Terms
				if rapid.Bool().Draw(t, "terms") {
					terms = &grid.Terms{
						Any: rapid.Bool().Draw(t, "any"), Drop: rapid.Bool().Draw(t, "drop"), Held: rapid.IntRange(0, 4).Draw(t, "held") == 0,
						Singleton: rapid.IntRange(0, 2).Draw(t, "single") == 0,
					}
					if rapid.Bool().Draw(t, "later") {
						terms.Begin = now + grid.Time(rapid.IntRange(0, 200).Draw(t, "begin"))
					}
					for range rapid.IntRange(0, 3).Draw(t, "dependencies") {
						if len(w.jobs) == 0 {
							break
						}
						on := rapid.SampledFrom(w.jobs).Draw(t, "on")
						id := on.ID
						if on.Array != nil && rapid.Bool().Draw(t, "whole") {
							id = on.Array.ID
						}
						terms.After = append(terms.After, grid.Dependency{Condition: grid.Condition(rapid.IntRange(1, 3).Draw(t, "condition")), Job: id})
					}
				}
				name, size := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"), rapid.IntRange(0, 4).Draw(t, "size")
				most := int64(rapid.IntRange(0, 2).Draw(t, "most"))
				for i := range max(size, 1) {
					number++
					j := &grid.Job{ID: grid.JobID{Hi: uint64(step + 1), Lo: uint64(i + 1)}, User: "u", Name: name, Number: number, Terms: terms}
					j.Submit = grid.Time(rapid.IntRange(0, 1000).Draw(t, "clock")) // it may have been set back
					if size > 0 {
						j.Name += fmt.Sprintf("[%d]", i)
						j.Array = &grid.Array{ID: grid.JobID{Hi: uint64(step + 1), Lo: 1000}, Index: int64(i), Count: int64(size), Max: int64(size - 1), Step: 1, Most: most}
					}
					add(j)
				}
			case 2, 3: // one ends
				if j := pick("ending", "goes"); j != nil {
					well := rapid.Bool().Draw(t, "well")
					w.state[j.ID] = map[bool]string{true: "well", false: "badly"}[well]
					g.Leave(j, well)
				}
			case 4: // one that waits is cancelled, held or released
				if j := pick("waiting", "waits"); j != nil {
					switch rapid.IntRange(0, 2).Draw(t, "order") {
					case 0:
						w.state[j.ID] = "badly"
						g.Leave(j, false)
					case 1:
						g.Hold(j.ID)
					default:
						g.Release(j.ID)
					}
				}
			case 5: // one that was let go waits again
				if j := pick("again", "goes"); j != nil {
					w.turns[j.ID].Met = true
					w.state[j.ID] = "waits"
					g.Back(j)
					g.Wait(j, w.turns[j.ID], w)
				}
			case 6:
				g = w.restarted()
			}
			settle()
			if next := g.NextTimer(); next <= now {
				t.Fatalf("it wants a tick at %d, which is not after %d", next, now)
			}
		}
	})
}

// A job that is let go before its number is reached, and then waits again, has its turn again.
func TestNumberOfOneThatComesBack(t *testing.T) {
	w, g := newWard(), NewGate(nil)
	var jobs []*grid.Job
	for i := range int64(3) {
		j := &grid.Job{ID: grid.JobID{Hi: 1, Lo: uint64(i + 1)}, User: "u", Array: &grid.Array{ID: grid.JobID{Hi: 1, Lo: 9}, Index: i, Count: 3, Max: 2, Step: 1, Most: 1}}
		jobs, w.jobs = append(jobs, j), append(w.jobs, j)
		turn := TurnOf(j)
		w.turns[j.ID] = &turn
		g.Enter(j, true)
		g.Wait(j, &turn, w)
	}
	goes := func(want ...*grid.Job) {
		t.Helper()
		for id, _, more := g.Next(1); more; id, _, more = g.Next(1) {
			if len(want) == 0 || id != want[0].ID {
				t.Fatalf("%s goes, want %v", id.Short(), want)
			}
			want = want[1:]
		}
		if len(want) > 0 {
			t.Fatalf("%s does not go", want[0].ID.Short())
		}
	}
	goes(jobs[0])
	g.Release(jobs[2].ID) // it is looked at before the one whose number is next
	g.Leave(jobs[0], true)
	goes(jobs[2])
	g.Back(jobs[2])
	g.Wait(jobs[2], w.turns[jobs[2].ID], w)
	goes(jobs[1])
	g.Leave(jobs[1], true)
	goes(jobs[2])
}

// What is to run after another one has begun does not wait for its end; of an array all have
// to begin, or to be over.
func TestAfterABegin(t *testing.T) {
	w, g := newWard(), NewGate(nil)
	array := grid.JobID{Hi: 9}
	add := func(n uint64, state string, of *grid.Array, after ...grid.Dependency) *grid.Job {
		j := &grid.Job{ID: grid.JobID{Lo: n}, Array: of}
		if after != nil {
			j.Terms = &grid.Terms{After: after}
		}
		w.jobs, w.state[j.ID] = append(w.jobs, j), state
		g.Enter(j, state == "waits")
		if state == "waits" {
			g.Wait(j, &Turn{}, w)
		}
		return j
	}
	first := add(1, "goes", &grid.Array{ID: array, Count: 2})
	second := add(2, "goes", &grid.Array{ID: array, Count: 2, Index: 1})
	one := add(3, "waits", nil, grid.Dependency{Condition: grid.After, Job: first.ID})
	all := add(4, "waits", nil, grid.Dependency{Condition: grid.After, Job: array})
	expect := func(when string, want ...*grid.Job) {
		t.Helper()
		var got []grid.JobID
		for id, _, more := g.Next(1); more; id, _, more = g.Next(1) {
			got = append(got, id)
		}
		if len(got) != len(want) || len(want) > 0 && got[0] != want[0].ID {
			t.Errorf("%s: %v go, want %v", when, got, want)
		}
	}
	expect("before anything")
	w.state[first.ID] = "begun"
	g.Begun(first, w)
	expect("the first has begun", one)
	w.state[second.ID] = "badly"
	g.Leave(second, false)
	g.Begun(second, w)
	expect("the second is over and has not begun", all)
}

// TestAuditOfIdle: a job that waits for nothing is found.
func TestAuditOfIdle(t *testing.T) {
	w, g := newWard(), NewGate(nil)
	j := &grid.Job{ID: grid.JobID{Lo: 1}, Terms: &grid.Terms{Held: true}}
	turn := TurnOf(j)
	g.Enter(j, true)
	g.Wait(j, &turn, w)
	if _, _, more := g.Next(0); more {
		t.Fatal("a job goes that is held")
	}
	live := func(yield func(*grid.Job, bool) bool) { yield(j, true) }
	if err := g.Audit(0, live); err != nil {
		t.Fatal(err)
	}
	if turn.Held = false; g.Audit(0, live) == nil {
		t.Error("a job waits for nothing, and the audit does not say so")
	}
}

// TestAuditOfInstants: so is one that waited for an instant which has passed.
func TestAuditOfInstants(t *testing.T) {
	w, g := newWard(), NewGate(nil)
	j := &grid.Job{ID: grid.JobID{Lo: 1}, Terms: &grid.Terms{Begin: 10}}
	turn := TurnOf(j)
	g.Enter(j, true)
	g.Wait(j, &turn, w)
	if _, _, more := g.Next(0); more {
		t.Fatal("a job goes before its time")
	}
	live := func(yield func(*grid.Job, bool) bool) { yield(j, true) }
	if err := g.Audit(9, live); err != nil {
		t.Errorf("before its time: %v", err)
	}
	if g.Audit(10, live) == nil {
		t.Error("its time has come, and the audit does not say that it waits for nothing")
	}
	if err := g.Audit(9, live); err != nil {
		t.Errorf("asked for an earlier instant again: %v", err)
	}
}

// TestLinesEnd: of singletons that have gone nothing is left.
func TestLinesEnd(t *testing.T) {
	w, g := newWard(), NewGate(nil)
	for n := range uint64(3) {
		j := &grid.Job{ID: grid.JobID{Lo: n + 1}, User: "ann", Name: "x", Terms: &grid.Terms{Singleton: true}}
		w.jobs, w.state[j.ID] = append(w.jobs, j), "waits"
		turn := TurnOf(j)
		g.Enter(j, true)
		g.Wait(j, &turn, w)
	}
	for _, j := range w.jobs {
		if id, verdict, more := g.Next(1); !more || id != j.ID || verdict != Go {
			t.Fatalf("%v goes (%v), want %v", id, more, j.ID)
		}
		w.state[j.ID] = "well"
		g.Leave(j, true)
	}
	if len(g.lines) != 0 {
		t.Errorf("of %d lines something is left", len(g.lines))
	}
}
