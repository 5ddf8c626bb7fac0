package chaos

import (
	"context"
	"errors"
	"flag"
	"testing"

	"gridnode/grid"
	"gridnode/market"
	"gridnode/market/keepalive"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/federation"
)

var aliveRuns = flag.Int("alive-runs", 12, "seeded runs of sites that lose sight of each other")

// aliveChaos is a small federation that is cut in two again and again, with clocks as
// wrong as they may be, and few messages lost besides.
func aliveChaos(seed uint64) Config {
	cfg := Default()
	pcg := draw.PCG(seed, "alive", draw.ForFaults)
	cfg.Seed, cfg.Sites, cfg.Hours, cfg.Lend = seed, 4+int(draw.Uniform(pcg, 3)), 4, false
	cfg.Faults = "reorder=0.05,drift=1000,daemon=0.5,machine=1,partition=8"
	return cfg
}

// TestAlive: executions of which their homes hear nothing end in time, those of which they
// hear go on, and neither a cut nor a machine that dies is a job's fault.
func TestAlive(t *testing.T) {
	var lapsed int64
	for seed := range uint64(*aliveRuns) {
		r, err := Run(context.Background(), aliveChaos(seed))
		if err != nil {
			t.Fatal(err)
		}
		lapsed += r.Config.(*chaosReport).Lapsed
	}
	t.Logf("%d executions were not renewed", lapsed)
	if lapsed < int64(*aliveRuns) {
		t.Errorf("%d executions were not renewed in %d runs: too few to mean anything", lapsed, *aliveRuns)
	}
}

// TestDeadSite: the job of a site that dies for good begins elsewhere within three minutes,
// and home says meanwhile that it runs.
func TestDeadSite(t *testing.T) {
	var watch *testnet.Checker
	f := federation.Builder{
		Config: testnet.Config{
			Seed: 1, Inputs: scenario.Inputs(), Durable: true, Link: testnet.Link{LatencyMin: 5 * grid.Millisecond, LatencyMax: 50 * grid.Millisecond},
			Check: func(now grid.Time) error { return watch.Violation(now) },
		},
		Placement: market.PlacementCoordinated, Foreign: true, Sites: chaosSites(4), Retention: grid.Day,
		Tell: func(_ int, c *site.Config) { c.Market.Lease = keepalive.Default },
	}
	const home = 3
	f.Sites[home].Price *= 4 // so it goes elsewhere
	n, err := f.Build()
	if err != nil {
		t.Fatal(err)
	}
	watch = testnet.Check(n, f.Processors(), scenario.Submission)
	var dead int
	var died, again grid.Time
	n.Observe(testnet.Observer{Start: func(now grid.Time, x *testnet.Execution) {
		switch {
		case died == 0 && x.Site == home:
			t.Error("the job runs at home, so nothing is tried")
		case died == 0:
			dead, died = x.Site, now+20*grid.Minute
			if err := n.Schedule(testnet.Fault{Kind: testnet.FaultMachine, Sites: []int{dead}, At: died, For: grid.Never}); err != nil {
				t.Fatal(err)
			}
		case again == 0:
			again = now
			if x.Site == dead {
				t.Error("it begins again at the site that is dead")
			}
		}
	}})
	id := grid.JobID{Lo: 1}
	n.Inject(federation.Warmup, home, &site.Submit{Job: &grid.Job{
		ID: id, Home: n.ID(home), User: "u", Resources: grid.Resources{Processors: 1}, Tasks: 1, Submit: federation.Warmup, Estimate: 20 * grid.Hour,
		Work: grid.WorkOf(20*grid.Hour, 0, f.Sites[home].Rating), Deadline: grid.Never, Budget: grid.NoBudget, Goal: grid.GoalCost, RunTime: grid.Hour,
	}})
	n.Call(federation.Warmup+grid.Minute, home, func() {
		if v, _ := n.Core(home).(*site.Site).Job(id); v.State != site.Running || v.Start == 0 {
			t.Errorf("home says that it is %v since %v, want running", v.State, v.Start)
		}
	})
	if err := n.Run(context.Background(), 5*grid.Hour, nil); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(watch.AtRest()); err != nil {
		t.Error(err)
	}
	t.Logf("it began again %v after its site had died", again-died)
	if again == 0 || again-died > 3*grid.Minute {
		t.Errorf("it began again at %v, its site died at %v", again, died)
	}
}

// TestDeathsTogether: what a site finds within moments vanished in one death of its machine.
func TestDeathsTogether(t *testing.T) {
	w := &aliveWatch{down: make(map[int]int), deaths: make(map[int][]death), gone: make(map[int][]grid.JobID), latest: make(map[int]finding), again: make(map[int]bool), died: make(map[grid.JobID]int), lent: make(map[grid.JobID]bool)}
	job := func(n uint64) grid.JobID { return grid.JobID{Lo: n} }
	die := func(now grid.Time, jobs ...uint64) {
		w.down[0] = 1
		for _, n := range jobs {
			w.vanished(now, &testnet.Execution{ID: grid.TaskID{Job: job(n)}, Job: &grid.Job{ID: job(n)}})
		}
		w.down[0] = 0
		w.found(now.Add(grid.Second), 0)
	}
	die(0, 1, 2)
	die(5*grid.Second, 3) // before any other could begin again
	die(grid.Minute, 1)
	die(2*grid.Minute, 2)
	for n, want := range map[uint64]int{1: 2, 2: 1, 3: 1} {
		if most, least := w.suspicions(job(n)); most != want || least != want {
			t.Errorf("%d to %d deaths speak against job %d, want %d", least, most, n, want)
		}
	}
}

// TestDeathAtAStart: a site that dies as it finds what has vanished may find it once more.
func TestDeathAtAStart(t *testing.T) {
	w := &aliveWatch{down: make(map[int]int), deaths: make(map[int][]death), gone: make(map[int][]grid.JobID), latest: make(map[int]finding), again: make(map[int]bool), died: make(map[grid.JobID]int)}
	id := grid.JobID{Lo: 1}
	w.down[0] = 1
	w.vanished(0, &testnet.Execution{ID: grid.TaskID{Job: id}, Job: &grid.Job{ID: id}})
	for range 3 {
		w.down[0] = 0
		w.found(grid.Second, 0)
		w.unfound(grid.Second, 0)
	}
	w.found(2*grid.Second, 0)
	if most, least := w.suspicions(id); most < 2 || least != 1 {
		t.Errorf("%d to %d deaths speak against the job, want 1 to more than that", least, most)
	}
}

// TestDeathAsItIsNoted: of what vanished in one death a site may have noted a part only when it dies
// once more, which then speaks for the others.
func TestDeathAsItIsNoted(t *testing.T) {
	one, two := grid.JobID{Lo: 1}, grid.JobID{Lo: 2}
	w := &aliveWatch{deaths: map[int][]death{0: {
		{at: 1, jobs: map[grid.JobID]bool{one: true, two: true}, unsure: true},
		{at: 2, jobs: map[grid.JobID]bool{one: true, two: true}},
		{at: 3, jobs: map[grid.JobID]bool{one: true}},
	}}}
	if most, least := w.suspicions(one); most != 3 || least != 0 {
		t.Errorf("%d to %d deaths speak against the job, want 0 to 3", least, most)
	}
}

// TestPoison: jobs that take machines down each time are given up, and others go on.
func TestPoison(t *testing.T) {
	cfg := Default()
	cfg.Seed, cfg.Sites, cfg.Hours, cfg.Features, cfg.Faults = 1, 4, 4, "poison=0.05", "none"
	given, done := 0, 0
	cfg.Watch = func(n *testnet.Network, _ *testnet.Checker) {
		n.Observe(testnet.Observer{Event: func(_ grid.Time, _ int, e *grid.Event) {
			switch {
			case e.Kind == grid.JobFinished && e.Text == vanished:
				given++
			case e.Kind == grid.JobFinished:
				done++
			}
		}})
	}
	if _, err := Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if given == 0 || done == 0 {
		t.Errorf("%d jobs were given up and %d not: want some of each", given, done)
	}
}
