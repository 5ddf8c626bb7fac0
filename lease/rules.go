package lease

import (
	"iter"

	"gridnode/grid"
)

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
