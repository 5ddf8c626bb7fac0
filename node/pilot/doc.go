// Package pilot decides about work on borrowed processors, and about gangs: jobs whose
// tasks run at several sites and start together. A site has one Core, made of
//
//   - a Keeper, the lender's part: what a borrower may start under a lease, at most once;
//   - a User, the borrower's: goes on with a task until it ends, or its lease does;
//   - Gangs, the home's: all tasks of a gang start when all are ready, and end as one.
//
// The tasks of one part of a gang are a squad: it has one TaskID, so what follows about a
// task holds for it. Its driver starts a process for each and tells how each has ended; the
// first that fails ends the others, and the end of the squad is told when nothing is left.
//
// A pilot is what keeps the processors of one lease: live a shim of its own, which
// outlives the daemon. What a driver does:
//
//  1. Feed Step the site's orders to start or kill a task for which Takes is true, and
//     what it acknowledges (Start, Kill, Acknowledge). All other tasks, and the pilots
//     themselves (tasks without a job), are its own to run; it says Keep when the site
//     starts a pilot or has it last longer, Release when the site kills it or it has ended.
//     After a restart comes first Found, for each task of a squad that the machine has.
//  2. Feed what the machine and the connections say, in the order in which it happens.
//     What an effect of an earlier run of the daemon would have answered is not fed.
//  3. Carry out Outbox.Effects in order, each Begin durably before what comes next, and
//     Reset it. An effect may be carried out later, in the background, where its comment
//     says that something answers it.
//  4. Feed a grid.Tick when NextTimer is reached.
//
// All of it may happen in the loop of the site, after what the site has saved is durable.
//
// A session is one connection from borrower to lender, ordered and without gaps until it
// is over; both ends learn that by themselves. The borrower numbers its sessions, and the
// first order of one names it. A driver drops what arrives for a session that its core has
// ended, and says Closed or Disconnected at most once. Outputs do not pass through the
// core: the lender's driver sends them from Follow on, as ReportOutput, and all of them
// before the ReportEnded of the task; the borrower's writes them, and fills in
// Order.Stdout and Stderr with how much it has.
//
// Orders (borrower to lender):
//
//	prepare      of a gang: say when the task can be started at once; it has its processors
//	run          start it unless it was begun; report about it from now on
//	kill         end it, or never start it; report about it from now on
//	acknowledge  its end is durable
//
// Reports (lender to borrower):
//
//	ready        answers prepare
//	begun        the pilot has it; the borrower notes it, and never asks for a new start
//	ended, lost  it is over; or it has begun, and the pilot does not have it
//	refused      not now: asked again after RefusedPause
//	forgotten    answers acknowledge
//	superseded   the lender knows a newer session: this one is over
//
// Invariants, checked by TestAnythingMayHappen over lost connections and crashes:
//
//   - a task begins at most once: a pilot knows what it has begun until the borrower has
//     acknowledged the end, orders of older sessions do not count, and what has begun is
//     asked for with Order.Resume;
//   - a pilot never has more processors in use than its lease. Of what it finds after a
//     restart it waits to be told how many it takes;
//   - no task of a gang begins before all were ready. One that is told to begin, and
//     cannot any more, ends the others;
//   - each end is told to the site once in each run of its daemon, until acknowledged;
//   - a lease leaves nothing behind. Its end is the book's to say: nobody reports an end of
//     what runs there, and the site says Kill with Abandon when it waits no longer.
//
// What the site may rely on: a TaskEnded that is not Lost is the outcome; one that is Lost
// says that nothing of the task is left. ExitCancelled is the exit code of what was killed
// before it began, ExitNoStart of what could not be begun.
//
// The package decides nothing about leases, starts no process, and moves no data.
package pilot
