package bank

import "fmt"

// Refusal is a bank's "no", or Done. Numbers travel on the wire: append only.
type Refusal uint8

const (
	Done          Refusal = iota // no refusal
	NoFunds                      // less is settled in the account than is needed
	NoAccount                    // the asker has no account
	NoPayee                      // the receiver has no account
	BadAmount                    // not more than zero, or too large
	ToSelf                       // payer and payee are the same
	OtherTerms                   // the same identity was used with other terms
	UnknownCheque                // no such cheque, or it was closed long ago
	Closed                       // the cheque is withdrawn: it was never written, or nobody may use it any more
	Expired                      // the cheque has expired and its money was returned
	NotPayee                     // the cheque is somebody else's
	NotSigned                    // the payer's receipt is missing or is about something else
	TooMuch                      // more than the cheque's ceiling
	WrongBank                    // the cheque is of another bank
	NoBank                       // the site that was asked keeps no bank
	Full                         // the bank holds as much as its limits allow; try later
	refusalMax
)

var refusalNames = [refusalMax]string{
	"done", "insufficient funds", "no account: the bank's owner opens one with a grant", "the receiver has no account at this bank",
	"not an amount that can be moved", "payer and receiver are the same", "this identity was used with other terms",
	"no such cheque", "the cheque is withdrawn", "the cheque has expired", "the cheque is made out to another site",
	"the payer has not signed for it", "more than the cheque's ceiling", "the cheque is of another bank",
	"that site keeps no bank", "the bank is full: try later",
}

// String returns the refusal in words.
func (r Refusal) String() string {
	if r >= refusalMax {
		return fmt.Sprintf("refused for reason %d", uint8(r))
	}
	return refusalNames[r]
}

// passing reports whether the same request may succeed later.
func (r Refusal) passing() bool { return r == Full || r == NoBank }
