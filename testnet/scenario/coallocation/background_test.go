package coallocation

import (
	"testing"

	"gridnode/grid"
)

// TestBackground: local users keep as much busy as they should, jobs of KOALA run beside
// them, and what was idle when it looked may be gone when it claims it.
func TestBackground(t *testing.T) {
	var jobs, failures, tries int64
	change := func(c *Config) {
		c.Policy, c.Utilization, c.Background, c.Hours, c.Poll = "fcm", 40, 20, 4, grid.Minute
		c.Ended = func(j Job) {
			jobs++
			failures, tries = failures+int64(j.Failures), tries+int64(j.Tries)
			if j.Failures >= j.Tries || len(j.Where) != j.Clusters {
				t.Errorf("a job went like this: %+v", j)
			}
		}
	}
	r := coallocated(t, change)
	most := r.Config.(*coallocationReport).Most.Float()
	if busy := Busy(r); busy < 14 || busy > 24 || most > 30 || most < busy {
		t.Errorf("local users keep %v %% busy and at most %v %%, want about 20, and never more than 30", busy, most)
	}
	var refused int64
	for _, s := range r.Sites {
		refused += s.Rejected
	}
	if failures < 5 || refused < failures || tries < jobs+failures {
		t.Errorf("%d jobs, %d placements tried, %d claims failed, %d components refused", jobs, tries, failures, refused)
	}
	if r.Total.Finished != r.Total.Submitted || r.Total.Finished != jobs {
		t.Errorf("%+v", r.Total)
	}
	often := failures
	again := coallocated(t, change)
	without := coallocated(t, func(c *Config) { change(c); c.Background = 0 })
	if again.TraceHash != r.TraceHash || without.TraceHash == r.TraceHash || Busy(without) != 0 {
		t.Errorf("trace hashes %s, %s and, without local users, %s", r.TraceHash, again.TraceHash, without.TraceHash)
	}
	failures = 0
	coallocated(t, func(c *Config) { change(c); c.Poll = 5 * grid.Second })
	if failures > often/2 {
		t.Errorf("%d claims fail where KOALA looks every five seconds, %d where it looks every minute", failures, often)
	}
}

// TestComponents: jobs get the components that were asked for, where they were asked for,
// and compute as fast as the slowest cluster.
func TestComponents(t *testing.T) {
	for components, want := range map[string]grid.Time{
		"16@leiden,16@vrije": 30 * grid.Second * 2600 / 2400, "16@leiden,16@amsterdam": 30 * grid.Second * 2600 / 2200, "32@leiden": 30 * grid.Second,
	} {
		ended := 0
		coallocated(t, func(c *Config) {
			c.Policy, c.Application, c.Components, c.Speeds, c.RunTime, c.Hours, c.Utilization = "wf", "prime", components, true, 30*grid.Second, 1, 2
			c.Ended = func(j Job) {
				ended++
				if j.End-j.Start != want || j.Processors != 32 {
					t.Errorf("%s: %d nodes for %v, want 32 for %v", components, j.Processors, j.End-j.Start, want)
				}
			}
		})
		if ended == 0 {
			t.Errorf("%s: no job has run", components)
		}
	}
	// Components that may run anywhere stay as they are, by wf and by cf.
	for _, policy := range []string{"wf", "cf"} {
		coallocated(t, func(c *Config) {
			c.Policy, c.Components, c.Hours = policy, "20,20,20,20", 2
			c.Ended = func(j Job) {
				if j.Processors != 80 || j.Clusters < 2 && policy == "wf" {
					t.Errorf("%s: %+v", policy, j)
				}
			}
		})
	}
}
