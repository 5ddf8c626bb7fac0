// Package market is the Grid-Federation agent (GFA) of a site: it finds sites for
// its users' jobs by deadline and budget, and admits the jobs of other sites.
//
// # What the caller does
//
//  1. Make an Agent with New; with UseBank, one that pays.
//  2. After a restart give it Resume for every job awarded elsewhere and Restore
//     (then Ended, if it has) for every job of others, before any other input.
//  3. Wait for a message, an input, or NextTimer; read the clock once; call Step.
//  4. Save what Placed, Accepted and Completed, among the outbox's Locals, say, and
//     only then send the messages of the same step: they rely on it.
//  5. Hand the agent every message of Protocol, every *grid.Undelivered of one, every
//     *directory.Found that answers it, and Ended or Abandoned for each job that it
//     has Accepted. Tell it which sites are members no longer (CastOut).
//  6. If Placed names a bank, give Pay once the cheque is there (bank.Written), or
//     Stop if there will be none; the job leaves with Pay.
//
// The cluster that New wants is internal. A module of its own steps an Agent inside of a
// site.Site that has the parts site.Market and site.Quotes only.
//
// Every Place ends in exactly one Placed or Refused. Preview tells what Place would
// do: it asks the best sites what they would say, and has them hold nothing.
//
// # Messages
//
//	home                         asked site
//	Negotiate        ->          reserves processors: a hold, for Config.HoldSpan
//	                 <-  Reply   guarantee or refusal, with what is startable now
//	JobSubmission    ->          the hold becomes a job: Accepted
//	                 <-  Acknowledge
//	                 <-  JobCompletion, after Ended or Abandoned there
//	Acknowledge      ->          Delivered
//
// With Probe a Negotiate has the asked site say what it would answer, and nothing more.
//
// Cancel releases a hold, or asks for the end of a job (Revoke there). Home itself is
// asked without a message. Messages may be lost, doubled, late or out of order. A
// guarantee is known by its asker, the execution (job and epoch), and a name that its
// giver never uses twice; a submission is repeated until the giver says that it has
// the job, or that it does not know the guarantee, which is final. A completion is
// repeated until acknowledged, a Cancel until the completion comes.
//
// # Policies
//
// Whom a home asks, in which order, how many at a time and when it gives up is up to
// Config.Placement, a Policy: PlacementCoordinated, PlacementPaper, or one of one's
// own, which may embed one of these. What it needs is public (packages grid and
// directory, and this one), and NewSearch tries it without an agent. Rank is the order
// of the sites that result, with reasons, for whoever wants to know why.
//
// # Inside
//
// The broker looks for sites for the jobs of this home, away follows those that other
// sites have, the provider runs those of others, behind its admission; what they share
// is the office. Memory is what a site has learned of others beyond their quotes.
//
// # Invariants
//
//   - a hold becomes one reservation of an accepted job, or is released when it
//     ends; nobody holds more than Config.HoldsPerPeer, and those who take up none
//     no more than Config.HoldShare of the processors together, or one hold;
//   - an execution is Lost only when it certainly does not exist: its submission
//     never arrived, its guarantee is unknown, it was abandoned, or Award.Until has
//     passed, by when the executing site must have ended it;
//   - the price of a guarantee never changes, and home never pays more than it;
//   - the same inputs at the same times give the same effects.
//
// # Source
//
// Placement and messages are those of Ranjan, Harwood and Buyya, "Grid-Federation:
// a resource management system for cooperative federation of distributed
// clusters" (2004): §2.1 the agent, and what jobs take and cost (package grid);
// §2.2 the loop (PlacementPaper). Each place quotes what it implements.
// Beyond it are the holds, everything about failures, PlacementCoordinated and
// PricingDemand. The package runs nothing, and moves no money: package bank does.
package market
