package coallocation

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
	"gridnode/testnet/simtest"
)

func coallocated(t *testing.T, change func(*Config)) *measure.Result {
	t.Helper()
	cfg := Default()
	change(&cfg)
	r, err := Run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestCoallocation: the figures of a run add up, and the same seed gives them again.
func TestCoallocation(t *testing.T) {
	var jobs, split int64
	var response grid.Time
	fcm := func(c *Config) {
		c.Policy, c.Utilization = "fcm", 80
		c.Ended = func(j Job) {
			jobs++
			response += j.End - j.Submit
			if j.Clusters > 1 {
				split++
			}
			if j.Placed < j.Submit || j.Start-j.Placed != c.Startup || j.End-j.Start < 180*grid.Second || j.Tries < 1 {
				t.Errorf("a job went like this: %+v", j)
			}
			if (j.Clusters > 1) != (j.End-j.Start > 180*grid.Second) && j.Clusters != 2 { // Amsterdam and MultimediaN cost nothing
				t.Errorf("on %d clusters it took %v", j.Clusters, j.End-j.Start)
			}
		}
	}
	r := coallocated(t, fcm)
	if r.Total.Submitted != jobs || r.Total.Finished != jobs || r.Total.Coallocated != split || split < jobs/10 || jobs < 3000 {
		t.Errorf("%d jobs, %d of them split; the result has %+v", jobs, split, r.Total)
	}
	if mean := response.Seconds() / float64(jobs); mean < r.Total.ResponseTime.Float()-0.01 || mean > r.Total.ResponseTime.Float()+0.01 {
		t.Errorf("mean response %v, the result has %v", mean, r.Total.ResponseTime)
	}
	var area float64
	for _, s := range r.Sites {
		area += s.SquashedArea.Float()
	}
	if total := r.Total.SquashedArea.Float(); area < total*0.9999 || area > total*1.0001 {
		t.Errorf("the clusters have used %v node-seconds, the jobs %v", area, total)
	}
	// Every component was held, claimed and released through the lease books, in two
	// messages each, and nothing but that: nobody competes, so nothing is refused.
	var components int64
	for _, s := range r.Sites {
		components += s.Submitted
		if s.Accepted != s.Submitted || s.Finished != s.Submitted || s.Local != s.Submitted || s.Submitted == 0 {
			t.Errorf("%s: %d components asked for, %d accepted, %d run, %d finished", s.Name, s.Submitted, s.Accepted, s.Local, s.Finished)
		}
	}
	sent := r.Messages.ByType
	for _, kind := range []string{"lease.request", "lease.grant", "lease.claim", "lease.release", "lease.released"} {
		if sent[kind] != components {
			t.Errorf("%d %s for %d components", sent[kind], kind, components)
		}
	}
	if sent["lease.renewed"] != components+sent["lease.renew"] || sent["lease.refuse"] != 0 || components < jobs+split {
		t.Errorf("%d components of %d jobs, messages %v", components, jobs, sent)
	}
	if u := r.Total.Utilization.Float(); u < 0.79 || u > 0.90 {
		t.Errorf("observed utilization %v at a net one of 0.8", u)
	}
	again := coallocated(t, func(c *Config) { c.Policy, c.Utilization = "fcm", 80 })
	other := coallocated(t, func(c *Config) { c.Policy, c.Utilization, c.Seed = "fcm", 80, 2 })
	if again.TraceHash != r.TraceHash || other.TraceHash == r.TraceHash {
		t.Errorf("trace hashes %s, %s and, with another seed, %s", r.TraceHash, again.TraceHash, other.TraceHash)
	}
}

// "In the experiments in which no co-allocation is employed, the workloads are
// scheduled with the WF policy": then net and observed utilization coincide.
func TestWithoutCoallocation(t *testing.T) {
	r := coallocated(t, func(c *Config) { c.Policy, c.Application, c.Utilization = "wf", "wave", 50 })
	if u := r.Total.Utilization.Float(); r.Total.Coallocated != 0 || u < 0.48 || u > 0.52 {
		t.Errorf("%d jobs are split, the utilization is %v", r.Total.Coallocated, u)
	}
}

// The limit of clusters is kept, and files cost startup unless cf goes to them.
func TestCoallocationOptions(t *testing.T) {
	coallocated(t, func(c *Config) {
		c.Policy, c.Utilization, c.MaxClusters, c.Hours = "fcm", 80, 2, 6
		c.Ended = func(j Job) {
			if j.Clusters > 2 {
				t.Errorf("a job runs on %d clusters", j.Clusters)
			}
		}
	})
	mean := map[string]float64{}
	for _, policy := range []string{"fcm", "cf"} {
		r := coallocated(t, func(c *Config) {
			c.Policy, c.Utilization, c.InputBytes, c.Hours, c.Application = policy, 20, 10<<30, 6, "prime"
		})
		mean[policy] = r.Total.ResponseTime.Float()
	}
	if mean["cf"] > mean["fcm"]-15 {
		t.Errorf("with 10 GiB of input the mean response is %v s by cf and %v by fcm", mean["cf"], mean["fcm"])
	}
	patient := coallocated(t, func(c *Config) { c.Policy, c.Utilization, c.Patience = "fcm", 95, 10*grid.Minute })
	impatient := coallocated(t, func(c *Config) { c.Policy, c.Utilization = "fcm", 95 })
	if patient.TraceHash == impatient.TraceHash {
		t.Error("patience changes nothing")
	}
}

// TestAdaptiveBeatsBoth: adaptive is at least as good as the better of WF and FCM, in
// mean response within 2 %, whatever the load and the communication.
func TestAdaptiveBeatsBoth(t *testing.T) {
	simtest.Alone(t)
	for _, application := range []string{"ccr=0.1", "ccr=0.5", "wave"} {
		for _, utilization := range []float64{60, 85} {
			mean := map[string]float64{}
			for _, policy := range []string{"wf", "fcm", "adaptive"} {
				for seed := range uint64(3) {
					r := coallocated(t, func(c *Config) {
						c.Policy, c.Application, c.Utilization, c.Seed = policy, application, utilization, seed+1
					})
					mean[policy] += r.Total.ResponseTime.Float() / 3
				}
			}
			if best := min(mean["wf"], mean["fcm"]); mean["adaptive"] > best*1.02 {
				t.Errorf("%s at %v %%: mean response %v", application, utilization, mean)
			}
		}
	}
}

func TestCoallocationRefusals(t *testing.T) {
	for _, tt := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Policy = "best" }, "--policy"},
		{func(c *Config) { c.Application = "ccr=-1" }, "--application"},
		{func(c *Config) { c.Application = "ccr=NaN" }, "--application"},
		{func(c *Config) { c.Application = "lu" }, "--application"},
		{func(c *Config) { c.Utilization = 0 }, "--utilization"},
		{func(c *Config) { c.Background = 0.2 }, "--background"},
		{func(c *Config) { c.Background = 61 }, "--background"},
		{func(c *Config) { c.Poll = 0 }, "--poll"},
		{func(c *Config) { c.RunTime = -1 }, "--run-time"},
		{func(c *Config) { c.Components = "8,x" }, "--components"},
		{func(c *Config) { c.Components = "40@leiden" }, "--components"},
		{func(c *Config) { c.Without = "" }, "--without"},
		{func(c *Config) { c.MaxClusters = -1 }, "--max-clusters"},
		{func(c *Config) { c.Sizes = nil }, "--sizes"},
		{func(c *Config) { c.Sizes = []int64{300} }, "--sizes"},
		{func(c *Config) { c.Sizes, c.Policy = []int64{86}, "wf" }, "wf places no job of 86 nodes"},
		{func(c *Config) { c.Hours = 0 }, "--hours"},
		{func(c *Config) { c.Startup = -1 }, "--startup"},
		{func(c *Config) { c.Interval = 0 }, "--interval"},
		{func(c *Config) { c.Patience = -1 }, "--patience"},
		{func(c *Config) { c.Group = grid.Minute }, "--latency-group"},
		{func(c *Config) { c.InputBytes = -1 }, "--input-size"},
	} {
		cfg := Default()
		tt.change(&cfg)
		if _, err := Run(context.Background(), cfg); !errors.Is(err, scenario.ErrConfig) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want one about %s", err, tt.want)
		}
	}
}

// TestLeasesOutlastSlowJobs: what communicates most over the slowest ways, those to
// Delft, takes five times as long, and keeps its nodes until its end.
func TestLeasesOutlastSlowJobs(t *testing.T) {
	var slowest grid.Time
	r := coallocated(t, func(c *Config) {
		c.Policy, c.Application, c.Utilization, c.Without, c.Sizes, c.Hours = "fcm", "wave", 80, "leiden", []int64{32, 48, 64}, 6
		c.Ended = func(j Job) { slowest = max(slowest, j.End-j.Start) }
	})
	if r.Total.Finished != r.Total.Submitted || slowest < 900*grid.Second {
		t.Errorf("%d of %d jobs have ended, the slowest after %v: want all, and 900 s at least", r.Total.Finished, r.Total.Submitted, slowest)
	}
}

// TestTasksOnPilots: that all tasks of a job start together, each on its pilot, changes no
// figure of the scenario.
func TestTasksOnPilots(t *testing.T) {
	run := func(ranks bool) *measure.Result {
		return coallocated(t, func(c *Config) {
			c.Policy, c.Utilization, c.Hours, c.ranks = "fcm", 80, 3, ranks
		})
	}
	whole, tasks := run(false), run(true)
	if whole.Total != tasks.Total || whole.Total.Coallocated == 0 {
		t.Errorf("all together %+v\nby their tasks %+v", whole.Total, tasks.Total)
	}
	if tasks.Events <= whole.Events {
		t.Errorf("%d events by tasks, %d without: nobody started tasks", tasks.Events, whole.Events)
	}
}
