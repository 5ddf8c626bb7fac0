// Package kademlia models the router of the DHT in virtual networks: k-buckets and
// iterative look-ups with α requests under way, as kad-dht makes them live
// (Maymounkov and Mazières 2002).
//
// A Node is a core. Its driver
//
//  1. fills its table: with Join, after which it looks itself up first, as a real node
//     does; or with Fill, which gives a whole network the tables that such joins lead
//     to, without a message;
//  2. calls Closest for a look-up and hands the *grid.Closest it finds among
//     Outbox.Locals, then or after a later Step, to whoever asked;
//  3. delivers Find and Nodes messages, Undelivered and Ticks to Step.
//
// Find asks a peer for the sites it knows nearest to a key; Nodes is the answer.
// Both exist in virtual time only and have no wire form.
//
// A look-up follows kad-dht v0.42.2. It asks the nearest sites heard of, α at a time,
// until the β nearest have answered, but for those whom it passes over, as they have not
// answered for so long (patience.Span). Then the k nearest heard of, of those that have not
// failed to answer, are the result: a site that has died since others last asked it may be
// named. There it ends, as live ones are made to (node/p2p). A thorough one does as kad-dht
// does: it passes nobody over, waits for the answers under way, takes no notice of them, and
// asks each of the result's sites that had not answered before, which changes nothing any more
// (so Find says that the look-up has ended, and nobody searches a table for an answer that
// nobody reads) but that they know the node. A node that joins, or comes up again, looks itself
// up so first, and so does who puts a provider record there. For refresh.Young from its
// first step on its other look-ups are thorough, too, but that they pass over who is silent,
// and then end, unless those nearest show that the network is large (refresh.Grown).
//
// A peer that does not answer while the look-up searches, or after that passed it over, is
// dropped from the table; a full bucket takes one that has answered in place of its oldest. A
// node that knows few others, and one whose driver calls Rejoin, tries those again that it has
// lost, as a host makes the connections again that it has lost. With Config.Refresh it looks itself up now and then.
// TestModelLooksUpAsLiveNodesDo compares all this with real nodes.
//
// What differs: tables do not learn of peers that connect for another purpose than a look-up.
//
// Invariants: a table never holds the node itself nor a peer twice; a bucket holds
// at most k peers; look-ups and requests under way are bounded.
//
// Provider records and stored values are not modelled: the directory has its own
// protocol for those.
package kademlia
