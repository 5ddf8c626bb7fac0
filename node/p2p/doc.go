// Package p2p is one node's place in the peer-to-peer network: a libp2p host
// (TCP and QUIC), the federation's Kademlia DHT and its GossipSub topics.
// It carries the messages of the protocol cores and knows nothing of what they
// mean; node.Host drives it.
//
// The caller does this:
//
//  1. Start it with its key, its listen addresses, the peers to join through, the
//     cores' protocols and two functions that take inputs;
//  2. carry out EffectSend with Send, EffectPublish with Publish, EffectClosest
//     with Closest; none of them blocks;
//  3. feed what Deliver (messages of peers) and Report (what became of our own
//     orders: grid.Undelivered, grid.Closest) are given to its core;
//  4. Close it.
//
// Messages to a peer travel in frames on one kept stream per protocol and
// direction, opened with the first message and closed when idle: measured, a
// kept stream costs a third of the CPU of a fresh one per message. Nothing is
// repeated and nothing is acknowledged here. A message that certainly never left
// (no connection, no stream, no room in the peer's queue) is reported as
// grid.Undelivered; whatever was written once counts as sent, and may be lost.
//
// Bytes of peers: a frame that is too long, cut short or does not decode resets
// its stream and raises a counter, and nothing else happens. Each peer may use a
// bounded number of streams and a bounded rate; a peer above its rate is read
// more slowly, so an honest one loses nothing. All bounds are in limits.go.
//
// The node dials nobody but the peers it was told to join through, those of its
// last run, and peers of its federation. Names in addresses are resolved when they
// are dialled. How others find a way here is the business of package reach.
package p2p
