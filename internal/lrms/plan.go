package lrms

import "gridnode/grid"

// plan is when the head of the queue starts by the estimates: EASY's shadow time.
// It is laid into the profile only where promises have to be told apart from it;
// without them two numbers say all.
type plan struct {
	valid      bool
	laid       bool
	processors int64
	start, end grid.Time
	extra      int64 // not laid: processors left over at start
}

// makePlan plans the head, which exists and has no valid plan.
func (c *Cluster) makePlan() {
	e := &c.queue.entries[c.queue.head]
	processors := int64(e.processors)
	start, available := c.profile.earliest(processors, e.estimate, c.now)
	c.plan = plan{
		valid: true, processors: processors,
		start: start, end: start + e.estimate, extra: available - processors,
	}
}

// layPlan makes sure that the profile shows the head's place, if there is a head.
func (c *Cluster) layPlan() {
	if c.queue.size == 0 || c.plan.laid {
		return
	}
	if !c.plan.valid {
		c.makePlan()
	}
	c.profile.occupy(c.plan.start, c.plan.end, c.plan.processors)
	c.plan.laid = true
}

// liftPlan forgets the plan.
func (c *Cluster) liftPlan() {
	if c.plan.laid {
		c.profile.vacate(c.plan.start, c.plan.end, c.plan.processors)
	}
	c.plan = plan{}
}

// reach returns for how long as many processors, which are free now, stay
// available besides the head's place.
func (c *Cluster) reach(processors int64) grid.Time {
	switch {
	case c.plan.laid || c.agenda.size > 0:
		return min(c.profile.lasting(processors), grid.SpanMax)
	case c.plan.valid && processors > c.plan.extra:
		return c.plan.start - c.now
	}
	return grid.SpanMax
}

// look fills w with what may start now.
func (c *Cluster) look(w *window) {
	w.widths = 0
	if c.profile.free <= 0 {
		return
	}
	top := width(c.profile.free)
	w.widths = top + 1
	for k := top; k >= 0; k-- {
		reach := c.reach(narrowest(k))
		w.reach[k] = reach
		if reach == grid.SpanMax { // so it is for whatever is narrower
			for k--; k >= 0; k-- {
				w.reach[k] = reach
			}
		}
	}
}
