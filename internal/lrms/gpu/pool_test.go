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

// granted returns who gets GPUs now, and which.
func granted(p *Pool) (list []string) {
	var ids []grid.TaskID
	p.Grant(func(id grid.TaskID) { ids = append(ids, id) })
	for _, id := range ids {
		list = append(list, fmt.Sprint(id.Job.Lo, p.Of(id)))
	}
	return list
}

func TestGPUsAreGivenInTurn(t *testing.T) {
	p := testPool(t)
	expect := func(want ...string) {
		t.Helper()
		if got := granted(p); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	p.Wait(task(1), grid.GPUs{Type: "a", Count: 1})
	p.Wait(task(2), grid.GPUs{Type: "a", Count: 2}) // there is one left
	p.Wait(task(3), grid.GPUs{Type: "a", Count: 1}) // behind it
	p.Wait(task(4), grid.GPUs{Type: "b", Count: 2})
	p.Wait(task(5), grid.GPUs{Count: 1}) // of any type: behind those that wait
	expect("1 [a0]", "4 [b1 b3]")
	p.Wait(task(1), grid.GPUs{Type: "a", Count: 1}) // asked again
	expect()
	p.Release(task(1))
	expect("2 [a0 a2]")
	p.Release(task(3)) // it waits no more
	p.Release(task(4))
	expect("5 [b1]")
	p.Release(task(9))
	if got := fmt.Sprint(p.Counts()); got != "[{a 2 0} {b 2 1}]" {
		t.Errorf("there are %s", got)
	}
}

func TestGPUsAfterARestart(t *testing.T) {
	p := testPool(t)
	p.Adopt(task(1), []string{"a2", "gone"})
	p.Adopt(task(2), []string{"a2"}) // nobody has what another one has
	p.Wait(task(3), grid.GPUs{Type: "a", Count: 1})
	if got := granted(p); !slices.Equal(got, []string{"3 [a0]"}) || p.Of(task(2)) != nil {
		t.Errorf("got %q, and the second has %q", got, p.Of(task(2)))
	}
	p.Release(task(1))
	if got := fmt.Sprint(p.Counts()); got != "[{a 2 1} {b 2 2}]" {
		t.Errorf("there are %s", got)
	}
}

func TestWhatNeverFits(t *testing.T) {
	p := testPool(t)
	for need, fits := range map[grid.GPUs]bool{{Count: 4}: true, {Count: 5}: false, {Type: "a", Count: 2}: true, {Type: "a", Count: 3}: false, {Type: "c", Count: 1}: false} {
		if err := p.Fits(need); (err == nil) != fits {
			t.Errorf("%v: %v", need, err)
		}
	}
	for _, bad := range [][]Device{{{"", "a"}}, {{"a", ""}}, {{"a", "a"}, {"a", "b"}}} {
		if _, err := New(bad); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}

// TestNoGPUHasTwoTasks: whatever comes in whatever order, and in the end all are free.
func TestNoGPUHasTwoTasks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := testPool(t)
		has := make(map[int]bool)
		t.Repeat(map[string]func(*rapid.T){
			"wait": func(t *rapid.T) {
				n, need := rapid.IntRange(1, 8).Draw(t, "task"), grid.GPUs{Type: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "type"), Count: rapid.Int64Range(1, 2).Draw(t, "count")}
				p.Wait(task(n), need)
				has[n] = true
			},
			"release": func(t *rapid.T) {
				n := rapid.IntRange(1, 8).Draw(t, "task")
				p.Release(task(n))
				delete(has, n)
			},
			"": func(t *rapid.T) {
				granted(p)
				owners := make(map[string]int)
				for n := range has {
					for _, name := range p.Of(task(n)) {
						if owners[name] != 0 {
							t.Fatalf("%s has %d and %d", name, owners[name], n)
						}
						owners[name] = n
					}
				}
				free := int64(0)
				for _, c := range p.Counts() {
					free += c.Free
				}
				if int(free)+len(owners) != 4 {
					t.Fatalf("%d free and %d taken of 4", free, len(owners))
				}
			},
		})
		for n := range has {
			p.Release(task(n))
		}
		if got := fmt.Sprint(p.Counts(), len(p.waiting)); got != "[{a 2 2} {b 2 2}] 0" {
			t.Fatalf("in the end %s", got)
		}
	})
}

func TestGPUsAsTheyAreWritten(t *testing.T) {
	for text, want := range map[string]grid.GPUs{"2": {Count: 2}, "a100:2": {Type: "a100", Count: 2}, "a100": {Type: "a100", Count: 1}} {
		if got, err := grid.ParseGPUs(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "a:0", ":2", "a b:1", "a:1:1", "9999999", "a:x"} {
		if got, err := grid.ParseGPUs(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}
