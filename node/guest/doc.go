// Package guest has the owner's rules for other sites: who may run something here, how much
// of it at a time, for how long, at what hours, within what limits and for what price.
//
// A rule is about a partner: one site, the sites of one organisation, or everyone. Counts of
// a rule (processors, jobs, processors lent) are what its partner has here at a time, all its
// sites together, and those of every rule that fits must hold. Of everything else the
// narrowest rule that says it counts: the site's, then its organisation's, then everyone's.
//
// Desk is the core. Its owner, package site,
//
//  1. makes one with a Config that Check found nothing wrong with, and tells it who sites are
//     and what they have here;
//  2. asks Admit before it takes anything of another site, Promise once it knows when that
//     would run, and Runs once it knows what it is; each counts what it refuses;
//  3. gives it Ban, Unban and Configure, and a Tick at NextTimer;
//  4. ends or keeps what a banned partner has here, by Config.OnBan.
//
// Invariants: the rules never let in more than the narrowest of the counts that fit; a ban
// outlives a restart and ends by itself; nothing that a peer sends makes a Desk grow beyond
// its bounds. It reads no clock: hours are told by the zone of Config.
package guest
