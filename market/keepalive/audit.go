package keepalive

import (
	"fmt"
	"slices"

	"gridnode/grid"
)

// Audit returns of which execution its home will not be asked, or told that it will not begin, in
// time, or which home counts as heard later than it was asked; nil: there is nothing of that kind. It
// is asked of a holder at rest.
func (h *Holder) Audit(now grid.Time) error {
	for home, t := range h.homes {
		if !slices.IsSortedFunc(t.list, func(a, b execution) int { return a.id.Compare(b.id) }) {
			return fmt.Errorf("executions of %s are not in order", home)
		}
		if t.heard > t.asked {
			return fmt.Errorf("%s was asked at %v last, and has answered what was asked at %v", home, t.asked, t.heard)
		}
		for i := range t.list {
			x := &t.list[i]
			latest := now.Add(x.lease / shares)
			if !x.begun && !x.told {
				latest = min(latest, max(x.end, now))
			}
			if !t.timer.SetBy(latest) {
				return fmt.Errorf("%s is to be asked for job %s, epoch %d, until %v, and will not be", home, x.id.Job, x.id.Epoch, latest)
			}
		}
	}
	return nil
}
