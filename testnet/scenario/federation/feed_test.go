package federation

import (
	"testing"

	"gridnode/grid"
	"gridnode/testnet/workload"
)

// TestFeedSharesUsers: so many of a hundred users want the fastest site, and a user
// always wants the same.
func TestFeedSharesUsers(t *testing.T) {
	for _, oft := range []int{0, 30, 100} {
		cfg := Default()
		cfg.OFT = oft
		fastest := 0
		for u := range 2000 {
			job := &workload.Job{User: "user" + string(rune('A'+u%26)) + string(rune('a'+u/26)), Number: int64(u)}
			goal := cfg.Goal(u%8, job)
			if job.Number += 5000; cfg.Goal(u%8, job) != goal {
				t.Fatalf("user %s changes its mind", job.User)
			}
			if goal == grid.GoalTime {
				fastest++
			}
		}
		if fastest < oft*20-100 || fastest > oft*20+100 || oft == 0 && fastest > 0 || oft == 100 && fastest < 2000 {
			t.Errorf("--oft %d: %d of 2000 users want the fastest site", oft, fastest)
		}
	}
}
