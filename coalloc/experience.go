package coalloc

import (
	"math/bits"

	"gridnode/grid"
)

// Bounds of an Experience.
const (
	applicationsMax = 256 // the one that ended longest ago is forgotten
	runsNeeded      = 2   // of an application within one site, and over several: one may have been odd
	runsWeight      = 4   // a run counts a quarter of the mean, so old ones fade
)

// nearest is as how long a way at least counts in what is learned: that two sites in one
// room are a microsecond further apart than a site from itself says nothing of a slowdown.
const nearest = 100 * grid.Microsecond

// Experience is what a site has seen of how its own jobs slow down over several sites:
// the run times of applications that have run within one site and over several.
// It is forgotten with the process. Not safe for concurrent use.
type Experience struct {
	applications map[string]*application
	ended        uint64  // jobs so far
	all          Penalty // of communication, over all applications seen both ways
}

// application is what was seen of one.
type application struct {
	ccr   int64 // that counts
	last  uint64
	whole runs // within one site
	split runs // over several
}

// runs is the mean of run times, those of late counting most.
type runs struct {
	number int
	span   grid.Time
	way    grid.Time // as of two sites so far from each other; of those over several sites
}

// NewExperience returns that of a site that has seen nothing.
func NewExperience() *Experience {
	return &Experience{applications: make(map[string]*application)}
}

// Ended notes that a job has run to its end, on parts whose sites are of a network and
// for so long.
func (x *Experience) Ended(r *Request, parts []Part, network Network, span grid.Time) {
	clusters := Clusters(parts)
	way := grid.Time(0)
	if clusters > 1 {
		if network == nil || unknown(parts, network) {
			return
		}
		const scale = 1000 // of the root
		way = max(farthest(parts, network), nearest) * grid.Time(sqrt(uint64(clusters-1)*scale*scale)) / scale
	}
	if r.Application == "" || span < 1 || span > grid.SpanMax || clusters == 0 {
		return
	}
	a := x.applications[r.Application]
	if a == nil {
		if len(x.applications) >= applicationsMax {
			x.forget()
		}
		a = &application{}
		x.applications[r.Application] = a
	}
	x.ended++
	a.ccr, a.last = r.ccr(), x.ended
	if clusters == 1 {
		a.whole.add(span, 0)
	} else {
		a.split.add(span, way)
	}
	x.sum()
}

// unknown reports whether nobody knows how far two parts are from each other.
func unknown(parts []Part, network Network) bool {
	for i := range parts {
		for j := range i {
			if network.Latency(int(parts[i].Site), int(parts[j].Site)) >= LatencyMax {
				return true
			}
		}
	}
	return false
}

func (r *runs) add(span, way grid.Time) {
	weight := grid.Time(min(r.number+1, runsWeight))
	r.span += (span - r.span) / weight
	r.way += (way - r.way) / weight
	r.number++
}

// forget drops the application that ended longest ago.
func (x *Experience) forget() {
	oldest := ""
	for name, a := range x.applications {
		if oldest == "" || a.last < x.applications[oldest].last {
			oldest = name
		}
	}
	delete(x.applications, oldest)
}

// penalty returns by how much the application runs longer over several sites, all of its
// time, if it was seen both ways often enough.
func (a *application) penalty() (p Penalty, known bool) {
	if a == nil || min(a.whole.number, a.split.number) < runsNeeded {
		return p, false
	}
	extra := int64(PenaltyMax)
	hi, lo := bits.Mul64(uint64(max(a.split.span-a.whole.span, 0)), 1_000_000)
	if hi < uint64(a.whole.span) {
		longer, _ := bits.Div64(hi, lo, uint64(a.whole.span))
		extra = int64(min(longer, PenaltyMax))
	}
	return Penalty{Extra: extra, Latency: a.split.way, Sites: 2, Least: nearest}, true
}

// of returns what was seen of an application.
func (x *Experience) of(name string) (p Penalty, known bool) {
	return x.applications[name].penalty()
}

// sum works out what holds for applications that were not seen both ways: the mean of the
// others, each as a penalty of communication for a millisecond.
func (x *Experience) sum() {
	var sum, number int64
	for _, a := range x.applications {
		p, known := a.penalty()
		if !known || a.ccr == 0 {
			continue
		}
		communication := min(p.Extra*(1000+a.ccr)/a.ccr, PenaltyMax)
		sum += min(communication*int64(grid.Millisecond)/int64(p.Latency), PenaltyMax)
		number++
	}
	x.all = Penalty{Latency: grid.Millisecond, Sites: 2, Least: nearest}
	if number > 0 {
		x.all.Extra = sum / number
	}
}
