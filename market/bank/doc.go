// Package bank is the federation's money: a double-entry ledger kept by any site
// that offers it, and the desk through which every site deals with banks.
//
// A site banks with one site, perhaps itself, and pays with its cheques; a cheque
// names its bank, and the payee redeems it there, wherever it banks itself.
//
// # What the caller does
//
//  1. Make a Desk with NewDesk. After a restart call Load for every record that was
//     stored under RecordPrefix, then Loaded, before anything else.
//  2. Wait for a message, an input, or NextTimer; read the clock once; call Step.
//  3. Store the step's records in their order, and only then send its messages.
//  4. Feed the *grid.Delivery from its own site that is found among the outbox's Locals
//     (a site that banks with itself) back to Step at once, and give *Written,
//     *Declined and *Back to whoever places jobs.
//  5. Hand it every message of Protocol, every *grid.Undelivered about one, and what
//     users ask: Grant, Transfer, Question. Each is answered by a Statement.
//
// The market agents of both sides call the rest within their own steps: home Draw,
// Cheque, Due, Agree and Unwanted; the executing site Accepts, Good, Take, Claim, Agreed
// and Release.
//
// # Messages
//
//	payer (home)         bank                     payee (executing site)
//	Draw            ->   commits the ceiling
//	                <-   Drawn: cheque, signed
//	market.JobSubmission with the cheque      ->  keeps it as a bill
//	               <-  market.JobCompletion with the payee's receipt
//	market.Acknowledge with the payer's       ->
//	                     pays, refunds rest  <-   Redeem: cheque, both receipts
//	                <-   Settled  Redeemed   ->
//	Return: not needed any more               ->  redeems nothing
//	TransferRequest ->   moves credits
//	                <-   TransferReply
//	Inquire         ->
//	                <-   Inform: balance and newest transactions
//
// A payer that does not need a cheque any more asks the payee to give it back
// (Return): the payee redeems nothing, and all is refunded. If the payee never
// answers, the expiry of the cheque refunds it. The payer alone cannot take a
// cheque back: that is what makes it worth something to the payee. Of a site that is a
// member of the federation no longer (Outcasts) no word is needed: Redeem may bring the
// payee's receipt alone, or come from the payer with its own.
//
// Messages may be lost, doubled, late or out of order. A cheque is known by payer
// and execution, a transfer by sender and an ID of its user's; whatever is asked
// for twice happens once and is answered twice. Draws are repeated until answered
// or given up, redemptions and returns until answered or the cheque has expired.
//
// # Invariants
//
// They are checked at every transaction (a violation panics) and by Ledger.Audit:
//
//   - the postings of a transaction sum to zero, and so do all accounts, the
//     issuer's included, which alone may be negative;
//   - what is committed in an account is the sum of its open cheques' ceilings;
//   - a cheque is paid at most once, to its payee, before it expires, at most its
//     ceiling and at most what either side signed; its rest is refunded once;
//   - the journal is contiguous, and each transaction's hash covers the one before.
//
// Records are written so that any prefix of a step's records recovers: a
// transaction comes before the accounts and cheques it changes, and Loaded applies
// to each what it has not seen yet.
//
// # Source
//
// The idea is GridBank's (Barmouta and Buyya 2003), which Grid-Federation §2.1 names
// for its credit management. Nothing here sets prices, and no site is watched for honesty
// beyond what signatures show.
package bank
