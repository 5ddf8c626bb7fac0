package site

import (
	"errors"
	"fmt"
	"testing"

	"gridnode/grid"
	"gridnode/node/after"
)

// chained returns a job that runs after others.
func (b *bench) chained(n uint64, c grid.Condition, on ...uint64) *grid.Job {
	j := b.job(n, 1)
	j.Terms = &grid.Terms{}
	for _, o := range on {
		j.Terms.After = append(j.Terms.After, grid.Dependency{Condition: c, Job: grid.JobID{Lo: o}})
	}
	return j
}

func (b *bench) submit(jobs ...*grid.Job) {
	b.t.Helper()
	for _, j := range jobs {
		b.step(&Submit{Token: j.ID.Lo, Job: j})
		if err := b.answers[j.ID.Lo].(*Submitted).Err; err != nil {
			b.t.Fatalf("job %d: %v", j.ID.Lo, err)
		}
	}
}

// running returns the task of a job that runs.
func (b *bench) running(n uint64) grid.Task {
	b.t.Helper()
	b.want(n, Running)
	for i := len(b.started) - 1; i >= 0; i-- {
		if b.started[i].ID.Job.Lo == n {
			return b.started[i]
		}
	}
	b.t.Fatalf("job %d was not started", n)
	return grid.Task{}
}

func (b *bench) finish(n uint64, code int32) {
	b.t.Helper()
	task := b.running(n)
	b.now += 20 * grid.Second
	b.step(b.ended(task, code))
}

func roomy(c *Config) { c.Limits.PerUser, c.Limits.Jobs, c.Limits.Finished = 50, 100, 50 }

func TestJobsRunAfterOthers(t *testing.T) {
	b := newBench(t, roomy)
	b.submit(b.job(1, 1), b.chained(2, grid.AfterOK, 1), b.chained(3, grid.AfterNotOK, 1), b.chained(4, grid.AfterAny, 1, 2))
	if v := b.want(2, Waiting); v.WaitsFor != after.Dependent || v.Reason == "" {
		t.Errorf("it waits for %q: %s", v.WaitsFor, v.Reason)
	}
	adopted := &Adopted{ID: b.running(1).ID, Start: b.now}
	task := b.running(1)
	b.crash(adopted) // while they wait
	b.started = append(b.started, task)
	b.finish(1, 0)
	b.want(2, Running)
	if v := b.want(3, Waiting); v.WaitsFor != after.NeverMet {
		t.Errorf("it waits for %q: %s", v.WaitsFor, v.Reason)
	}
	b.want(4, Waiting)
	b.finish(2, 1)
	b.want(4, Running)
	b.step(&Cancel{Job: grid.JobID{Lo: 3}, Cause: "no"})
	b.want(3, CancelledByUser)
}

// TestBegunBeforeARestart: a job that waits for the beginning of one, and for the end of another, goes
// when that ends, also if the daemon has come up anew in between.
func TestBegunBeforeARestart(t *testing.T) {
	b := newBench(t, roomy)
	waits := b.chained(3, grid.AfterOK, 1, 2)
	waits.Terms.After[0].Condition = grid.After
	b.submit(b.job(1, 1), b.job(2, 1), waits)
	one, two := b.running(1), b.running(2)
	b.crash(&Adopted{ID: one.ID, Start: b.now}, &Adopted{ID: two.ID, Start: b.now})
	b.started = append(b.started, one, two)
	b.want(3, Waiting)
	b.finish(2, 0)
	b.want(1, Running)
	b.want(3, Running)
}

// TestEndIsDurableWithWhatItMeans: a crash between the end of a job and the next turn, at
// which those that depend on it would go, changes nothing, also where the job is not kept.
func TestEndIsDurableWithWhatItMeans(t *testing.T) {
	b := newBench(t, func(c *Config) { roomy(c); c.Limits.Finished = 0 })
	dropped := b.chained(2, grid.AfterOK, 1)
	dropped.Terms.Drop = true
	b.submit(b.job(1, 1), dropped, b.chained(3, grid.AfterNotOK, 1), b.chained(4, grid.AfterOK, 1))
	end := b.ended(b.running(1), 5)
	b.site.Step(b.now, end, &b.out)
	b.carryOut()
	b.crash()
	b.want(3, Running)
	if v := b.want(4, Waiting); v.WaitsFor != after.NeverMet {
		t.Errorf("after the crash it waits for %q", v.WaitsFor)
	}
	if _, there := b.site.Job(grid.JobID{Lo: 2}); there {
		t.Error("what can never run, and was to be dropped then, is there still")
	}
}

func TestDependencyOnNobody(t *testing.T) {
	b := newBench(t, roomy)
	for n, j := range []*grid.Job{b.chained(7, grid.AfterOK, 99), b.chained(8, grid.AfterOK, 8)} {
		b.step(&Submit{Token: uint64(n + 1), Job: j})
		if err := b.answers[uint64(n+1)].(*Submitted).Err; !errors.Is(err, ErrInvalid) {
			t.Errorf("job %d: %v", n, err)
		}
	}
}

func TestHoldReleaseAndRequeue(t *testing.T) {
	b := newBench(t, roomy)
	held := b.job(1, 4)
	held.Terms = &grid.Terms{Held: true}
	b.submit(held, b.job(2, 4), b.job(3, 4))
	b.want(1, Waiting)
	b.step(&Hold{Token: 50, Job: grid.JobID{Lo: 3}}) // out of the queue
	b.want(3, Waiting)
	task := b.running(2)
	b.crash(&Adopted{ID: task.ID, Start: b.now})
	b.started = append(b.started, task)
	b.step(&Hold{Token: 51, Job: grid.JobID{Lo: 2}})
	if err := b.answers[51].(*Changed).Err; !errors.Is(err, ErrState) {
		t.Errorf("a running job is held: %v", err)
	}
	b.step(&Requeue{Token: 52, Job: grid.JobID{Lo: 2}, Cause: "again"})
	b.want(2, Cancelling)
	b.now += grid.Second
	b.step(b.ended(task, 143))
	again := b.running(2)
	if v := b.want(2, Running); v.Job.Restarts != 1 || again.ID.Epoch <= task.ID.Epoch {
		t.Errorf("restarted %d times, epoch %d after %d", v.Job.Restarts, again.ID.Epoch, task.ID.Epoch)
	}
	b.step(&Hold{Job: grid.JobID{Lo: 1}, Release: true}, &Hold{Job: grid.JobID{Lo: 3}, Release: true})
	b.want(1, Queued)
	b.finish(2, 0)
	b.finish(1, 0)
	b.finish(3, 0)
	b.want(3, Done)
	b.step(&Requeue{Token: 53, Job: grid.JobID{Lo: 3}})
	if err := b.answers[53].(*Changed).Err; !errors.Is(err, ErrState) {
		t.Errorf("a job that is over runs again: %v", err)
	}
}

// TestReleaseOutlivesACrash: so does a hold, of what waits for something else besides.
func TestReleaseOutlivesACrash(t *testing.T) {
	for _, release := range []bool{false, true} {
		b := newBench(t, roomy)
		b.submit(b.job(1, 4), b.chained(2, grid.AfterAny, 1))
		b.step(&Hold{Job: grid.JobID{Lo: 2}})
		if release {
			b.step(&Hold{Job: grid.JobID{Lo: 2}, Release: true})
		}
		task := b.running(1)
		b.crash(&Adopted{ID: task.ID, Start: b.now})
		b.now += 20 * grid.Second
		b.step(b.ended(task, 0))
		want := Waiting
		if release {
			want = Running
		}
		b.want(2, want)
	}
}

func TestCancelWinsOverRequeue(t *testing.T) {
	b := newBench(t, roomy)
	b.submit(b.job(1, 1))
	b.step(&Requeue{Job: grid.JobID{Lo: 1}, Cause: "again"}, &Cancel{Job: grid.JobID{Lo: 1}, Cause: "no"})
	ended := b.ended(b.started[0], 143)
	ended.Result.Reason = "again" // for which it was killed
	b.step(ended)
	if v := b.want(1, CancelledByUser); v.Reason != "no" {
		t.Errorf("it is cancelled as %q, want what its user has said last", v.Reason)
	}
}

func TestRetriesAndBegin(t *testing.T) {
	b := newBench(t, roomy)
	j := b.job(1, 1)
	j.Terms = &grid.Terms{Retries: 2, Begin: b.now + grid.Hour}
	b.submit(j)
	if v := b.want(1, Waiting); v.WaitsFor != after.NotBefore || b.site.NextTimer() != j.Terms.Begin {
		t.Errorf("it waits for %q, and a tick is due at %d, want %d", v.WaitsFor, b.site.NextTimer(), j.Terms.Begin)
	}
	b.now = j.Terms.Begin
	b.step()
	b.finish(1, 3)
	b.crash()
	b.finish(1, 3)
	if v := b.want(1, Running); v.Job.Restarts != 2 {
		t.Errorf("restarted %d times", v.Job.Restarts)
	}
	b.finish(1, 3)
	b.want(1, Failed)
}

// TestBudgetIsOfAllRuns: a job that is run again has what is left of its budget, and is still the
// job that was submitted.
func TestBudgetIsOfAllRuns(t *testing.T) {
	b := newBench(t, roomy)
	j := b.job(1, 1)
	j.Terms, j.Budget = &grid.Terms{Retries: 1}, 100*grid.Credit
	b.submit(j)
	b.finish(1, 3)
	cost := grid.CostProcessorTime.Cost(b.cfg.Price, 1, 10*grid.Second)
	if v := b.want(1, Running); cost == 0 || v.Job.Budget != 100*grid.Credit-cost {
		t.Errorf("%v are left after %v of 100", v.Job.Budget, cost)
	}
	b.step(&Submit{Token: 9, Job: j})
	if a := b.answers[9].(*Submitted); !a.Known || a.Err != nil {
		t.Errorf("submitted again: %+v", a)
	}
	b.crash()
	b.finish(1, 3)
	if v := b.want(1, Failed); v.Job.Budget != 100*grid.Credit-cost {
		t.Errorf("%v are left at its end", v.Job.Budget)
	}
}

func TestOnceIsNotRunAgain(t *testing.T) {
	b := newBench(t, roomy)
	j := b.job(1, 1)
	j.Terms = &grid.Terms{Once: true}
	b.submit(j)
	b.step(&grid.TaskEnded{ID: b.running(1).ID, Lost: true})
	if v := b.want(1, Failed); v.Reason != causeOnce {
		t.Errorf("reason %q", v.Reason)
	}
}

func TestArrayRunsFewAtATime(t *testing.T) {
	b := newBench(t, roomy)
	b.cfg.Numbers = true
	b.boot()
	var tasks []*grid.Job
	for i := range int64(6) {
		j := b.job(uint64(10+i), 1)
		j.Name = fmt.Sprintf("a[%d]", i)
		j.Array = &grid.Array{ID: grid.JobID{Hi: 7}, Index: i, Count: 6, Max: 5, Step: 1, Most: 2}
		tasks = append(tasks, j)
	}
	b.submit(tasks...)
	last := b.job(20, 1)
	last.Terms = &grid.Terms{After: []grid.Dependency{{Condition: grid.AfterOK, Job: grid.JobID{Hi: 7}}}}
	b.submit(last)
	for i := range uint64(6) {
		b.want(10+i, Running)
		if i < 4 {
			b.want(12+i, Waiting)
		}
		b.want(20, Waiting)
		b.finish(10+i, 0)
	}
	b.want(20, Running)
	numbers := map[uint64]bool{}
	for n := range uint64(6) {
		v, _ := b.site.Job(grid.JobID{Lo: 10 + n})
		if v.Job.Array.Number != tasks[0].Number || numbers[v.Job.Number] || v.Job.Number == 0 {
			t.Errorf("job %d of array %d", v.Job.Number, v.Job.Array.Number)
		}
		numbers[v.Job.Number] = true
	}
	b.crash()
	b.submit(b.job(30, 1))
	if v, _ := b.site.Job(grid.JobID{Lo: 30}); v.Job.Number <= 7 {
		t.Errorf("number %d was given before", v.Job.Number)
	}
}
