// Package node makes one site real.
//
// Site is the composition of the cores of one site: the local scheduler (lrms),
// the directory, the market agent, and the table of jobs. It is a core itself,
// so the very same Site runs under Host and in the virtual networks of testnet.
// Its driver does what package grid says, and besides:
//
//  1. it gives all inputs that are there at one instant (or in one turn of its
//     loop) to Step one by one, ends of tasks before submissions, and then
//     always one grid.Tick: only a Tick starts jobs;
//  2. after a restart it calls Recover with what was stored, then gives Adopted
//     for every task that still runs and TaskEnded for every task that ended
//     meanwhile, all before the first Tick.
//
// Host is the driver of production: one event loop per site, libp2p streams,
// kad-dht and GossipSub, a Badger store committed once per turn, a shim process
// that runs jobs and outlives the daemon, and the local API on a Unix socket.
//
// Invariants: an acknowledged job is in the store; a job has at most one live
// execution; a job's state follows the arrows of architecture.md and a terminal
// state never changes; what was saved in a turn is durable before any message of
// that turn leaves.
package node
