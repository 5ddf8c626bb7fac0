package lrms

import (
	"cmp"
	"slices"
	"testing"

	"gridnode/grid"

	"pgregory.net/rapid"
)

// naiveJob is a job of naiveEASY; start is the answer.
type naiveJob struct {
	traceJob
	start, end, estimatedEnd grid.Time
}

// naiveEASY schedules as the books say: walk everything at every event.
func naiveEASY(processors int64, all []traceJob) []grid.Time {
	jobs := make([]*naiveJob, len(all))
	instants := map[grid.Time]bool{}
	for i := range all {
		jobs[i] = &naiveJob{traceJob: all[i], start: grid.Never}
		instants[all[i].submit] = true
	}
	var running, queue []*naiveJob
	for free := processors; len(instants) > 0; {
		now := grid.Never
		for t := range instants {
			now = min(now, t)
		}
		delete(instants, now)
		start := func(j *naiveJob) {
			j.start, j.end, j.estimatedEnd = now, now+j.run, now+j.estimate
			free -= j.processors
			running = append(running, j)
			instants[j.end] = true
		}
		running = slices.DeleteFunc(running, func(j *naiveJob) bool {
			if j.end == now {
				free += j.processors
			}
			return j.end == now
		})
		for _, j := range jobs {
			if j.submit == now {
				queue = append(queue, j)
			}
		}
		for len(queue) > 0 && queue[0].processors <= free {
			start(queue[0])
			queue = queue[1:]
		}
		if len(queue) == 0 {
			continue
		}
		// The ten lines: shadow time, extra processors, one scan in order.
		slices.SortFunc(running, func(a, b *naiveJob) int { return cmp.Compare(a.estimatedEnd, b.estimatedEnd) })
		shadow, extra := grid.Never, free-queue[0].processors
		for _, j := range running {
			if extra < 0 || j.estimatedEnd == shadow {
				extra, shadow = extra+j.processors, j.estimatedEnd
			}
		}
		waiting := queue[:1]
		for _, j := range queue[1:] {
			switch {
			case j.processors <= free && now+j.estimate <= shadow:
				start(j)
			case j.processors <= min(free, extra):
				start(j)
				extra -= j.processors
			default:
				waiting = append(waiting, j)
			}
		}
		queue = waiting
	}
	starts := make([]grid.Time, len(jobs))
	for i, j := range jobs {
		starts[i] = j.start
	}
	return starts
}

// drawJobs draws a workload with ties in every quantity. A run time reaches the
// estimate, where the job is killed, or stays below it.
func drawJobs(t *rapid.T, processors int64, most int) []traceJob {
	gap := rapid.IntRange(0, 12).Draw(t, "gapMax")
	longest := rapid.SampledFrom([]int64{3, 20, 200}).Draw(t, "longest")
	jobs := make([]traceJob, rapid.IntRange(1, most).Draw(t, "jobs"))
	now := grid.Time(0)
	for i := range jobs {
		now += grid.Time(rapid.IntRange(0, gap).Draw(t, "gap"))
		estimate := rapid.Int64Range(1, longest).Draw(t, "estimate")
		run := rapid.Int64Range(1, longest).Draw(t, "run")
		jobs[i] = traceJob{now, grid.Time(min(run, estimate)), grid.Time(estimate), rapid.Int64Range(1, processors).Draw(t, "width")}
		if rapid.IntRange(0, 2).Draw(t, "narrow") > 0 {
			jobs[i].processors = (jobs[i].processors + 7) / 8
		}
	}
	return jobs
}

func starts(c *Cluster, jobs []traceJob) []grid.Time {
	at := make([]grid.Time, len(jobs))
	new(replayer).run(c, jobs, func(i int, end grid.Time) { at[i] = end - jobs[i].run })
	return at
}

func TestEASYEqualsNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		processors := int64(rapid.SampledFrom([]int{1, 3, 16, 100, 430}).Draw(t, "processors"))
		jobs := drawJobs(t, processors, 150)
		c, err := New(Config{Processors: processors})
		if err != nil {
			t.Fatal(err)
		}
		got, want := starts(c, jobs), naiveEASY(processors, jobs)
		for i := range jobs {
			if got[i] != want[i] {
				t.Fatalf("job %d %+v starts at %d, naive EASY says %d\n%+v", i, jobs[i], int64(got[i]), int64(want[i]), jobs)
			}
		}
	})
}

// A real log is longer than what rapid draws: its first jobs, by the naive way too.
func TestEASYEqualsNaiveOnLog(t *testing.T) {
	const processors = 100
	jobs := readTrace(t, "KTH-SP2-1996-2.1-cln.swf.gz", processors, grid.Never)[:3000]
	c, err := New(Config{Processors: processors})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := starts(c, jobs), naiveEASY(processors, jobs); !slices.Equal(got, want) {
		t.Error("starts differ from naive EASY")
	}
}

func TestFCFSStartsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs := drawJobs(t, 50, 100)
		c, err := New(Config{Processors: 50, Discipline: FCFS})
		if err != nil {
			t.Fatal(err)
		}
		at := starts(c, jobs)
		if !slices.IsSorted(at) {
			t.Fatalf("starts %v are out of order", at)
		}
		// and no later than the job before it and the processors allow
		for i := range jobs {
			from := jobs[i].submit
			if i > 0 {
				from = max(from, at[i-1])
			}
			for from < at[i] {
				busy, next := int64(0), grid.Never
				for k := range i {
					if end := at[k] + jobs[k].run; at[k] <= from && end > from {
						busy += jobs[k].processors
						next = min(next, end)
					}
				}
				if busy+jobs[i].processors <= 50 {
					t.Fatalf("job %d starts at %d although it fits at %d", i, int64(at[i]), int64(from))
				}
				from = next
			}
		}
	})
}
