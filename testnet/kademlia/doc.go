// Package kademlia models the router of the DHT in virtual networks: k-buckets and
// iterative look-ups with α requests under way, as kad-dht makes them live
// (Maymounkov and Mazières 2002).
//
// A Node is a core. Its driver
//
//  1. fills its table: with Join, which looks the node itself up through peers it
//     knows, as a real node does; or with Fill, which gives a whole network the
//     tables that such joins lead to, without a message;
//  2. calls Closest for a look-up and hands the *grid.Closest it finds among
//     Outbox.Locals, then or after a later Step, to whoever asked;
//  3. delivers Find and Nodes messages, Undelivered and Ticks to Step.
//
// Find asks a peer for the sites it knows nearest to a key; Nodes is the answer.
// Both exist in virtual time only and have no wire form.
//
// A look-up follows kad-dht: α requests under way until the β nearest sites heard
// of have answered, then one request to each of the k nearest that has not
// answered yet, even if it has been asked. A peer that does not answer within the time-out is dropped from the
// table. A full bucket keeps whom it knows, as the longest-lived peers are the
// likeliest to stay.
//
// Invariants: a table never holds the node itself nor a peer twice; a bucket holds
// at most k peers; look-ups and requests under way are bounded.
//
// Provider records and stored values are not modelled: the directory has its own
// protocol for those.
package kademlia
