package fee

import (
	"fmt"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/market/bank"
)

// Messages of the protocol. A lease is named by its borrower's number and its lender's
// epoch.

// Advance: the borrower hands over the cheque that pays for a lease.
type Advance struct {
	Number, Epoch uint64
	Cheque        *bank.Cheque
}

// Advances answers Advance.
type Advances struct {
	Number, Epoch uint64
	Refusal       Refusal
}

// Bill: the lender says what a lease has cost that is over.
type Bill struct {
	Number, Epoch uint64
	Claim         *bank.Receipt // the lender's
}

// Agreed answers Bill.
type Agreed struct {
	Number, Epoch uint64
	Agreement     *bank.Receipt // the borrower's; nil: it knows of no cheque
}

// Refusal is a lender's "no" to a cheque, or Kept. Numbers travel on the wire: append only.
type Refusal uint8

const (
	Kept    Refusal = iota // no refusal
	Gone                   // there is no such lease (any more)
	NotGood                // the cheque does not pay for the lease
)

var refusalNames = [...]string{"kept", "the lender has no such lease any more", "the lender does not take the cheque"}

// String returns the refusal in words.
func (r Refusal) String() string {
	if int(r) < len(refusalNames) {
		return refusalNames[r]
	}
	return fmt.Sprintf("the lender refuses the cheque for reason %d", uint8(r))
}

// MessageKind implements grid.Message.
func (*Advance) MessageKind() grid.Kind { return wire.FeeAdvance }

// MessageKind implements grid.Message.
func (*Advances) MessageKind() grid.Kind { return wire.FeeAdvanced }

// MessageKind implements grid.Message.
func (*Bill) MessageKind() grid.Kind { return wire.FeeBill }

// MessageKind implements grid.Message.
func (*Agreed) MessageKind() grid.Kind { return wire.FeeAgreed }
