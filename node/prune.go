package node

import (
	"time"

	"gridnode/grid"
	"gridnode/node/site"
)

// prunePeriod is how often old files are looked for.
const prunePeriod = 10 * time.Minute

// prune removes what tasks wrote that are over and whose time has passed, until the
// host stops.
func (h *Host) prune() {
	tick := time.NewTicker(prunePeriod)
	defer tick.Stop()
	for {
		h.pruneOnce(time.Now())
		select {
		case <-tick.C:
		case <-h.stopping:
			return
		}
	}
}

func (h *Host) pruneOnce(now time.Time) {
	if err := h.files.Prune(now, h.loop.site.Limits().Retention.Duration(), h.alive); err != nil {
		h.log.Warn("cannot remove an old output", "error", err)
	}
}

// alive reports whether a job is known here and not over. When in doubt it is.
func (h *Host) alive(id grid.JobID) bool {
	alive := true
	_ = h.Do(h.ctx, func(s *site.Site) {
		v, known := s.Job(id)
		alive = known && !v.State.Terminal()
	})
	return alive
}
