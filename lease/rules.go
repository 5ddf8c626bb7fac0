package lease

import (
	"fmt"
	"iter"

	"gridnode/grid"
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

// Situation is what a policy knows of its own site.
type Situation struct {
	Now        grid.Time
	Processors int64 // of the site
	Idle       int64 // of them: run nothing, and are not held for anybody
	Wanted     int64 // processors that all waiting requests want together
}

// Candidate is a request that waits for processors, as a policy sees it.
type Candidate struct {
	Task       grid.TaskID
	Processors int64
	Estimate   grid.Time // bound on its run time
	Born       grid.Time // when its user submitted it
	Unit       int64     // a site has a multiple of so many of its processors, or none; Processors: it cannot be spread
	Rounds     int32     // how often it was delegated (DMM)
}

// Lacks returns how many processors a candidate lacks to start at once on idle own
// processors and leased ones, in whole units; 0 if it lacks none.
func (c *Candidate) Lacks(idle int64) int64 {
	unit := max(c.Unit, 1)
	return c.Processors - min(max(idle, 0)/unit*unit, c.Processors)
}

// Occasion is what a Delegate policy is asked upon.
type Occasion uint8

// Occasions.
const (
	OnSubmit Occasion = iota // the candidate has just been submitted
	OnGain                   // the candidate has just been given what was wished for it
	OnCycle                  // a delegation cycle is over; there is no candidate
)

// Wish is for leased processors with which a waiting job starts at once, together with
// idle ones of its own site. It gets all of them or none.
type Wish struct {
	Task       grid.TaskID
	Processors int64 // to be leased; the job's others are taken here. Whole units, at least one
}

// DelegateFunc is a resource delegation policy: for which waiting jobs to lease now, how
// many processors each, in what order. of is zero OnCycle. queue yields the own jobs
// that wait, and for which nothing is asked yet, in the order of the queue: from its head,
// but OnGain only those behind of. It must not be used after the function returns.
// A Wish for a job that does not wait, or for which enough processors are not idle here
// besides, is passed over.
type DelegateFunc func(on Occasion, s Situation, of Candidate, queue iter.Seq[Candidate]) []Wish

// OrderFunc is a target site ordering policy: it puts the sites that could be asked for
// processors into the order in which they are asked. It may drop some, and may change
// the slice in place. They come near ones first, equals at random.
type OrderFunc func(c Candidate, processors int64, targets []Target) []Target

// SelectFunc is a delegation policy of DMM: which of the waiting requests are delegated
// now, and in what order. It is asked at each delegation cycle and may change the slice
// in place. They come in order of submission.
type SelectFunc func(s Situation, waiting []Candidate) []Candidate

// DispatchFunc is a local dispatch policy: which waiting requests, of this site and of
// others, are given idle processors first, and in what order. One that does not fit is
// passed over. What is left then is for the discipline of the queue. They come in the
// order of the queue; it may drop some, and may change the slice in place.
type DispatchFunc func(s Situation, waiting []Candidate) []Candidate

// Rules are policies of one's own. They are called by a core: they must depend on nothing
// but their arguments, so that a run can be repeated. A nil one leaves it to
// MatchConfig.Policy, Ordering and Selection, and to the discipline of the queue.
type Rules struct {
	Delegate DelegateFunc // instead of MatchConfig.Policy
	Order    OrderFunc    // instead of MatchConfig.Ordering
	Select   SelectFunc   // instead of MatchConfig.Selection and Threshold; DMM
	Dispatch DispatchFunc // before the discipline of the queue
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
