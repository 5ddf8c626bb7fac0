package grid

// EventKind is what happened.
type EventKind uint8

// Events of a job, as its home site sees them unless said otherwise.
const (
	JobSubmitted EventKind = iota // acknowledged to the user
	JobPlaced                     // Site accepted it at Cost
	JobRefused                    // no site would have it; Text says why
	JobStarted                    // told by the executing site
	JobEnded                      // told by the executing site; Result says how
	JobFinished                   // home has the result
	JobCancelled
	JobReplaced // an execution was lost; the job is being placed anew
	JobAwaits   // it waits for the site that it names
	JobHeard    // its site has said how far it is
	EventKinds  // how many there are
)

var eventNames = [EventKinds]string{"submitted", "placed", "refused", "started", "ended", "finished", "cancelled", "re-placed", "awaits", "heard"}

// String returns the event's name in logs and in JSON.
func (k EventKind) String() string { return eventNames[k] }

// Event is something users, metrics or checkers want to know. It decides nothing.
type Event struct {
	Kind     EventKind
	Job      *Job
	Epoch    uint32
	Site     SiteID // where the job is or goes; empty if nowhere
	Cost     Credits
	Messages int32 // sent and received so far by home for this job
	Result   Result
	Text     string
}
