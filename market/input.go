package market

import "gridnode/grid"

// Inputs of Agent besides grid.Tick, *grid.Delivery, *grid.Undelivered and
// *directory.Found.

// Place looks for a site for a job of this home. It ends in exactly one Placed
// or Refused for the job. Epoch must be higher than in every earlier Place for it.
type Place struct {
	Job      *grid.Job
	Epoch    uint32
	Messages int32  // counted for earlier epochs
	Losses   uint32 // executions of the job that have vanished so far; at most LossesMax

	// Headed says that the site that Job names consents to run this home's jobs.
	Headed bool
}

// Stop gives a job of this home up. While it is being placed the answer is
// Refused; once another site has it, Completed or Lost follows when that site
// has ended it. For a job the agent does not know it does nothing.
type Stop struct {
	Job   grid.JobID
	Cause string // shown at the executing site; at most 256 bytes
}

// Pay says that the cheque is there which a job of this home waits for. Stop, if
// there will be none.
type Pay struct{ Task grid.TaskID }

// Resume, after a restart, takes up a job of this home that was awarded to
// another site and whose result is not recorded. If a bank pays for it, its cheque
// must be at the desk: otherwise the job never left.
type Resume struct {
	Job      *grid.Job
	Award    Award
	Messages int32  // counted before the restart
	Losses   uint32 // as in Place
}

// Restore, after a restart, takes up a job of another site that was accepted
// here and whose result home has not acknowledged. Ended follows, now or later.
type Restore struct {
	Job   *grid.Job
	Award Award
	Over  bool // Ended follows at once
}

// Begun says that an accepted job of another site has begun, so that home learns it.
type Begun struct {
	Task  grid.TaskID
	Start grid.Time
}

// Ended says how an accepted job of another site ended. The agent reports it to
// its home until that acknowledges.
type Ended struct {
	Task   grid.TaskID
	Result grid.Result
}

// LossesMax is the most executions of one job of which sites tell each other that they
// have vanished: more than any home has a job started again.
const LossesMax = 1000

// Abandoned says that nothing of an accepted job of another site runs or ever will: its
// start could not be kept, or its executions vanish. Home learns it as Lost and may
// place it anew.
type Abandoned struct {
	Task   grid.TaskID
	Losses uint32 // executions of the job that have vanished so far, elsewhere or here; at most LossesMax
}

// Preview asks how Job would be placed now. The sites that are best by their quotes are asked
// what they would say; they hold nothing for it. The answer to Token is a *PreviewResult.
type Preview struct {
	Token uint64
	Job   *grid.Job
}

// PreviewResult answers Preview. Nothing is held anywhere.
type PreviewResult struct {
	Verdicts []Verdict // best first; the first is OutcomeChosen if any site would do
	Earliest Option    // the earliest finish, deadline and budget ignored
	Cheapest Option    // the lowest cost, deadline and budget ignored
	Err      error     // the directory did not answer; Verdicts has what is known
	Certain  bool      // as directory.Found: else sites may be missing from Verdicts
	Waits    bool      // the job would be taken even if no site would do now, and wait
}

// Local inputs that Agent gives to the other cores of its site. Their receiver
// may keep them and what they refer to.

// Placed: a site guarantees the job. If it is this site, the reservation is
// committed. If it is another, the job is on its way as soon as this step's
// records are durable; if Award.Bank is set, once Pay says that it is paid for.
type Placed struct {
	Job      grid.JobID
	Award    Award
	Verdicts []Verdict
	Messages int32 // sent and received for the job so far, of the paper's four kinds
}

// Refused: no site has the job and none will.
type Refused struct {
	Job      grid.JobID
	Why      Reason
	Reason   string // Why in words, with the best that could be had
	Later    bool   // the site that the job names did not answer, or was busy: it may take it yet
	Verdicts []Verdict
	Earliest Option // the earliest finish, deadline and budget ignored
	Cheapest Option // the lowest cost, deadline and budget ignored
	Messages int32
}

// Accepted: a job of another site arrived within its hold. Its reservation is
// committed; it is acknowledged as soon as this step's records are durable. A
// later epoch replaces an earlier one of the same job, which needs no Ended then.
type Accepted struct {
	Job    *grid.Job // instants on this site's clock
	Award  Award
	Losses uint32    // executions of the job that have vanished so far
	Leased grid.Time // end of its first lease, if it has one
}

// Completed: the site that had the job reported its end. It is acknowledged as
// soon as this step's records are durable.
type Completed struct {
	Task     grid.TaskID
	Result   grid.Result // instants on this site's clock
	Messages int32
}

// Lost: this execution certainly does not exist, or not any more.
type Lost struct {
	Task     grid.TaskID
	Messages int32
	Losses   uint32 // executions of the job that have vanished so far, as far as its site said so
	Silent   bool   // nothing was heard of it until it must have ended: whether it ran, nobody can say
}

// Belated: a site says that an execution was abandoned on which the agent counts no more, or
// never did, and that executions of its job have vanished. Whoever was told that it was Lost and
// Silent may count them now: once, and only if it was at that site.
type Belated struct {
	Task   grid.TaskID
	Site   grid.SiteID
	Losses uint32 // as in Lost
}

// Heard: the site that has a job of this home has said how far it is.
type Heard struct {
	Task  grid.TaskID
	Start grid.Time // on this site's clock; of one that has not begun: when it will, Never if that is not known
	Begun bool
}

// Delivered: home has the result; the record of the task may go.
type Delivered struct{ Task grid.TaskID }

// Revoke: home wants the task ended. Ended is expected as usual.
type Revoke struct {
	Task  grid.TaskID
	Cause string
}
