package coalloc

import (
	"crypto/sha256"
	"encoding/binary"

	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// LatencyReport is what a site gossips about its place in the network.
type LatencyReport struct {
	Site     grid.SiteID
	Sequence uint64 // rises with every report of a site, across restarts too
	Coordinate
	Within grid.Time // latency between its own processors

	// Nearest are latencies it has measured, at most NearestMax, nearest first. Whoever hears the
	// report keeps them, so they are never changed.
	Nearest []Nearby
}

// Nearby is a measured latency to a peer.
type Nearby struct {
	Peer    uint64 // its mark
	Latency grid.Time
}

// Bounds of a LatencyReport.
const (
	NearestMax     = 8
	reportBytesMax = 384
	siteIDMax      = 128
)

// MessageKind returns wire.GossipLatency.
func (*LatencyReport) MessageKind() grid.Kind { return wire.GossipLatency }

// mark is a short name of a site: 64 bits of its hash.
func mark(site grid.SiteID) uint64 {
	sum := sha256.Sum256([]byte(site))
	return binary.BigEndian.Uint64(sum[:])
}

// Proto returns the wire form.
func (m *LatencyReport) Proto() proto.Message {
	p := &wirepb.LatencyReport{
		Site: string(m.Site), Sequence: m.Sequence, X: m.X, Y: m.Y, Height: m.Height, Error: uint32(m.Error), Within: int64(m.Within),
	}
	for _, n := range m.Nearest {
		p.Peers, p.Latencies = append(p.Peers, n.Peer), append(p.Latencies, int64(n.Latency))
	}
	return p
}

// GossipDecoder reads a LatencyReport: it travels on the topic of the load reports.
func GossipDecoder(from grid.SiteID, body []byte) (grid.Message, error) {
	if len(body) > reportBytesMax {
		return nil, wire.Malformed("latency report of %d bytes, at most %d", len(body), reportBytesMax)
	}
	var p wirepb.LatencyReport
	if err := wire.Unmarshal(body, &p, wire.GossipLatency); err != nil {
		return nil, err
	}
	var c wire.Check
	c.Within("bytes of a site", int64(len(p.Site)), 1, siteIDMax)
	c.Positive("sequence", p.Sequence)
	c.Within("latency within a site", p.Within, 1, int64(LatencyMax))
	c.Within("latencies", int64(len(p.Latencies)), 0, NearestMax)
	if len(p.Peers) != len(p.Latencies) {
		c.Fail("as many sites as latencies")
	}
	if c.Err == nil && grid.SiteID(p.Site) != from {
		c.Err = wire.Malformed("latency report of %q from %q", p.Site, from)
	}
	m := &LatencyReport{
		Site: from, Sequence: p.Sequence, Within: grid.Time(p.Within),
		Coordinate: Coordinate{X: p.X, Y: p.Y, Height: p.Height, Error: int64(p.Error)},
	}
	if err := m.Coordinate.check(); err != nil && c.Err == nil {
		c.Err = wire.Malformed("latency report: %v", err)
	}
	for i := 0; c.Err == nil && i < len(p.Latencies); i++ {
		c.Within("latency", p.Latencies[i], 1, int64(LatencyMax))
		m.Nearest = append(m.Nearest, Nearby{p.Peers[i], grid.Time(p.Latencies[i])})
	}
	return wire.Checked(m, c.Err)
}
