// Package site is one site: the protocol cores composed behind one name.
//
// A Site knows jobs, its own and those of others, and gets each of its own to processors
// by one of five ways: divided over sites (co-allocation), spread over own and leased
// processors, shared out over the clusters that the site heads (packing), guaranteed by
// whoever the market finds, or in the queue here, whose jobs also run on processors that
// are borrowed (leases). It is a core
// itself: it reads no clock, starts no goroutine and does no I/O, so the very same Site
// runs under node.Host and in the virtual networks of testnet.
//
// # The caller's loop
//
// The driver does what package grid says: it waits for an input or for NextTimer, reads
// the clock once, calls Step, and carries the effects out in order, what is saved being
// durable before anything later is sent, started or answered. Besides:
//
//  1. It gives all inputs that are there at one instant (or in one turn of its loop) to
//     Step one by one, ends of tasks before submissions, and then always one grid.Tick:
//     only a Tick starts jobs. If NextTimer is in the past after that, it gives another.
//  2. After a restart it calls Recover with what was stored, then gives Adopted for every
//     task that still runs and grid.TaskEnded for every task that ended meanwhile, all
//     before the first Tick.
//  3. What Step appends to the outbox it carries out before the next Step, or keeps in
//     order: records are encoded from live state.
//
// # Inputs
//
// Of the network: *grid.Delivery, *grid.Undelivered, *grid.Closest, *grid.Probed, *grid.Parted,
// *grid.Provided, *grid.Providers. Of the executor: *grid.TaskEnded, *Adopted. Of users,
// each with a token under which it is answered (0: nobody waits):
//
//	Submit            Submitted           a job is taken, or why not
//	Cancel            Cancelled           what state the job is in now
//	Preview           market.PreviewResult   where a job would go; nothing is held
//	FindQuotes        directory.Found     quotes in the order that was asked for
//	SetPrice          PriceSet            what is charged from now on
//	RequestLease      LeaseAnswer         once the lease is active or refused
//	ChangeLease       LeaseAnswer         renewed, released, revoked
//	ChangeLink        LinkAnswer          of the hierarchy of delegation
//	bank.Grant, Transfer, Question   bank.Statement
//	dataset.Hold, Drop      dataset.Held
//	dataset.Find            dataset.Found
//	Drain             nothing             no new work; the quote is withdrawn
//
// The cores of a site also tell each other things; those inputs never leave Step.
//
// # What comes of it
//
// Effects as package grid lists them; tasks of three kinds: a job (on own processors, or
// with Task.Pilot on borrowed ones), a pilot (no Job: keep processors that are lent), and
// a gang (Task.Gang: a job at several sites). Events for users and checkers follow a job:
// JobSubmitted, JobPlaced, JobStarted, JobEnded (at the site that ran it), then JobFinished,
// JobCancelled or JobRefused at its home; JobReplaced each time it is placed anew.
//
// # States of a job
//
//	Submit --> Placing --+--> Awarded, by another site --+--> Done, Failed
//	  ^                  |                               |
//	  |                  +--> Queued, here --> Running --+
//	  |                  |
//	  |                  +--> Refused
//	  |
//	  +-- an execution was lost: placed anew, with the next epoch
//
// Cancel ends a job that is Placing or Queued at once, as CancelledByUser. One that is
// Awarded or Running is Cancelling until whoever runs it says that it has ended. A job of
// another site is Queued, Running and then Done, Failed or CancelledByUser here, or Returned if
// it is given back after losses, and is forgotten when its home has heard of that.
//
// An epoch numbers the placements of a job: whatever carries an older one changes nothing.
//
// # Invariants
//
//   - An acknowledged job is in the store, and never lost.
//   - A job has at most one live execution. Where nobody knows what is left of one, the job
//     waits until the leases that it ran under are certainly over.
//   - A terminal state never changes.
//   - Free, running, lent, held and borrowed processors add up.
//   - A site draws no random number but from streams of its seed: same seed and inputs,
//     same effects.
//
// # Parts
//
// A Site is made of parts, each of which owns some state and alone takes some types of
// inputs and kinds of messages. Config.Parts chooses them.
//
//	        inputs of users, network and executor; what cores tell each other
//	                                      |
//	                                    board
//	                                      |
//	   ways of jobs                       |                 processors of others
//	   gangs  spreads  packing  placing   |                 loans     links
//	      \      |        |      /        |                    |        |
//	       v     v        v     v cheques |                    v        v
//	limbo > jobs, recovery <-- payment    |           pilots, borrowing
//	              |                       |                        |
//	              +------> queue <--------|------------------------+
//	                         |            |
//	                    lrms.Cluster      +-- known of others: quotes, latencies, inputs
//
//	part       core it owns           what it is for
//	jobs       lrms.Cluster           the table of jobs, their states, executions here
//	recovery                          restarts: what was stored, what still runs
//	limbo                             executions that are waited for until they are certainly dead
//	quotes     directory.Directory    own quote and load, queries; directory and gossip of load
//	placing    market.Agent           home jobs elsewhere, jobs of others here; prices
//	payment    bank.Desk              cheques for jobs that leave, accounts
//	loans      lease.Book             leases, lent and borrowed; what users ask of them
//	pilots                            lent processors
//	borrowing  lease.Matchmaker       this site's jobs on borrowed processors
//	spreads                           jobs whose tasks run on own and leased processors together
//	links      lease.Kinship          the hierarchy of delegation
//	latencies  coalloc.Survey         how far other sites are
//	inputs     dataset.Catalog        data sets
//	gangs      coalloc.Coordinator    jobs at several sites; its scout looks at the sites
//	packing    muscle.Head            jobs shared out over the clusters that this site heads
//
// A new part is a type with its state, a takes method that claims its inputs, a tick if
// time means something to it, a line each in switchboard, builder.build and
// builder.arrange, and a name among Parts. A new way for jobs to processors implements
// way, another source of borrowed processors implements queue, and whoever claims leases
// by itself implements borrower.
package site
