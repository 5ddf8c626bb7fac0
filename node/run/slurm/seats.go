package slurm

import "slices"

// seats are the processors of a pilot by node. A process gets one node if one has room for it,
// the one that it fills best; a wide one that may reach over nodes gets what is free of several,
// and is started on the first of these.
type seats struct {
	most int64   // of all nodes together; the cluster may have given more
	size []int64 // by node
	used []int64
}

// share is processors of a node.
type share struct {
	node       int
	processors int64
}

// free returns how many processors nothing runs on.
func (s *seats) free() int64 {
	var size, used int64
	for i := range s.size {
		size += s.size[i]
		used += s.used[i]
	}
	return max(min(size, s.most)-used, 0)
}

// widest returns how wide a process on one node can be at most.
func (s *seats) widest() int64 {
	if len(s.size) == 0 {
		return 0
	}
	return min(slices.Max(s.size), s.most)
}

// take takes processors; nil if there is no room.
func (s *seats) take(processors int64, several bool) (shares []share) {
	if processors > s.free() {
		return nil
	}
	best := -1
	for i := range s.size {
		left := s.size[i] - s.used[i]
		if left >= processors && (best < 0 || left < s.size[best]-s.used[best]) {
			best = i
		}
	}
	if best >= 0 {
		s.used[best] += processors
		return []share{{best, processors}}
	}
	if !several {
		return nil
	}
	for i := range s.size {
		n := min(s.size[i]-s.used[i], processors)
		if n > 0 {
			s.used[i] += n
			processors -= n
			shares = append(shares, share{i, n})
		}
	}
	return shares
}

// give gives processors back.
func (s *seats) give(shares []share) {
	for _, h := range shares {
		s.used[h.node] -= h.processors
	}
}
