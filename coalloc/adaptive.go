package coalloc

import (
	"math/bits"

	"gridnode/grid"
)

// Adaptive appends a placement to dst that splits a job only if that is expected to
// pay. The paper does "not rely on predictions"; here the slowdown is predicted
// (View.Slowdown), and the wait from the estimates of what runs.
//
// A flexible job that fits a single site goes to the one with least idle processors
// among those with room, so that wider jobs find room too. Otherwise, of the splits by
// FCM and by CA the one that slows the job down less is taken if the job then loses
// less by running longer, estimate × slowdown, than it would by waiting for a single
// site (Site.Wait, the least over all sites). A wait that is not known counts as one
// that never ends. Requests with splits, or with at least two components, have no such
// choice: they go by WorstFit and by the better of FCM and CA.
func Adaptive(dst []Part, r *Request, v *View, estimate grid.Time) ([]Part, bool) {
	if len(r.Splits) > 0 {
		return WorstFit(dst, r, v)
	}
	if r.Processors > v.total {
		return dst, false
	}
	if r.ComponentsMin <= 1 {
		if at := v.tightest(r.Processors); at >= 0 {
			return append(dst, Part{0, at, r.Processors}), true
		}
	}
	parts, ok := ClusterMinimization(v.parts[0][:0], r, v)
	v.parts[0] = parts
	if !ok {
		return dst, false
	}
	if v.Network != nil {
		slowdown := v.Slowdown(r, parts)
		other, ok := CommunicationAware(v.parts[1][:0], r, v, MetricLatency)
		v.parts[1] = other
		if ok {
			if s := v.Slowdown(r, other); s < slowdown {
				parts, slowdown = other, s
			}
		}
		if r.ComponentsMin <= 1 && !worthwhile(estimate, slowdown, v.wait(r.Processors)) {
			return dst, false
		}
	}
	return append(dst, parts...), true
}

// worthwhile reports whether estimate × slowdown/1000 is less than wait.
func worthwhile(estimate grid.Time, slowdown int64, wait grid.Time) bool {
	if wait == grid.Never {
		return true
	}
	hi, lo := bits.Mul64(uint64(max(estimate, 0)), uint64(slowdown))
	waitHi, waitLo := bits.Mul64(uint64(max(wait, 0)), 1000)
	return hi < waitHi || hi == waitHi && lo < waitLo
}

// tightest returns the site with least idle processors among those with room for the
// whole job, the first by name among equals, or -1.
func (v *View) tightest(processors int64) int32 {
	best := int32(-1)
	for i := range v.Sites {
		s := &v.Sites[i]
		if s.Free < processors {
			continue
		}
		if best < 0 || s.Free < v.Sites[best].Free || s.Free == v.Sites[best].Free && s.ID < v.Sites[best].ID {
			best = int32(i)
		}
	}
	return best
}

// wait returns how long a job of one component would wait for the first site that can
// take it, grid.Never if none can or nobody knows.
func (v *View) wait(processors int64) grid.Time {
	least := grid.Never
	for i := range v.Sites {
		if s := &v.Sites[i]; s.Wait != nil && s.Processors >= processors {
			least = min(least, s.Wait(processors))
		}
	}
	return least
}
