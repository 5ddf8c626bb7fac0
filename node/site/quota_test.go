package site

import (
	"errors"
	"testing"

	"gridnode/grid"
	"gridnode/node/after"
	"gridnode/node/quota"
)

func limited(l quota.Limits) func(*Config) {
	return func(c *Config) { roomy(c); c.Users = &quota.Config{Everyone: l} }
}

func (b *bench) of(user string, n uint64, processors int64) *grid.Job {
	j := b.job(n, processors)
	j.User = user
	return j
}

// TestUsersWaitForTheirLimits: over a limit a job waits and says why, also after a restart and
// whatever the limits become; another user's goes.
func TestUsersWaitForTheirLimits(t *testing.T) {
	b := newBench(t, limited(quota.Limits{Jobs: 3, Processors: 2}))
	b.submit(b.job(1, 2), b.job(2, 1), b.job(3, 1), b.of("ben", 4, 1))
	for n, want := range map[uint64]State{1: Running, 2: Waiting, 3: Waiting, 4: Running} {
		b.want(n, want)
	}
	if v := b.want(2, Waiting); v.WaitsFor != after.UserProcessors || v.Reason == "" {
		t.Errorf("it waits for %q: %s", v.WaitsFor, v.Reason)
	}
	for n, j := range []*grid.Job{b.job(5, 1), b.of("ben", 6, 3)} {
		b.step(&Submit{Token: uint64(60 + n), Job: j})
		if err := b.answers[uint64(60+n)].(*Submitted).Err; !errors.Is(err, quota.ErrLimit) {
			t.Errorf("over a bound: %v", err)
		}
	}
	tasks := []grid.Task{b.running(1), b.running(4)}
	b.crash(&Adopted{ID: tasks[0].ID, Start: b.now}, &Adopted{ID: tasks[1].ID, Start: b.now})
	b.started = tasks
	b.want(2, Waiting)
	b.step(&ConfigureUsers{Token: 70, Config: quota.Config{Everyone: quota.Limits{Processors: 3}}})
	b.want(2, Running)
	if v := b.want(3, Waiting); v.WaitsFor != after.UserProcessors {
		t.Errorf("it waits for %q", v.WaitsFor)
	}
	b.step(&Hold{Job: grid.JobID{Lo: 3}})
	b.finish(1, 0)
	b.want(3, Waiting)
	b.step(&Hold{Job: grid.JobID{Lo: 3}, Release: true})
	b.want(3, Running)
	for _, u := range b.site.Users(b.now, "eve") {
		if want := map[string]int64{"ann": 2, "ben": 1, "eve": 0}[u.User]; u.Jobs != want || u.Running != want || u.Processors != want {
			t.Errorf("%+v, want %d", u, want)
		}
	}
}

// TestSpendingOfUsers is counted in the commit of the end, once, and lets jobs go as it falls
// behind.
func TestSpendingOfUsers(t *testing.T) {
	price := grid.Price(grid.Credit) // for an hour of a processor: 100 s on one cost 27778
	b := newBench(t, limited(quota.Limits{Spend: quota.Spend{Credits: 60_000, Span: grid.Day}}))
	b.submit(b.job(1, 1), b.job(2, 1), b.job(3, 1))
	b.want(2, Running)
	if v := b.want(3, Waiting); v.WaitsFor != after.UserSpend {
		t.Errorf("it waits for %q: %s", v.WaitsFor, v.Reason)
	}
	first, second := b.running(1), b.running(2)
	end := &grid.TaskEnded{ID: first.ID, Result: grid.Result{Start: b.now, End: b.now + 90*grid.Second}}
	b.now += 90 * grid.Second
	b.site.Step(b.now, end, &b.out)
	b.carryOut()
	b.crash(&Adopted{ID: second.ID, Start: b.now - 90*grid.Second}, end) // the end is told again
	spent := grid.CostProcessorTime.Cost(price, 1, 90*grid.Second)
	if u := b.site.Users(b.now, "ann"); len(u) != 1 || u[0].Spent != spent || u[0].Total != spent {
		t.Fatalf("after a restart %+v, want %d spent", u, spent)
	}
	b.want(3, Waiting)
	b.step(&grid.TaskEnded{ID: second.ID, Result: grid.Result{Start: b.now - 90*grid.Second, End: b.now}})
	b.want(3, Waiting) // 25000 twice, and 27778
	if at := b.site.NextTimer(); at > b.now+grid.Day {
		t.Fatalf("the site sleeps until %v", at)
	}
	b.now += grid.Day
	b.step()
	b.want(3, Running)
}

// TestFallenPriceLetsJobsGo: what costs less now is within the limit, whether it had to wait for its
// user's other jobs or was too dear alone.
func TestFallenPriceLetsJobsGo(t *testing.T) {
	for _, dear := range []grid.Price{2 * grid.Price(grid.Credit), 4 * grid.Price(grid.Credit)} {
		b := newBench(t, limited(quota.Limits{Spend: quota.Spend{Credits: 60_000, Span: grid.Day}}))
		late := b.job(2, 1) // 27778 at the first price
		late.Terms = &grid.Terms{Begin: b.now + grid.Hour}
		b.submit(b.job(1, 1), late)
		b.step(&SetPrice{Token: 80, Price: dear})
		b.now += grid.Hour
		b.step()
		if v := b.want(2, Waiting); v.WaitsFor != after.UserSpend {
			t.Fatalf("at %d it waits for %q: %s", dear, v.WaitsFor, v.Reason)
		}
		b.step(&SetPrice{Token: 81, Price: grid.Price(grid.Credit)})
		b.want(2, Running)
	}
}

// TestRunsThatAreRepeatedAreSpent: each execution counts.
func TestRunsThatAreRepeatedAreSpent(t *testing.T) {
	b := newBench(t, limited(quota.Limits{}))
	j := b.job(1, 1)
	j.Terms = &grid.Terms{Retries: 1}
	b.submit(j)
	b.finish(1, 1)
	b.finish(1, 1)
	b.want(1, Failed)
	if u := b.site.Users(b.now, "ann"); u[0].Spent != 2*grid.CostProcessorTime.Cost(b.cfg.Price, 1, 10*grid.Second) {
		t.Errorf("%+v", u)
	}
}

// TestSharesOfUsers: of two users who have jobs wait all the time, each gets processors by his
// share, whoever came first; and who comes anew goes before those who have used much.
func TestSharesOfUsers(t *testing.T) {
	b := newBench(t, func(c *Config) {
		roomy(c)
		c.Users = &quota.Config{HalfLife: grid.Hour, Users: map[string]quota.Limits{"ben": {Share: 3}}}
	})
	n, ended := uint64(0), map[string]int{}
	come := func(user string) {
		n++
		b.submit(b.of(user, n, 1))
	}
	for range 10 {
		come("ann")
	}
	for range 10 {
		come("ben")
	}
	for at := range 400 { // four processors, and each job takes 100 s
		b.now += 25 * grid.Second
		task := b.started[at]
		b.step(&grid.TaskEnded{ID: task.ID, Result: grid.Result{Start: b.now - 100*grid.Second, End: b.now}})
		if at >= 40 {
			ended[task.Job.User]++
		}
		come(task.Job.User)
		if at == 200 {
			ran := b.started[at+1 : at+5]
			before := b.site.Users(b.now, "ann")
			b.crash(&Adopted{ID: ran[0].ID, Start: b.now - 75*grid.Second}, &Adopted{ID: ran[1].ID, Start: b.now - 50*grid.Second},
				&Adopted{ID: ran[2].ID, Start: b.now - 25*grid.Second}, &Adopted{ID: ran[3].ID, Start: b.now})
			if after := b.site.Users(b.now, "ann"); after[0].Lately != before[0].Lately || after[1].Lately != before[1].Lately {
				t.Errorf("before a crash %+v, after it %+v", before, after)
			}
			b.started = append(make([]grid.Task, at+1), append(ran, b.started...)...)
		}
	}
	if ended["ann"] < 85 || ended["ann"] > 95 || ended["ann"]+ended["ben"] != 360 {
		t.Errorf("of 360 jobs that ended %d were ann's, want a quarter", ended["ann"])
	}
	come("eve")
	b.now += 25 * grid.Second
	b.step(b.ended(b.started[400], 0))
	b.want(n, Running)
	if u := b.site.Users(b.now, "eve"); len(u) != 3 || u[1].Lately < 2*u[0].Lately || u[2].Lately != 0 {
		t.Errorf("%+v", u)
	}
}
