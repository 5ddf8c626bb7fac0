package market

import (
	"gridnode/grid"
)

// placement is a job on its way to a site, or one that only wants to know
// (Preview). It is used again for another job when it is done.
type placement struct {
	Search
	paging paging

	timer    grid.Alarm[alarmed]
	epoch    uint32
	token    uint64    // of a Preview; 0 for a real placement
	rounds   int       // times that it waited for a busy site
	pausing  bool      // waits for a busy site, or for the directory to come back
	wakeAt   grid.Time // when the query under way or the pause ends
	blind    bool      // no quote is known of the site that the job names
	messages int32
	losses   uint32 // of executions of the job, so far
	waves    int    // of sites that a Preview has asked
	awaited  int    // of them, that have not answered
	probes   []*probe
}

// Bounds of one placement besides those of Config.
const (
	failuresMax = 3                     // directory queries repeated
	turnsMax    = 3                     // and begun at another place
	roundsMax   = 4                     // times that a job waits for a site that is busy at the moment
	roundsPaid  = 8                     // the same if cheques are awaited while holds are held
	roundPause  = 50 * grid.Millisecond // the first time; then doubled: holds last as long as a submission takes
	previewPage = 64                    // quotes per query of a Preview
	spareMax    = 1024                  // placements kept for later use
)

// newPlacement returns one for a job, nothing known yet.
func (b *broker) newPlacement(job *grid.Job) *placement {
	var p *placement
	if n := len(b.spare); n > 0 {
		p = b.spare[n-1]
		b.spare = b.spare[:n-1]
	} else {
		p = new(placement)
		p.timer.Owner = p
	}
	p.job, p.own, p.broker, p.ranking = job, -1, b, &b.ranking
	return p
}

// drop ends everything that p still has under way.
func (b *broker) drop(now grid.Time, p *placement, out *grid.Outbox) {
	for i := range p.asks {
		b.giveUp(p, &p.asks[i], out)
	}
	p.stopWaiting()
	b.timers.Stop(&p.timer)
	if p.paging.finding {
		delete(b.queries, p.paging.query)
	}
	for _, q := range p.probes {
		delete(b.probes, q.request)
	}
	if p.token == 0 {
		delete(b.placing, p.job.ID)
	}
	clear(p.negotiations)
	clear(p.asks)
	*p = placement{Search: Search{quotes: p.quotes[:0], negotiations: p.negotiations[:0], asks: p.asks[:0]}}
	p.timer.Owner = p
	if len(b.spare) < spareMax {
		b.spare = append(b.spare, p)
	}
}

// due implements alarmed: a query or a negotiation took too long, or a pause is over.
func (p *placement) due(a *Agent, now grid.Time, out *grid.Outbox) {
	b := &a.broker
	for i := range p.asks {
		if k := &p.asks[i]; k.standing == StandingAsked && k.deadline <= now {
			b.missed(now, p, i)
		}
	}
	switch {
	case p.wakeAt > now:
	case p.paging.finding:
		delete(b.queries, p.paging.query)
		p.paging.finding = false
		b.notFound(now, p, errFindTimeout, out)
		return
	case p.pausing:
		p.pausing = false
		if p.paging.failures > 0 {
			b.find(now, p, out)
			return
		}
	}
	b.watch(p)
	b.advance(now, p, out)
}
