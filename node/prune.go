package node

import (
	"time"

	"gridnode/grid"
	"gridnode/node/site"
)

// prunePeriod is how often old files are looked for.
const prunePeriod = 10 * time.Minute

// pruner removes what tasks wrote that are over and whose time has passed.
type pruner struct{ h *Host }

// run prunes until the host stops.
func (p *pruner) run() {
	tick := time.NewTicker(prunePeriod)
	defer tick.Stop()
	for {
		p.once(time.Now())
		select {
		case <-tick.C:
		case <-p.h.stopping:
			return
		}
	}
}

func (p *pruner) once(now time.Time) {
	if err := p.h.files.Prune(now, p.h.loop.site.Limits().Retention.Duration(), p.alive); err != nil {
		p.h.log.Warn("cannot remove an old output", "error", err)
	}
}

// alive reports whether a job is known here and not over. When in doubt it is.
func (p *pruner) alive(id grid.JobID) bool {
	alive := true
	_ = p.h.Do(p.h.ctx, func(s *site.Site) {
		v, known := s.Glance(id)
		alive = known && !v.State.Terminal()
	})
	return alive
}
