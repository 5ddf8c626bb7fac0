package site

import (
	"bytes"
	"fmt"

	"google.golang.org/protobuf/proto"

	"gridnode/coalloc"
	"gridnode/directory"
	"gridnode/directory/record"
	"gridnode/directory/sibling"
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
	"gridnode/lease"
)

// siblings is the part that knows with which sites this one gossips. Of the others that
// it has to do with each may be missing.
type siblings struct {
	*base
	circle  *sibling.Circle
	dir     *directory.Directory
	survey  *coalloc.Survey
	matches *lease.Matchmaker
	kinship *lease.Kinship
	names   *names
	related bool // the circle knows who is kin
	memory  memory
}

func (*siblings) takes(b *board) {
	of := func(s *Site) *siblings { return s.siblings }
	hear(b, of, (*siblings).message, kindsOf(&sibling.Protocol)...).private = calmSiblings
	take(b, of, (*siblings).parted).private = calmSiblings
	take(b, of, (*siblings).changed)
	take(b, of, (*siblings).greeted)
	take(b, of, (*siblings).sampled).private = calmLatencies
	// What the DHT and measurements answer is for whoever has asked.
	whole := func(s *Site) *Site { return s }
	take(b, whole, (*Site).closest).private = calmAll
	take(b, whole, (*Site).probed).private = calmSiblings | calmLatencies
	take(b, whole, (*Site).provided)
	take(b, whole, (*Site).providers)
}

func (sb *siblings) message(now grid.Time, in grid.Input, out *grid.Outbox) {
	sb.circle.Step(now, in, out)
}

// parted: the connection with a sibling has ended.
func (sb *siblings) parted(now grid.Time, in *grid.Parted, out *grid.Outbox) {
	sb.circle.Step(now, in, out)
}

func (sb *siblings) tick(now grid.Time, out *grid.Outbox) {
	if !sb.related {
		sb.relate(now, out)
	}
	if sb.circle.NextTimer() <= now {
		sb.circle.Step(now, grid.Tick{}, out)
	}
	sb.memorize(now, out)
}

func (sb *siblings) nextTimer() grid.Time { return min(sb.circle.NextTimer(), sb.memory.due) }

// relate tells the circle who is kin: who has a link with this site, and who heads it.
func (sb *siblings) relate(now grid.Time, out *grid.Outbox) {
	sb.related = true
	var kin []grid.SiteID
	if sb.cfg.Head != "" {
		kin = append(kin, sb.cfg.Head)
	}
	if sb.kinship != nil {
		for _, l := range sb.kinship.Links() {
			if l.Site != sb.cfg.Head {
				kin = append(kin, l.Site)
			}
		}
	}
	sb.circle.SetKin(now, kin, out)
	sb.enlist()
}

// enlist tells the matchmaker whom it may ask besides its neighbours.
func (sb *siblings) enlist() {
	if sb.matches != nil {
		sb.matches.SetMembers(sb.circle.Members())
	}
}

// changed: the siblings are others than before.
func (sb *siblings) changed(now grid.Time, _ *sibling.Changed, out *grid.Outbox) {
	if sb.dir != nil {
		sb.dir.Resound(now, out)
	}
	if sb.survey != nil {
		sb.survey.Resound(now, out)
	}
	sb.enlist()
}

// greeted: a sibling may have forgotten what it was told.
func (sb *siblings) greeted(now grid.Time, in *sibling.Greeted, out *grid.Outbox) {
	if sb.dir != nil {
		sb.dir.Unheard(in.Site)
	}
	if sb.survey != nil {
		sb.survey.Unheard(in.Site)
	}
	sb.changed(now, nil, out)
}

// sampled: these are some sites of the federation. Without them coordinates would say
// nothing of the ways to sites that are not near.
func (sb *siblings) sampled(now grid.Time, in *sibling.Sampled, out *grid.Outbox) {
	if sb.survey != nil {
		sb.survey.Acquaint(now, in.Sites, out)
	}
}

// gossiped notes who has gossiped its load.
func (sb *siblings) gossiped(now grid.Time, in grid.Input, out *grid.Outbox) {
	if d, ok := in.(*grid.Delivery); ok {
		if m, ok := d.Message.(*directory.LoadReport); ok {
			sb.circle.Heard(now, d.From, m.Again, out)
		}
	}
	sb.undelivered(now, in, out)
}

// undelivered notes whom gossip did not reach.
func (sb *siblings) undelivered(now grid.Time, in grid.Input, out *grid.Outbox) {
	u, ok := in.(*grid.Undelivered)
	if !ok {
		return
	}
	switch u.Message.(type) {
	case *directory.LoadReport, *coalloc.LatencyReport:
		sb.circle.Lost(now, u.To, out)
	}
}

// closest gives what the DHT has found to whoever looked for it.
func (s *Site) closest(now grid.Time, in *grid.Closest, out *grid.Outbox) {
	switch {
	case s.siblings != nil && s.siblings.circle.Asked(in.Key):
		s.siblings.circle.Step(now, in, out)
	case s.names != nil && s.names.registry.Asked(in.Key):
		s.names.closest(now, s.seated(now, in), out)
	case s.quotes != nil:
		s.quotes.closest(now, s.seated(now, in), out)
	}
}

// seated puts those who are to hold something into the order that follows from their
// certificates, if there are any.
func (s *Site) seated(now grid.Time, in *grid.Closest) *grid.Closest {
	if s.membership == nil || len(in.Peers) == 0 {
		return in
	}
	return &grid.Closest{Key: in.Key, Peers: s.membership.roll.Seat(now, in.Key, in.Peers)}
}

// probed gives a measurement to all whom it concerns.
func (s *Site) probed(now grid.Time, in *grid.Probed, out *grid.Outbox) {
	if s.siblings != nil {
		s.siblings.circle.Step(now, in, out)
	}
	if s.latencies != nil {
		s.latencies.probed(now, in, out)
	}
}

// provided gives the news of a provider record to whose it is.
func (s *Site) provided(now grid.Time, in *grid.Provided, out *grid.Outbox) {
	switch {
	case s.siblings != nil && s.siblings.circle.Named(in.Key):
		s.siblings.circle.Step(now, in, out)
	case s.inputs != nil:
		s.inputs.catalog.Step(now, in, out)
	}
}

// providers gives provider records to whoever looked for them.
func (s *Site) providers(now grid.Time, in *grid.Providers, out *grid.Outbox) {
	switch {
	case s.siblings != nil && s.siblings.circle.Named(in.Key):
		s.siblings.circle.Step(now, in, out)
	case s.inputs != nil:
		s.inputs.catalog.Step(now, in, out)
	}
}

// latencies is the part that measures how far other sites are, and tells them.
type latencies struct {
	*base
	survey   *coalloc.Survey
	siblings *siblings // nil: whoever listens to the topic hears this site
}

func (*latencies) takes(b *board) {
	of := func(s *Site) *latencies { return s.latencies }
	hear(b, of, (*latencies).message, wire.GossipLatency).private = calmSiblings | calmLatencies
}

func (lt *latencies) message(now grid.Time, in grid.Input, out *grid.Outbox) {
	if lt.siblings != nil {
		lt.siblings.undelivered(now, in, out)
	}
	lt.survey.Step(now, in, out)
}

func (lt *latencies) probed(now grid.Time, in *grid.Probed, out *grid.Outbox) {
	lt.survey.Step(now, in, out)
}

func (lt *latencies) tick(now grid.Time, out *grid.Outbox) {
	if lt.survey.NextTimer() <= now {
		lt.survey.Step(now, grid.Tick{}, out)
	}
}

func (lt *latencies) nextTimer() grid.Time { return lt.survey.NextTimer() }

// memory is what a site keeps of the others that it would have to find out again after a
// restart: its siblings and how far they are, who has its record, who holds the cells of its quote, and
// where in the network it is. All of it is what was so once, and nothing is lost without it.
type memory struct {
	saved []byte    // as last stored
	due   grid.Time // when that is looked at again
}

// What a site remembers is stored first memoryFirst after it came up, and then if it is something
// else after each memorySpan.
const (
	memoryFirst = grid.Minute
	memorySpan  = 15 * grid.Minute
)

const memoryKey = "acquaintances"

// RecordKey implements grid.Record.
func (*memory) RecordKey() string { return memoryKey }

// AppendRecord implements grid.Record.
func (m *memory) AppendRecord(dst []byte) []byte { return append(dst, m.saved...) }

// memorize stores what the site remembers, if that is due and has changed.
func (sb *siblings) memorize(now grid.Time, out *grid.Outbox) {
	m := &sb.memory
	switch {
	case m.due == 0:
		m.due = now + memoryFirst
	case m.due <= now:
		m.due = now + memorySpan
		if b := sb.remembered(); !bytes.Equal(b, m.saved) {
			m.saved = b
			out.Save(m)
		}
	}
}

// remembered returns the stored form of what the site remembers.
func (sb *siblings) remembered() []byte {
	circle := sb.circle.Memory()
	p := &wirepb.Acquaintances{Announced: int64(circle.Announced)}
	for _, k := range circle.Siblings {
		p.Siblings, p.Distances = append(p.Siblings, string(k.Site)), append(p.Distances, int64(k.Distance))
	}
	if sb.names != nil {
		for _, at := range sb.names.registry.Memory() {
			w := &wirepb.RecordPlace{Key: at.Key[:], Look: int64(at.Look), Pace: int64(at.Pace)}
			for _, site := range at.Holders {
				w.Holders = append(w.Holders, string(site))
			}
			p.Places = append(p.Places, w)
		}
	}
	if sb.dir != nil {
		for _, r := range sb.dir.Memory() {
			p.Rings = append(p.Rings, r.Proto())
		}
	}
	if sb.survey != nil {
		if c, ok := sb.survey.Said(); ok {
			p.X, p.Y, p.Height, p.Error = c.X, c.Y, c.Height, uint32(c.Error)
		}
	}
	b, err := proto.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("site: record of acquaintances does not encode: %v", err))
	}
	return b
}

// keeps implements recorder.
func (*siblings) keeps() []string { return []string{memoryKey} }

// recover implements recorder.
func (sb *siblings) recover(now grid.Time, stored records, out *grid.Outbox) error {
	for key, value := range stored.each {
		if err := sb.remember(now, value, out); err != nil {
			return recordError(key, err)
		}
		sb.memory.saved = bytes.Clone(value)
	}
	return nil
}

// remember takes up what the site remembered.
func (sb *siblings) remember(now grid.Time, value []byte, out *grid.Outbox) error {
	var p wirepb.Acquaintances
	if err := proto.Unmarshal(value, &p); err != nil {
		return err
	}
	if len(p.Distances) != len(p.Siblings) || len(p.Places) > record.Places || len(p.Rings) > directory.RingsMax {
		return fmt.Errorf("%d distances of %d siblings, %d places of a record and %d rings", len(p.Distances), len(p.Siblings), len(p.Places), len(p.Rings))
	}
	circle := sibling.Memory{Announced: grid.Time(p.Announced)}
	for i, site := range p.Siblings {
		circle.Siblings = append(circle.Siblings, sibling.Known{Site: grid.SiteID(site), Distance: grid.Time(p.Distances[i])})
	}
	if err := circle.Check(); err != nil {
		return err
	}
	places := make([]record.Place, len(p.Places))
	for i, w := range p.Places {
		at := &places[i]
		if copy(at.Key[:], w.Key) != len(at.Key) || len(w.Key) != len(at.Key) {
			return fmt.Errorf("a key of %d bytes", len(w.Key))
		}
		for _, site := range w.Holders {
			at.Holders = append(at.Holders, grid.SiteID(site))
		}
		at.Look, at.Pace = grid.Time(w.Look), grid.Time(w.Pace)
		if err := at.Check(); err != nil {
			return err
		}
	}
	rings := make([]directory.Ring, len(p.Rings))
	for i, w := range p.Rings {
		var err error
		if rings[i], err = directory.OpenRing(w); err != nil {
			return err
		}
	}
	if p.Error > 0 && sb.survey != nil {
		c := coalloc.Coordinate{X: p.X, Y: p.Y, Height: p.Height, Error: int64(p.Error)}
		if err := sb.survey.Remember(now, c); err != nil {
			return err
		}
	}
	sb.circle.Remember(now, circle)
	if sb.dir != nil {
		sb.dir.Remember(now, rings)
	}
	if sb.names != nil {
		sb.names.remember(now, places, out)
	}
	return nil
}
