package lease_test

import (
	"fmt"
	"iter"
	"slices"

	"gridnode/grid"
	"gridnode/lease"
)

// A delegation policy of one's own: when to ask, for which job, and for how much. This one
// looks at each delegation cycle for the jobs that have waited for five minutes, and leases
// what they lack, as long as that is at most half of the job.
func ExampleDelegateFunc() {
	patient := func(on lease.Occasion, s lease.Situation, _ lease.Candidate, queue iter.Seq[lease.Candidate]) (wishes []lease.Wish) {
		if on != lease.OnCycle {
			return nil
		}
		idle := s.Idle
		for c := range queue {
			lacks := c.Lacks(idle)
			if s.Now-c.Born < 5*grid.Minute || lacks < 1 || 2*lacks > c.Processors {
				continue
			}
			wishes = append(wishes, lease.Wish{Task: c.Task, Processors: lacks})
			idle -= c.Processors - lacks
		}
		return wishes
	}

	// It is part of what a site is configured with.
	cfg := lease.MatchConfig{
		Links: []lease.Link{{Site: "partner", Relation: lease.Sibling}},
		Rules: lease.Rules{Delegate: patient},
	}

	job := func(n uint64, processors int64, born grid.Time) lease.Candidate {
		return lease.Candidate{Task: grid.TaskID{Job: grid.JobID{Lo: n}, Epoch: 1}, Processors: processors, Unit: 1, Born: born}
	}
	queue := []lease.Candidate{job(1, 16, 0), job(2, 6, 0), job(3, 6, 9*grid.Minute)}
	s := lease.Situation{Now: 10 * grid.Minute, Processors: 32, Idle: 4}
	for _, w := range cfg.Rules.Delegate(lease.OnCycle, s, lease.Candidate{}, slices.Values(queue)) {
		fmt.Printf("job %d: lease %d\n", w.Task.Job.Lo, w.Processors)
	}
	// Output:
	// job 2: lease 2
}

// A target site ordering policy of one's own: whom to ask. This one asks who is known to
// have most processors free, wherever that is, and nobody who is known to have too few.
func ExampleOrderFunc() {
	freest := func(_ lease.Candidate, processors int64, targets []lease.Target) []lease.Target {
		targets = slices.DeleteFunc(targets, func(t lease.Target) bool { return t.Free >= 0 && t.Free < processors })
		slices.SortStableFunc(targets, func(a, b lease.Target) int { return int(b.Free - a.Free) })
		return targets
	}
	target := func(site grid.SiteID, r lease.Relation, free int64) lease.Target {
		return lease.Target{Link: lease.Link{Site: site, Relation: r}, Free: free}
	}
	cfg := lease.MatchConfig{Threshold: 1000, Rules: lease.Rules{Order: freest}}
	for _, t := range cfg.Rules.Order(lease.Candidate{}, 8, []lease.Target{
		target("near", lease.Sibling, 4), target("silent", lease.Sibling, -1), target("far", lease.Parent, 64),
	}) {
		fmt.Println(t.Site)
	}
	// Output:
	// far
	// silent
}
