package member

import (
	"testing"

	"gridnode/grid"
	"gridnode/internal/wire"
)

// TestRightsToSend: who may only ask costs nobody anything. What brings jobs, takes processors,
// or speaks for an offer, a cell or a bank, needs the right to that (docs/trust.md).
func TestRightsToSend(t *testing.T) {
	for right, kinds := range map[Rights][]grid.Kind{
		MaySubmit: {
			wire.MarketNegotiate, wire.MarketJobSubmission, wire.MarketCancel, wire.LeaseRequest, wire.LeaseClaim, wire.LeaseRenew, wire.LeaseRelease,
			wire.FeeAdvance,
		},
		MayOffer: {wire.MarketReply, wire.MarketJobCompletion, wire.MarketRenew, wire.DirectoryPublish, wire.DirectoryWithdraw},
		MayHold:  {wire.DirectoryPublished, wire.DirectoryPage, wire.DirectoryReport, wire.DirectoryInform},
		MayLend:  {wire.LeaseGrant, wire.LeaseRenewed, wire.LeaseReleased, wire.LeaseRevoke, wire.FeeBill},
		MayBank:  {wire.BankDrawn, wire.BankRedeemed, wire.BankSettled, wire.BankTransferred, wire.BankInform},
		0:        {wire.DirectoryScan, wire.BankInquire, wire.MemberRevoked, wire.GossipLoad},
	} {
		for _, kind := range kinds {
			if got, known := RightToSend(kind); !known || got != right {
				t.Errorf("message %d needs %v, want %v", kind, got, right)
			}
		}
	}
	for _, kind := range []grid.Kind{0, wire.KindMax, wire.KindMax + 1} {
		if _, known := RightToSend(kind); known {
			t.Errorf("messages of the kind %d, which there is none of, are heard", kind)
		}
	}
}
