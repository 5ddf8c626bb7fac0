// Package lrms is one site's local resource management: its processors, the
// queue of jobs that wait for them, and the promises made to other sites.
//
// Processors are identical and space-shared: a job has all of its processors for
// its whole run. A job's estimate bounds its run time; jobs are expected to be
// ended at it. The queue is served in the order of submission (FCFS), with EASY
// backfilling (Lifka 1995; Mu'alem and Feitelson 2001), or with EASY backfilling over
// the order that TITAN finds for its first jobs (He et al. 2004).
//
// What the owner of a Cluster does:
//
//  1. carry out what happened at an instant: Ended for every completion, then
//     Submit, Reserve, Commit and Cancel in the order in which they came;
//  2. call Schedule once and start what it returns; those jobs run from now on;
//  3. do the same at NextTimer, when a promised start falls due.
//
// After a restart it calls Adopt for every job that still runs, then Admit for
// every committed promise in the order of the starts, then Submit for the queue.
//
// A reservation holds processors promised for a span, found by Reserve at the
// earliest instant that delays neither an earlier promise nor the queue's head.
// It waits for Commit, which makes it a job, or Cancel; Admit does both at once
// for jobs of this site. One pass of Schedule
//
//   - starts committed reservations whose start has come,
//   - puts the first jobs of the queue in order (TITAN),
//   - starts jobs from the head of the queue while the head fits,
//   - starts committed reservations earlier than promised, by promised start,
//   - backfills (EASY, TITAN): starts queued jobs, in order, that do not delay the head.
//
// Each of them starts only if that breaks no promise for the whole of its
// estimate. The head's place (EASY's shadow time, with the processors left over
// then) is a promise in this sense, renewed whenever something changes.
//
// Fair shares: Favour, called before Schedule, has the jobs of one owner go before those of
// another. Among those of one the order of submission stays.
//
// GPUs: a job that needs some is promised them together with its processors, for the same
// time. Those that were only submitted wait in a line of their own until Schedule promises
// them a start; shares and TITAN do not look at them.
//
// Leases: Lend takes idle processors out of the site as if a task ran on them; Borrow
// counts a task as running on another site's, which come and leave with it; Park keeps
// a queued job's place while processors are looked for elsewhere.
//
// Invariants: processors free, held (set aside for promises whose start has come)
// and running sum up to the site's; a violation panics. As long as no job runs
// past its estimate, every promise is kept. A job past its estimate is expected
// to end in a microsecond; promises it blocks start late, which State counts.
//
// The package does not know what a job is, starts nothing, ends nothing, and
// forgets a job at its end.
package lrms
