package bank

import (
	"gridnode/grid"
	"gridnode/internal/wire"
)

// Messages of the protocol. The sender is authenticated: it is the account that a
// message is about.

// Draw: the sender wants a cheque of the bank that it is sent to.
type Draw struct {
	Task      grid.TaskID
	Payee     grid.SiteID
	Ceiling   grid.Credits
	Lifetime  grid.Time // span
	Withdrawn bool      // it does not want it any more: if it is not written, it never will be
}

// Drawn answers Draw.
type Drawn struct {
	Task      grid.TaskID
	Refusal   Refusal
	Cheque    *Cheque      // nil if refused
	Settled   grid.Credits // in the account now
	Committed grid.Credits
}

// Return: the payer of a cheque asks its payee to give it back.
type Return struct{ Cheque *Cheque }

// Redeem: the payee presents a cheque.
type Redeem struct {
	Cheque    *Cheque
	Claim     *Receipt // the payee's
	Agreement *Receipt // the payer's; nil if the cheque is given back
}

// Redeemed answers Redeem.
type Redeemed struct {
	Payer   grid.SiteID
	Task    grid.TaskID
	Refusal Refusal
	Paid    grid.Credits
}

// Settled tells the payer that a cheque is spent. It is sent once and may be lost.
type Settled struct {
	Task grid.TaskID
	Paid grid.Credits
}

// TransferRequest moves credits of the sender's to another account.
type TransferRequest struct {
	ID     grid.JobID // of the sender's choice: the same ID moves credits once
	To     grid.SiteID
	Amount grid.Credits
	Asked  grid.Time // when the user did, by the sender's clock: the same in each copy; 0: not said
}

// TransferReply answers TransferRequest.
type TransferReply struct {
	ID        grid.JobID
	Asked     grid.Time // of the request
	Refusal   Refusal
	Settled   grid.Credits
	Committed grid.Credits
}

// Inquire asks what the sender has.
type Inquire struct {
	Token uint64
	Limit int32 // of transactions, 0 to 100
}

// Inform answers Inquire.
type Inform struct {
	Token        uint64
	Refusal      Refusal
	Balance      Balance
	Transactions []*Transaction // newest first
}

// Balance is what is in an account.
type Balance struct {
	Settled   grid.Credits // at its owner's disposal
	Incoming  grid.Credits // in flight: ceilings of open cheques made out to it
	Committed grid.Credits // held for open cheques that it has written
}

// MessageKind implements grid.Message.
func (*Draw) MessageKind() grid.Kind { return wire.BankDraw }

// MessageKind implements grid.Message.
func (*Drawn) MessageKind() grid.Kind { return wire.BankDrawn }

// MessageKind implements grid.Message.
func (*Return) MessageKind() grid.Kind { return wire.BankReturn }

// MessageKind implements grid.Message.
func (*Redeem) MessageKind() grid.Kind { return wire.BankRedeem }

// MessageKind implements grid.Message.
func (*Redeemed) MessageKind() grid.Kind { return wire.BankRedeemed }

// MessageKind implements grid.Message.
func (*Settled) MessageKind() grid.Kind { return wire.BankSettled }

// MessageKind implements grid.Message.
func (*TransferRequest) MessageKind() grid.Kind { return wire.BankTransfer }

// MessageKind implements grid.Message.
func (*TransferReply) MessageKind() grid.Kind { return wire.BankTransferred }

// MessageKind implements grid.Message.
func (*Inquire) MessageKind() grid.Kind { return wire.BankInquire }

// MessageKind implements grid.Message.
func (*Inform) MessageKind() grid.Kind { return wire.BankInform }

// ForJob implements grid.JobMessage.
func (m *Draw) ForJob() grid.JobID { return m.Task.Job }

// ForJob implements grid.JobMessage.
func (m *Drawn) ForJob() grid.JobID { return m.Task.Job }

// ForJob implements grid.JobMessage.
func (m *Return) ForJob() grid.JobID { return m.Cheque.Task.Job }

// ForJob implements grid.JobMessage.
func (m *Redeem) ForJob() grid.JobID { return m.Cheque.Task.Job }

// ForJob implements grid.JobMessage.
func (m *Redeemed) ForJob() grid.JobID { return m.Task.Job }

// ForJob implements grid.JobMessage.
func (m *Settled) ForJob() grid.JobID { return m.Task.Job }
