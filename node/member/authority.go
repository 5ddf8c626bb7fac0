package member

import (
	"gridnode/grid"
	"gridnode/internal/wire"
)

// isMember stands for no right but to be a member. Unlike 0 it says that a kind of
// messages exists.
const isMember = rightsEnd

// rightToSend says what the sender of each kind of message must have. A kind that is not in
// it is heard from nobody.
var rightToSend = [wire.KindMax]Rights{
	wire.MarketNegotiate:     MaySubmit,
	wire.MarketReply:         MayOffer,
	wire.MarketJobSubmission: MaySubmit,
	wire.MarketJobCompletion: MayOffer,
	wire.MarketAcknowledge:   isMember,
	wire.MarketCancel:        MaySubmit,
	wire.MarketRenew:         MayOffer,
	wire.MarketRenewed:       MaySubmit,

	wire.DirectoryPublish:   MayOffer,
	wire.DirectoryPublished: MayHold,
	wire.DirectoryWithdraw:  MayOffer,
	wire.DirectoryScan:      isMember,
	wire.DirectoryPage:      MayHold,
	wire.DirectoryReport:    MayHold,
	wire.DirectoryReported:  MayHold,
	wire.DirectoryEnter:     isMember,
	wire.DirectoryEntered:   MayHold,
	wire.DirectoryInquire:   isMember,
	wire.DirectoryInform:    MayHold,

	wire.GossipLoad:    isMember,
	wire.GossipLatency: isMember,
	wire.GossipGreet:   isMember,
	wire.GossipReply:   isMember,

	wire.KademliaFind:  isMember,
	wire.KademliaNodes: isMember,

	wire.LeaseRequest:  MaySubmit,
	wire.LeaseGrant:    MayLend,
	wire.LeaseRefuse:   isMember,
	wire.LeaseClaim:    MaySubmit,
	wire.LeaseRenew:    MaySubmit,
	wire.LeaseRenewed:  MayLend,
	wire.LeaseRelease:  MaySubmit,
	wire.LeaseReleased: MayLend,
	wire.LeaseRevoke:   MayLend,
	wire.LeaseInvite:   isMember,
	wire.LeaseJoin:     isMember,
	wire.LeaseFamily:   isMember,

	wire.DataInquire: isMember,
	wire.DataInform:  isMember,

	wire.BankDraw:        isMember,
	wire.BankDrawn:       MayBank,
	wire.BankReturn:      isMember,
	wire.BankRedeem:      isMember,
	wire.BankRedeemed:    MayBank,
	wire.BankSettled:     MayBank,
	wire.BankTransfer:    isMember,
	wire.BankTransferred: MayBank,
	wire.BankInquire:     isMember,
	wire.BankInform:      MayBank,

	wire.FeeAdvance:  MaySubmit,
	wire.FeeAdvanced: MayLend,
	wire.FeeBill:     MayLend,
	wire.FeeAgreed:   isMember,

	wire.MemberRevoked: isMember,
	wire.MemberDigest:  isMember,
	wire.MemberInquire: isMember,
	wire.MemberInform:  isMember,
}

// RightToSend returns what a member must have to send messages of a kind, which may be
// nothing. known is false for kinds that nobody may send.
func RightToSend(kind grid.Kind) (r Rights, known bool) {
	if int(kind) >= len(rightToSend) {
		return 0, false
	}
	r = rightToSend[kind]
	return r & All, r != 0
}
