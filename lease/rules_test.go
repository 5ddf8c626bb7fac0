package lease

import (
	"iter"
	"slices"
	"strings"
	"testing"

	"gridnode/grid"
)

// ruled returns a site a of 4 processors with policies of its own, and partners b and c.
func ruled(t *testing.T, rules Rules) *script {
	x := newScript()
	x.t, x.rules = t, rules
	x.run("site name=a processors=4 fcfs rules links=b:sibling+c:parent")
	x.run("site name=b processors=4 links=a:sibling")
	x.run("site name=c processors=4 links=a:child")
	return x
}

// traced runs a command and returns what happened.
func (x *script) traced(format string, args ...any) string {
	x.trace.Reset()
	x.run(format, args...)
	return x.trace.String()
}

func wants(t *testing.T, got string, want ...string) {
	t.Helper()
	for _, w := range want {
		if w, not := strings.CutPrefix(w, "!"); strings.Contains(got, w) == not {
			t.Errorf("%s\nwant %q in it: %t", got, w, !not)
		}
	}
}

// TestDelegatePolicyOfOnesOwn: which job, how much and when are the policy's.
func TestDelegatePolicyOfOnesOwn(t *testing.T) {
	var occasions []Occasion
	x := ruled(t, Rules{Delegate: func(on Occasion, s Situation, of Candidate, queue iter.Seq[Candidate]) (wishes []Wish) {
		occasions = append(occasions, on)
		if on != OnCycle {
			return nil
		}
		for c := range queue { // those that have waited for a minute, half of each
			if s.Now-c.Born >= grid.Minute && s.Idle >= c.Processors/2 {
				wishes = append(wishes, Wish{c.Task, c.Processors - c.Processors/2})
			}
		}
		return append(wishes, Wish{Processors: 3}, Wish{Task: of.Task, Processors: -1}) // what makes no sense is passed over
	}})
	x.run("submit site=a job=1 processors=3 for=1h")
	wants(t, x.traced("submit site=a job=2 processors=2 for=10m"), "!request")
	wants(t, x.traced("advance for=1m"), "a -> b: request a#1 1 processors", "job 2 starts on 1 own processors and on 1 of b")
	if !slices.Equal(occasions, []Occasion{OnSubmit, OnCycle, OnSubmit, OnCycle, OnGain}) {
		t.Errorf("it is asked upon %v", occasions)
	}
}

// TestOrderPolicyOfOnesOwn: whom to ask is the policy's.
func TestOrderPolicyOfOnesOwn(t *testing.T) {
	x := ruled(t, Rules{
		Delegate: sstrd,
		Order: func(_ Candidate, _ int64, targets []Target) []Target {
			return slices.DeleteFunc(targets, func(t Target) bool { return t.Relation == Sibling })
		},
	})
	x.run("submit site=a job=1 processors=3 for=1h")
	wants(t, x.traced("submit site=a job=2 processors=2 for=10m"), "a -> c: request", "!a -> b")
}

// TestSelectPolicyOfOnesOwn: the narrowest request is delegated when nothing is idle.
func TestSelectPolicyOfOnesOwn(t *testing.T) {
	x := ruled(t, Rules{Select: func(s Situation, waiting []Candidate) []Candidate {
		if s.Idle > 0 {
			return nil
		}
		slices.SortFunc(waiting, func(a, b Candidate) int { return int(a.Processors - b.Processors) })
		return waiting[:min(len(waiting), 1)]
	}})
	x.run("submit site=a job=1 processors=4 for=1h")
	x.run("submit site=a job=2 processors=3 for=10m")
	x.run("submit site=a job=3 processors=1 for=10m")
	wants(t, x.traced("advance for=1m"), "request a#1 1 processors", "job 3 starts", "!request a#2")
}

// TestDispatchPolicyOfOnesOwn: the last come is the first served, as far as it fits; then
// the queue has its way.
func TestDispatchPolicyOfOnesOwn(t *testing.T) {
	x := ruled(t, Rules{Dispatch: func(_ Situation, waiting []Candidate) []Candidate {
		slices.Reverse(waiting)
		return append(waiting, waiting...) // named twice
	}})
	x.run("submit site=a job=1 processors=4 for=1h")
	for job := 2; job <= 5; job++ {
		x.run("submit site=a job=%d processors=%d for=10m", job, job-1)
	}
	got := x.traced("end site=a job=1")
	wants(t, got, "job 5 starts")
	got = x.traced("end site=a job=5")
	wants(t, got, "job 4 starts", "job 2 starts", "!job 3 starts")
	if strings.Index(got, "job 4") > strings.Index(got, "job 2") {
		t.Errorf("%s\nwant job 4 first", got)
	}
}
