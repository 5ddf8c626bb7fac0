package main

import (
	"net"
	"sync"
	"testing"
)

// together solves a problem with so many tasks in this process.
func together(t *testing.T, tasks int, p problem) result {
	t.Helper()
	addresses := make([]string, tasks)
	var reserved []net.Listener
	for i := range addresses {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addresses[i] = l.Addr().String()
		reserved = append(reserved, l)
	}
	for _, l := range reserved {
		l.Close()
	}
	results := make([]result, tasks)
	var wg sync.WaitGroup
	for rank := range tasks {
		wg.Go(func() {
			team, err := join(t.Context(), rank, addresses)
			if err != nil {
				t.Error(err)
				return
			}
			defer team.close()
			if results[rank], err = solve(team, p); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for rank := range results {
		if results[rank] != results[0] {
			t.Errorf("task %d has %+v, task 0 %+v", rank, results[rank], results[0])
		}
	}
	return results[0]
}

func TestTasksDoNotChangeTheResult(t *testing.T) {
	p := problem{n: 24, tolerance: 1e-9}
	alone := together(t, 1, p)
	// Second order: a twice finer grid is four times nearer.
	if alone.distance > 1.5e-3 || alone.distance < 1e-3 {
		t.Errorf("alone %+v: the error should be near π²h²/12", alone)
	}
	for _, tasks := range []int{2, 3, 7} {
		if r := together(t, tasks, p); r != alone {
			t.Errorf("%d tasks: %+v, alone %+v", tasks, r, alone)
		}
	}
}

func TestFewerRowsThanTasks(t *testing.T) {
	if _, err := solve(&team{rank: 0, size: 3}, problem{n: 2}); err == nil {
		t.Error("three tasks share two rows")
	}
}

func BenchmarkSolve(b *testing.B) {
	for b.Loop() {
		if _, err := solve(&team{size: 1}, problem{n: 128, iterations: 100}); err != nil {
			b.Fatal(err)
		}
	}
}
