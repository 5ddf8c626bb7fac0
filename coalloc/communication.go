package coalloc

import (
	"cmp"
	"math"
	"slices"
)

// Metric is what Communication-Aware placement looks at.
type Metric uint8

// Metrics.
const (
	MetricLatency   Metric = iota // for jobs dominated by communication between processes
	MetricBandwidth               // for jobs that move much data
)

// nearness is what CommunicationAware knows of the sites of a View: it depends on the
// network and the groups only and is worked out once.
type nearness struct {
	known  [2]bool
	within [2][]int32 // sites, the best connected within first
	around [2][]int32 // sites by group, in it the best connected on average first
}

// groupScan is how many sites of its own latency group a site is compared with for
// its average: a larger group is sampled evenly. With it, n sites take at most
// n × groupScan looks at the network, whatever their number.
const groupScan = 64

// CommunicationAware appends a placement by the Communication-Aware policy (section
// IV-C) to dst: it "first orders the clusters according to increasing intra-cluster
// latency, and checks in this order whether the complete job can be placed in a single
// cluster. If this is not possible, CA computes for each cluster the average of all of
// its inter-cluster latencies, including its own intra-cluster latency, and orders the
// clusters according to increasing value of this average"; then it fills them as FCM
// does. By bandwidth the greatest comes first.
//
// Where the paper leaves it open, and beyond it:
//   - of sites that are equally good within, that with least idle processors among
//     those with room takes the job, so that wider ones find room, too;
//   - if the sites are divided into latency groups (Site.Group), averages are over the
//     group, and a job is split within one group only: "clusters with low inter-cluster
//     latencies are grouped together, and co-allocation is restricted to those groups
//     separately". The group with the best average comes first. A job too wide for
//     every group even if it were idle may be split over all sites;
//   - if the limit of components is too low for the order, that of FCM is taken.
//
// Requests with splits are placed by WorstFit. Without a Network it is FCM.
func CommunicationAware(dst []Part, r *Request, v *View, metric Metric) ([]Part, bool) {
	switch {
	case len(r.Splits) > 0:
		return WorstFit(dst, r, v)
	case r.Processors > v.total:
		return dst, false
	case v.Network == nil:
		return minimize(dst, r, v, v.widest())
	}
	v.learn(metric)
	if r.ComponentsMin <= 1 {
		if at := v.snuggest(r.Processors, metric); at >= 0 {
			return append(dst, Part{0, at, r.Processors}), true
		}
	}
	around := v.near.around[metric]
	confined := false // some group could hold the job
	for begin := 0; begin < len(around); {
		end, processors := begin, int64(0)
		for end < len(around) && v.Sites[around[end]].Group == v.Sites[around[begin]].Group {
			processors += r.whole(v.Sites[around[end]].Processors)
			end++
		}
		if parts, ok := minimize(dst, r, v, around[begin:end]); ok {
			return parts, true
		}
		if end-begin < len(around) && processors >= r.Processors && end-begin >= r.ComponentsMin {
			confined = true
		}
		begin = end
	}
	if confined {
		return dst, false
	}
	if parts, ok := minimize(dst, r, v, around); ok {
		return parts, true
	}
	return minimize(dst, r, v, v.widest())
}

// snuggest returns the site for a whole job: the best connected within among those
// with room, of equal ones the one with least idle processors, or -1.
func (v *View) snuggest(processors int64, metric Metric) int32 {
	best := int32(-1)
	for _, i := range v.near.within[metric] {
		s := &v.Sites[i]
		if best >= 0 && v.cost(metric, i, i) > v.cost(metric, best, best) {
			break
		}
		if s.Free >= processors && (best < 0 || s.Free < v.Sites[best].Free) {
			best = i
		}
	}
	return best
}

// cost is the latency between two sites in microseconds, or what grows as the
// bandwidth falls.
func (v *View) cost(metric Metric, a, b int32) int64 {
	if metric == MetricLatency {
		return int64(v.Network.Latency(int(a), int(b)))
	}
	return BandwidthMax / max(v.Network.Bandwidth(int(a), int(b)), 1)
}

// learn works out the orders of CommunicationAware.
func (v *View) learn(metric Metric) {
	if v.near.known[metric] {
		return
	}
	v.near.known[metric] = true
	within, around := make([]int64, len(v.Sites)), make([]int64, len(v.Sites))
	groups := make(map[int32][]int32)
	for i := range v.Sites {
		groups[v.Sites[i].Group] = append(groups[v.Sites[i].Group], int32(i))
		v.near.within[metric] = append(v.near.within[metric], int32(i))
		v.near.around[metric] = append(v.near.around[metric], int32(i))
	}
	rank := make(map[int32]int64, len(groups)) // mean of the averages in the group
	for i := range v.Sites {
		g := v.Sites[i].Group
		within[i] = v.cost(metric, int32(i), int32(i))
		around[i] = v.average(metric, int32(i), groups[g])
		if rank[g] += around[i] / int64(len(groups[g])); len(groups[g]) == 1 {
			rank[g] = math.MaxInt64 // nothing can be split within it
		}
	}
	slices.SortFunc(v.near.within[metric], func(a, b int32) int {
		return cmp.Or(cmp.Compare(within[a], within[b]), cmp.Compare(v.Sites[a].ID, v.Sites[b].ID))
	})
	slices.SortFunc(v.near.around[metric], func(a, b int32) int {
		ga, gb := v.Sites[a].Group, v.Sites[b].Group
		if ga != gb {
			return cmp.Or(cmp.Compare(rank[ga], rank[gb]), cmp.Compare(ga, gb))
		}
		return cmp.Or(cmp.Compare(around[a], around[b]), cmp.Compare(v.Sites[a].ID, v.Sites[b].ID))
	})
}

// average returns a site's mean cost to its group, itself included: to all of it, or
// to groupScan sites spread evenly over it.
func (v *View) average(metric Metric, site int32, group []int32) int64 {
	if len(group) <= groupScan {
		var sum int64
		for _, other := range group {
			sum += v.cost(metric, site, other)
		}
		return sum / int64(len(group))
	}
	sum := v.cost(metric, site, site)
	for k := range groupScan {
		sum += v.cost(metric, site, group[k*len(group)/groupScan])
	}
	return sum / (groupScan + 1)
}
