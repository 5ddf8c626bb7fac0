// Package market is the Grid-Federation agent (GFA) of a site: it finds sites for
// its users' jobs by deadline and budget, and admits the jobs of other sites.
//
// A site that wants a job placed gives Place; exactly one Placed or Refused comes
// back. In between the agent ranks quotes of the directory (Rank), asks for
// guarantees and takes one up:
//
//	home                         asked site
//	Negotiate        ->          reserves processors: a hold, for Config.HoldSpan
//	                 <-  Reply   guarantee or refusal, with what is startable now
//	JobSubmission    ->          the hold becomes a job: Accepted
//	                 <-  Acknowledge
//	                 <-  JobCompletion, after Ended or Abandoned there
//	Acknowledge      ->          Delivered
//
// Cancel releases a hold, or asks for the end of a job. Home itself is asked
// without a message. What the site has to do:
//
//  1. hand every message of Protocol, every *directory.Found for a query that is
//     not its own, and every local input to the core it is for;
//  2. save what Placed, Accepted and Completed say before it returns from the step,
//     so that it is durable before the message that relies on it leaves;
//  3. if Placed names a bank, give Pay once the cheque is there (bank.Written), or
//     Stop if there will be none; the job leaves with Pay;
//  4. after a restart give Resume for every job awarded elsewhere and Restore (then
//     Ended, if it has) for every job of others, before any other input.
//
// Messages may be lost, doubled, late or out of order. A guarantee is known by its
// asker, the execution (job and epoch), and a name that its giver never uses twice;
// a submission is repeated until the giver says that it has the job, or that it
// does not know the guarantee, which is final. A completion is repeated until
// acknowledged, a Cancel until the completion comes.
//
// Invariants:
//
//   - every Place ends in one Placed or Refused;
//   - a hold becomes one reservation of an accepted job, or is released when it
//     ends; nobody holds more than Config.HoldsPerPeer;
//   - an execution is Lost only when it certainly does not exist: its submission
//     never arrived, its guarantee is unknown, it was abandoned, or Award.Until has
//     passed, by when the executing site must have ended it;
//   - the price of a guarantee never changes, and home never pays more than it.
//
// Placement and messages are those of Ranjan, Harwood and Buyya, "Grid-Federation:
// a resource management system for cooperative federation of distributed
// clusters" (2004); each place quotes what it implements. Beyond it are the holds,
// everything about failures, PlacementCoordinated and PricingDemand.
//
// The package runs nothing, and moves no money: package bank does (UseBank).
package market
