package after

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
	"gridnode/node/quota"
)

// TestLimitsAgainstNaive: whatever happens, no user has more than his limits say, and none has
// a job wait that is the first of his to go and would fit.
func TestLimitsAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawLimits(t)
		desk := quota.NewDesk(cfg, func(j *grid.Job) grid.Credits { return j.Budget })
		w, g, now := newWard(), NewGate(desk), grid.Time(1000)
		some := func(state string) *grid.Job {
			list := slices.DeleteFunc(slices.Clone(w.jobs), func(j *grid.Job) bool { return w.state[j.ID] != state })
			if len(list) == 0 {
				return nil
			}
			return rapid.SampledFrom(list).Draw(t, state)
		}
		for n := range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += grid.Time(rapid.Int64Range(0, int64(grid.Hour)).Draw(t, "pause"))
			switch do := rapid.IntRange(0, 7).Draw(t, "do"); {
			case do <= 3:
				j := drawJob(t, uint64(n+1), now)
				turn := TurnOf(j)
				w.jobs, w.turns[j.ID], w.state[j.ID] = append(w.jobs, j), &turn, "goes"
				waits := g.Waits(j)
				g.Enter(j, waits)
				if waits {
					w.state[j.ID] = "waits"
					g.Wait(j, &turn, w)
				}
			case do == 4 && some("waits") != nil:
				j := some("waits")
				if w.turns[j.ID].Held {
					g.Release(j.ID)
				} else {
					g.Hold(j.ID)
				}
			case do == 5 && some("waits") != nil:
				j := some("waits")
				w.state[j.ID] = "badly"
				g.Leave(j, false)
			case do == 6:
				cfg = drawLimits(t)
				desk.Configure(cfg)
				g.Relimit()
			case some("goes") != nil:
				j := some("goes")
				w.state[j.ID] = "well"
				var out grid.Outbox
				desk.Spent(now, j.User, j.Budget, &out)
				g.Leave(j, true)
			}
			for id, verdict, more := g.Next(now); more; id, verdict, more = g.Next(now) {
				j := w.of(id)[0]
				if verdict != Go || w.state[id] != "waits" {
					t.Fatalf("%v goes, %d", id, verdict)
				}
				w.state[id] = "goes"
				w.mustFit(t, desk, cfg, now, j)
			}
			if err := g.Audit(0, w.going); err != nil {
				t.Fatal(err)
			}
			for _, user := range []string{"ann", "ben"} {
				w.mustNotStall(t, g, desk, now, user)
			}
		}
	})
}

func drawLimits(t *rapid.T) quota.Config {
	limits := quota.Limits{
		Running: rapid.SampledFrom([]int64{0, 1, 3}).Draw(t, "running"), Processors: rapid.SampledFrom([]int64{0, 2, 5}).Draw(t, "processors"),
		Spend: rapid.SampledFrom([]quota.Spend{{}, {Credits: 10, Span: 5 * grid.Hour}}).Draw(t, "spend"),
	}
	return quota.Config{Everyone: limits, Users: map[string]quota.Limits{"ben": {Running: 2}}}
}

func drawJob(t *rapid.T, n uint64, now grid.Time) *grid.Job {
	j := &grid.Job{
		ID: grid.JobID{Lo: n}, User: rapid.SampledFrom([]string{"ann", "ben"}).Draw(t, "user"), Submit: now,
		Resources: grid.Resources{Processors: rapid.Int64Range(1, 3).Draw(t, "processors")}, Budget: grid.Credits(rapid.Int64Range(0, 6).Draw(t, "cost")),
	}
	if rapid.IntRange(0, 4).Draw(t, "array") == 0 {
		j.Array = &grid.Array{ID: grid.JobID{Hi: 1, Lo: uint64(len(j.User))}, Index: int64(n), Most: 1}
		j.User, j.Processors, j.Budget = "ann", 1, 1 // the jobs of an array are alike
	}
	return j
}

// mustFit fails if a user who was just let go has more than he may.
func (w *ward) mustFit(t *rapid.T, desk *quota.Desk, cfg quota.Config, now grid.Time, j *grid.Job) {
	var running, processors int64
	var cost grid.Credits
	for _, o := range w.jobs {
		if o.User == j.User && w.state[o.ID] == "goes" {
			running, processors, cost = running+1, processors+o.Processors, cost+o.Budget
		}
	}
	l, use := cfg.Of(j.User), desk.Use(now, j.User)
	if use.Running != running || use.Processors != processors || use.Held != cost {
		t.Fatalf("counted %+v, there are %d jobs on %d processors for %d", use, running, processors, cost)
	}
	if l.Running > 0 && running > l.Running || l.Processors > 0 && processors > l.Processors || l.Spend.Span > 0 && cost+use.Spent > l.Spend.Credits {
		t.Fatalf("%s has %d jobs on %d processors for %d, has spent %d, and may have %+v", j.User, running, processors, cost, use.Spent, l)
	}
}

// mustNotStall fails if a job waits that nothing keeps from going.
func (w *ward) mustNotStall(t *rapid.T, g *Gate, desk *quota.Desk, now grid.Time, user string) {
	for _, j := range w.jobs {
		if j.User != user || w.state[j.ID] != "waits" {
			continue
		}
		why, text := g.Why(j.ID)
		switch {
		case why == "" || text == "":
			t.Fatalf("%v waits for nothing: %q", j.ID, text)
		case why == Held || why == ArrayFull || desk.Never(j):
			continue // who comes next may go
		case desk.Full(now, j) == "":
			t.Fatalf("%v waits for %q, and it is the first of %s that may go", j.ID, why, user)
		}
		if at := g.NextTimer(); why == UserSpend && (at <= now || at == grid.Never && desk.Use(now, user).Held == 0) {
			t.Fatalf("%v waits for %q until %v", j.ID, fmt.Sprint(why), at)
		}
		return
	}
}

// TestEarlierJobFirst: who waits only as an earlier job of the user does is told which one that is.
func TestEarlierJobFirst(t *testing.T) {
	desk := quota.NewDesk(quota.Config{Everyone: quota.Limits{Processors: 5}}, func(*grid.Job) grid.Credits { return 0 })
	w, g := newWard(), NewGate(desk)
	for i, processors := range []int64{4, 3, 1} {
		j := &grid.Job{ID: grid.JobID{Lo: uint64(i + 1)}, User: "ann", Submit: grid.Time(i), Resources: grid.Resources{Processors: processors}}
		turn := TurnOf(j)
		w.jobs, w.turns[j.ID], w.state[j.ID] = append(w.jobs, j), &turn, "goes"
		g.Enter(j, true)
		g.Wait(j, &turn, w)
		if id, _, more := g.Next(10); more != (i == 0) {
			t.Fatalf("once job %d has come %v goes: %v", i+1, id, more)
		}
	}
	const earlier = "an earlier job waits for the same"
	for n, want := range map[uint64]bool{2: false, 3: true} {
		if why, text := g.Why(grid.JobID{Lo: n}); why != UserProcessors || strings.Contains(text, earlier) != want {
			t.Errorf("job %d: %q, %s", n, why, text)
		}
	}
}
