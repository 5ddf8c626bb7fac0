package coalloc

import (
	"fmt"
	"math/rand/v2"

	"gridnode/grid"
)

// Coordinate places a site in a plane such that distances estimate latencies: a
// network coordinate after Vivaldi (Dabek, Cox, Kaashoek and Morris 2004), in integers.
// Lengths are in units of a coordinateUnit-th of a microsecond.
type Coordinate struct {
	X, Y   int64 // each at most coordinateMax away from 0
	Height int64 // the way from the site to where the plane begins, 0 to coordinateMax
	Error  int64 // how wrong it is thought to be, in thousandths, errorMin to errorMax
}

// Constants of coordinates.
const (
	coordinateUnit = 16
	coordinateMax  = int64(LatencyMax) * coordinateUnit
	errorMin       = 20   // nobody is believed to be more certain
	errorMax       = 1000 // of a newcomer
	errorGain      = 250  // Vivaldi's c_e, in thousandths
	stepGain       = 250  // Vivaldi's c_c, in thousandths
	scatter        = 100 * coordinateUnit
)

// newCoordinate is where a site starts that has measured nothing.
func newCoordinate() Coordinate { return Coordinate{Error: errorMax} }

// check returns an error wrapping ErrAbsurd that names the first field out of bounds.
func (c *Coordinate) check() error {
	switch {
	case c.X < -coordinateMax || c.X > coordinateMax || c.Y < -coordinateMax || c.Y > coordinateMax:
		return fmt.Errorf("%w: coordinate (%d, %d), want each within %d", ErrAbsurd, c.X, c.Y, coordinateMax)
	case c.Height < 0 || c.Height > coordinateMax:
		return fmt.Errorf("%w: height %d of a coordinate, want 0 to %d", ErrAbsurd, c.Height, coordinateMax)
	case c.Error < errorMin || c.Error > errorMax:
		return fmt.Errorf("%w: error of %d thousandths of a coordinate, want %d to %d", ErrAbsurd, c.Error, errorMin, errorMax)
	}
	return nil
}

// Distance estimates the latency between two sites: 1 µs to LatencyMax.
func (c *Coordinate) Distance(other *Coordinate) grid.Time {
	return grid.Time(min(max(c.distance(other)/coordinateUnit, 1), int64(LatencyMax)))
}

func (c *Coordinate) distance(other *Coordinate) int64 {
	dx, dy := c.X-other.X, c.Y-other.Y // squares are below 2^59
	return int64(sqrt(uint64(dx*dx+dy*dy))) + c.Height + other.Height
}

// move brings c nearer to where it fits a latency that was measured to a peer at that
// coordinate. Nobody can move a site far: a step is at most the measured latency,
// whatever the peer says where it is.
func (c *Coordinate) move(peer *Coordinate, measured grid.Time, rng *rand.Rand) {
	latency := int64(measured) * coordinateUnit
	distance := c.distance(peer)
	weight := c.Error * 1000 / (c.Error + peer.Error)
	wrong := min(abs(distance-latency)*1000/latency, errorMax)
	c.Error = min(max(c.Error+(wrong-c.Error)*weight*errorGain/1_000_000, errorMin), errorMax)

	step := min(max((latency-distance)*weight*stepGain/1_000_000, -latency), latency)
	dx, dy := c.X-peer.X, c.Y-peer.Y
	plane := int64(sqrt(uint64(dx*dx + dy*dy)))
	if plane == 0 { // two at one place part in any direction
		dx, dy = rng.Int64N(2*scatter+1)-scatter, rng.Int64N(2*scatter+1)-scatter
		plane = max(int64(sqrt(uint64(dx*dx+dy*dy))), 1)
	}
	high := c.Height + peer.Height
	// The unit vector of (dx, dy, high); coordinates and steps are below 2^29.
	c.X = min(max(c.X+step*dx/(plane+high), -coordinateMax), coordinateMax)
	c.Y = min(max(c.Y+step*dy/(plane+high), -coordinateMax), coordinateMax)
	if high == 0 {
		high = plane / heightShare
	}
	c.Height = min(max(c.Height+step*high/(plane+high), 0), coordinateMax)
}

// heightShare is how small a share of a first step goes into the height.
const heightShare = 10

func abs(v int64) int64 {
	if v < 0 {
		return -v
	}
	return v
}
