// Package packing is the scenario of MUSCLE and TITAN (2004): batches of parallel jobs
// with soft deadlines are shared out over clusters, each of which plans its share.
// Optimum says, for small batches, how well it could be done at best.
package packing
