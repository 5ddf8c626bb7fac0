package lrms

import (
	"math"

	"gridnode/grid"
)

// Sizes of the timeline's nodes, measured with BenchmarkReplay and BenchmarkReserve:
// half or double costs 5 to 20 %.
const (
	leafMax   = 32
	branchMax = 16
	heightMax = 16 // 16 levels of 16 hold more breakpoints than fit any memory
)

// timeline is a step function of time: the sum of the changes up to an instant.
// It is a B+ tree over the instants at which the function changes. A branch keeps,
// for each child, the sum of its changes and the lowest and highest sum of a
// non-empty prefix of them, so that a search skips what cannot matter. Nodes that
// become empty are freed, others are not merged: instants pass, and with them
// every leaf becomes empty in the end.
type timeline struct {
	root     int32
	height   int       // 0: the root is a leaf
	first    grid.Time // earliest breakpoint, grid.Never if there is none
	leaves   []leaf
	branches []branch

	leavesFree, branchesFree []int32
}

type leaf struct {
	n      int
	time   [leafMax]grid.Time // rising
	change [leafMax]int64     // never 0
}

type branch struct {
	n      int
	first  [branchMax]grid.Time // earliest breakpoint below the child
	totals [branchMax]totals
	child  [branchMax]int32
}

// totals summarises the changes of a node, in order of time.
type totals struct{ sum, low, high int64 }

func newTimeline() timeline {
	t := timeline{first: grid.Never}
	t.root = t.newLeaf()
	return t
}

// add adds change to the function from the instant at on. It takes O(log n).
func (t *timeline) add(at grid.Time, change int64) {
	var path [heightMax]struct {
		node int32
		i    int
	}
	node := t.root
	for h := t.height; h > 0; h-- {
		b := &t.branches[node]
		i := b.n - 1
		for i > 0 && b.first[i] > at {
			i--
		}
		path[h].node, path[h].i = node, i
		node = b.child[i]
	}
	right := t.addToLeaf(node, at, change)
	for h := 1; h <= t.height; h++ {
		parent, i := path[h].node, path[h].i
		t.refresh(parent, i, node, h-1)
		if right >= 0 {
			right = t.insertChild(parent, i+1, right, h)
		}
		node = parent
	}
	if right >= 0 {
		t.grow(node, right)
	}
	t.shrink()
	t.first = t.firstOf(t.root, t.height)
}

// addToLeaf applies a change to a leaf. If the leaf was full, its upper half
// moves to a new leaf, which is returned; else -1.
func (t *timeline) addToLeaf(node int32, at grid.Time, change int64) int32 {
	l := &t.leaves[node]
	i := 0
	for i < l.n && l.time[i] < at {
		i++
	}
	if i < l.n && l.time[i] == at {
		l.change[i] += change
		if l.change[i] == 0 {
			copy(l.time[i:l.n-1], l.time[i+1:l.n])
			copy(l.change[i:l.n-1], l.change[i+1:l.n])
			l.n--
		}
		return -1
	}
	right := int32(-1)
	if l.n == leafMax {
		right = t.newLeaf()
		l = &t.leaves[node]
		r := &t.leaves[right]
		const half = leafMax / 2
		copy(r.time[:], l.time[half:])
		copy(r.change[:], l.change[half:])
		l.n, r.n = half, leafMax-half
		if i > half {
			l, i = r, i-half
		}
	}
	copy(l.time[i+1:l.n+1], l.time[i:l.n])
	copy(l.change[i+1:l.n+1], l.change[i:l.n])
	l.time[i], l.change[i] = at, change
	l.n++
	return right
}

// refresh makes the i-th entry of a branch tell the truth about its child, and
// takes the entry out if the child is empty. height is the child's.
func (t *timeline) refresh(parent int32, i int, child int32, height int) {
	b := &t.branches[parent]
	if t.empty(child, height) {
		t.release(child, height)
		copy(b.first[i:b.n-1], b.first[i+1:b.n])
		copy(b.totals[i:b.n-1], b.totals[i+1:b.n])
		copy(b.child[i:b.n-1], b.child[i+1:b.n])
		b.n--
		return
	}
	b.first[i] = t.firstOf(child, height)
	b.totals[i] = t.totalsOf(child, height)
}

// insertChild makes child the i-th entry of a branch of that height. If the
// branch was full, its upper half moves to a new one, which is returned; else -1.
func (t *timeline) insertChild(parent int32, i int, child int32, height int) int32 {
	right := int32(-1)
	b := &t.branches[parent]
	if b.n == branchMax {
		right = t.newBranch()
		b = &t.branches[parent]
		r := &t.branches[right]
		const half = branchMax / 2
		copy(r.first[:], b.first[half:])
		copy(r.totals[:], b.totals[half:])
		copy(r.child[:], b.child[half:])
		b.n, r.n = half, branchMax-half
		if i > half {
			b, i = r, i-half
		}
	}
	copy(b.first[i+1:b.n+1], b.first[i:b.n])
	copy(b.totals[i+1:b.n+1], b.totals[i:b.n])
	copy(b.child[i+1:b.n+1], b.child[i:b.n])
	b.child[i] = child
	b.first[i] = t.firstOf(child, height-1)
	b.totals[i] = t.totalsOf(child, height-1)
	b.n++
	return right
}

// grow puts a new root above the two halves of the old one.
func (t *timeline) grow(left, right int32) {
	root := t.newBranch()
	b := &t.branches[root]
	for i, child := range [...]int32{left, right} {
		b.child[i] = child
		b.first[i] = t.firstOf(child, t.height)
		b.totals[i] = t.totalsOf(child, t.height)
	}
	b.n = 2
	t.root = root
	t.height++
}

// shrink takes away roots with a single child.
func (t *timeline) shrink() {
	for t.height > 0 && t.branches[t.root].n == 1 {
		t.branchesFree = append(t.branchesFree, t.root)
		t.root = t.branches[t.root].child[0]
		t.height--
	}
}

// dropFirst takes out the earliest breakpoint and returns its change.
func (t *timeline) dropFirst() int64 {
	node := t.root
	for h := t.height; h > 0; h-- {
		node = t.branches[node].child[0]
	}
	change := t.leaves[node].change[0]
	t.add(t.first, -change)
	return change
}

// fall returns the first breakpoint at which v plus the function is below level,
// or grid.Never. It takes O(log n).
func (t *timeline) fall(v, level int64) grid.Time {
	node := t.root
	for h := t.height; h > 0; h-- {
		b := &t.branches[node]
		i := 0
		for i < b.n && v+b.totals[i].low >= level {
			v += b.totals[i].sum
			i++
		}
		if i == b.n {
			return grid.Never
		}
		node = b.child[i]
	}
	l := &t.leaves[node]
	for i := range l.n {
		if v += l.change[i]; v < level {
			return l.time[i]
		}
	}
	return grid.Never
}

// least returns the lowest value of v plus the function before the instant to,
// but at most v. It takes O(log n).
func (t *timeline) least(v int64, to grid.Time) int64 {
	lowest := v
	node := t.root
	for h := t.height; h > 0; h-- {
		b := &t.branches[node]
		i := 0
		for i+1 < b.n && b.first[i+1] < to {
			lowest = min(lowest, v+b.totals[i].low)
			v += b.totals[i].sum
			i++
		}
		node = b.child[i]
	}
	l := &t.leaves[node]
	for i := 0; i < l.n && l.time[i] < to; i++ {
		v += l.change[i]
		lowest = min(lowest, v)
	}
	return lowest
}

// gap is a search for the earliest interval over which a value stays at or above
// a level.
type gap struct {
	level int64
	span  grid.Time // the interval lasts for span from its start,
	limit grid.Time // or from limit if that is later
	floor grid.Time // it starts then or later

	value int64     // so far
	open  bool      // the value is at or above level
	start grid.Time // if open: since when
	until grid.Time // if open: how long it has to last
	found int64     // if open: the value at start, unless that is the floor
}

// step takes the value to what it is from at on.
func (g *gap) step(at grid.Time, change int64) {
	g.value += change
	switch {
	case g.value < g.level:
		g.open = false
	case !g.open:
		g.open, g.start, g.found = true, max(at, g.floor), g.value
		g.until = max(g.start, g.limit) + g.span
	case at == g.start:
		g.found = g.value
	}
}

// search lets g look at the breakpoints below a node in order, and reports
// whether the interval is complete. At the end of the timeline an open interval
// lasts for ever. Subtrees that leave g as it is are skipped.
func (t *timeline) search(g *gap, node int32, height int) bool {
	if height == 0 {
		l := &t.leaves[node]
		for i := range l.n {
			if g.open && l.time[i] >= g.until {
				return true
			}
			g.step(l.time[i], l.change[i])
		}
		return false
	}
	b := &t.branches[node]
	for i := range b.n {
		if g.open && b.first[i] >= g.until {
			return true
		}
		s := b.totals[i]
		if g.open && g.value+s.low >= g.level || !g.open && g.value+s.high < g.level {
			g.value += s.sum
			continue
		}
		if t.search(g, b.child[i], height-1) {
			return true
		}
	}
	return false
}

// each yields the breakpoints in order of time.
func (t *timeline) each(yield func(at grid.Time, change int64) bool) {
	t.eachBelow(t.root, t.height, yield)
}

func (t *timeline) eachBelow(node int32, height int, yield func(at grid.Time, change int64) bool) bool {
	if height == 0 {
		l := &t.leaves[node]
		for i := range l.n {
			if !yield(l.time[i], l.change[i]) {
				return false
			}
		}
		return true
	}
	b := &t.branches[node]
	for i := range b.n {
		if !t.eachBelow(b.child[i], height-1, yield) {
			return false
		}
	}
	return true
}

// totalsOf returns the totals of a node of that height, counted anew.
func (t *timeline) totalsOf(node int32, height int) totals {
	s := totals{low: math.MaxInt64, high: math.MinInt64}
	if height == 0 {
		l := &t.leaves[node]
		for _, change := range l.change[:l.n] {
			s.sum += change
			s.low = min(s.low, s.sum)
			s.high = max(s.high, s.sum)
		}
		return s
	}
	b := &t.branches[node]
	for i := range b.n {
		s.low = min(s.low, s.sum+b.totals[i].low)
		s.high = max(s.high, s.sum+b.totals[i].high)
		s.sum += b.totals[i].sum
	}
	return s
}

func (t *timeline) empty(node int32, height int) bool {
	if height == 0 {
		return t.leaves[node].n == 0
	}
	return t.branches[node].n == 0
}

func (t *timeline) firstOf(node int32, height int) grid.Time {
	switch {
	case t.empty(node, height):
		return grid.Never
	case height == 0:
		return t.leaves[node].time[0]
	}
	return t.branches[node].first[0]
}

func (t *timeline) newLeaf() int32 {
	if n := len(t.leavesFree); n > 0 {
		node := t.leavesFree[n-1]
		t.leavesFree = t.leavesFree[:n-1]
		t.leaves[node].n = 0
		return node
	}
	t.leaves = append(t.leaves, leaf{})
	return int32(len(t.leaves) - 1)
}

func (t *timeline) newBranch() int32 {
	if n := len(t.branchesFree); n > 0 {
		node := t.branchesFree[n-1]
		t.branchesFree = t.branchesFree[:n-1]
		t.branches[node].n = 0
		return node
	}
	t.branches = append(t.branches, branch{})
	return int32(len(t.branches) - 1)
}

func (t *timeline) release(node int32, height int) {
	if height == 0 {
		t.leavesFree = append(t.leavesFree, node)
	} else {
		t.branchesFree = append(t.branchesFree, node)
	}
}
