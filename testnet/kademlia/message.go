package kademlia

import (
	"crypto/sha256"
	"encoding/binary"

	"gridnode/grid"
	"gridnode/internal/wire"
)

// KMax bounds Config.K, so that an answer has a fixed size.
const KMax = 20

// Peer is a site and its place in the key space. Peers are shared between the
// nodes of a network and never change.
type Peer struct {
	ID  grid.SiteID
	Key grid.Key // SHA-256 of ID; live, of the bytes that ID is the text of
}

// NewPeer returns the peer that site id is.
func NewPeer(id grid.SiteID) *Peer { return &Peer{id, sha256.Sum256([]byte(id))} }

// contact is a peer and the beginning of its key, which nearly always is enough to
// compare distances: the peer itself need not be read.
type contact struct {
	head uint64
	peer *Peer
}

func contactOf(p *Peer) contact { return contact{headOf(&p.Key), p} }

// headOf returns the first 64 bits of a key.
func headOf(key *grid.Key) uint64 { return binary.BigEndian.Uint64(key[:8]) }

// nearer reports whether c is nearer to key, which begins with head, than other.
func (c contact) nearer(head uint64, key *grid.Key, other contact) bool {
	if x, y := c.head^head, other.head^head; x != y {
		return x < y
	}
	return nearer(key, &c.peer.Key, &other.peer.Key)
}

// Find asks for the peers nearest to Key that the receiver knows.
type Find struct {
	Key   grid.Key
	Token uint32 // repeated in the answer
	From  *Peer
	Ended bool // the look-up knows its result: nobody reads whom the answer names
}

// MessageKind implements grid.Message.
func (*Find) MessageKind() grid.Kind { return wire.KademliaFind }

// Nodes answers Find.
type Nodes struct {
	To    *Peer // who asked
	Token uint32
	Count int           // of Peers in use
	Peers [KMax]contact // nearest to the key first
}

// MessageKind implements grid.Message.
func (*Nodes) MessageKind() grid.Kind { return wire.KademliaNodes }
