package chaos

import (
	"gridnode/coalloc/muscle"
	"gridnode/grid"
	"gridnode/internal/lrms/titan"
	"gridnode/node/site"
)

// headEach is of how many sites, one after the other, the last may head the others.
const headEach = 4

// headBatch bounds the jobs of a packing: few, so that some are left for the next one.
const headBatch = 3

// heads reports whether a site heads those before it.
func (f features) heads(seed uint64, at int) bool {
	return at%headEach == headEach-1 && f.hits(seed, "head", uint64(at/headEach))
}

// lead tells a site whom it heads, or who heads it.
func (f features) lead(seed uint64, at, head int, c *site.Config, id func(int) grid.SiteID) {
	if at != head {
		c.Head = id(head)
		return
	}
	of := uint64(at)
	for member := head - headEach + 1; member < head; member++ {
		c.Heads.Members = append(c.Heads.Members, string(id(member)))
	}
	c.Heads.HeadConfig = muscle.HeadConfig{
		Collect: muscle.Collect(roll(seed, "collect", of, uint64(len(muscle.CollectNames)))), Threshold: [...]grid.Time{muscle.ThresholdDefault, muscle.ThresholdMax}[roll(seed, "threshold", of, 2)],
		Window: [...]grid.Time{0, 2 * grid.Second, 20 * grid.Second}[roll(seed, "window", of, 3)],
		Batch:  headBatch, Policy: muscle.Policy(roll(seed, "policy", of, uint64(len(muscle.PolicyNames)))),
		Plan: &muscle.PlanConfig{Config: titan.Config{Set: 4, Stable: 1, Generations: 2, Settle: 100}, Start: muscle.StartAll, Work: 10_000},
	}
}
