package site

import (
	"gridnode/coalloc"
	"gridnode/directory"
	"gridnode/directory/sibling"
	"gridnode/grid"
	"gridnode/internal/wire"
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
	related bool // the circle knows who is kin
}

func (*siblings) takes(b *board) {
	of := func(s *Site) *siblings { return s.siblings }
	hear(b, of, (*siblings).message, kindsOf(&sibling.Protocol)...).private = calmSiblings
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

func (sb *siblings) tick(now grid.Time, out *grid.Outbox) {
	if !sb.related {
		sb.relate(now, out)
	}
	if sb.circle.NextTimer() <= now {
		sb.circle.Step(now, grid.Tick{}, out)
	}
}

func (sb *siblings) nextTimer() grid.Time { return sb.circle.NextTimer() }

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
