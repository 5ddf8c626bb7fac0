package main

import (
	"slices"
	"testing"

	"gridnode/coalloc"
	"gridnode/market"
	"gridnode/market/keepalive"
	"gridnode/node/content"
	"gridnode/node/site"
)

// What the client says in words of its own is what the packages mean that it does not have.
func TestNamesOfTheClient(t *testing.T) {
	if want := namesOf(site.Placing, site.Returned); !slices.Equal(jobStates, want) {
		t.Errorf("states of jobs: %q, want %q", jobStates, want)
	}
	if want := namesOf(coalloc.PolicyAdaptive, coalloc.PolicyCA); !slices.Equal(placements, want) {
		t.Errorf("placements: %q, want %q", placements, want)
	}
	for _, tt := range []struct{ got, want string }{
		{outcomeChosen, market.OutcomeChosen.String()},
		{outcomeNoForeign, market.OutcomeNoForeign.String()},
		{ignoreFile, content.IgnoreFile},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
	if leaseDefault != keepalive.Default {
		t.Errorf("lease of a job: %v, want %v", leaseDefault, keepalive.Default)
	}
}
