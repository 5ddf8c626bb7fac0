package delegation

import (
	"testing"

	"gridnode/grid"
	"gridnode/testnet/workload"
)

// TestFlockingWaitsForTheNextCycle: cycles in step, job managers in order. Where the target
// has no room, "the JM will have to wait for the target SM's next matchmaking cycle".
func TestFlockingWaitsForTheNextCycle(t *testing.T) {
	wide := []workload.Job{
		{Number: 1, Site: 1, Submit: grid.Second, RunTime: grid.Minute, Estimate: grid.Minute, Processors: 140},
		{Number: 2, Site: 1, Submit: grid.Hour, RunTime: grid.Minute, Estimate: grid.Minute, Processors: 1},
	}
	run := func(flocking, phase string) float64 {
		r := delegate(t, func(cfg *Config) {
			cfg.Architecture, cfg.Workload, cfg.Flocking, cfg.Phase = "fcondor", wide, flocking, phase
		})
		if r.Total.Finished != 1 {
			t.Fatalf("%d jobs finished, want the wide one", r.Total.Finished)
		}
		return r.Total.AWT.Float()
	}
	// Clusters 1 to 4 have 64 processors, 5 and 6 have 128, and 7 has 198: the seventh round.
	if got := run(FlockingOrder, PhaseStep); got != 7*300-1 {
		t.Errorf("in order and in step the job waits for %v s, want %v", got, 7*300-1)
	}
	if got := run(FlockingRandom, PhaseStep); int64(got+1)%300 != 0 || got == 7*300-1 {
		t.Errorf("to random sites in step it waits for %v s: want whole rounds, but not those in order", got)
	}
	if got := run(FlockingOrder, PhaseRandom); int64(got+1)%300 == 0 {
		t.Errorf("with rounds at random instants it waits for %v s, which are whole rounds", got)
	}
}

// TestSizesGiveThePapersJobs: "11827 jobs per set, on average" over the load levels (§5.3),
// of which the mean is 88.7 %.
func TestSizesGiveThePapersJobs(t *testing.T) {
	for _, tt := range []struct {
		sizes string
		want  float64 // jobs in a day at that load
	}{{SizesCluster, 21_680}, {SizesWide, 11_827}, {SizesUniform, 11_827}} {
		jobs := 0.0
		for _, processors := range clusterSizes {
			m := model(processors, 1153.0/1300, tt.sizes)
			if err := m.Check(); err != nil {
				t.Fatal(err)
			}
			jobs += m.Means().JobsPerDay
		}
		if jobs < 0.99*tt.want || jobs > 1.01*tt.want {
			t.Errorf("%s: %.0f jobs, want %.0f", tt.sizes, jobs, tt.want)
		}
	}
}
