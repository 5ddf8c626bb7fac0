package coalloc

import "gridnode/grid"

// LatencySource says where a latency comes from.
type LatencySource uint8

// Sources, by how much they count.
const (
	LatencyUnknown   LatencySource = iota // nobody says anything
	LatencyEstimated                      // distance of the coordinates
	LatencyReported                       // measured by one of the two sites, or both
	LatencyMeasured                       // measured from here
	LatencyDeclared                       // within a site: as it says
)

var sourceNames = [...]string{"unknown", "estimated", "reported", "measured", "declared"}

// String returns the source's name in listings and in JSON.
func (s LatencySource) String() string { return sourceNames[s] }

// Estimates is a Network of the sites it was made for, as a Survey knows them at one
// instant. Looking up takes time that does not grow with the number of sites.
type Estimates struct {
	self      int32   // index, -1 if it is not among the sites
	rows      []row   // by index
	bandwidth []int64 // of each site; nil: nothing is known
}

// row is what is known of one site.
type row struct {
	known      bool
	coordinate Coordinate
	within     grid.Time
	here       grid.Time // measured from here, 0 if not
	near       [NearestMax]near
	n          int
}

type near struct {
	site    int32
	latency grid.Time
}

// Network returns what is known of the latencies between sites, and of the bandwidth
// of each in bytes a second (by index; nil: nothing, and every way has a byte a
// second, as in a Matrix). It takes O(sites) time and keeps bandwidth.
func (s *Survey) Network(now grid.Time, sites []grid.SiteID, bandwidth []int64) *Estimates {
	e := &Estimates{self: -1, rows: make([]row, len(sites)), bandwidth: bandwidth}
	index := make(map[grid.SiteID]int32, len(sites))
	for i, id := range sites {
		index[id] = int32(i)
	}
	for i, id := range sites {
		r := &e.rows[i]
		if id == s.cfg.Self {
			e.self = int32(i)
			r.known, r.coordinate, r.within = true, s.coordinate, s.cfg.Within
			continue
		}
		p := s.peer(id)
		if p == nil || now-p.heard > reportAge {
			continue
		}
		r.known, r.coordinate, r.within = true, p.report.Coordinate, p.report.Within
		if p.ping.known(now) {
			r.here = p.ping.latency
		}
		for _, n := range p.report.Nearest {
			peer, known := s.marks[n.Peer]
			if at, among := index[peer]; known && among && at != int32(i) {
				r.near[r.n] = near{at, n.Latency}
				r.n++
			}
		}
	}
	return e
}

// Alone returns estimates for sites of which nothing is known.
func Alone(sites []grid.SiteID) *Estimates {
	return &Estimates{self: -1, rows: make([]row, len(sites))}
}

// Len returns the number of sites.
func (e *Estimates) Len() int { return len(e.rows) }

// Bandwidth implements Network: no way has more than the sites at its ends.
func (e *Estimates) Bandwidth(a, b int) int64 {
	if max(a, b) >= len(e.bandwidth) {
		return 1
	}
	return min(max(min(e.bandwidth[a], e.bandwidth[b]), 1), BandwidthMax)
}

// Latency implements Network.
func (e *Estimates) Latency(a, b int) grid.Time {
	latency, _ := e.Between(a, b)
	return latency
}

// Place returns where a site's network coordinate is in the plane, in microseconds, and
// whether that is known.
func (e *Estimates) Place(i int) (x, y grid.Time, known bool) {
	r := &e.rows[i]
	return grid.Time(r.coordinate.X / coordinateUnit), grid.Time(r.coordinate.Y / coordinateUnit), r.known
}

// Between returns the latency between two sites, or within one, and how it is known:
// LatencyMax if it is not.
func (e *Estimates) Between(a, b int) (grid.Time, LatencySource) {
	if max(a, b) >= len(e.rows) {
		return LatencyMax, LatencyUnknown
	}
	x, y := &e.rows[a], &e.rows[b]
	switch {
	case !x.known || !y.known:
		return LatencyMax, LatencyUnknown
	case a == b:
		return x.within, LatencyDeclared
	case int32(a) == e.self && y.here > 0:
		return y.here, LatencyMeasured
	case int32(b) == e.self && x.here > 0:
		return x.here, LatencyMeasured
	}
	latency, source := max(x.to(int32(b)), y.to(int32(a))), LatencyReported
	if latency == 0 {
		latency, source = x.coordinate.Distance(&y.coordinate), LatencyEstimated
	}
	if x.here > 0 && y.here > 0 {
		latency, _ = Believable(latency, x.here, y.here)
	}
	return latency, source
}

// to returns the latency that a site reports to another, 0 if it reports none.
func (r *row) to(site int32) grid.Time {
	for i := range r.n {
		if r.near[i].site == site {
			return r.near[i].latency
		}
	}
	return 0
}
