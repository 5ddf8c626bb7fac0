package api

// Lease is a lease as users see it.
type Lease struct {
	Number     uint64   `json:"number"` // chosen by the borrower; names it with the borrower
	Direction  string   `json:"direction"`
	Borrower   string   `json:"borrower"` // ID of the site
	Lender     string   `json:"lender"`
	Peer       string   `json:"peer"` // name of the other site, for people
	Processors int64    `json:"processors"`
	Used       int64    `json:"used"`  // borrowed: processors that run this site's jobs
	State      string   `json:"state"` // requested held claiming active ending
	Since      Instant  `json:"since,omitzero"`
	End        Instant  `json:"end,omitzero"`   // ends by itself then; renewals move it
	Limit      Instant  `json:"limit,omitzero"` // ends then at the latest
	Source     string   `json:"source,omitempty"`
	Hops       int32    `json:"hops"`    // leases from the source to the borrower
	Price      Amount   `json:"price"`   // for a processor-hour, from the grant on; 0: it is free
	Ceiling    Amount   `json:"ceiling"` // the most that it can cost
	Jobs       []string `json:"jobs"`    // borrowed: IDs of the jobs that run there
}

// LeasesReply answers GET /v1/leases.
type LeasesReply struct {
	Leases []Lease `json:"leases"`
}

// LeaseRequest is the body of POST /v1/leases.
type LeaseRequest struct {
	Site       string  `json:"site"` // name or ID of the lender
	Processors int64   `json:"processors"`
	Time       Seconds `json:"time"`
	MaxPrice   Amount  `json:"maxPrice,omitempty"` // most for a processor-hour; default: leases.pay
}

// LeaseChangeRequest is the body of POST /v1/leases/renew, release and revoke.
type LeaseChangeRequest struct {
	Number   uint64  `json:"number"`
	Borrower string  `json:"borrower,omitempty"` // revoke: name or ID, if several sites have a lease of that number
	Time     Seconds `json:"time,omitempty"`     // renew: from now
	Force    bool    `json:"force,omitempty"`    // revoke: at once; release: also if jobs run there
}

// LeaseReply answers the requests that make or change a lease.
type LeaseReply struct {
	Lease Lease `json:"lease"`
}

// Directions of leases.
const (
	DirectionIn  = "in"  // borrowed
	DirectionOut = "out" // lent
)

// LeaseChange is what can be done with a lease: the last part of the path.
type LeaseChange string

// The borrower renews and releases, the lender revokes.
const (
	RenewLease   LeaseChange = "renew"
	ReleaseLease LeaseChange = "release"
	RevokeLease  LeaseChange = "revoke"
)
