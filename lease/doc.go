// Package lease lends processors of a site to others and borrows theirs: resources
// travel to jobs, jobs and accounts stay at home (Delegated MatchMaking, Iosup et al.
// 2007; The gain of resource delegation, 2009).
//
// A Matchmaker decides when a site borrows, of whom and how much, and what it lends: by
// the load (DMM), or at each submission what a job lacks, all of it or nothing (SSTRD,
// XSTRD). Rules are policies of one's own. Its comment says what its owner does.
//
// A Kinship is a site's place in the hierarchy of delegation: links by configuration and
// by invitation of the parent, and how loops of several sites are noticed. Its owner
// feeds it Invite, Join and Family, and gives Links to the Matchmaker on Relinked.
//
// A Book is the leases of one site, lent and borrowed. A lease goes
//
//	requested → held (granted) → active (claimed) → over (released or expired)
//
// and ends by itself unless it is renewed. What the owner of a Book does:
//
//  1. feed Step the messages of Protocol, Undelivered and Ticks, and Recover after
//     a restart;
//  2. carry out Outbox.Locals: at the lender Asked (answer with Grant or Refuse),
//     Activated, Ended (end what runs there; with Config.Drain call Vacated then); at
//     the borrower Granted (answer with Claim or Release), Due (pay, and Settle), Over,
//     Refused, Claimed, Recalled, Vacate (end what runs there, then Release), Ended (give up what ran there; run it elsewhere from Ended.Gone on);
//  3. Request, Claim, Renew, Release, Revoke as it likes.
//
// The cluster that New and NewMatchmaker want is internal. A module of its own steps both
// inside of a site.Site that has the part site.Leases only.
//
// Holds are leases that are not claimed yet: without a price they cost nobody anything, expire by
// themselves after Want.Hold, and a Claim either is confirmed (Claimed) or not (Ended).
//
// Messages; borrower to lender unless said otherwise:
//
//	request    the borrower wants processors; repeated until answered
//	grant      lender: they are set aside until claimed
//	refuse     lender: no (DelegationReject)
//	claim      the borrower takes them; repeated until confirmed
//	renew      keep-alive at a third of the term
//	renewed    lender: confirms a claim or a renewal
//	release    the borrower wants them no more; repeated until confirmed
//	released   lender: there is no such lease (any more)
//	revoke     lender: no renewal will be granted
//	invite     a site shall be a child of the sender (Kinship)
//	join       a child's word to its parent: yes, no, or its users decide
//	family     a parent's word to a child: who is above and beside it
//
// Clocks need not agree, only run within Config.Drift of the right speed. A borrower
// counts a term from when it sent the claim or renewal, less a margin; the lender from
// when it got it. So the borrower lets go first. A renewal never moves the lender's end
// more than two terms beyond the word of the lender that it answers, so the borrower
// also knows when the processors have surely gone back (Ended.Gone).
//
// A site may lend on what it has borrowed (Terms.Via). Such a chain is released
// backwards: when one lease of it ends, so do those before and after it. Source and Key
// name the processors along the whole chain, Sink who uses them.
//
// Invariants, checked in the simulator at every step:
//
//   - a site's processors are free, running, held or lent (lrms panics otherwise);
//   - no processor is in two leases of its site, and none is lent on twice;
//   - what a borrower believes to have, its lender has granted, and for longer;
//   - messages are idempotent; what a site has lent or claimed is saved before it is
//     told.
//
// The package starts and ends no executions, and decides nothing about pilots and
// accounts. It agrees on prices (Config.Tariff); what is due, and who has paid it, is
// package market/fee's.
package lease
