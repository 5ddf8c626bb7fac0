package packing

import (
	"math"
	"testing"

	"gridnode/grid"
	"gridnode/internal/lrms/titan"
)

// TestExecutedPerformance: two packings on a cluster of four processors. The first has
// two jobs of two processors, from 10 to 20 and to 30; a deadline at 25 is exceeded by 5.
// The second comes at 20 and has one of three, from 30 to 40, and one elsewhere.
func TestExecutedPerformance(t *testing.T) {
	w := titan.Weights{OverDeadline: 1, Makespan: 1, Idle: 2}
	x := newExecuted([]titan.Weights{w, w}, []packingCluster{{4, 10}, {2, 10}})
	const s = grid.Second
	give := func(at grid.Time, id uint64, cluster int, processors int64, start, end, deadline grid.Time) {
		job := &grid.Job{ID: grid.JobID{Lo: id}, Submit: start - s, Deadline: deadline}
		job.Processors = processors
		x.placed(at, job.ID)
		x.finished(cluster, &grid.Event{Job: job, Result: grid.Result{Start: start, End: end}})
	}
	give(10*s, 1, 0, 2, 10*s, 20*s, 100*s)
	give(10*s, 2, 0, 2, 10*s, 30*s, 25*s)
	give(20*s, 3, 0, 3, 30*s, 40*s, 100*s)
	give(20*s, 4, 1, 1, 20*s, 25*s, 100*s)
	r := x.sums()
	if r.batches != 2 || r.jobs != 4 || r.clusters[0].missed != 1 || r.span != 40*s {
		t.Errorf("%+v", r)
	}
	// First: 5 late, 20 long, two processors idle for 10 s. Second: 20 long, in which two
	// processors are idle for 10 s and one for 10 s; and 5 long with 5 s idle.
	first, second, other := (5.0+20+2*20)/4, (20.0+2*30)/4, (5.0+2*5)/4
	if want := first + (second+other)/2; math.Abs(r.mcp-want) > 1e-9 {
		t.Errorf("MCP adds up to %v, want %v", r.mcp, want)
	}
	if got := x.wait(); math.Abs(got-1) > 1e-9 {
		t.Errorf("mean wait %v s, want 1", got)
	}
	if got := x.waiting(); math.Abs(got-3.0/20) > 1e-9 { // four seconds of waiting, one of them after the last job came
		t.Errorf("%v jobs wait, want 3 in 20 s", got)
	}
}
