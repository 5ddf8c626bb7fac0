// Package after decides when a job may be placed: after others have ended, not before an
// instant, once its owner has released it, when fewer jobs of its array run, and within the
// limits of its user (package quota). It reads no clock and does no I/O. What it must not
// forget is in a Turn, which its caller stores with the job.
//
// The caller, the table of the jobs of one home,
//
//  1. calls Refuses before it takes a job, and Enter for each that it has taken;
//  2. calls Wait for a job that Waits says has to be asked about, instead of placing it, and
//     Next at every tick, until that has nothing more: what Next lets go it places, what Next
//     drops it cancels;
//  3. calls Begun when a job has begun, and Leave when a job is over, and stores the Turns of those that Leave returns in
//     the same step;
//  4. after a restart calls Enter for all live jobs, and then Wait for those that wait.
//
// Jobs depend only on jobs that were there before, so no cycle is possible. A dependency on
// an array is met when all its jobs are over, and failed if one of them has. One that can
// never be met lets its job wait for its owner, as in Slurm, unless its terms say Drop.
package after
