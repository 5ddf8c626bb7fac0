package lease

import (
	"fmt"
	"iter"
)

// Policy says when a site borrows by itself, and how much.
type Policy uint8

// Policies.
const (
	// DMM is Delegated MatchMaking: when the load is above MatchConfig.Threshold, whole
	// requests are delegated, and those who are asked may pass them on.
	DMM Policy = iota

	// SSTRD leases from the neighbours what a job lacks that was just submitted ("The
	// gain of resource delegation", section 5). The job runs on own and leased
	// processors together.
	SSTRD

	// XSTRD leases at each submission what each job in the queue lacks, from the head on.
	XSTRD
)

var policyNames = [...]string{"dmm", "s-strd", "x-strd"}

// String returns the name used in configuration files.
func (p Policy) String() string { return policyNames[p] }

// ParsePolicy is the inverse of String.
func ParsePolicy(s string) (Policy, error) {
	for p, name := range policyNames {
		if s == name {
			return Policy(p), nil
		}
	}
	return 0, fmt.Errorf("policy %q: want dmm, s-strd or x-strd", s)
}

// sstrd is S-STRD: "Resource leasing is attempted every time the currently available
// resources cannot meet the submitted job's processor demand."
func sstrd(on Occasion, s Situation, of Candidate, _ iter.Seq[Candidate]) []Wish {
	if lacks := of.Lacks(s.Idle); on == OnSubmit && lacks > 0 {
		return []Wish{{of.Task, lacks}}
	}
	return nil
}

// xstrd is X-STRD: the steps of S-STRD "are applied for each job in the queue (including
// the new job), starting at the queue's head". They go on behind a job that got what it
// lacked. The first one that does not ends them: what the partners have not got for one
// job they are not asked for again at once.
func xstrd(on Occasion, s Situation, _ Candidate, queue iter.Seq[Candidate]) []Wish {
	if on == OnCycle {
		return nil
	}
	for c := range queue {
		// "In the positive case, the DRMS leaves further handling to the LRMS."
		if lacks := c.Lacks(s.Idle); lacks > 0 {
			return []Wish{{c.Task, lacks}}
		}
	}
	return nil
}
