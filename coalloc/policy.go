package coalloc

import (
	"fmt"

	"gridnode/grid"
)

// Policy is a placement policy.
type Policy uint8

// Policies.
const (
	PolicyAdaptive Policy = iota // split only if it pays; see Adaptive
	PolicyWF                     // Worst Fit
	PolicyCF                     // Close-to-Files
	PolicyFCM                    // Flexible Cluster Minimization
	PolicyCA                     // Communication-Aware

	policyLast = PolicyCA
)

// PlaceFunc is a placement policy: it appends a placement of r, which is valid, on what is
// idle in v to dst, and reports whether there is one. estimate bounds the job's run time
// within one site. It changes neither r nor v, and depends on nothing but its arguments.
// WorstFit, CloseToFiles, ClusterMinimization and Policy.Place have this form, or nearly.
type PlaceFunc func(dst []Part, r *Request, v *View, estimate grid.Time) ([]Part, bool)

var policyNames = [...]string{"adaptive", "wf", "cf", "fcm", "ca"}

// String returns the name users type.
func (p Policy) String() string { return policyNames[p] }

// ParsePolicy is the inverse of String.
func ParsePolicy(s string) (Policy, error) {
	for p, name := range policyNames {
		if s == name {
			return Policy(p), nil
		}
	}
	return 0, fmt.Errorf("policy %q: want wf, cf, fcm, ca or adaptive", s)
}

// Place appends a placement of r, which is valid, on what is idle in v to dst. It
// reports whether there is one by this policy; if not, dst is returned as it was.
// estimate bounds the job's run time within one site. v is not changed: see View.Take.
func (p Policy) Place(dst []Part, r *Request, v *View, estimate grid.Time) ([]Part, bool) {
	switch p {
	case PolicyWF:
		return WorstFit(dst, r, v)
	case PolicyCF:
		return CloseToFiles(dst, r, v)
	case PolicyFCM:
		return ClusterMinimization(dst, r, v)
	case PolicyCA:
		return CommunicationAware(dst, r, v, MetricLatency)
	case PolicyAdaptive:
		return Adaptive(dst, r, v, estimate)
	}
	panic(fmt.Sprintf("coalloc: policy %d", p))
}
