package coalloc

import (
	"fmt"

	"gridnode/grid"
)

// Constants of measurements.
const (
	PeersMax    = 4096             // sites of which a Survey knows something
	pingWeight  = 8                // a new measurement counts an eighth, as in TCP (RFC 6298)
	pingAge     = 10 * grid.Minute // after that long without a measurement one is not believed
	pingOutlier = 8                // a measurement this many times the smoothed one is capped
)

// ping is the measured latency to a peer, smoothed. The zero value: none was measured.
type ping struct {
	latency grid.Time
	at      grid.Time // of the last measurement
}

// known reports whether it was measured, not too long ago.
func (p *ping) known(now grid.Time) bool { return p.latency > 0 && now-p.at <= pingAge }

// observe notes a measured round trip; the latency is half of it. The error wraps
// ErrAbsurd if it is negative or longer than two LatencyMax; nothing is changed then.
// A measurement far above the smoothed latency, as from a machine that was busy,
// counts as pingOutlier times that at most.
func (p *ping) observe(now grid.Time, roundTrip grid.Time) error {
	if roundTrip < 0 || roundTrip > 2*LatencyMax {
		return fmt.Errorf("%w: round trip of %d µs, want at most %v", ErrAbsurd, int64(roundTrip), 2*LatencyMax)
	}
	latency := max(roundTrip/2, 1)
	if p.known(now) {
		latency = min(latency, p.latency*pingOutlier)
		// Rounded away from the old value, so that small differences are not lost.
		step := latency - p.latency
		switch {
		case step > 0:
			step = (step + pingWeight - 1) / pingWeight
		case step < 0:
			step = (step - pingWeight + 1) / pingWeight
		}
		latency = p.latency + step
	}
	p.latency, p.at = latency, now
	return nil
}
