package lease

import (
	"cmp"

	"gridnode/grid"
)

// ID names a lease on both sides. The borrower chose the number and never uses one
// twice, not even after a crash; no other site can speak of it, as the sender of a
// message is authenticated.
type ID struct {
	Borrower grid.SiteID
	Number   uint64 // at least 1
}

// Compare orders by number, then borrower: roughly by age.
func (id ID) Compare(other ID) int {
	if c := cmp.Compare(id.Number, other.Number); c != 0 {
		return c
	}
	return cmp.Compare(id.Borrower, other.Borrower)
}

// State says how far a lease has come. The lender's states and the borrower's have
// one order, but each side moves by itself.
type State uint8

const (
	Requested State = iota // borrower: asked for; lender: not decided yet. Nothing is set aside
	Held                   // granted and set aside, until claimed or until End
	Claiming               // borrower only: claimed, not confirmed
	Active                 // the borrower may use the processors until End
	Ending                 // borrower: released, not confirmed; lender: over, what runs there is not gone yet (Config.Drain)
)

var stateNames = [...]string{"requested", "held", "claiming", "active", "ending"}

// String returns the state's name in tables and in JSON.
func (s State) String() string { return stateNames[s] }

// Lease is one side's view of a lease. Instants are on the clock of that side.
type Lease struct {
	ID
	Lender grid.SiteID
	Lent   bool // this site is the lender; else the borrower

	Processors int64
	State      State
	Epoch      uint64      // the lender's number of the grant, rising with each; 0 until granted
	Since      grid.Time   // borrower: when it asked; lender: when it was asked, then when it granted
	End        grid.Time   // when this state ends by itself; renewals move it
	Limit      grid.Time   // Active: renewals move End no further
	Span       grid.Time   // for how long it was asked, from the claim
	Subject    grid.JobID  // the resource request it serves: a job's ID, or a random one
	Sink       grid.SiteID // who uses the processors: the borrower, or who it lends them on to

	// As granted; zero before.
	Source grid.SiteID // whose processors they are: the lender, or who it has them from
	Key    uint64      // the source's Epoch: with Source it names the processors along the whole chain
	Hops   int32       // leases from Source to this borrower; 1 if the lender is the source
	Via    uint64      // lender: number of the lease by which it has the processors itself; 0 if they are its own

	// As asked by delegation (see Matchmaker).
	TTL int32     // how often the request may be delegated on
	Age grid.Time // how long the request had waited in all when it was sent

	Within grid.Time // from when it was asked: by when the processors have to be there; 0: it does not matter

	// What it costs: Price × Processors × the time from the grant to the end.
	Bank  grid.SiteID // whose cheque pays for it, as asked; empty: nobody pays
	Most  grid.Price  // highest price, as asked; 0: any
	Price grid.Price  // micro-credits for a processor-hour, as granted; 0: nothing
	Paid  bool        // its cheque is with the lender; without it a lease with a price is not claimed
}

// Cause says why a lease ended.
type Cause uint8

// Causes. Numbers travel on the wire: append, never renumber.
const (
	Freed    Cause = iota // its borrower released it
	Expired               // nobody renewed it in time, or it reached its limit
	Unheld                // the hold was not claimed in time
	Revoked               // its lender wanted the processors back
	Unknown               // the lender has no such lease: it ended before, or never was
	Broken                // the lease by which the lender had the processors has ended
	NoAnswer              // a claim was not confirmed in time
	Crashed               // the borrower was down when it had to renew
	NotPaid               // its borrower has no cheque for it
)

var causeNames = [...]string{"released", "expired", "not claimed in time", "revoked", "unknown to the lender", "its source has ended", "claim not confirmed", "could not be renewed in time", "not paid for"}

// String says it in words. A newer site's cause prints as "ended".
func (c Cause) String() string {
	if int(c) < len(causeNames) {
		return causeNames[c]
	}
	return "ended"
}

// Reason says why a request was refused.
type Reason uint8

// Reasons. Numbers travel on the wire: append, never renumber.
const (
	Accepted    Reason = iota
	Busy               // too few processors are free
	TooWide            // more processors than the site, and whoever it could ask, will ever have, or ever lends to this borrower
	TooLong            // for longer than the site lends
	Denied             // the site does not lend to this borrower
	Seen               // delegation: the site has seen this request within the last hour
	Exhausted          // delegation: nobody the request could be passed on to has room
	Stale              // a copy of an old request
	Full               // too many requests or leases
	Malformed          // processors or spans out of bounds
	Unreachable        // no connection could be made
	Silent             // no answer came in time
	Withdrawn          // the borrower does not want it any more
	Loop               // the site would borrow from itself
	Unpaid             // the site lends only to who pays from a bank that it accepts
	Dear               // the site's price is above what the borrower pays
	TooLate            // not by when the processors are needed
	ByRule             // the owner's rules for guests do not allow it
)

var reasonNames = [...]string{
	"accepted", "too few processors are free", "wider than the site", "for longer than the site lends", "the site does not lend to this borrower",
	"seen within the last hour", "no site that could be asked has room", "copy of an old request", "too many requests", "out of bounds",
	"unreachable", "no answer in time", "withdrawn", "the site would borrow from itself",
	"it lends only to sites that pay from a bank which it accepts", "it asks for a higher price than the site pays",
	"not by when they are needed", "its owner's rules for guests do not allow it",
}

// String says it in words. A newer site's reason prints as "refused".
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "refused"
}
