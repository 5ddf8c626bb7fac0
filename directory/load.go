package directory

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// Bounds of load reports.
const (
	loadsMax      = 4096    // sites whose reports are remembered
	loadBytesMax  = 512     // of an encoded report
	queuedMax     = 1 << 40 // jobs
	queuedWorkMax = 1 << 60 // processor-seconds
)

// Load is what a site gossips about itself to its siblings. Like a quote it is no
// commitment.
type Load struct {
	Site       grid.SiteID
	Free       int64     // idle processors
	Widest     int64     // processors of the widest job that could start now
	Spare      int64     // idle processors beyond those that jobs wait for, if it lends them
	Queued     int64     // jobs waiting
	QueuedWork int64     // their processor-seconds by the estimates
	Wait       grid.Time // as in Quote
	Sequence   uint64    // rises with every report of a site, across restarts too; set by SetLoad
	Issued     grid.Time // instant on the site's clock; set by SetLoad
	Headed     Headed    // what it tells the site that heads it

	Heard grid.Time // instant on this site's clock at which the report came; not part of it
}

// Headed is what a site tells, with its load, the site that heads it: that it
// consents, and what a packing needs to know. The zero value consents to nobody.
type Headed struct {
	Head       grid.SiteID // whose packing it consents to; empty: nobody's
	Name       string      // what it calls itself; at most 64 bytes
	Processors int64
	grid.Rating
	Weights [3]int64 // of over-deadline, makespan and idle time, each 0 to weightMax; all 0: it does not care
}

// weightMax bounds the weights of a headed site.
const weightMax = 1000

// check returns an error that names the first field that is out of bounds.
func (h *Headed) check() error {
	if *h == (Headed{}) {
		return nil
	}
	switch {
	case len(h.Head) == 0 || len(h.Head) > siteMax:
		return fmt.Errorf("head of %d bytes, want 1 to %d", len(h.Head), siteMax)
	case len(h.Name) > nameMax || !utf8.ValidString(h.Name):
		return fmt.Errorf("name of %d bytes, want at most %d of UTF-8", len(h.Name), nameMax)
	case h.Processors < 0 || h.Processors > processorsMax:
		return fmt.Errorf("%d processors", h.Processors)
	case h.Speed < 1 || h.Speed > grid.RatingMax || h.Bandwidth < 1 || h.Bandwidth > grid.RatingMax:
		return fmt.Errorf("speed %d and bandwidth %d", h.Speed, h.Bandwidth)
	}
	for _, w := range h.Weights {
		if w < 0 || w > weightMax {
			return fmt.Errorf("weight %d, want 0 to %d", w, weightMax)
		}
	}
	return nil
}

// LoadReport is the message that carries a Load.
type LoadReport struct {
	Load  Load
	Again grid.Time // within this span whoever is sent it hears again; 0: the site does not say
}

// MessageKind returns wire.GossipLoad.
func (*LoadReport) MessageKind() grid.Kind { return wire.GossipLoad }

// check returns an error that names the first field that is out of bounds.
func (l *Load) check() error {
	switch {
	case len(l.Site) == 0 || len(l.Site) > siteMax:
		return fmt.Errorf("site of %d bytes, want 1 to %d", len(l.Site), siteMax)
	case l.Free < 0 || l.Free > processorsMax:
		return fmt.Errorf("%d free processors", l.Free)
	case l.Widest < 0 || l.Widest > processorsMax:
		return fmt.Errorf("widest startable job of %d processors", l.Widest)
	case l.Spare < 0 || l.Spare > processorsMax:
		return fmt.Errorf("%d processors to spare", l.Spare)
	case l.Queued < 0 || l.Queued > queuedMax:
		return fmt.Errorf("%d jobs queued", l.Queued)
	case l.QueuedWork < 0 || l.QueuedWork > queuedWorkMax:
		return fmt.Errorf("%d processor-seconds queued", l.QueuedWork)
	case l.Wait < 0 || l.Wait > grid.SpanMax:
		return fmt.Errorf("wait of %d µs", int64(l.Wait))
	case l.Sequence == 0:
		return fmt.Errorf("sequence 0, want 1 or more")
	case l.Issued < 0 || l.Issued > grid.SpanMax:
		return fmt.Errorf("issued at %d µs", int64(l.Issued))
	}
	return l.Headed.check()
}

// matters reports whether a sibling could decide otherwise because of what has changed:
// processors or a queue that come or go, or change by loadFactor; of what is lent, which
// siblings ask for by the processor, any change.
func (l *Load) matters(other *Load) bool {
	return differ(l.Free, other.Free) || differ(l.Widest, other.Widest) || l.Spare != other.Spare ||
		differ(l.Queued, other.Queued) || differ(l.QueuedWork, other.QueuedWork) || l.Headed != other.Headed
}

// sameAs reports whether two reports say the same. A wait that gets shorter as time
// passes is the same; what makes it longer shows in the work that is queued.
func (l Load) sameAs(other Load) bool {
	return l.Free == other.Free && l.Widest == other.Widest && l.Spare == other.Spare && l.Queued == other.Queued && l.QueuedWork == other.QueuedWork &&
		l.Headed == other.Headed
}

// gossip is the reporting of load: a site's own to those who hear it, and what others have
// reported. It takes loads and reports and publishes reports; its timer is the next one.
type gossip struct {
	*shared
	loads    newest[Load] // of other sites
	current  Load         // as last set
	ready    grid.Time    // when its wait is over
	sequence uint64       // of the last report
	ears     [ears]ear
	hearers  []hearer // siblings who have heard, and as what
}

// Who hears a site are ears of three kinds, as those who need to know more are told more:
// the site that heads it each change, and headedBeats heartbeats each Config.HeartbeatInterval;
// who watches over it one in calmBeats of these spans, so that it is missed if it lives but does
// nothing; all others what matters to them, and now and then the rest (Config.RefreshInterval).
// Where reports go to a topic everybody is told each change, and gets the heartbeats.
const (
	head = iota
	watchers
	others
	ears
)

// ear is what those of a kind have heard.
type ear struct {
	told   Load
	again  grid.Time // when they are told in any case; grid.Never: nobody is there
	change grid.Time // when they are told of a change; grid.Never if there is none
	slowing
}

// hearer is a sibling that has heard.
type hearer struct {
	site grid.SiteID
	ear  int
}

func newGossip(sh *shared) gossip {
	g := gossip{shared: sh, loads: newest[Load]{max: loadsMax}}
	for e := range g.ears {
		g.ears[e].again, g.ears[e].change = grid.Never, grid.Never
	}
	return g
}

// next returns when something is due.
func (g *gossip) next() grid.Time {
	t := grid.Never
	for e := range g.ears {
		t = min(t, g.ears[e].again, g.ears[e].change)
	}
	return t
}

// set takes the site's load.
func (g *gossip) set(now grid.Time, load Load, out *grid.Outbox) {
	if g.cfg.Topic == "" && g.cfg.Siblings == nil {
		return
	}
	load.Site = g.cfg.Self
	g.current, g.ready = load, now+load.Wait
	for e := range g.ears {
		x := &g.ears[e]
		switch {
		case e == head && load.Headed.Head == "":
		case x.told.Sequence == 0:
			if len(g.sites(e)) > 0 || e == others && g.cfg.Siblings == nil {
				x.again = now
			}
		case e != head && g.cfg.Siblings != nil && !load.matters(&x.told) || load.sameAs(x.told):
			x.change = grid.Never
		default:
			x.change = min(x.change, x.told.Issued.Add(max(x.span, g.cfg.GossipInterval)))
		}
	}
	g.tick(now, out)
}

// tick tells those who are due the load as it is now.
func (g *gossip) tick(now grid.Time, out *grid.Outbox) {
	for e := range g.ears {
		x := &g.ears[e]
		if min(x.again, x.change) > now {
			continue
		}
		if x.change <= now && e != head && g.cfg.Siblings != nil {
			x.slow(now, g.cfg.GossipInterval, g.cfg.HeartbeatInterval)
		}
		x.change = grid.Never
		sites := g.sites(e)
		if g.cfg.Siblings != nil && len(sites) == 0 {
			x.again = grid.Never // nobody hears it: it is no report, after which the next one has to wait
			continue
		}
		report := g.report(now, e)
		beat := report.Again
		x.told, x.again = report.Load, now+beat-g.jitter(beat/32)
		if g.cfg.Siblings == nil {
			out.Publish(g.cfg.Topic, report)
			continue
		}
		for _, site := range sites {
			g.enlist(site, e)
			out.Send(site, report)
		}
	}
}

// report returns what those of a kind are told now.
func (g *gossip) report(now grid.Time, e int) *LoadReport {
	g.sequence = max(uint64(max(now, 1)), g.sequence+1)
	g.current.Sequence, g.current.Issued, g.current.Wait = g.sequence, now, max(g.ready-now, 0)
	beat := g.cfg.HeartbeatInterval
	switch {
	case e == head, g.cfg.Siblings == nil && g.current.Headed.Head != "":
		beat /= headedBeats
	case g.cfg.Siblings == nil:
	case e == watchers:
		beat = min(calmBeats*beat, g.cfg.RefreshInterval)
	default:
		beat = g.cfg.RefreshInterval
	}
	return &LoadReport{g.current, beat}
}

// sites returns the siblings of a kind.
func (g *gossip) sites(e int) (sites []grid.SiteID) {
	if g.cfg.Siblings == nil {
		return nil
	}
	for _, site := range g.cfg.Siblings() {
		if g.ear(site) == e {
			sites = append(sites, site)
		}
	}
	return sites
}

// ear returns as what a sibling hears this site.
func (g *gossip) ear(site grid.SiteID) int {
	switch {
	case site == g.current.Headed.Head:
		return head
	case g.cfg.Watchers == nil || slices.Contains(g.cfg.Watchers(), site):
		return watchers
	}
	return others
}

// enlist notes that a sibling has heard, and reports whether it had not, or as another.
func (g *gossip) enlist(site grid.SiteID, e int) (fresh bool) {
	i := slices.IndexFunc(g.hearers, func(h hearer) bool { return h.site == site })
	if i < 0 {
		g.hearers = append(g.hearers, hearer{site, e})
		return true
	}
	fresh = g.hearers[i].ear != e
	g.hearers[i].ear = e
	return fresh
}

// resound tells the siblings alone who have not heard, or hear as others than before.
func (g *gossip) resound(now grid.Time, out *grid.Outbox) {
	if g.current.Site == "" {
		return
	}
	siblings := g.cfg.Siblings()
	g.hearers = slices.DeleteFunc(g.hearers, func(h hearer) bool { return !slices.Contains(siblings, h.site) })
	for e := range g.ears {
		var report *LoadReport
		for _, site := range g.sites(e) {
			if !g.enlist(site, e) {
				continue
			}
			if report == nil {
				report = g.report(now, e)
			}
			out.Send(site, report)
		}
		if x := &g.ears[e]; report != nil && x.again == grid.Never {
			x.told, x.again = report.Load, now+report.Again-g.jitter(report.Again/32)
		}
	}
}

// unheard notes that a sibling may have forgotten what it has heard.
func (g *gossip) unheard(site grid.SiteID) {
	g.hearers = slices.DeleteFunc(g.hearers, func(h hearer) bool { return h.site == site })
}

// onLoad takes another site's report.
func (g *gossip) onLoad(now grid.Time, from grid.SiteID, l *Load) {
	if l.Site != from || l.Issued > now+skewMax || l.check() != nil {
		g.counts.Rejected++
		return
	}
	if v, fresh := g.loads.put(l.Site); fresh || v.Sequence < l.Sequence {
		*v = *l
		v.Heard = now
	}
}

// load returns the newest report of another site.
func (g *gossip) load(site grid.SiteID) (Load, bool) {
	if l := g.loads.get(site); l != nil {
		return *l, true
	}
	return Load{}, false
}

// headed returns the newest reports of the sites that consent to be headed by one.
func (g *gossip) headed(by grid.SiteID) (reports []Load) {
	for i := range g.loads.values {
		if l := &g.loads.values[i]; by != "" && l.Headed.Head == by {
			reports = append(reports, *l)
		}
	}
	slices.SortFunc(reports, func(a, b Load) int { return cmp.Compare(a.Site, b.Site) })
	return reports
}

// calmBeats is how many spans of Config.HeartbeatInterval the heartbeats to watchers are apart. That
// a daemon or its machine is gone shows by the connection with it (grid.Parted).
const calmBeats = 10

// headedBeats is how many heartbeats a headed site has for one of the others: its head
// has to know soon that it is there, or is not.
const headedBeats = 6

// Proto returns the wire form.
func (m *LoadReport) Proto() proto.Message {
	l := &m.Load
	p := &wirepb.LoadReport{
		Site: string(l.Site), Free: l.Free, Widest: l.Widest, Spare: l.Spare, Queued: l.Queued, QueuedWork: l.QueuedWork,
		Wait: int64(l.Wait), Sequence: l.Sequence, Issued: int64(l.Issued), Again: int64(m.Again),
	}
	if h := &l.Headed; *h != (Headed{}) {
		p.Headed = &wirepb.HeadedSite{
			Head: string(h.Head), Name: []byte(h.Name), Processors: h.Processors, Speed: h.Speed, Bandwidth: h.Bandwidth,
			OverDeadline: h.Weights[0], Makespan: h.Weights[1], Idle: h.Weights[2],
		}
	}
	return p
}

// Gossip is how load reports travel: the frames of its one kind are published on
// Config.Topic, or sent to Config.Siblings.
var Gossip = wire.Protocol{
	ID:       "/gridnode/gossip/1.0.0",
	Decoders: map[grid.Kind]wire.Decoder{wire.GossipLoad: decodeLoad},
}

func decodeLoad(from grid.SiteID, body []byte) (grid.Message, error) {
	if len(body) > loadBytesMax {
		return nil, wire.Malformed("load report of %d bytes, at most %d", len(body), loadBytesMax)
	}
	var p wirepb.LoadReport
	if err := proto.Unmarshal(body, &p); err != nil {
		return nil, wire.Malformed("load report: %v", err)
	}
	m := &LoadReport{Again: grid.Time(p.Again), Load: Load{
		Site: grid.SiteID(p.Site), Free: p.Free, Widest: p.Widest, Spare: p.Spare, Queued: p.Queued, QueuedWork: p.QueuedWork,
		Wait: grid.Time(p.Wait), Sequence: p.Sequence, Issued: grid.Time(p.Issued),
	}}
	if h := p.Headed; h != nil {
		m.Load.Headed = Headed{
			Head: grid.SiteID(h.Head), Name: string(h.Name), Processors: h.Processors,
			Rating: grid.Rating{Speed: h.Speed, Bandwidth: h.Bandwidth}, Weights: [3]int64{h.OverDeadline, h.Makespan, h.Idle},
		}
	}
	if err := m.Load.check(); err != nil {
		return nil, wire.Malformed("load report: %v", err)
	}
	if m.Again < 0 || m.Again > grid.Day {
		return nil, wire.Malformed("load report: again within %d µs", p.Again)
	}
	if m.Load.Site != from {
		return nil, wire.Malformed("load report of %q from %q", m.Load.Site, from)
	}
	return m, nil
}
