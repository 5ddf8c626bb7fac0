// Package muscle packs a batch of parallel jobs over the clusters that one site
// heads (He et al., Hybrid performance-based workload management for multiclusters
// and grids, 2004, section 4), and has the policies it is compared with.
//
// What the caller does:
//
//  1. collect a Batch: the clusters, when their processors are free, their weights,
//     and the jobs with their run time at each cluster and their deadline;
//  2. call Pack. It builds the composition Table (algorithm 1), and as long as jobs
//     are left it gives the earliest free space of the cluster whose ε (equation 3) is
//     least to the composition that fills it best (algorithms 2 to 4);
//  3. send each cluster its Share with the seed schedule, from which
//     internal/lrms/titan goes on.
//
// DLL and WRAND share a batch out by load and at random; they give no seed. MCP and
// PB (equations 7 and 8) measure what came of a batch.
//
// Nothing is lost: each job of a batch is in exactly one share, or in Unplaced if no
// cluster is wide enough for it. A batch is bounded by JobsMax and ProcessorsMax;
// the table takes 2·JobsMax·ProcessorsMax bytes at most. Where the algorithms as
// printed leave something open, or would not end, the rule that was chosen stands
// beside the code.
//
// The package sends nothing and knows no deadline but the job's. Everything follows
// from the batch and the generator it is given, which breaks ties of equal clusters.
package muscle
