package server

import (
	"encoding/json"
	"testing"

	"gridnode/grid"
	"gridnode/internal/corpus"
	"gridnode/internal/wire"
	"gridnode/market"
	"gridnode/node/api"
)

// Whatever a client sends, it becomes jobs that a peer would accept, or an error.
func FuzzSubmitRequest(f *testing.F) {
	for _, seed := range []string{
		`{"jobs":[{"args":["true"]}]}`,
		`{"jobs":[{"args":["x","y"],"tasks":4,"cpusPerTask":2,"time":60.5,"deadlineIn":3600,"budget":1.5,"policy":"cheapest","array":[0,1,7],"env":["A=b"],"dir":"/tmp"}]}`,
		`{"jobs":[{"args":["x"],"tasks":16777216,"cpusPerTask":16777216,"deadline":"2099-01-01T00:00:00.5Z","memoryPerProcessor":-1}]}`,
		`{"jobs":[{"args":["x"],"time":1e12,"deadlineIn":9e12,"budget":9007199254.9}]}`,
	} {
		f.Add([]byte(seed))
	}
	by := submitter{
		home: "here", user: "u", rating: grid.Rating{Speed: 1000, Bandwidth: 1000}, now: 1_700_000_000 * grid.Second,
		defaults: Defaults{Estimate: 10 * grid.Minute},
	}
	corpus.Fuzz(f, func(t *testing.T, body []byte) {
		var request api.SubmitRequest
		if json.Unmarshal(body, &request) != nil {
			return
		}
		for i := range request.Jobs {
			jobs, err := by.jobs(&request.Jobs[i], grid.SiteID(request.Jobs[i].Site))
			if err != nil {
				continue
			}
			for _, j := range jobs {
				if err := wire.CheckJob(j); err != nil {
					t.Errorf("%s became %+v: %v", body, j, err)
				}
			}
			again, err := by.jobs(&request.Jobs[i], grid.SiteID(request.Jobs[i].Site))
			if err != nil || len(again) != len(jobs) || request.Jobs[i].ID != "" && again[0].ID != jobs[0].ID {
				t.Errorf("%s became something else the second time: %v", body, err)
			}
		}
	})
}

// TestVerdictsSayWhenSitesAreAskedAgain: counted from when somebody looks, not from when they were put down.
func TestVerdictsSayWhenSitesAreAskedAgain(t *testing.T) {
	const now = grid.Hour
	for _, tt := range []struct {
		verdict market.Verdict
		want    string
	}{
		{market.Verdict{Detail: "because", Outcome: market.OutcomeRefused}, "because"},
		{market.Verdict{Detail: "because", Outcome: market.OutcomeRefused, Until: now + 40*grid.Second}, "because; it is asked again in 40s"},
		{market.Verdict{Detail: "because", Outcome: market.OutcomeRefused, Until: now + 1}, "because; it is asked again in 1s"},
		{market.Verdict{Detail: "because", Outcome: market.OutcomeRefused, Until: now}, "because; it may be asked again"},
		{market.Verdict{Detail: "did not answer", Outcome: market.OutcomeUnreachable, Until: now + 90*grid.Second}, "did not answer; it is asked again in 1m30s, or when it publishes anew"},
	} {
		if got := verdictsOf([]market.Verdict{tt.verdict}, now)[0].Detail; got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.verdict, got, tt.want)
		}
	}
}
