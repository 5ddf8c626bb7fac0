// Package node makes one site real: Host drives a [gridnode/node/site.Site] on a network.
//
// Host is the driver of production: one event loop per site, libp2p streams,
// kad-dht and GossipSub, a Badger store committed once per turn, a shim process
// that runs jobs and outlives the daemon, and the local API on a Unix socket.
//
// Invariants: what was saved in a turn is durable before any message of that turn
// leaves, any job of it starts and any answer of it is given; the site is touched by
// the loop alone; whatever a peer can grow is bounded.
package node
