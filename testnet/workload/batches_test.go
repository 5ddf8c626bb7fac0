package workload

import (
	"math/rand/v2"
	"testing"

	"gridnode/grid"
)

func TestBatches(t *testing.T) {
	source := func() Source {
		var jobs Jobs
		for i := range int64(200_000) {
			jobs = append(jobs, Job{Number: i + 1, Submit: grid.Time(i) * grid.Minute, RunTime: grid.Hour, Estimate: grid.Hour, Processors: 1 + i%3})
		}
		return &jobs
	}
	b, err := NewBatches(source(), 0.7, 1000, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	jobs := collect(t, b)
	seen := map[int64]bool{}
	batched, size, largest := 0, 1, 1
	for i, j := range jobs {
		if seen[j.Number] = true; j.Processors != 1+(j.Number-1)%3 {
			t.Fatalf("job %d has %d processors", j.Number, j.Processors)
		}
		if i == 0 {
			continue
		}
		gap := j.Submit - jobs[i-1].Submit
		if gap < 0 {
			t.Fatalf("job %d is submitted %v before the one in front of it", j.Number, -gap)
		}
		if gap < grid.Minute { // alone, jobs come a minute apart
			size++
			continue
		}
		if size > 1 {
			batched += size
		}
		largest, size = max(largest, size), 1
	}
	if len(jobs) != 200_000 || len(seen) != len(jobs) {
		t.Errorf("%d jobs, %d different ones, want all 200000 once", len(jobs), len(seen))
	}
	if share := float64(batched) / float64(len(jobs)); share < 0.65 || share > 0.75 {
		t.Errorf("%.3f of the jobs are in batches, want 0.7", share)
	}
	if largest < 500 || largest > 1010 { // a single job may follow within the minute
		t.Errorf("the largest batch has %d jobs, want nearly 1000", largest)
	}
	for _, bad := range []struct {
		share float64
		most  int64
	}{{-0.1, 10}, {1, 10}, {0.5, 2}, {0.5, 2_000_000}} {
		if _, err := NewBatches(source(), bad.share, bad.most, rand.New(rand.NewPCG(1, 2))); err == nil {
			t.Errorf("a share of %v in batches of at most %d is accepted", bad.share, bad.most)
		}
	}
}
