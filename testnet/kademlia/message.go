package kademlia

import (
	"crypto/sha256"

	"gridnode/internal/grid"
	"gridnode/internal/wire"
)

// KMax bounds Config.K, so that an answer has a fixed size.
const KMax = 20

// Peer is a site and its place in the key space. Peers are shared between the
// nodes of a network and never change.
type Peer struct {
	ID  grid.SiteID
	Key grid.Key // SHA-256 of ID
}

// NewPeer returns the peer that site id is.
func NewPeer(id grid.SiteID) *Peer { return &Peer{id, sha256.Sum256([]byte(id))} }

// Find asks for the peers nearest to Key that the receiver knows.
type Find struct {
	Key   grid.Key
	Token uint32 // repeated in the answer
	From  *Peer
}

// MessageKind implements grid.Message.
func (*Find) MessageKind() grid.Kind { return wire.KademliaFind }

// Nodes answers Find.
type Nodes struct {
	To    grid.SiteID // who asked
	Token uint32
	Count int // of Peers in use
	Peers [KMax]*Peer
}

// MessageKind implements grid.Message.
func (*Nodes) MessageKind() grid.Kind { return wire.KademliaNodes }
