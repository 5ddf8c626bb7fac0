package wire

import "gridnode/grid"

// Message kinds. Numbers travel on the wire: append, never renumber.
const (
	MarketNegotiate     grid.Kind = 1 // home asks for a guarantee
	MarketReply         grid.Kind = 2 // guarantee or refusal
	MarketJobSubmission grid.Kind = 3 // the job itself
	MarketJobCompletion grid.Kind = 4 // its result
	MarketAcknowledge   grid.Kind = 5 // receipt of a submission or completion
	MarketCancel        grid.Kind = 6 // home wants the job ended
	MarketRenew         grid.Kind = 7 // an executing site wants the leases of jobs renewed
	MarketRenewed       grid.Kind = 8 // the answer

	DirectoryPublish   grid.Kind = 16 // a quote for a cell's holder
	DirectoryPublished grid.Kind = 17 // the holder's answer: stored, or go deeper
	DirectoryWithdraw  grid.Kind = 18
	DirectoryScan      grid.Kind = 19
	DirectoryPage      grid.Kind = 20 // answer to a scan
	DirectoryReport    grid.Kind = 21 // a cell's holder tells a holder of the cell it was split off
	DirectoryReported  grid.Kind = 22 // the answer

	GossipLoad    grid.Kind = 24
	GossipLatency grid.Kind = 25 // coordinate and measured latencies of a site
	GossipGreet   grid.Kind = 26 // shall we be siblings, who gossip to each other?
	GossipReply   grid.Kind = 27 // the answer; also: we are not any more

	DirectoryEnter   grid.Kind = 28 // a site's record for those who are to hold it
	DirectoryEntered grid.Kind = 29 // the answer
	DirectoryInquire grid.Kind = 30 // whose record has this name or ID?
	DirectoryInform  grid.Kind = 31 // the answer

	KademliaFind  grid.Kind = 32 // virtual network only: live, kad-dht speaks its own protocol
	KademliaNodes grid.Kind = 33

	LeaseRequest  grid.Kind = 40 // the borrower asks for processors
	LeaseGrant    grid.Kind = 41 // they are set aside
	LeaseRefuse   grid.Kind = 42
	LeaseClaim    grid.Kind = 43 // the borrower takes what is held
	LeaseRenew    grid.Kind = 44 // keep-alive
	LeaseRenewed  grid.Kind = 45 // confirmation of a claim or a keep-alive
	LeaseRelease  grid.Kind = 46
	LeaseReleased grid.Kind = 47
	LeaseRevoke   grid.Kind = 48 // the lender wants them back
	LeaseInvite   grid.Kind = 49 // a site shall be below this one in the hierarchy of delegation
	LeaseJoin     grid.Kind = 50 // the answer, and what a site says to its parent from then on
	LeaseFamily   grid.Kind = 51 // what a parent says to a child: who is above it and beside it

	DataInquire grid.Kind = 56 // do you hold this data set?
	DataInform  grid.Kind = 57 // the answer

	BankDraw        grid.Kind = 64 // the payer wants a cheque
	BankDrawn       grid.Kind = 65 // the cheque, or why there is none
	BankReturn      grid.Kind = 66 // the payer wants the payee to give a cheque back
	BankRedeem      grid.Kind = 67 // the payee presents a cheque
	BankRedeemed    grid.Kind = 68 // what was paid
	BankSettled     grid.Kind = 69 // the payer learns that a cheque is spent
	BankTransfer    grid.Kind = 70 // credits from one account to another
	BankTransferred grid.Kind = 71 // done, or why not
	BankInquire     grid.Kind = 72 // what is in an account?
	BankInform      grid.Kind = 73 // the answer

	MemberRevoked grid.Kind = 80 // certificates of members that are not good any more
	MemberDigest  grid.Kind = 81 // which lists of them a site has
	MemberInquire grid.Kind = 82 // who shows that these sites are members?
	MemberInform  grid.Kind = 83 // the answer: their certificates

	FeeAdvance  grid.Kind = 84 // the borrower hands over the cheque for a lease
	FeeAdvanced grid.Kind = 85 // the lender keeps it, or why not
	FeeBill     grid.Kind = 86 // what a lease has cost that is over
	FeeAgreed   grid.Kind = 87 // the borrower signs
)

// KindMax bounds the kinds a Counter can hold.
const KindMax = 96

var kindNames = [KindMax]string{
	MarketNegotiate:     "market.negotiate",
	MarketReply:         "market.reply",
	MarketJobSubmission: "market.job-submission",
	MarketJobCompletion: "market.job-completion",
	MarketAcknowledge:   "market.acknowledge",
	MarketCancel:        "market.cancel",
	MarketRenew:         "market.renew",
	MarketRenewed:       "market.renewed",
	DirectoryPublish:    "directory.publish",
	DirectoryPublished:  "directory.published",
	DirectoryWithdraw:   "directory.withdraw",
	DirectoryScan:       "directory.scan",
	DirectoryPage:       "directory.page",
	DirectoryReport:     "directory.report",
	DirectoryReported:   "directory.reported",
	DirectoryEnter:      "directory.enter",
	DirectoryEntered:    "directory.entered",
	DirectoryInquire:    "directory.inquire",
	DirectoryInform:     "directory.inform",
	GossipLoad:          "gossip.load",
	GossipLatency:       "gossip.latency",
	GossipGreet:         "gossip.greet",
	GossipReply:         "gossip.reply",
	BankDraw:            "bank.draw",
	BankDrawn:           "bank.drawn",
	BankReturn:          "bank.return",
	BankRedeem:          "bank.redeem",
	BankRedeemed:        "bank.redeemed",
	BankSettled:         "bank.settled",
	BankTransfer:        "bank.transfer",
	BankTransferred:     "bank.transferred",
	BankInquire:         "bank.inquire",
	BankInform:          "bank.inform",
	MemberRevoked:       "member.revoked",
	MemberDigest:        "member.digest",
	MemberInquire:       "member.inquire",
	MemberInform:        "member.inform",
	FeeAdvance:          "fee.advance",
	FeeAdvanced:         "fee.advanced",
	FeeBill:             "fee.bill",
	FeeAgreed:           "fee.agreed",
	KademliaFind:        "kademlia.find",
	KademliaNodes:       "kademlia.nodes",
	DataInquire:         "data.inquire",
	DataInform:          "data.inform",
	LeaseRequest:        "lease.request",
	LeaseGrant:          "lease.grant",
	LeaseRefuse:         "lease.refuse",
	LeaseClaim:          "lease.claim",
	LeaseRenew:          "lease.renew",
	LeaseRenewed:        "lease.renewed",
	LeaseRelease:        "lease.release",
	LeaseReleased:       "lease.released",
	LeaseRevoke:         "lease.revoke",
	LeaseInvite:         "lease.invite",
	LeaseJoin:           "lease.join",
	LeaseFamily:         "lease.family",
}

// KindName returns the stable name of a kind in reports ("market.negotiate"),
// and "" for an unknown one.
func KindName(k grid.Kind) string {
	if int(k) >= KindMax {
		return ""
	}
	return kindNames[k]
}

// Paper reports whether k is one of the four message types that Grid-Federation
// counts (experiment 4).
func Paper(k grid.Kind) bool { return k >= MarketNegotiate && k <= MarketJobCompletion }
