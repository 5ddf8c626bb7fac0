package site

import (
	"errors"

	"gridnode/grid"
	"gridnode/lease"
)

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
	Used int64        // borrowed: processors that run this site's jobs
	Jobs []grid.JobID // borrowed: those jobs
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
