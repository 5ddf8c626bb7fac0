package lease

import (
	"gridnode/grid"
	"gridnode/internal/wire"
)

// Messages of the protocol. A lease is named by its number; its borrower is one end
// of the conversation. Spans count from when the message was sent.

// Request: the borrower asks for processors.
type Request struct {
	Number     uint64
	Processors int64
	Span       grid.Time // for how long, from the claim
	Patience   grid.Time // how long the lender may think about it; 0: it answers at once
	Hold       grid.Time // how long the grant shall wait for the claim; 0: as the lender likes
	Subject    grid.JobID
	Sink       grid.SiteID
	TTL        int32
	Age        grid.Time
	Bank       grid.SiteID // whose cheque pays; empty: nobody pays
	Most       grid.Price  // highest price for a processor-hour; 0: any
	Within     grid.Time   // by when the processors have to be there; 0: it does not matter
}

// Grant: the processors are set aside.
type Grant struct {
	Number uint64
	Epoch  uint64
	Stamp  grid.Time   // the lender's clock; comes back with the next message
	Hold   grid.Time   // how long they stay set aside
	Span   grid.Time   // for how long they may be used
	Source grid.SiteID // whose they are
	Key    uint64      // the source's epoch
	Hops   int32
	Gone   grid.Time  // after which the source has surely taken them back, whatever is lost
	Price  grid.Price // for a processor-hour, from the grant on; 0: nothing
}

// Refuse: the request is refused (DelegationReject in the paper).
type Refuse struct {
	Number uint64
	Reason Reason
	Free   int64      // processors free at the lender
	Price  grid.Price // what it asks for, if that is why
	Ready  grid.Time  // after which it would have them, by estimates; 0: it does not say
	Span   grid.Time  // for how long it would lend them; 0: it does not say
	Lends  int64      // processors that it ever lends this borrower at once; 0: it does not say
}

// Claim: the borrower takes what is held.
type Claim struct {
	Number   uint64
	Epoch    uint64
	Sequence uint64 // of Claim and Renew together, rising
	Stamp    grid.Time
}

// Renew: the borrower is alive and wants the lease to go on (keep-alive).
type Renew struct {
	Number   uint64
	Epoch    uint64
	Sequence uint64
	Stamp    grid.Time
	Span     grid.Time // a new limit, from now; 0: the old one stays
}

// Renewed: the lender confirms a claim or a renewal.
type Renewed struct {
	Number   uint64
	Epoch    uint64
	Sequence uint64 // as in the message that is confirmed; spans count from when that was sent
	Stamp    grid.Time
	Term     grid.Time // until the lease ends without another renewal
	Limit    grid.Time // until it ends at the latest
	Gone     grid.Time // as in Grant
}

// Release: the borrower does not want the request, the hold or the lease any more.
type Release struct {
	Number uint64
	Epoch  uint64 // 0 if nothing was granted yet
}

// Released: there is no such lease (any more). It answers a Release, and whatever
// else is said of a lease that has ended.
type Released struct {
	Number uint64
	Epoch  uint64 // as in the message that is answered
	Cause  Cause
	Gone   grid.Time // as in Grant; 0: nothing of the borrower is left
}

// Revoke: the lender wants the processors back and renews no more.
type Revoke struct {
	Number uint64
	Epoch  uint64
}

// MessageKind implements grid.Message.
func (*Request) MessageKind() grid.Kind { return wire.LeaseRequest }

// MessageKind implements grid.Message.
func (*Grant) MessageKind() grid.Kind { return wire.LeaseGrant }

// MessageKind implements grid.Message.
func (*Refuse) MessageKind() grid.Kind { return wire.LeaseRefuse }

// MessageKind implements grid.Message.
func (*Claim) MessageKind() grid.Kind { return wire.LeaseClaim }

// MessageKind implements grid.Message.
func (*Renew) MessageKind() grid.Kind { return wire.LeaseRenew }

// MessageKind implements grid.Message.
func (*Renewed) MessageKind() grid.Kind { return wire.LeaseRenewed }

// MessageKind implements grid.Message.
func (*Release) MessageKind() grid.Kind { return wire.LeaseRelease }

// MessageKind implements grid.Message.
func (*Released) MessageKind() grid.Kind { return wire.LeaseReleased }

// MessageKind implements grid.Message.
func (*Revoke) MessageKind() grid.Kind { return wire.LeaseRevoke }
