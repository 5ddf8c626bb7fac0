// Package titan plans a batch of parallel jobs on one cluster with a genetic
// algorithm (He et al., Hybrid performance-based workload management for
// multiclusters and grids, 2004, section 3; TITAN is by Spooner et al., 2003).
//
// A Schedule is coded in two dimensions: a column per job says on which processors
// it runs, and the order of the columns is the order in which the jobs take them. A
// job starts when the last of its processors is free. What a schedule is worth is
// its comprehensive performance (CP, equation 1): a weighted mean of what exceeds
// the deadlines, the makespan, and the idle time; lower is better. The paper swaps
// the symbols of makespan and idle time in the equation; here each weight goes with
// what it is named after.
//
// What the caller does:
//
//  1. describe the Problem: processors, when each is free, jobs, weights;
//  2. Set it with seed schedules, such as MUSCLE's; the rest of the set is random;
//  3. Run until the generations stabilise, and read Best.
//
// From one generation to the next the best schedule is kept as it is, so CP never
// rises and the result is never worse than a seed. Everything is counted in
// integers, bounded by generations and not by a clock, and follows from the seed of
// the generator that New was given: same seed, same schedule.
//
// The package starts nothing and knows no queue: internal/lrms does.
package titan
