// Package fee charges for leases: price × processors × the time from the grant to the end,
// through the banks, as jobs are paid (package bank).
//
// A Tab is what one site owes others for what it borrows, and is owed for what it lends.
// It knows leases by what they cost; who holds processors is package lease's.
//
// # What the caller does
//
//  1. Make a Tab with New, beside the site's bank.Desk and lease.Book. After a restart call
//     Load for every record that was stored under RecordPrefix, once the desk is loaded.
//  2. Feed Step every message of Protocol and grid.Ticks; store its records before its
//     messages leave.
//  3. At the borrower call Pay for a lease that is to be paid before it is claimed, and
//     Over when it costs no more; give Written and Declined what the desk says. Take *Paid
//     and *Unpaid from the outbox's Locals.
//  4. At the lender take *Advanced from the Locals: the lease may be claimed. Call Ended
//     when a lease with a price is over.
//
// # Messages
//
//	borrower                  bank             lender
//	                                       <-  lease.Grant, with the price
//	bank.Draw             ->
//	bank.Drawn            <-
//	Advance: the cheque                    ->  keeps it
//	                                       <-  Advanced
//	lease.Claim                            ->  the lease is active, and ends one day
//	                                       <-  Bill, with the lender's receipt
//	Agreed, with the borrower's            ->
//	                          bank.Redeem  <-
//
// Advance and Bill are repeated until they are answered. A cheque pays for one lease: its
// execution is TaskOf the lease's number, its ceiling the price of the longest time that
// was granted.
//
// # What is due
//
// The lender counts from its grant to the end of the lease, whoever ends it and whether it
// was claimed or not, and never beyond the end that was agreed. A hold that the lender
// itself takes back costs nothing. The borrower has a meter of its own: it signs for no
// more than the time from its request until the processors have surely gone back, or the
// bill has come, and a thousandth more for clocks that differ. Of the two the bank pays the
// lesser.
//
// # Invariants
//
//   - nothing is claimed before the cheque is with its lender;
//   - a lease is billed once, however often its end is told;
//   - what is not paid goes back: no cheque of a lease outlives its bill.
//
// A lender that is never given a cheque is not paid for the hold; it keeps what it is owed
// for an hour. A borrower that is not billed for what is over asks every hour for the cheque
// back (bank.Return): a lender that has given it back does so once more.
package fee
