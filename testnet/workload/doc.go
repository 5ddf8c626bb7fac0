// Package workload provides the jobs that a federation is tried with: logs of real
// machines, a model where there is no log, and deadlines and budgets for jobs that
// have none. Nothing here is needed to run a site.
//
// Jobs come as streams. A Source gives one Job after the other, in order of
// submission; a log of ten million jobs costs no more memory than one of ten.
//
//	Reader     a log, line by line: SWF (18 fields) or GWF (29), plain or gzip;
//	           Header has what it says about itself
//	Trace      the jobs of a Reader that a Filter keeps, with counts of the others
//	Generator  jobs of the Lublin-Feitelson Model, without end
//	Jobs       jobs in memory
//	Window     those submitted in a span, First the first n, Merge those of many sites
//	Ahead      those of another source, read while those before are run
//
// A simulation of sites does this:
//
//  1. take Table1 or Sites(n): processors, rating and price of each;
//  2. for each site open a Trace, or take Site.ReadDays or Site.GenerateDays; or
//     take Embedded for all of them;
//  3. Merge the sources, in the order of the sites;
//  4. turn each Job into a grid.Job with QoS.Job and the Home of its Site.
//
// # What is taken from where
//
//   - The filter is that of The gain of resource delegation, in the reading that
//     meets its table: sizes are field 8, else field 5; a job is killed at its
//     estimate; times are not shifted.
//   - QoS is Grid-Federation §2.3. Its two days of each log are not named in the
//     paper; TwoDays says how they are chosen. The log of LANL Origin is not
//     published any more: its site generates.
//   - The model is that of Lublin and Feitelson (2003), in the parameters of its
//     published program. A file of that program is reproduced to the last job by
//     the tests, from the program's own random numbers. Three things differ: random
//     numbers (the distributions are the same, see TestDistributions); submissions
//     are rounded down one by one, where the program drops the fraction of each gap
//     and so loses half a second a job; a power of two never exceeds the machine.
//
// # Invariants
//
//   - The same seed gives the same jobs on every machine (portable.go says how).
//   - Whatever the bytes of a log: no panic, memory bounded by the constants of
//     reader.go and faults.go, and every Job within the bounds of a job on the wire.
//   - A line that is not as its format says costs that line, or only a field that no job
//     is made of, and is counted with its number; a Strict reader ends at it.
//   - Reading a record, making a job of it, generating and merging allocate nothing.
//
// Logs belong to those who published them: a report that uses one should name whom
// its header's Acknowledge line names. None is part of this project.
package workload
