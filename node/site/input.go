package site

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/lrms/others"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/node/after"
)

// Inputs of Site besides grid's Delivery, Undelivered, Closest, TaskEnded and Tick.
// A Token other than 0 is answered with Outbox.Answer once what the step saved is
// durable; each type says with what.

// Submit hands a job over. The answer is a *Submitted.
type Submit struct {
	Token uint64
	Job   *grid.Job
}

// Submitted answers Submit.
type Submitted struct {
	ID    grid.JobID
	Known bool  // the same job had been submitted before
	Err   error // a Refusal: the job was not taken
}

// Cancel asks for a job of this home to be ended. The answer is a *Cancelled.
type Cancel struct {
	Token uint64
	Job   grid.JobID
	Cause string
}

// Cancelled answers Cancel.
type Cancelled struct {
	State State // what the job is now; terminal if it was over already
	Err   error // ErrUnknownJob
}

// Hold has a job of this home wait until it is released, if it has not started. The answer
// is a *Changed.
type Hold struct {
	Token   uint64
	Job     grid.JobID
	Release bool // the opposite
}

// Requeue has a job of this home run again: the execution that there is ends first. The
// answer is a *Changed.
type Requeue struct {
	Token uint64
	Job   grid.JobID
	Cause string
}

// Changed answers Hold and Requeue.
type Changed struct {
	State State // what the job is now
	Err   error // ErrUnknownJob, or it wraps ErrState
}

// Preview asks how a job would be placed, without placing it. The answer is a
// *market.PreviewResult.
type Preview struct {
	Token uint64
	Job   *grid.Job
}

// FindQuotes asks the directory. The answer is a *directory.Found.
type FindQuotes struct {
	Token uint64
	Query directory.Query
}

// Adopted says, after a restart, that the shim still runs this task.
type Adopted struct {
	ID    grid.TaskID
	Start grid.Time
}

// Room says what another scheduler, to whom this site's processors belong, leaves of them.
// A site whose processors are its own is never told.
type Room struct {
	Taken   []others.Taken // what others hold, at most others.TakenMax; nil if nothing
	Waiting []grid.TaskID  // started by this site, and without processors yet
	Begun   []Begun        // seen to have begun since the last time
	Trouble string         // why the scheduler does not answer; empty: it does, and the rest is true
}

// Begun says when another scheduler gave a task its processors.
type Begun struct {
	ID    grid.TaskID
	Start grid.Time
}

// SetPrice changes what the site charges from now on, and quotes it at once.
// Guarantees that were given keep their price. The answer is a *PriceSet.
type SetPrice struct {
	Token uint64
	Price grid.Price // 1 to grid.CreditsMax
}

// PriceSet answers SetPrice.
type PriceSet struct {
	Before grid.Price
	Price  grid.Price // charged from now on: what was asked for, within the bounds of the site's pricing
	Err    error      // the price is none, and nothing changed
}

// Drain stops the site from taking new work, of its users and of others, and withdraws its
// quote. What it has goes on. It is given before the node stops, and when the owner wants it.
type Drain struct {
	Token uint64 // of the answer, a *Drained; 0: nobody waits for it
	Back  bool   // work is taken again
}

// Drained answers Drain.
type Drained struct{}

func (in *Drain) answer(out *grid.Outbox) {
	if in.Token != 0 {
		out.Answer(in.Token, &Drained{})
	}
}

// ErrDraining: the site takes no new work for the time being.
var ErrDraining = errors.New("this site is being drained and takes no new work ('gridnode drain --undo' ends that)")

// Here says how others reach the node. It is given before the first Tick, and whenever it
// changes.
type Here struct {
	Addresses []string // with its ID
}

// State is where a job stands.
type State uint8

// States of a job. Those from Done to Refused, and Returned, are terminal: they never change
// again. Numbers are stored: append, never renumber.
const (
	Placing         State = iota + 1 // the market is looking for a site
	Queued                           // in this site's queue, or promised processors here
	Awarded                          // accepted by another site, not known to have started
	Running                          // an execution is alive here
	Cancelling                       // its user wants it ended; an execution may still be alive
	Done                             // ended by itself with exit code 0
	Failed                           // ended otherwise
	CancelledByUser                  // ended because its user wanted it
	Refused                          // no site would have it
	Waiting                          // for other jobs, an instant, its owner or its array; not terminal
	Returned                         // given back to the site that it is of, which has not acknowledged what was lost
)

var stateNames = [...]string{"", "placing", "queued", "awarded", "running", "cancelling", "done", "failed", "cancelled", "refused", "waiting", "returned"}

// String returns the state's name in listings and in JSON.
func (s State) String() string { return stateNames[s] }

// ParseState returns the state of that name.
func ParseState(name string) (State, error) {
	if i := slices.Index(stateNames[:], name); i > 0 {
		return State(i), nil
	}
	return 0, fmt.Errorf("%q, want one of %s", name, strings.Join(stateNames[1:], ", "))
}

// Terminal reports whether s is final.
func (s State) Terminal() bool { return s >= Done && s <= Refused || s == Returned }

// View is what users see of a job.
type View struct {
	Job      *grid.Job
	State    State
	Foreign  bool        // it belongs to another site and runs here
	Site     grid.SiteID // where it is; empty while placing
	Waits    bool        // placing, and waits: for the end of a packing window, or for the site that it names
	Epoch    uint32
	Award    market.Award // of the latest placement
	Start    grid.Time    // 0 if not known to have started
	End      grid.Time    // 0 before the end
	Result   grid.Result
	Reason   string // why it is in this state, if there is something to say
	Verdicts []market.Verdict
	Messages int32
	Tries    int32        // placements tried until a co-allocated job started, as far as is known
	Failures int32        // of them, whose claim failed
	Gang     *grid.Gang   // components of a co-allocated job since it started; else nil
	WaitsFor after.Reason // of a job that waits: for what
	Place    int          // in this site's queue, from 1 on; 0: not in it, or not looked at by itself
	Expected grid.Time    // of one that waits for processors: when it begins; 0: not known, or not looked at
	How      Expectation  // what Expected is
	TTL      int32        // how often a request of it may be delegated; -1: this site delegates none
}

// Expectation is how sure it is when a job begins.
type Expectation uint8

// What is known of when a job begins, the surest last.
const (
	Unexpected Expectation = iota
	Estimated              // by the limits of those before it: most begin earlier, and promises to others may delay it
	Foretold               // by the site that has it
	Promised               // by this site
)

var expectationNames = [...]string{"", "estimated", "foretold", "promised"}

// String returns the stable word that the API says.
func (e Expectation) String() string { return expectationNames[e] }

// ErrUnknownLease: no lease of this site has that number, or not on that side.
var ErrUnknownLease = errors.New("no such lease")

// ErrLease is wrapped by refusals of requests for leases; the text says why.
var ErrLease = errors.New("refused")

// RequestLease asks another site for processors. The answer, once the lease is active
// or the request has failed, is a *LeaseAnswer.
type RequestLease struct {
	Token      uint64
	Lender     grid.SiteID
	Processors int64
	Span       grid.Time
	Most       grid.Price // highest price for a processor-hour; 0: what the site pays by itself
}

// ChangeLease renews, releases or revokes a lease. The answer is a *LeaseAnswer; a
// renewal is asked for and not yet granted then.
type ChangeLease struct {
	Token    uint64
	Change   LeaseChange
	Number   uint64
	Borrower grid.SiteID // of a lease to revoke; empty: whoever has the number
	Span     grid.Time   // Renew: from now
	Force    bool        // Revoke: at once, without asking the borrower; Release: end the jobs that run there
}

// LeaseChange is what becomes of a lease.
type LeaseChange uint8

// Changes of leases.
const (
	RenewLease LeaseChange = iota + 1
	ReleaseLease
	RevokeLease
)

// LeaseAnswer answers RequestLease and ChangeLease.
type LeaseAnswer struct {
	Lease LeaseView
	Err   error // wraps ErrLease, ErrUnknownLease, lease.ErrBounds
}

// LeaseView is what users see of a lease.
type LeaseView struct {
	lease.Lease
	Used    int64        // borrowed: processors that run this site's jobs
	Jobs    []grid.JobID // borrowed: those jobs
	Ceiling grid.Credits // the most that it can cost
}

// ErrUnknownLink: this site has no link to that one, or no invitation of it.
var ErrUnknownLink = errors.New("no such link")

// ErrLink is wrapped by refusals of changes of links; the text says why.
var ErrLink = errors.New("refused")

// ChangeLink changes a link of the hierarchy of delegation. The answer is a
// *LinkAnswer: for an invitation it comes with the first word of the other site, or
// after ten seconds without one.
type ChangeLink struct {
	Token  uint64
	Change LinkChange
	Site   grid.SiteID // the other one
}

// LinkChange is what becomes of a link.
type LinkChange uint8

// Changes of links.
const (
	InviteLink LinkChange = iota + 1 // the other shall be this site's child
	AcceptLink                       // this site becomes the child of the one that invited it
	DropLink                         // no link any more, or no invitation
)

// LinkAnswer answers ChangeLink.
type LinkAnswer struct {
	Link lease.Kin // after the change; of one that is gone only the site
	Err  error     // wraps ErrLink, ErrUnknownLink, lease.ErrBounds
}
