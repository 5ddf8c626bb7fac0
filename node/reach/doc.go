// Package reach is how the nodes of a federation find a way to each other: addresses and
// what they may look like, whether others can connect to this node, relays for those whom
// nobody can connect to, and holes through their NATs.
//
// The caller does this:
//
//  1. read addresses of people with Listen, Announce and Peer;
//  2. make a Service, and give its Options to libp2p.New;
//  3. Start it with the host behind the gate, so that only members use what it offers;
//  4. ask it for its Status, and Close it before the host.
//
// Whether others can connect is found out by asking them: AutoNATv2 has members dial the
// public addresses of this node, one by one. From that, and from how others see the
// connections that this node makes, follows the reachability: public, private (behind a NAT or a
// firewall), local (no NAT is in sight, as among machines of one network), or unknown.
//
// A public node that offers to be a relay puts a provider record into the DHT. A private
// one looks for such records, reserves a place at two relays, and its addresses are then
// those behind the relays. A connection through a relay is as encrypted and as much in need
// of a greeting as any other. Who accepts one tries to make a direct one at once (DCUtR).
//
// A node that listens on loopback only needs none of this and gets none of it. All bounds
// are in limits.go.
package reach
