// Package reproduce repeats published evaluations in virtual time and puts each
// figure beside the published one.
//
// A Paper is an entry of the registry (package papers). Its Plan reads the workload and
// returns a Study: runs that do not depend on each other, and a function that turns
// what they gave into the experiments of a Report. Reproduce carries that out
// on all processors. Each paper has a folder. To add one, write its Plan and enter it in
// the registry; tables, deviations, plots, text, CSV, JSON and HTML are the same for all.
//
// A Report is made of Experiments, an Experiment of
//
//   - Tables: measures by column (sites, sizes, populations), each Cell with the
//     published figure, ours, and its spread over several workloads;
//   - Claims: what the paper says in words, and whether it holds here; where the paper
//     gives a size, ours has to be of that size (Sized);
//   - Plots: the paper's plots, drawn from our figures, with the published ones
//     where they are printed.
//
// Published figures stand in one file per paper. Where one of them is used for more
// than comparison, as where a paper tells what its workload was by its figures only, a
// Reading says so. A Reading is a choice where the paper's text is open: made in one
// place of the code, under the paper's sentence, and printed as a line of the report.
//
// A Score counts how many figures and claims are met; a Summary puts the scores of
// several papers on a page. What is Alternative or Beyond the paper is not counted.
// The HTML is one file without references to others.
package reproduce
