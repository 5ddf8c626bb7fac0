package bank

import "gridnode/grid"

// Bounds of what other sites and time can make grow.
const (
	accountsMax  = 100_000 // of one ledger
	holdsMax     = 1 << 18 // cheques of one ledger, open or closed lately
	perPayerMax  = 1 << 17 // of them, of one payer
	journalMax   = 1 << 18 // transactions kept; the oldest go first
	paymentsMax  = 1 << 18 // cheques this site has written and not seen settled
	billsMax     = 1 << 18 // cheques this site was given and has not redeemed
	questionsMax = 1024    // of users, waiting for a bank's answer
	declinedMax  = 4096    // refused transfers whose copies may be under way
	siteBytesMax = 128     // of a site ID
	statementMax = 100     // transactions in one answer
)

const (
	// copyLife is how long a copy of a message may be under way; streams break
	// sooner. What answers a copy is remembered at least as long.
	copyLife = 10 * grid.Minute
	// closedKeep is how long a closed cheque is remembered: a payee that was cut off
	// when it was paid still learns what it got.
	closedKeep = 6 * grid.Hour
	// Grace is how long a cheque outlives the last instant at which its job can be
	// alive: a payee cut off for a week is paid still.
	Grace = 7 * grid.Day
	// graceMin is how much of that must be left when a payee takes a cheque.
	graceMin = grid.Hour
	// lifetimeMax bounds a cheque's life; a job's estimate is at most ten years.
	lifetimeMax = 20 * 365 * grid.Day
)

const (
	// drawMax is how long a job waits for its cheque. It is less than the guarantee
	// of the site that is to have the job lasts (market.Config.HoldSpan, 10 s).
	drawMax    = 5 * grid.Second
	drawPause  = grid.Second      // before the first repetition of a draw
	probeMax   = grid.Minute      // longest pause between draws that nobody waits for: they find out when the bank is back
	redeemMax  = 10 * grid.Minute // longest pause between redemptions and between returns
	questionIn = 10 * grid.Second // for users
)
