package market

import (
	"gridnode/grid"
	"gridnode/market/keepalive"
)

// Graces around a promise. Between them they decide when a home may run a job a
// second time: never before Award.Until.
const (
	// StartGrace is how long after its promised start a task may still be started:
	// jobs before it may take a little longer to die than their limits say.
	StartGrace = 5 * grid.Minute
	// EndGrace is how long after its limit a task may need to die, and how far the
	// clocks of two sites may disagree about a short span.
	EndGrace = grid.Minute
)

// Award is what home and executing site agreed on. Instants are on the clock of
// whoever holds the award.
type Award struct {
	Site   grid.SiteID // where the job runs
	Epoch  uint32
	Hold   uint64       // the executing site's name for its guarantee; 0 at home
	Price  grid.Price   // as quoted in the reply; it never changes afterwards
	Cost   grid.Credits // most that will be charged
	Start  grid.Time    // promised: not later than this
	Finish grid.Time    // promised: Start plus the run-time estimate there
	Bank   grid.SiteID  // whose cheque pays for it; empty if nobody pays
	Lease  grid.Time    // the execution goes on for so long unless it is renewed (package keepalive); 0: until its end

	// Until is, at home, the instant from which on no execution of this epoch can
	// be alive; at the executing site, the instant by which it must have ended.
	Until grid.Time
}

// Limit returns the wall-clock span after which a site with this rating ends the
// job: the user's own bound, or that bound as work if the site is slower.
func Limit(job *grid.Job, at grid.Rating) grid.Time { return max(job.Estimate, job.EstimateAt(at)) }

// untilThere returns the executing site's Until for a start promised at start.
func untilThere(start, limit grid.Time) grid.Time { return start.Add(StartGrace).Add(limit) }

// untilHome returns home's Until for a promise received at now whose start lies
// startSpan after it was given. The giver counts from an earlier instant than
// now, so home's Until is the later one.
func untilHome(now, startSpan, limit grid.Time) grid.Time {
	span := startSpan.Add(StartGrace).Add(limit)
	return now.Add(span).Add(keepalive.Drift(span)).Add(EndGrace)
}
