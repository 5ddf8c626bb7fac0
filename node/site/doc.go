// Package site is one site: the composition of the protocol cores behind one name.
//
// A Site owns the local scheduler (lrms), the directory, the market agent, the lease
// book and its matchmaker, the co-allocator, the packing head, the desk of its bank and
// the table of jobs. It is a core itself: it reads no clock, starts no goroutine and
// does no I/O, so the very same Site runs under node.Host and in the virtual networks
// of testnet. Its driver does what package grid says, and besides:
//
//  1. it gives all inputs that are there at one instant (or in one turn of its
//     loop) to Step one by one, ends of tasks before submissions, and then
//     always one grid.Tick: only a Tick starts jobs;
//  2. after a restart it calls Recover with what was stored, then gives Adopted
//     for every task that still runs and TaskEnded for every task that ended
//     meanwhile, all before the first Tick.
//
// Invariants: an acknowledged job is in the store; a job has at most one live
// execution; a job's state follows the arrows of architecture.md and a terminal
// state never changes; free, running, lent, held and borrowed processors add up.
package site
