// Package coalloc places one parallel job on several sites at the same moment: the
// requests, placement policies and placement queue of KOALA (Sonmez, Mohamed and
// Epema: On the benefit of processor co-allocation in multicluster grid systems, 2008).
//
// A Request says how a job may be divided: fixed, non-fixed or flexible (section II).
// ParseComponents and ParseFlexible read what users type; Validate says what is
// contradictory, Placeable what the known sites could never give.
//
// A Policy maps a request to Parts on what is idle in a View. Policies are functions
// without memory: WorstFit (WF), CloseToFiles (CF), ClusterMinimization (FCM),
// CommunicationAware (CA), and Adaptive, which splits a job only if it then loses less
// by running longer (View.Slowdown) than it would by waiting. A View with latency groups
// (Groups) confines CA to one of them and keeps its work linear in the sites.
//
// A Queue holds the jobs that could not be placed yet. Its owner does this, for ever:
//
//  1. Add each new job and Try it once;
//  2. keep the View up to date with what sites report, and with who comes and leaves;
//  3. at NextTimer call Scan, which tries all jobs from head to tail;
//  4. claim what is placed, all or nothing; Return the job if that fails.
//
// A Coordinator is that owner. A placement proposes, claiming decides: it holds every
// part through the site's lease book, saves the decision, claims, and says Start when
// all claims are confirmed. Its owner feeds it Submit, Withdraw, Finish, what the book
// tells a borrower, and Ticks; carries out Start, Aborted, Broken and Rejected; and
// after a restart calls Recover, then the book's, then submits again what Knows does not
// report. It has no messages of its own: those of package lease do.
//
// A policy of one's own is a PlaceFunc (QueueConfig.Place).
//
// Invariants, checked in simulation:
//
//   - no claim leaves before the decision to claim is durable;
//   - a job starts only if every part's lease is active at its site;
//   - once faults have ended every job that can be placed starts, whoever competes,
//     and no lease, hold or record is left behind.
//
// What decides is integer: microseconds, processors, thousandths. Sites are told apart
// by index; every tie ends in a site's name.
//
// Bounds: components, splits, sites, jobs in the queue, latencies and bandwidths that
// peers report (ErrAbsurd says which was not believed).
//
// The package starts no tasks, carries none of their messages, and measures nothing.
package coalloc
