package coalloc

import (
	"cmp"
	"fmt"
	"slices"

	"gridnode/grid"
)

// Bounds and constants of Pings.
const (
	PeersMax    = 4096             // peers whose latency is kept
	pingWeight  = 8                // a new measurement counts an eighth, as in TCP (RFC 6298)
	pingAge     = 10 * grid.Minute // after that long without a measurement one is not believed
	ReportMax   = 64               // entries of a Report
	pingOutlier = 8                // a measurement this many times the smoothed one is capped
)

// Pings is what a site knows of the latencies to its peers: smoothed, and forgotten
// when they age. It keeps at most PeersMax peers; the one measured longest ago makes
// room. It reads no clock. Not safe for concurrent use.
type Pings struct {
	peers map[grid.SiteID]ping
}

type ping struct {
	latency grid.Time
	at      grid.Time
}

// NewPings returns a Pings that knows nobody.
func NewPings() *Pings { return &Pings{peers: make(map[grid.SiteID]ping)} }

// Observe notes a measured round trip; the latency is half of it. The error wraps
// ErrAbsurd if it is negative or longer than two LatencyMax; nothing is changed then.
// A measurement far above the smoothed latency, as from a machine that was busy,
// counts as pingOutlier times that at most.
func (p *Pings) Observe(now grid.Time, peer grid.SiteID, roundTrip grid.Time) error {
	if roundTrip < 0 || roundTrip > 2*LatencyMax {
		return fmt.Errorf("%w: round trip of %d µs to %s, want at most %v", ErrAbsurd, int64(roundTrip), peer, 2*LatencyMax)
	}
	latency := max(roundTrip/2, 1)
	old, known := p.peers[peer]
	if known && now-old.at <= pingAge {
		latency = min(latency, old.latency*pingOutlier)
		// Rounded away from the old value, so that small differences are not lost.
		step := latency - old.latency
		switch {
		case step > 0:
			step = (step + pingWeight - 1) / pingWeight
		case step < 0:
			step = (step - pingWeight + 1) / pingWeight
		}
		latency = old.latency + step
	}
	if !known && len(p.peers) >= PeersMax {
		p.evict()
	}
	p.peers[peer] = ping{latency, now}
	return nil
}

// evict forgets the peer that was measured longest ago, the first by name of several.
func (p *Pings) evict() {
	var oldest grid.SiteID
	at := grid.Never
	for id, known := range p.peers {
		if known.at < at || known.at == at && id < oldest {
			oldest, at = id, known.at
		}
	}
	delete(p.peers, oldest)
}

// Latency returns the smoothed latency to a peer, and whether it is known and not too
// old.
func (p *Pings) Latency(now grid.Time, peer grid.SiteID) (grid.Time, bool) {
	known, ok := p.peers[peer]
	return known.latency, ok && now-known.at <= pingAge
}

// Forget drops a peer that has left.
func (p *Pings) Forget(peer grid.SiteID) { delete(p.peers, peer) }

// Measured is a measured latency to a peer.
type Measured struct {
	Peer    grid.SiteID
	Latency grid.Time
}

// Report appends the nearest peers, at most ReportMax, nearest first, to dst: what a
// site gossips. The others are far, which is all that placing needs to know of them.
func (p *Pings) Report(now grid.Time, dst []Measured) []Measured {
	begin := len(dst)
	for id, known := range p.peers {
		if now-known.at <= pingAge {
			dst = append(dst, Measured{id, known.latency})
		}
	}
	slices.SortFunc(dst[begin:], func(a, b Measured) int {
		return cmp.Or(cmp.Compare(a.Latency, b.Latency), cmp.Compare(a.Peer, b.Peer))
	})
	return dst[:min(len(dst), begin+ReportMax)]
}
