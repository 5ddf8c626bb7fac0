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
type LoadReport struct{ Load Load }

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

// sameAs reports whether two reports say the same. A wait that gets shorter as time
// passes is the same; what makes it longer shows in the work that is queued.
func (l Load) sameAs(other Load) bool {
	return l.Free == other.Free && l.Widest == other.Widest && l.Spare == other.Spare && l.Queued == other.Queued && l.QueuedWork == other.QueuedWork &&
		l.Headed == other.Headed
}

// gossip is the reporting of load: a site's own on change, but not more often than the
// interval, and a heartbeat when nothing changes; and what others have reported. It takes
// loads and reports and publishes reports; its timer is the next one.
type gossip struct {
	*shared
	loads   newest[Load] // of other sites
	sent    Load         // last published
	current Load         // as last set
	ready   grid.Time    // when its wait is over
	next    grid.Time
}

func newGossip(sh *shared) gossip {
	return gossip{shared: sh, loads: newest[Load]{max: loadsMax}, next: grid.Never}
}

// set takes the site's load.
func (g *gossip) set(now grid.Time, load Load, out *grid.Outbox) {
	if g.cfg.Topic == "" && g.cfg.Siblings == nil {
		return
	}
	load.Site = g.cfg.Self
	g.current, g.ready = load, now+load.Wait
	switch {
	case g.sent.Sequence == 0:
		g.next = now
	case !load.sameAs(g.sent):
		g.next = min(g.next, g.sent.Issued.Add(g.cfg.GossipInterval))
	}
	g.tick(now, out)
}

// tick publishes the load as it is now, if that is due.
func (g *gossip) tick(now grid.Time, out *grid.Outbox) {
	if g.next > now {
		return
	}
	if g.cfg.Siblings != nil && len(g.cfg.Siblings()) == 0 {
		g.next = grid.Never // nobody hears it: it is no report, after which the next one has to wait
		return
	}
	g.current.Sequence = max(uint64(max(now, 1)), g.sent.Sequence+1)
	g.current.Issued, g.current.Wait = now, max(g.ready-now, 0)
	g.sent = g.current
	beat := g.cfg.HeartbeatInterval
	if g.sent.Headed.Head != "" {
		beat /= headedBeats
	}
	g.next = now + beat - g.jitter(beat/8)
	report := &LoadReport{g.sent}
	if g.cfg.Siblings == nil {
		out.Publish(g.cfg.Topic, report)
		return
	}
	for _, site := range g.cfg.Siblings() {
		out.Send(site, report)
	}
}

// hasten reports soon: there are new siblings, who have not heard.
func (g *gossip) hasten() {
	if g.current.Site != "" {
		g.next = min(g.next, g.sent.Issued.Add(g.cfg.GossipInterval))
	}
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

// headedBeats is how many heartbeats a headed site has for one of the others: its head
// has to know soon that it is there, or is not.
const headedBeats = 6

// Proto returns the wire form.
func (m *LoadReport) Proto() proto.Message {
	l := &m.Load
	p := &wirepb.LoadReport{
		Site: string(l.Site), Free: l.Free, Widest: l.Widest, Spare: l.Spare, Queued: l.Queued, QueuedWork: l.QueuedWork,
		Wait: int64(l.Wait), Sequence: l.Sequence, Issued: int64(l.Issued),
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
	m := &LoadReport{Load{
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
	if m.Load.Site != from {
		return nil, wire.Malformed("load report of %q from %q", m.Load.Site, from)
	}
	return m, nil
}
