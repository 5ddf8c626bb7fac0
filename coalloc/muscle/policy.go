package muscle

import (
	"fmt"
	"math/rand/v2"
)

// Policy is a way of sharing a batch out.
type Policy uint8

// Policies. The paper compares the first with the last two.
const (
	PolicyMuscle Policy = iota // Pack by the rule Published
	PolicyUrgent               // Pack by the rule Urgent
	PolicyDLL                  // DLL
	PolicyWRAND                // WRAND
)

// PolicyNames are the names of all policies, in their order.
var PolicyNames = []string{"muscle", "urgent", "dll", "wrand"}

// String returns the name used in settings.
func (p Policy) String() string { return PolicyNames[p] }

// OnArrival reports whether the policy chooses a job's cluster as the job comes, and
// looks at no others: "when a parallel job is submitted to the multicluster, DLL
// schedules the job to the cluster whose workload is the least", and WRAND likewise
// (section 5).
func (p Policy) OnArrival() bool { return p == PolicyDLL || p == PolicyWRAND }

// ParsePolicy is the inverse of String.
func ParsePolicy(s string) (Policy, error) {
	for p, name := range PolicyNames {
		if s == name {
			return Policy(p), nil
		}
	}
	return 0, fmt.Errorf("%q: want muscle, urgent, dll or wrand", s)
}

// Share shares a batch out. rng breaks ties and draws for WRAND. The error is that of
// Batch.Validate.
func (p Policy) Share(b *Batch, rng *rand.Rand) (*Packing, error) {
	switch p {
	case PolicyUrgent:
		return Pack(b, Urgent, rng)
	case PolicyDLL:
		return DLL(b)
	case PolicyWRAND:
		return WRAND(b, rng)
	}
	return Pack(b, Published, rng)
}
