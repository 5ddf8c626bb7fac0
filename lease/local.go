package lease

import "gridnode/grid"

// Inputs for the owner of a Book, put into Outbox.Locals.

// Granted says, at the borrower, that what it asked for is held for it: Claim it
// or Release it by Lease.End.
type Granted struct{ Lease }

// Refused says, at the borrower, that a request has failed. It is over.
type Refused struct {
	Lease
	Reason Reason
	Free   int64      // processors free at the lender, as it says; 0 if it did not answer
	Price  grid.Price // what the lender asks for, if it is Dear
	Ready  grid.Time  // after which it would have them; 0: it does not say
	Span   grid.Time  // for how long it would lend them; 0: it does not say
	Lends  int64      // processors that it ever lends at once; 0: it does not say
}

// Due says, at the borrower, that a lease which the owner claims has a price: the owner
// hands its lender a cheque over the price of the time from the grant on, Hold and
// Lease.Span at most, and says by Settle that it has, or that there is none.
type Due struct {
	Lease
	Hold grid.Time
}

// Over says, at the borrower, that a lease with a price costs no more from Gone on,
// whatever has become of it.
type Over struct {
	ID
	Gone grid.Time
}

// Claimed says, at the borrower, that the lease is active.
type Claimed struct{ Lease }

// Recalled says, at the borrower, that the lender wants the processors back: the
// lease is not renewed any more. It is for the owner to Release it before it ends.
type Recalled struct{ Lease }

// Vacate says, at the borrower, some time after Recalled that the lease is about to
// end: the owner ends in good order what runs there and Releases it, so that it is
// known to be over at once, and not only at Ended.Gone.
type Vacate struct{ Lease }

// Asked says, at the lender, that a site asks for processors. The owner calls Grant
// or Refuse: at once if Patience is 0, else within it.
type Asked struct {
	Lease
	Patience grid.Time
}

// Activated says, at the lender, that a lease was claimed: the borrower may use the
// processors from now on.
type Activated struct{ Lease }

// Ended says that a lease is over, in the state it had. At the borrower whatever
// ran on the processors must be given up, and may be started again elsewhere from
// Gone on. At the lender what runs there must be ended; with Config.Drain the owner
// then calls Vacated. For State Requested (at the lender): the request is withdrawn.
type Ended struct {
	Lease
	Cause Cause
	Gone  grid.Time // borrower: from then on nothing runs on the processors any more, even if no message arrives
}
