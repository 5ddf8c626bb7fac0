package muscle

import (
	"fmt"

	"gridnode/grid"
)

// Collect is a rule for how long jobs are collected before they are shared out.
type Collect uint8

const (
	// CollectWindow: for a window, which the first job opens.
	CollectWindow Collect = iota

	// CollectMakespan is step 1 of algorithm 4: "while the expected makespans of the jobs
	// yet to be scheduled in all clusters (provided by TITAN) are greater than a predefined
	// threshold, collect the arriving jobs". So jobs are shared out as soon as one cluster
	// is expected to be done within HeadConfig.Threshold; at once if one is idle.
	CollectMakespan
)

// CollectNames are the names of all rules, in their order.
var CollectNames = []string{"window", "makespan"}

// String returns the name used in settings.
func (c Collect) String() string { return CollectNames[c] }

// ParseCollect is the inverse of String.
func ParseCollect(s string) (Collect, error) {
	for c, name := range CollectNames {
		if s == name {
			return Collect(c), nil
		}
	}
	return 0, fmt.Errorf("%q: want window or makespan", s)
}

// Threshold of CollectMakespan. The paper does not print one. A minute is about twice
// what a job of its evaluation takes, so that no cluster runs dry while jobs wait.
const (
	ThresholdDefault = grid.Minute
	ThresholdMax     = grid.Day
)

// lookAgain is how long a head relies on what members are expected to do at most: jobs
// end before their estimates, and members come and go.
const lookAgain = grid.Second

// Due reports whether what waits is to be shared out now; now must have reached
// NextTimer. If not, NextTimer is when to ask again.
func (h *Head) Due(now grid.Time, members []Member) bool {
	if h.cfg.Collect == CollectWindow || h.fresh >= h.cfg.Batch {
		return true
	}
	least, there := grid.Never, false
	for i := range members {
		if m := &members[i]; m.Presence == Present && m.Processors > 0 {
			least, there = min(least, m.makespan()), true
		}
	}
	if !there || least <= h.cfg.Threshold {
		return true
	}
	h.look = now.Add(min(least-h.cfg.Threshold, lookAgain))
	h.closes = h.look
	return false
}

// Assign chooses the cluster of a job that waits, if the policy does so on arrival:
// it is to be called after Collect. What was chosen holds as long as that cluster takes
// part.
func (h *Head) Assign(now grid.Time, id grid.JobID, members []Member) {
	t := h.waiting[id]
	if t == nil || !h.OnArrival() {
		return
	}
	w := &Window{Members: members, free: make([][]grid.Time, len(members))}
	w.measure()
	b, clusters := w.describe(now, []*ticket{t})
	if len(clusters) == 0 {
		return
	}
	for _, other := range h.tickets {
		for c, m := range clusters {
			if other.job != nil && other.site == members[m].Site && other.site != "" {
				units := (other.job.Processors + w.unit - 1) / w.unit
				b.Clusters[c].Queued = b.Clusters[c].Queued.Add(members[m].span(other.job) * grid.Time(units))
			}
		}
	}
	packing, err := h.cfg.Policy.Share(b, h.rng)
	if err != nil {
		panic(fmt.Sprintf("muscle: job %s on arrival: %v", id, err)) // all was checked before
	}
	for c := range packing.Shares {
		if len(packing.Shares[c].Jobs) > 0 {
			t.site = members[clusters[c]].Site
		}
	}
}

// OnArrival reports whether Assign is to be called for each job.
func (h *Head) OnArrival() bool {
	return h.cfg.Collect == CollectMakespan && h.cfg.Policy.OnArrival()
}

// Collects returns by which rule jobs are collected, and its threshold.
func (h *Head) Collects() (Collect, grid.Time) { return h.cfg.Collect, h.cfg.Threshold }
