package scale

import (
	"gridnode/grid"
	"gridnode/testnet/measure"
)

// Jobs follows the jobs that are submitted during a measurement, by what their
// homes and the sites that run them tell. Not safe for concurrent use.
type Jobs struct {
	begin grid.Time // jobs submitted before do not count
	Jobs  map[grid.JobID]*Job
	slab  grid.Slab[Job]
}

// Job is what is known of one job.
type Job struct {
	home     int32
	goal     grid.Goal
	accepted bool
	refused  bool
	migrated bool // its site is not its home
	finished bool // its result has come home
	messages int32
	cost     grid.Credits
	response grid.Time // from its submission to the end of its execution; 0 while nobody knows
}

// Event takes what a site tells about a job.
func (s *Jobs) Event(site int32, e *grid.Event) {
	if e.Job.Submit < s.begin {
		return
	}
	j := s.Jobs[e.Job.ID]
	if e.Kind == grid.JobSubmitted {
		j = s.slab.New()
		j.home, j.goal = site, e.Job.Goal
		s.Jobs[e.Job.ID] = j
	}
	if j == nil || j.home != site {
		return
	}
	switch e.Kind {
	case grid.JobPlaced:
		j.accepted, j.migrated = true, e.Site != e.Job.Home
		j.cost, j.messages = e.Cost, e.Messages
	case grid.JobReplaced:
		j.accepted, j.migrated, j.response = false, false, 0
	case grid.JobRefused:
		j.accepted, j.refused, j.messages = false, true, e.Messages
	case grid.JobFinished:
		j.finished, j.cost, j.messages = true, e.Cost, e.Messages
		j.response = e.Result.End - e.Job.Submit
	}
}

// started takes an execution whose end is known already.
func (s *Jobs) started(job *grid.Job, end grid.Time) {
	if j := s.Jobs[job.ID]; j != nil {
		j.response = end - job.Submit
	}
}

// jobTotals adds up what became of the jobs.
type jobTotals struct {
	submitted, accepted, migrated, open int64
	due                                 int64 // completions that will still be sent
	perJob                              measure.Histogram
	byGoal                              [2]measure.Histogram // cheapest, fastest
	response, cost                      measure.Sum
	timed                               int64 // jobs in response
}

// Totals adds up. promised returns when an accepted job that has not started is to
// end; nil: nobody knows.
func (s *Jobs) Totals(promised func(home int32, id grid.JobID) (grid.Time, bool)) (t jobTotals) {
	for id, j := range s.Jobs { // sums of integers: the order does not matter
		t.submitted++
		messages := j.messages
		switch {
		case j.accepted:
			t.accepted++
			t.cost.Add(int64(j.cost), 1)
			response := j.response
			if response == 0 && promised != nil {
				response, _ = promised(j.home, id)
			}
			if response > 0 {
				t.response.Add(int64(response), 1)
				t.timed++
			}
			if j.migrated {
				t.migrated++
				if !j.finished {
					messages++
					t.due++
				}
			}
		case !j.refused:
			t.open++
			continue // nobody knows yet what it will cost
		}
		t.perJob.Add(messages)
		if j.goal == grid.GoalTime {
			t.byGoal[1].Add(messages)
		} else {
			t.byGoal[0].Add(messages)
		}
	}
	return t
}

// Stretch turns real spans into those of the workload.
func (t *jobTotals) Stretch(speedup int64) {
	var stretched measure.Sum
	stretched.Scaled(t.response, speedup)
	t.response = stretched
}

// Over reports whether every job has ended and its result has come home.
func (s *Jobs) Over() bool {
	for _, j := range s.Jobs {
		if !j.finished && !j.refused {
			return false
		}
	}
	return true
}
