// Package quota keeps to the limits that an owner sets the users of a site: how many jobs, how
// many processors at a time, how many credits in a span. It counts what they have and had.
//
// Desk is the core. Who has jobs placed, package after,
//
//  1. asks Refuses before a job is taken, and Full before one is placed;
//  2. calls Take for each job that is placed, Priced once it is known what it may cost, and
//     Give when it waits again or is over;
//  3. asks Renews when a job waits for its user's spending: nothing else may happen by which
//     it could go.
//
// The owner of the jobs, package site, calls Spent in the step in which an execution ends: what
// the user has spent is saved with that end, in one commit, so that it is counted once, whatever
// crashes. After a restart it gives Recover what was stored, and calls Take again.
//
// Shares: it calls Began and Ended for executions on this site's own processors, and has the
// queue ordered by Favours (lrms.Cluster.Favour), which knows users by the numbers of Owner.
// As in Slurm's fair share, what was used counts half after a half-life.
//
// Full is asked in the order in which a user submitted his jobs, so a small job does not
// overtake a wide one that waits for the same limit. What was placed before a limit was set
// goes on, and counts. Nothing here reads a clock.
package quota
