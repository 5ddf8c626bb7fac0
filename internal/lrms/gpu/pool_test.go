package gpu

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
)

func task(n int) grid.TaskID { return grid.TaskID{Job: grid.JobID{Lo: uint64(n)}, Epoch: 1} }

func testPool(t interface{ Fatal(...any) }) *Pool {
	p, err := New([]Device{{"a0", "a"}, {"b1", "b"}, {"a2", "a"}, {"b3", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// promise promises GPUs to a task for an hour, as early as can be.
func promise(p *Pool, now grid.Time, n int, kind string, count int64) grid.Time {
	need := grid.GPUs{Type: kind, Count: count}
	start := p.Earliest(now, need, grid.Hour, now)
	p.Promise(now, task(n), need, start, grid.Hour)
	return start
}

// TestPromises: each later promise is behind those before it only where they would share a
// device, and a promise is kept early only if that delays nobody.
func TestPromises(t *testing.T) {
	p := testPool(t)
	for n, tt := range []struct {
		kind  string
		count int64
		want  grid.Time
	}{{"a", 1, 0}, {"a", 2, grid.Hour}, {"a", 1, 0}, {"b", 2, 0}, {"", 1, grid.Hour}, {"", 4, 2 * grid.Hour}} {
		if got := promise(p, 0, n, tt.kind, tt.count); got != tt.want {
			t.Errorf("promise %d begins at %v, want %v", n, got, tt.want)
		}
	}
	if got := p.Earliest(0, grid.GPUs{Count: 5}, grid.Hour, 0); got != grid.Never {
		t.Errorf("five of four at %v", got)
	}
	for n, want := range []bool{true, false, true, true, false, false} {
		if got := p.Ready(0, task(n)); got != want {
			t.Errorf("%d is ready: %v", n, got)
		}
	}
	for _, n := range []int{0, 2, 3} {
		p.Begin(0, task(n))
	}
	if got := fmt.Sprint(p.Of(task(0)), p.Of(task(2)), p.Of(task(3))); got != "[a0] [a2] [b1 b3]" {
		t.Errorf("they have %s", got)
	}
	if got, want := p.Stock(0), (grid.GPUStock{{Type: "a", Count: 2, Wait: 3 * grid.Hour}, {Type: "b", Count: 2, Wait: 3 * grid.Hour}}); !slices.Equal(got, want) {
		t.Errorf("there are %v, want %v", got, want)
	}
	p.Release(task(3)) // early: the one that wants any can have one of those
	if !p.Ready(1, task(4)) || p.Ready(1, task(1)) || p.Ready(1, task(5)) {
		t.Error("a wrong one goes before its time")
	}
	p.Begin(1, task(4))
	if got := p.Of(task(4)); !slices.Equal(got, []string{"b1"}) {
		t.Errorf("it has %q", got)
	}
	// Its time has come, but who should have ended has not: it waits, and goes as soon as that does.
	if p.Ready(grid.Hour, task(1)) {
		t.Error("a task has GPUs that others have")
	}
	p.Release(task(0))
	p.Release(task(2))
	p.Begin(grid.Hour+5, task(1))
	for n := range 6 {
		p.Release(task(n))
	}
	if got := p.Stock(grid.Hour); got.String() != "a:2,b:2" || got[0].Free+got[1].Free != 4 || p.waiting != 0 {
		t.Errorf("in the end there are %v, and %d wait", got, p.waiting)
	}
}

// TestLateOnesGoOn: a promise that begins late may run into the next one on its devices, and
// that one begins late, too, rather than never.
func TestLateOnesGoOn(t *testing.T) {
	p := testPool(t)
	p.Promise(0, task(1), grid.GPUs{Type: "a", Count: 2}, 0, grid.Hour)
	p.Promise(0, task(2), grid.GPUs{Type: "a", Count: 2}, grid.Hour, grid.Hour)
	p.Promise(0, task(3), grid.GPUs{Type: "a", Count: 2}, 2*grid.Hour, grid.Hour)
	p.Begin(0, task(1))
	late := grid.Hour + grid.Minute
	if p.Ready(late, task(2)) {
		t.Fatal("it begins while the first one runs")
	}
	p.Release(task(1))
	p.Begin(late, task(2))
	if p.Ready(2*grid.Hour, task(3)) {
		t.Fatal("the third begins while the second runs")
	}
	if at := p.Earliest(2*grid.Hour, grid.GPUs{Type: "a", Count: 1}, grid.Minute, 2*grid.Hour); at < 3*grid.Hour {
		t.Errorf("another one at %v", at)
	}
	p.Release(task(2))
	p.Begin(2*grid.Hour+grid.Minute, task(3))
}

func TestGPUsAfterARestart(t *testing.T) {
	p := testPool(t)
	p.Adopt(0, task(1), []string{"a2", "gone"})
	p.Adopt(0, task(2), []string{"a2"}) // nobody has what another one has
	p.Extend(task(1), grid.Hour)
	if at := promise(p, 0, 3, "a", 1); at != 0 || !slices.Equal(p.Of(task(3)), []string{"a0"}) || p.Of(task(2)) != nil {
		t.Errorf("at %v it has %q, and the second %q", at, p.Of(task(3)), p.Of(task(2)))
	}
	if at := promise(p, 0, 4, "a", 2); at != grid.Hour {
		t.Errorf("both are free at %v", at)
	}
}

func TestWhatNeverFits(t *testing.T) {
	p := testPool(t)
	for need, fits := range map[grid.GPUs]bool{{Count: 4}: true, {Count: 5}: false, {Type: "a", Count: 2}: true, {Type: "a", Count: 3}: false, {Type: "c", Count: 1}: false} {
		if err := p.Fits(need); (err == nil) != fits {
			t.Errorf("%v: %v", need, err)
		}
		if p.Stock(0).Has(need) != fits {
			t.Errorf("%v: the stock says otherwise", need)
		}
	}
	many := make([]Device, grid.GPUTypesMax+1)
	for i := range many {
		many[i] = Device{fmt.Sprint(i), fmt.Sprint("type", i)}
	}
	for _, bad := range [][]Device{{{"", "a"}}, {{"a", ""}}, {{"a", "a"}, {"a", "b"}}, many} {
		if _, err := New(bad); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}

// TestNoGPUHasTwoTasks: whatever comes in whatever order, also if tasks run on beyond their
// time; and whoever is promised some begins once those before it have ended.
func TestNoGPUHasTwoTasks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, now := testPool(t), grid.Time(0)
		promised := make(map[int]grid.Time)
		begun := make(map[int]bool)
		t.Repeat(map[string]func(*rapid.T){
			"promise": func(t *rapid.T) {
				n, need := rapid.IntRange(1, 8).Draw(t, "task"), grid.GPUs{Type: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "type"), Count: rapid.Int64Range(1, 2).Draw(t, "count")}
				if _, is := promised[n]; !is && !begun[n] {
					span := grid.Time(rapid.Int64Range(1, 10).Draw(t, "span"))
					at := p.Earliest(now, need, span, now+grid.Time(rapid.Int64Range(0, 5).Draw(t, "from")))
					p.Promise(now, task(n), need, at, span)
					promised[n] = at
				}
			},
			"pass": func(t *rapid.T) { now += grid.Time(rapid.Int64Range(1, 5).Draw(t, "time")) },
			"begin": func(t *rapid.T) {
				n := rapid.IntRange(1, 8).Draw(t, "task")
				if _, is := promised[n]; is && p.Ready(now, task(n)) {
					p.Begin(now, task(n))
					delete(promised, n)
					begun[n] = true
				}
			},
			"release": func(t *rapid.T) {
				n := rapid.IntRange(1, 8).Draw(t, "task")
				p.Release(task(n))
				delete(promised, n)
				delete(begun, n)
			},
			"": func(t *rapid.T) {
				owners := make(map[string]int)
				for n := range begun {
					for _, name := range p.Of(task(n)) {
						if owners[name] != 0 {
							t.Fatalf("%s has %d and %d", name, owners[name], n)
						}
						owners[name] = n
					}
				}
				if err := p.Stock(now).Check(); err != nil {
					t.Fatal(err)
				}
				for n, at := range promised {
					if at <= now && len(begun) == 0 && !p.Ready(now, task(n)) {
						t.Fatalf("%d could begin", n)
					}
				}
			},
		})
	})
}

// TestEarliestOfMany: of many that have GPUs the one that ends first makes room.
func TestEarliestOfMany(t *testing.T) {
	for range 20 { // what is looked through has no order of its own
		p := testPool(t)
		for n, span := range []grid.Time{4 * grid.Hour, 2 * grid.Hour, 3 * grid.Hour, grid.Hour} {
			p.Promise(0, task(n), grid.GPUs{Count: 1}, 0, span)
			p.Begin(0, task(n))
		}
		for count, want := range map[int64]grid.Time{1: grid.Hour, 2: 2 * grid.Hour, 4: 4 * grid.Hour} {
			if got := p.Earliest(0, grid.GPUs{Count: count}, grid.Hour, 0); got != want {
				t.Fatalf("%d are free at %v, want %v", count, got, want)
			}
		}
	}
}

// TestAdoptedAfterARestart: a task has what it had and nobody has, for as long as is said then.
func TestAdoptedAfterARestart(t *testing.T) {
	p := testPool(t)
	p.Adopt(0, task(1), []string{"a0", "b3", "gone"})
	p.Adopt(0, task(1), []string{"a2"}) // it is here already
	p.Adopt(0, task(2), []string{"a0", "b1"})
	if got := fmt.Sprint(p.Of(task(1)), p.Of(task(2))); got != "[a0 b3] [b1]" {
		t.Errorf("they have %s", got)
	}
	p.Extend(task(1), 3*grid.Hour)
	p.Extend(task(2), grid.Hour)
	p.Extend(task(9), grid.Hour) // there is none of that name
	for kind, want := range map[string]grid.Time{"a": 3 * grid.Hour, "b": 3 * grid.Hour} {
		if got := p.Earliest(0, grid.GPUs{Type: kind, Count: 2}, grid.Hour, 0); got != want {
			t.Errorf("two of type %s are free at %v, want %v", kind, got, want)
		}
	}
	if got := p.Earliest(0, grid.GPUs{Type: "b", Count: 1}, grid.Hour, 0); got != grid.Hour {
		t.Errorf("one of type b is free at %v", got)
	}
	p.Release(task(1))
	p.Release(task(2))
	if got := p.Earliest(0, grid.GPUs{Count: 4}, grid.Hour, 0); got != 0 || p.Full() {
		t.Errorf("all are free at %v", got)
	}
}

// TestPromisesAreBounded: no more tasks wait for GPUs than may.
func TestPromisesAreBounded(t *testing.T) {
	p := testPool(t)
	for n := range PromisesMax {
		if p.Full() {
			t.Fatalf("%d promises are too many", n)
		}
		promise(p, 0, n, "a", 2)
	}
	if !p.Full() {
		t.Errorf("after %d promises there is room for more", PromisesMax)
	}
	if p.Begin(0, task(0)); p.Full() {
		t.Error("one has begun, and there is no room for another")
	}
}
