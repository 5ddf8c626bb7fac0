package coalloc

import "gridnode/grid"

// Groups divides the sites of v into latency groups, in which no site is further than
// radius from the group's first, and notes them in Site.Group: "clusters with low
// inter-cluster latencies are grouped together" (section IV-C). The first site of a
// group is the widest that is in none yet; each site joins the nearest first within
// radius. A site that is far from all is a group of its own. Sites are compared with
// first sites only, never each with each, and no more than groupsMax groups are made:
// what is left then is one group together. It returns the number of groups.
func Groups(v *View, radius grid.Time) int {
	v.near = &nearness{}
	order := idleView(v).widest()
	var heads []int32
	for _, i := range order {
		best := int32(-1)
		for g, head := range heads {
			d := v.Network.Latency(int(head), int(i))
			if d <= radius && (best < 0 || d < v.Network.Latency(int(heads[best]), int(i))) {
				best = int32(g)
			}
		}
		if best < 0 && len(heads) < groupsMax {
			best = int32(len(heads))
			heads = append(heads, i)
		}
		if best < 0 {
			best = groupsMax
		}
		v.Sites[i].Group = best
	}
	v.idle = nil // its sites have the groups of before
	return len(heads)
}

const groupsMax = 256
