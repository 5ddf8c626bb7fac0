package p2p

import (
	"bytes"
	"slices"
	"time"

	dht "github.com/libp2p/go-libp2p-kad-dht"
	kbucket "github.com/libp2p/go-libp2p-kbucket"
	"github.com/libp2p/go-libp2p/core/peer"

	"gridnode/node/p2p/patience"
	"gridnode/node/p2p/refresh"
)

// lookupBeta is how many of the nearest have to answer until a look-up ends: kad-dht's β, which is not set.
const lookupBeta = 3

// patient is how long it waits for one.
const patient = time.Duration(patience.Span) * time.Microsecond

// course is what a look-up has come to, by kad-dht's events: the peers that it has heard of, nearest first.
type course struct {
	key   kbucket.ID
	k     int // that it is to name
	peers []passed
}

// passed is a peer that a look-up comes by.
type passed struct {
	id       peer.ID
	distance []byte // from the key
	state    progress
	asked    time.Time
}

// progress is what became of a peer.
type progress uint8

const (
	peerHeard progress = iota // not asked
	peerAsked                 // and has not answered
	peerAnswered
	peerFailed
)

// see takes an event.
func (c *course) see(e *dht.LookupEvent) {
	if u := e.Request; u != nil {
		for _, p := range u.Waiting {
			if q := c.find(p.Peer); q != nil {
				q.state, q.asked = peerAsked, time.Now()
			}
		}
	}
	if u := e.Response; u != nil {
		for _, p := range u.Heard {
			if p.Peer != e.Node.Peer {
				c.hear(p.Peer)
			}
		}
		for _, p := range u.Unreachable {
			if q := c.find(p.Peer); q != nil {
				q.state = peerFailed
			}
		}
		for _, p := range u.Queried {
			if q := c.find(p.Peer); q != nil {
				q.state = peerAnswered
			}
		}
	}
}

// passedOver reports whether a peer was asked long ago and has not answered.
func (p *passed) passedOver(now time.Time) bool {
	return p.state == peerAsked && now.Sub(p.asked) >= patient
}

func (c *course) find(id peer.ID) *passed {
	i := slices.IndexFunc(c.peers, func(p passed) bool { return p.id == id })
	if i < 0 {
		return nil
	}
	return &c.peers[i]
}

// hear adds a peer, unless it is there.
func (c *course) hear(id peer.ID) {
	p := passed{id: id, distance: distance(c.key, id)}
	at, found := slices.BinarySearchFunc(c.peers, p.distance, func(p passed, d []byte) int { return bytes.Compare(p.distance, d) })
	if !found {
		c.peers = slices.Insert(c.peers, at, p)
	}
}

// settled reports whether the nearest of those that may be there have answered, but for whom the look-up
// passes over, of which there is one at least: else it is kad-dht that says when it has ended.
func (c *course) settled(now time.Time) bool {
	near, silent := 0, false
	for i := range c.peers {
		switch p := &c.peers[i]; {
		case p.state == peerFailed:
			continue
		case p.passedOver(now):
			silent = true
			continue
		case p.state != peerAnswered:
			return false
		}
		if near++; near == lookupBeta {
			break
		}
	}
	return silent
}

// grown reports whether the k nearest say that the network is large.
func (c *course) grown() bool {
	near := 0
	for i := range c.peers {
		if c.peers[i].state == peerFailed {
			continue
		}
		if near++; near == c.k {
			return c.peers[i].distance[0]>>(8-refresh.Grown) == 0
		}
	}
	return false
}

// wait returns the time until another peer is passed over, if none answers.
func (c *course) wait(now time.Time) time.Duration {
	wait := time.Hour // there is nobody to wait for
	for i := range c.peers {
		if p := &c.peers[i]; p.state == peerAsked && !p.passedOver(now) {
			wait = min(wait, patient-now.Sub(p.asked))
		}
	}
	return wait
}

// passedOver returns those that were asked and had not answered when the look-up ended.
func (c *course) passedOver(now time.Time) (peers []peer.ID) {
	for i := range c.peers {
		if p := &c.peers[i]; p.passedOver(now) {
			peers = append(peers, p.id)
		}
	}
	return peers
}
