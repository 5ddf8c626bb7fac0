package api

// BankAccount is what is in one account of a bank.
type BankAccount struct {
	Bank      string `json:"bank"` // ID of the site that keeps it
	BankName  string `json:"bankName,omitempty"`
	Account   string `json:"account"` // ID of the site that owns it, or "(issuer)"
	Name      string `json:"accountName,omitempty"`
	Settled   Amount `json:"settled"`   // at its owner's disposal; of the issuer less than nothing
	InFlight  Amount `json:"inFlight"`  // ceilings of open cheques made out to it
	Committed Amount `json:"committed"` // held for open cheques that it has written
}

// BankReply answers GET /v1/bank/balance, POST /v1/bank/transfer and /v1/bank/grant.
type BankReply struct {
	Accounts []BankAccount `json:"accounts"`

	// Of this site since its daemon started.
	Paid    Amount           `json:"paid"`    // by its cheques
	Earned  Amount           `json:"earned"`  // by others' cheques
	Unpaid  Amount           `json:"unpaid"`  // owed to it by cheques that no bank honours any more
	Refused map[string]int64 `json:"refused"` // what banks have refused to it and, where a bank is kept, what that has refused, by reason
}

// BankEntry is one transaction as it stands in one account.
type BankEntry struct {
	Sequence  uint64  `json:"sequence"`
	At        Instant `json:"at"`
	Kind      string  `json:"kind"`      // grant, transfer, cheque, redeem or expire
	Settled   Amount  `json:"settled"`   // what it added
	Committed Amount  `json:"committed"` // what it added
	Other     string  `json:"other"`     // ID of the other side
	Name      string  `json:"otherName,omitempty"`
	Job       string  `json:"job,omitempty"` // that a cheque pays for
	Epoch     uint32  `json:"epoch,omitempty"`
	Lease     uint64  `json:"lease,omitempty"` // number of the lease that a cheque pays for
	ID        string  `json:"id,omitempty"`    // of a transfer or grant
}

// BankStatement answers GET /v1/bank/statement.
type BankStatement struct {
	Account BankAccount `json:"account"`
	Entries []BankEntry `json:"entries"` // newest first
}

// BankMove is the body of POST /v1/bank/transfer and POST /v1/bank/grant.
type BankMove struct {
	ID     string `json:"id,omitempty"` // 26 characters; the same ID moves credits once; made up if empty
	To     string `json:"to"`           // site: name or ID
	Amount Amount `json:"amount"`       // credits, more than 0
}
