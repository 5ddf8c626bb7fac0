package coalloc

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"gridnode/grid"
)

// SurveyConfig is how a Survey behaves. A zero field takes the default beside it.
type SurveyConfig struct {
	Self  grid.SiteID
	Topic string // reports are gossiped here; empty: nothing is measured or told but to Siblings

	// Siblings returns the sites that hear this one's reports; the slice is not kept. Nil:
	// those that listen to Topic.
	Siblings func() []grid.SiteID

	Within grid.Time // latency between this site's own processors, as declared; WithinDefault

	Interval grid.Time // between two rounds of measuring, after the first few, while anybody moves; 30 s
	Probes   int       // sites measured in a round, at most; 4
	Report   grid.Time // between two reports of a site that stays where it is, after the first few; 1 h
}

// WithinDefault is the latency within a site that says nothing of it: about that of
// the clusters of DAS-3 (table II).
const WithinDefault = 50 * grid.Microsecond

// Times and bounds of a Survey.
const (
	surveySoon  = grid.Second     // after a site is first heard of: measure it, and report
	reportPause = 5 * grid.Second // between two reports, at least
	reportMoved = grid.Minute     // the same, of a site that moves
	reportAge   = 3 * grid.Hour   // an older report is not believed
	neighbours  = 16              // of the nearest sites, those measured longest ago have half of each round
	probesMax   = 64              // of SurveyConfig.Probes
	peersUsual  = 64              // as many as most surveys know: a list of so many needs no memory but the stack
	missesMax   = 4               // measurements in a row without an answer after which a site is forgotten
	movedShare  = 4               // of the usual latency: who has moved by this part of it is elsewhere
	usualWeight = 8               // a measurement is an eighth of the usual latency
)

// Survey is what a site knows of the latencies in its federation. It never measures
// all pairs: in each round it measures a few sites, half of them among the nearest,
// where it matters, the others in turn; the first rounds follow each other quickly, and those
// of a site that stays where it is the more slowly. From that it works out its coordinate
// (Coordinate), and gossips it with its nearest latencies, so that everybody can
// estimate the latency between any two sites. What was measured from here counts
// most, then what an end of the way reports, then the estimate.
//
// A report says nothing new as long as the site stays where it is: the spans between
// reports double up to SurveyConfig.Report. Who finds itself elsewhere than it has said, by
// movedShare of the usual latency or as it knows its place twice as well, says so within
// reportMoved; who has a new sibling tells that one alone.
//
// Peers may lie. What cannot be (LatencyMax, ErrAbsurd) is not taken. Of a way that
// both ends report the longer latency counts, so nobody comes nearer to a site than
// that says. What was measured from here to both ends bounds all that is said of the
// way between them (Believable). A wrong coordinate moves a site by no more than the
// latency measured to the liar.
//
// It reads no clock and does no I/O. Not safe for concurrent use.
type Survey struct {
	cfg   SurveyConfig
	rng   *rand.Rand
	peers []surveyed     // in no order: a round reads all of them
	index grid.SiteIndex // of peers
	marks map[uint64]grid.SiteID

	coordinate Coordinate
	said       Coordinate // as last reported
	usual      grid.Time  // latency to whom it measures; 0: none yet
	listeners  []grid.SiteID
	sequence   uint64
	reported   grid.Time // when; -1: never
	nextRound  grid.Time // grid.Never while nobody is known
	pace       grid.Time // to the next round; doubles up to a rest
	nextReport grid.Time
	reportPace grid.Time                 // to the next report; doubles up to its span: the first may find no ears
	told       map[grid.SiteID]grid.Time // when this site last reported to one alone, lately
	tells      int                       // how often since tellsSince
	tellsSince grid.Time

	Rejected int64 // reports and measurements that were not believed
}

// surveyed is what is known of another site.
type surveyed struct {
	ping   ping
	heard  grid.Time
	probed grid.Time // last probe; -1: never
	missed int       // probes since it last answered one
	report LatencyReport
}

type candidate struct {
	site     grid.SiteID
	peer     *surveyed
	distance grid.Time
	draw     uint64
}

// measured is a measured latency to a peer.
type measured struct {
	peer    grid.SiteID
	latency grid.Time
}

func (m measured) compare(o measured) int {
	return cmp.Or(cmp.Compare(m.latency, o.latency), cmp.Compare(m.peer, o.peer))
}

// byDistance orders candidates by distance.
func byDistance(a, b candidate) int {
	if a.distance != b.distance {
		return cmp.Compare(a.distance, b.distance)
	}
	return cmp.Compare(a.site, b.site)
}

// longestAgo puts the count candidates first that were measured longest ago, as drawn where
// several are equal, in that order.
func longestAgo(list []candidate, count int) {
	for i := range min(count, len(list)) {
		first := i
		for j := i + 1; j < len(list); j++ {
			a, b := &list[j], &list[first]
			if a.peer.probed < b.peer.probed || a.peer.probed == b.peer.probed && (a.draw < b.draw || a.draw == b.draw && a.site < b.site) {
				first = j
			}
		}
		list[i], list[first] = list[first], list[i]
	}
}

// NewSurvey returns a survey that knows nobody. The error says which field of cfg is
// out of range.
func NewSurvey(cfg SurveyConfig, rng *rand.Rand) (*Survey, error) {
	for _, d := range []struct {
		v   *grid.Time
		def grid.Time
	}{{&cfg.Within, WithinDefault}, {&cfg.Interval, 30 * grid.Second}, {&cfg.Report, grid.Hour}} {
		if *d.v == 0 {
			*d.v = d.def
		}
	}
	if cfg.Probes == 0 {
		cfg.Probes = 4
	}
	switch {
	case cfg.Within < 1 || cfg.Within > LatencyMax:
		return nil, fmt.Errorf("latency of %v within the site, want 1µs to %v", cfg.Within, LatencyMax)
	case cfg.Interval < grid.Second || cfg.Interval > pingAge:
		return nil, fmt.Errorf("latencies measured every %v, want 1s to %v", cfg.Interval, pingAge)
	case cfg.Report < reportPause || cfg.Report > reportAge/2:
		return nil, fmt.Errorf("latencies reported every %v, want %v to %v", cfg.Report, reportPause, reportAge/2)
	case cfg.Probes < 1 || cfg.Probes > probesMax:
		return nil, fmt.Errorf("latencies of %d sites measured at a time, want 1 to %d", cfg.Probes, probesMax)
	}
	s := &Survey{
		cfg: cfg, rng: rng, marks: map[uint64]grid.SiteID{mark(cfg.Self): cfg.Self},
		told: make(map[grid.SiteID]grid.Time), coordinate: newCoordinate(), reported: -1, nextRound: grid.Never, pace: min(surveySoon, cfg.Interval), reportPace: surveySoon,
	}
	if cfg.Topic == "" && cfg.Siblings == nil {
		s.nextReport = grid.Never
	}
	return s, nil
}

// NextTimer returns when Step next needs a Tick.
func (s *Survey) NextTimer() grid.Time { return min(s.nextRound, s.nextReport) }

// Step applies one input, a *LatencyReport's grid.Delivery, a *grid.Probed or a
// grid.Tick, at time now. now never decreases.
func (s *Survey) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	switch in := in.(type) {
	case *grid.Delivery:
		s.heard(now, in.From, in.Message.(*LatencyReport))
		s.greet(now, in.From, out)
	case *grid.Probed:
		s.probed(now, in)
	case *grid.Undelivered: // a report is repeated anyway
	case grid.Tick:
		if s.nextRound <= now {
			s.round(now, out)
		}
		if s.nextReport <= now {
			s.report(now, out)
		}
	default:
		panic(fmt.Sprintf("coalloc: unknown input %T", in))
	}
}

// peer returns what is known of another site, nil if nothing is. It holds until one is
// added or forgotten.
func (s *Survey) peer(site grid.SiteID) *surveyed {
	if i, known := s.place(site); known {
		return &s.peers[i]
	}
	return nil
}

// place returns where in peers another site is, and whether it is.
func (s *Survey) place(site grid.SiteID) (i int32, known bool) {
	return s.index.Find(site, func(i int32) grid.SiteID { return s.peers[i].report.Site })
}

// heard takes another site's report.
func (s *Survey) heard(now grid.Time, from grid.SiteID, r *LatencyReport) {
	if r.Site != from || from == s.cfg.Self || r.Sequence == 0 || r.Coordinate.check() != nil || r.Within < 1 || r.Within > LatencyMax || len(r.Nearest) > NearestMax {
		s.Rejected++
		return
	}
	p := s.peer(from)
	if p == nil {
		if len(s.peers) >= PeersMax && !s.makeRoom(now) {
			s.Rejected++
			return
		}
		s.index.Add(from, int32(len(s.peers)))
		s.marks[mark(from)] = from
		s.peers = grid.AppendOne(s.peers, surveyed{report: LatencyReport{Site: from}, probed: -1})
		p = &s.peers[len(s.peers)-1]
		// A newcomer is measured soon, and learns soon who is there.
		s.hurry(now)
		s.nextRound = min(s.nextRound, now+surveySoon)
		if s.cfg.Siblings == nil { // where there are siblings newcomers are told alone
			s.nextReport = min(s.nextReport, max(now+surveySoon, s.reported+reportPause))
		}
	}
	if p.report.Sequence >= r.Sequence {
		return
	}
	p.report, p.heard = *r, now
}

// makeRoom forgets the site that was heard of longest ago, if that is too long ago.
func (s *Survey) makeRoom(now grid.Time) bool {
	var oldest grid.SiteID
	at := grid.Never
	for i := range s.peers {
		if p := &s.peers[i]; p.heard < at || p.heard == at && p.report.Site < oldest {
			oldest, at = p.report.Site, p.heard
		}
	}
	if now-at <= reportAge {
		return false
	}
	s.forget(oldest)
	return true
}

// forget drops a site that is known; the last one takes its place.
func (s *Survey) forget(site grid.SiteID) {
	i, _ := s.place(site)
	last := int32(len(s.peers) - 1)
	s.index.Remove(site, i)
	if i < last {
		s.peers[i] = s.peers[last]
		s.index.Remove(s.peers[i].report.Site, last)
		s.index.Add(s.peers[i].report.Site, i)
	}
	s.peers[last] = surveyed{}
	s.peers = s.peers[:last]
	delete(s.marks, mark(site))
}

// probed takes a measurement.
func (s *Survey) probed(now grid.Time, in *grid.Probed) {
	p := s.peer(in.To)
	if p == nil {
		return
	}
	if in.RoundTrip < 0 { // silence says nothing of the way
		if p.missed++; p.missed >= missesMax {
			s.forget(in.To)
		}
		s.hurry(now)
		return
	}
	p.missed = 0
	if p.ping.observe(now, in.RoundTrip) != nil {
		s.Rejected++
		return
	}
	latency := p.ping.latency
	s.coordinate.move(&p.report.Coordinate, latency, s.rng)
	if s.usual == 0 {
		s.usual = latency
	}
	s.usual += (latency - s.usual) / usualWeight
	if s.reported >= 0 && s.moved() {
		s.hurry(now)
		s.nextReport = min(s.nextReport, max(now, s.reported+min(reportMoved, s.cfg.Report)))
	}
}

// moved reports whether the site is elsewhere than it has said, as far as that matters.
func (s *Survey) moved() bool {
	there, here := &s.said, &s.coordinate
	dx, dy := here.X-there.X, here.Y-there.Y
	way := int64(sqrt(uint64(dx*dx+dy*dy))) + abs(here.Height-there.Height)
	return way > int64(s.usual)*coordinateUnit/movedShare || there.Error >= 2*here.Error
}

// round orders a few sites to be measured: half of them near ones, the others those
// measured longest ago, at random where several are equal.
func (s *Survey) round(now grid.Time, out *grid.Outbox) {
	for i := len(s.peers) - 1; i >= 0; i-- { // who takes a forgotten one's place is already here
		if p := &s.peers[i]; now-p.heard > 2*reportAge {
			s.forget(p.report.Site)
		}
	}
	candidates := make([]candidate, 0, peersUsual)
	for i := range s.peers {
		p := &s.peers[i]
		candidates = append(candidates, candidate{p.report.Site, p, s.toPeer(now, p), 0})
	}
	if len(candidates) == 0 {
		s.nextRound = grid.Never
		return
	}
	slices.SortFunc(candidates, byDistance)
	for i := range candidates {
		candidates[i].draw = s.rng.Uint64()
	}
	near := min(len(candidates), neighbours)
	half := min(near, s.cfg.Probes/2)
	longestAgo(candidates[:near], half)
	longestAgo(candidates[half:], s.cfg.Probes-half)
	for i := range min(len(candidates), s.cfg.Probes) {
		c := &candidates[i]
		c.peer.probed = now
		out.Probe(c.site)
	}
	s.nextRound = now + s.pace - grid.Time(s.rng.Int64N(int64(s.pace/8)))
	s.pace = min(2*s.pace, s.rest())
}

// rest returns the longest span between two rounds, of a site that stays where it is among
// others that do: all whom it knows are measured twice within pingAge.
func (s *Survey) rest() grid.Time {
	rounds := max((len(s.peers)+s.cfg.Probes-1)/s.cfg.Probes, 1)
	return max(s.cfg.Interval, pingAge/2/grid.Time(rounds))
}

// hurry ends such a rest: somebody has come, moved, or does not answer.
func (s *Survey) hurry(now grid.Time) {
	s.pace = min(s.pace, s.cfg.Interval)
	s.nextRound = min(s.nextRound, now+s.pace)
}

// report gossips where this site is.
func (s *Survey) report(now grid.Time, out *grid.Outbox) {
	r := s.made(now)
	if s.cfg.Siblings == nil {
		out.Publish(s.cfg.Topic, r)
	} else {
		for _, site := range s.cfg.Siblings() {
			out.Send(site, r)
		}
	}
	s.reported, s.said = now, s.coordinate
	s.nextReport = now + s.reportPace - grid.Time(s.rng.Int64N(int64(s.reportPace/8)))
	s.reportPace = min(2*s.reportPace, s.cfg.Report)
}

// made returns a new report.
func (s *Survey) made(now grid.Time) *LatencyReport {
	s.sequence = max(uint64(max(now, 1)), s.sequence+1)
	r := &LatencyReport{Site: s.cfg.Self, Sequence: s.sequence, Coordinate: s.coordinate, Within: s.cfg.Within}
	nearest := make([]measured, 0, peersUsual)
	for i := range s.peers {
		if p := &s.peers[i]; p.ping.known(now) {
			nearest = append(nearest, measured{p.report.Site, p.ping.latency})
		}
	}
	slices.SortFunc(nearest, measured.compare)
	nearest = nearest[:min(len(nearest), NearestMax)]
	r.Nearest = make([]Nearby, 0, len(nearest))
	for _, m := range nearest {
		r.Nearest = append(r.Nearest, Nearby{mark(m.peer), m.latency})
	}
	return r
}

// toPeer returns the latency from here to a peer: as measured, else as estimated.
func (s *Survey) toPeer(now grid.Time, p *surveyed) grid.Time {
	if p.ping.known(now) {
		return p.ping.latency
	}
	return s.coordinate.Distance(&p.report.Coordinate)
}

// Said returns where this site has last told others that it is: what the survey is to Remember
// after a restart. ok is false if it has told nobody.
func (s *Survey) Said() (c Coordinate, ok bool) { return s.said, s.said.Error > 0 }

// Remember says where the site was before a restart. A survey that knows that tells each sibling
// once, and has nothing new to say as long as it finds itself there.
func (s *Survey) Remember(now grid.Time, c Coordinate) error {
	if err := c.check(); err != nil {
		return err
	}
	s.coordinate, s.said, s.reported = c, c, now
	if s.reportPace = s.cfg.Report; s.nextReport != grid.Never {
		s.nextReport = now + s.reportPace - grid.Time(s.rng.Int64N(int64(s.reportPace/8)))
	}
	return nil
}
