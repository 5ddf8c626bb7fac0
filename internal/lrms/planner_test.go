package lrms

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gridnode/grid"
)

// dueJob is a job with a soft deadline.
type dueJob struct {
	traceJob
	by grid.Time
}

// dueJobs draws jobs that come about as fast as 20 processors can run them,
// most of them with deadlines.
func dueJobs(seed uint64, n int) []dueJob {
	rng := rand.New(rand.NewPCG(seed, 5))
	jobs := make([]dueJob, n)
	now := grid.Time(0)
	for i := range jobs {
		now += grid.Time(rng.Int64N(int64(21 * grid.Minute)))
		estimate := grid.Time(5+rng.IntN(95)) * grid.Minute
		run := estimate/2 + grid.Time(rng.Int64N(int64(estimate/2)))
		by := grid.Never
		if rng.IntN(4) > 0 {
			by = now + estimate*grid.Time(10+rng.IntN(90))/10
		}
		jobs[i] = dueJob{traceJob{now, run, estimate, 1 + rng.Int64N(10)}, by}
	}
	return jobs
}

// runDue runs the jobs and returns when each started, how many missed their
// deadlines, and by how much in all.
func runDue(t testing.TB, cfg Config, jobs []dueJob) (starts []grid.Time, missed int, over grid.Time) {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	starts = make([]grid.Time, len(jobs))
	var ends endHeap
	for next := 0; next < len(jobs) || len(ends) > 0; {
		now := grid.Never
		if next < len(jobs) {
			now = jobs[next].submit
		}
		if len(ends) > 0 {
			now = min(now, ends[0].at)
		}
		for len(ends) > 0 && ends[0].at == now {
			i := ends.pop()
			c.Ended(now, replayID(i))
			if late := now - jobs[i].by; jobs[i].by != grid.Never && late > 0 {
				missed++
				over += late
			}
		}
		for ; next < len(jobs) && jobs[next].submit == now; next++ {
			j := &jobs[next]
			if err := c.SubmitBy(now, Request{ID: replayID(next), Processors: j.processors, Estimate: j.estimate}, j.by); err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range c.Schedule(now, nil) {
			i := int(r.ID.Job.Lo)
			starts[i] = now
			ends.push(endEvent{now + jobs[i].run, i})
		}
	}
	return starts, missed, over
}

// TestTitanMeetsDeadlines: where EASY misses deadlines, TITAN misses fewer, and by less.
func TestTitanMeetsDeadlines(t *testing.T) {
	for seed := range uint64(2) {
		jobs := dueJobs(seed, 250)
		_, easyMissed, easyOver := runDue(t, Config{Processors: 20}, jobs)
		_, missed, over := runDue(t, Config{Processors: 20, Discipline: TITAN}, jobs)
		t.Logf("seed %d: EASY misses %d by %v, TITAN %d by %v", seed, easyMissed, easyOver, missed, over)
		if easyMissed < 20 || missed*10 > easyMissed*8 || over*10 > easyOver*8 {
			t.Errorf("seed %d: TITAN misses %d deadlines by %v, EASY %d by %v: want a fifth less", seed, missed, over, easyMissed, easyOver)
		}
	}
}

// TestTitanIsDeterministic: the same seed gives the same starts, another other ones.
func TestTitanIsDeterministic(t *testing.T) {
	jobs := dueJobs(1, 100)
	run := func(seed uint64) []grid.Time {
		starts, _, _ := runDue(t, Config{Processors: 20, Discipline: TITAN, Seed: seed}, jobs)
		return starts
	}
	if !slices.Equal(run(1), run(1)) {
		t.Error("the same seed gives other starts")
	}
	if slices.Equal(run(1), run(2)) {
		t.Error("another seed gives the same starts")
	}
}

// TestTitanPatience: a job that others overtake all the time starts soon after half
// a day, though it has no deadline and they have.
func TestTitanPatience(t *testing.T) {
	jobs := []dueJob{{traceJob{0, grid.Hour, grid.Hour, 4}, grid.Never}}
	for now := grid.Time(0); now < 2*grid.Day; now += 10 * grid.Minute {
		jobs = append(jobs, dueJob{traceJob{now, 40 * grid.Minute, 40 * grid.Minute, 1}, now + 41*grid.Minute})
	}
	slices.SortStableFunc(jobs, func(a, b dueJob) int { return int(a.submit - b.submit) })
	starts, _, _ := runDue(t, Config{Processors: 4, Discipline: TITAN}, jobs)
	if starts[0] < grid.Hour || starts[0] > titanPatience+2*grid.Hour {
		t.Errorf("the job starts after %v, want it overtaken, but not for more than two hours beyond %v", starts[0], titanPatience)
	}
	starts, _, _ = runDue(t, Config{Processors: 4}, jobs)
	if starts[0] != 0 {
		t.Errorf("under EASY it starts after %v, want at once", starts[0])
	}
}

// TestTitanUnits: a wide site is planned in units, and the order still regards
// deadlines; jobs that only just fit, and spans at their bound, do no harm.
func TestTitanUnits(t *testing.T) {
	for _, processors := range []int64{1, 127, 129, 1000, ProcessorsMax} {
		c := mustNew(t, Config{Processors: processors, Discipline: TITAN})
		submit := func(n int, processors int64, estimate, by grid.Time) {
			t.Helper()
			if err := c.SubmitBy(0, Request{ID: id(n), Processors: processors, Estimate: estimate}, by); err != nil {
				t.Fatal(err)
			}
		}
		submit(1, processors, grid.SpanMax, grid.Never)
		submit(2, processors, grid.Hour, grid.Never)
		submit(3, processors, grid.Minute, grid.Minute)
		submit(4, 1, grid.Second, -grid.SpanMax)
		wantStarts(t, c, 0, 4)
		c.Ended(grid.Second, id(4))
		wantStarts(t, c, grid.Second, 3)
	}
}

// BenchmarkTitan measures a submission with its pass on a site that has room and a
// queue: the worst case, as every pass plans anew.
func BenchmarkTitan(b *testing.B) {
	for _, processors := range []int64{20, 1024} {
		b.Run(fmt.Sprintf("processors=%d", processors), func(b *testing.B) {
			c, err := New(Config{Processors: processors, Discipline: TITAN})
			if err != nil {
				b.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(1, 2))
			submit := func(n int, width int64) {
				r := Request{ID: replayID(n), Processors: width, Estimate: grid.Minute << rng.IntN(8)}
				if err := c.SubmitBy(0, r, 2*r.Estimate); err != nil {
					b.Fatal(err)
				}
			}
			submit(0, processors-1)
			c.Schedule(0, nil)
			for i := range titanJobs {
				submit(1+i, 2+rng.Int64N(processors-2))
			}
			b.ReportAllocs()
			n := titanJobs
			for b.Loop() {
				n++
				submit(n, processors)
				if started := c.Schedule(0, nil); len(started) > 0 {
					b.Fatal("there was no room")
				}
				c.Cancel(0, replayID(n))
			}
		})
	}
}
