package federation

import (
	"testing"

	"gridnode/grid"
	"gridnode/testnet/workload"
)

// TestRejectedJobsComeWithTheEstimateOfTheirHome: a site of 100 processors is busy for
// an hour; of two more jobs as wide and as long, due in two hours, the first fits behind
// it and the second would be done in three. Listening changes nothing.
func TestRejectedJobsComeWithTheEstimateOfTheirHome(t *testing.T) {
	var days []workload.Job
	for n := range int64(3) {
		days = append(days, workload.Job{Number: n + 1, RunTime: grid.Hour, Estimate: grid.Hour, Processors: 100})
	}
	var finishes []grid.Time
	one := func(c *Config) {
		c.Mode, c.Placement, c.Sites = "independent", "paper", 2
		c.Days = [][]workload.Job{nil, days} // of CTC and KTH
	}
	quiet := runFederation(t, one)
	told := runFederation(t, func(c *Config) {
		one(c)
		c.Rejected = func(home int, e *grid.Event, finish grid.Time) {
			if home != 1 || e.Kind != grid.JobRefused {
				t.Errorf("a %v of site %d, want a refusal of site 1", e.Kind, home)
			}
			finishes = append(finishes, finish-e.Job.Submit)
		}
	})
	if len(finishes) != 1 || finishes[0] < 3*grid.Hour || finishes[0] > 3*grid.Hour+grid.Second {
		t.Errorf("rejected jobs would be done after %v, want one after 3 h", finishes)
	}
	if quiet.Total != told.Total || quiet.Events != told.Events {
		t.Errorf("%d events and %+v with a listener, %d and %+v without", told.Events, told.Total, quiet.Events, quiet.Total)
	}
}
