package lrms

import (
	"fmt"
	"slices"

	"gridnode/grid"
	"gridnode/internal/lrms/gpu"
)

// A job that needs GPUs is always promised both, processors and GPUs, for the same time: what
// waits in the queue could not say when it will have processors. Those that nobody promised a
// start wait in a line until the site does, in their order. A promise is kept early if both are
// there and nobody is delayed by it.

// FitsGPUs returns an error that wraps ErrTooWide if the site could never meet a need.
func (c *Cluster) FitsGPUs(need grid.GPUs) error {
	if c.gpus.Pool == nil {
		return fmt.Errorf("it wants GPUs (%v), and this site has none: %w", need, ErrTooWide)
	}
	if err := c.gpus.Fits(need); err != nil {
		return fmt.Errorf("%w: %w", err, ErrTooWide)
	}
	return nil
}

// Stock returns the GPUs of the site.
func (c *Cluster) Stock(now grid.Time) grid.GPUStock {
	if c.gpus.Pool == nil {
		return nil
	}
	return c.gpus.Stock(now)
}

// earliest returns when at the earliest a request can have all that it needs, if a Commit may
// take until hold. It takes as long as gpu.Pool.Earliest for each time that one of the two is
// there and not the other.
func (c *Cluster) earliest(r *Request, hold grid.Time) grid.Time {
	start := c.profile.earliestFrom(r.Processors, r.Estimate, c.now+hold, c.floor())
	for r.GPUs.Count > 0 {
		at := c.gpus.Earliest(c.now, r.GPUs, r.Estimate.Add(hold), start)
		if at <= start || at > instantMax {
			return at
		}
		start = c.profile.earliestFrom(r.Processors, r.Estimate, c.now+hold, at)
	}
	return start
}

// devices is the GPUs of a site, for requests that need some; all others it leaves alone.
type devices struct{ *gpu.Pool }

// promise sets the GPUs of a new promise aside.
func (d devices) promise(now grid.Time, r *Request, start, hold grid.Time) {
	if r.GPUs.Count > 0 {
		d.Promise(now, r.ID, r.GPUs, start, r.Estimate.Add(hold))
	}
}

// committed says that a promise needs no room for its Commit any more.
func (d devices) committed(r *Request) {
	if r.GPUs.Count > 0 {
		d.Shorten(r.ID, r.Estimate)
	}
}

// ready reports whether who has a promise could have its GPUs now.
func (d devices) ready(now grid.Time, r *Request) bool {
	return r.GPUs.Count == 0 || d.Ready(now, r.ID)
}

// begin gives a task its GPUs.
func (d devices) begin(now grid.Time, r *Request) {
	if r.GPUs.Count > 0 {
		d.Begin(now, r.ID)
	}
}

// extend says until when a task may have them.
func (d devices) extend(r *Request, end grid.Time) {
	if r.GPUs.Count > 0 {
		d.Extend(r.ID, end)
	}
}

// release takes back what a task has or is promised.
func (d devices) release(r *Request) {
	if r.GPUs.Count > 0 {
		d.Release(r.ID)
	}
}

// callUp promises processors and GPUs to the first of the line, as many as may be promised
// some.
func (c *Cluster) callUp() {
	called := 0
	for _, i := range c.line {
		r := c.tasks.slab[i].Request
		c.layPlan()
		start := c.earliest(&r, 0)
		if c.gpus.Full() || start > instantMax-r.Estimate {
			break
		}
		called++
		c.work.remove(r)
		c.promise(i, start, 0)
		c.commit(i)
	}
	c.line = slices.Delete(c.line, 0, called)
}
