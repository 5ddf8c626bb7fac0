package main

import (
	"testing"
	"time"

	"gridnode/node/api"
)

func TestCheaperNote(t *testing.T) {
	v := func(name, outcome string, cost api.Amount) api.Verdict {
		return api.Verdict{SiteName: name, Outcome: outcome, Cost: cost}
	}
	chosen := v("home", "chosen", 10)
	beta, gamma, dear := v("beta", "foreign-refused", 2), v("gamma", "foreign-refused", 3), v("dear", "foreign-refused", 10)
	for _, tt := range []struct {
		verdicts []api.Verdict
		want     string
	}{
		{nil, ""},
		{[]api.Verdict{beta}, ""}, // nothing has it: that is said in another way
		{[]api.Verdict{chosen, dear, v("cheap", "unreachable", 1)}, ""},
		{[]api.Verdict{chosen, beta}, "note: beta would be cheaper, but runs no foreign jobs"},
		{[]api.Verdict{beta, gamma, chosen, dear}, "note: beta and gamma would be cheaper, but run no foreign jobs"},
		{[]api.Verdict{chosen, beta, gamma, v("delta", "foreign-refused", 1), v("e", "foreign-refused", 1), v("f", "foreign-refused", 1)},
			"note: beta, gamma, delta and 2 more would be cheaper, but run no foreign jobs"},
	} {
		if got := cheaperNote(tt.verdicts); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

func TestWaitText(t *testing.T) {
	now := time.Unix(1000, 0)
	at := func(s float64) api.Instant { return api.InstantOf(now.Add(time.Duration(s * float64(time.Second)))) }
	for _, tt := range []struct {
		job  api.Job
		want string
	}{
		{api.Job{}, ""},
		{api.Job{Place: 3, ExpectedStart: at(90), Expectation: "estimated"}, ", place 3 in its queue, estimated to begin in 1m30s at the latest, by the limits of those before it"},
		{api.Job{Place: 1}, ", the next in its queue"},
		{api.Job{ExpectedStart: at(0.5), Expectation: "promised"}, ", promised to begin now"},
		{api.Job{ExpectedStart: at(60), Expectation: "foretold"}, ", to begin in 1m0s as its site says"},
		{api.Job{ExpectedStart: at(60), Expectation: "foretold", Start: at(0)}, ""},
	} {
		if got := waitText(&tt.job, now); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
