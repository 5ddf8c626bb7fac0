package site

import (
	"gridnode/coalloc"
	"gridnode/grid"
	"gridnode/internal/wire"
)

// latencies is the part that measures how far other sites are, and tells them.
type latencies struct {
	*base
	survey   *coalloc.Survey
	siblings *siblings // nil: whoever listens to the topic hears this site
}

func (*latencies) takes(b *board) {
	of := func(s *Site) *latencies { return s.latencies }
	hear(b, of, (*latencies).message, wire.GossipLatency).private = true
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
