package lrms

import (
	"math"

	"gridnode/grid"
)

// promise is a reservation: processors from start for as long as the task's
// estimate, committed or not.
type promise struct {
	task       int32 // index of the task
	processors int64
	estimate   grid.Time
	start      grid.Time // as promised
	end        grid.Time // until when the processors are planned to be taken
	due        grid.Time // what the promise is measured by: start, or the Commit if that came later
	hold       grid.Time // for how long after it was made the plan allows for a Commit
	changes    int64     // Cluster.changes when it was planned
	committed  bool
	blocked    bool // a pass found no processors although the start had come

	// As a node of the agenda.
	seq         uint64
	left, right int32
	rank        uint32
	// Over the committed promises of the subtree:
	narrow int64     // fewest processors, none if there is no such promise
	short  grid.Time // shortest estimate
}

// none is more processors than any site has.
const none = math.MaxInt64

// agenda holds the promises whose start lies ahead, in order of start, then of
// making. It is a treap whose nodes know the narrowest and the shortest committed
// promise below them. The slab also holds the promises whose start has come.
type agenda struct {
	promises []promise
	free     []int32
	root     int32 // -1 if empty
	size     int   // promises, those whose start has come included
	first    grid.Time
	seq      uint64
}

func newAgenda() agenda { return agenda{root: -1, first: grid.Never} }

// create returns the index of a new promise, which is not in the treap yet.
func (a *agenda) create(p promise) int32 {
	a.seq++
	p.seq, p.rank = a.seq, scatter(a.seq)
	a.size++
	if n := len(a.free); n > 0 {
		i := a.free[n-1]
		a.free = a.free[:n-1]
		a.promises[i] = p
		return i
	}
	a.promises = append(a.promises, p)
	return int32(len(a.promises) - 1)
}

// drop forgets a promise that is not in the treap.
func (a *agenda) drop(i int32) {
	a.free = append(a.free, i)
	a.size--
}

// scatter makes priorities out of sequence numbers: a multiplication by an odd
// constant and a fold spread neighbours evenly, and the same run gives the same tree.
func scatter(seq uint64) uint32 {
	seq *= 0x9e3779b97f4a7c15
	seq ^= seq >> 29
	seq *= 0xbf58476d1ce4e5b9
	return uint32(seq >> 32)
}

func (a *agenda) insert(i int32) {
	p := &a.promises[i]
	p.left, p.right = -1, -1
	a.pull(i)
	a.root = a.insertBelow(a.root, i)
	a.first = min(a.first, p.start)
}

func (a *agenda) remove(i int32) {
	a.root = a.removeBelow(a.root, i)
	if a.promises[i].start == a.first {
		a.first = grid.Never
		if a.root >= 0 {
			a.first = a.promises[a.leftmost()].start
		}
	}
}

// touch says that a promise in the treap was committed.
func (a *agenda) touch(i int32) {
	node := a.root
	p := &a.promises[i]
	for node != i {
		q := &a.promises[node]
		q.narrow = min(q.narrow, p.processors)
		q.short = min(q.short, p.estimate)
		if a.before(i, node) {
			node = q.left
		} else {
			node = q.right
		}
	}
	a.pull(i)
}

func (a *agenda) leftmost() int32 {
	node := a.root
	for a.promises[node].left >= 0 {
		node = a.promises[node].left
	}
	return node
}

func (a *agenda) rightmost() int32 {
	node := a.root
	for a.promises[node].right >= 0 {
		node = a.promises[node].right
	}
	return node
}

// firstCommitted returns the first committed promise, or -1.
func (a *agenda) firstCommitted() int32 {
	node := a.root
	if node < 0 || a.promises[node].narrow == none {
		return -1
	}
	for {
		p := &a.promises[node]
		switch {
		case p.left >= 0 && a.promises[p.left].narrow != none:
			node = p.left
		case p.committed:
			return node
		default:
			node = p.right
		}
	}
}

func (a *agenda) before(i, j int32) bool {
	p, q := &a.promises[i], &a.promises[j]
	return p.start < q.start || p.start == q.start && p.seq < q.seq
}

func (a *agenda) insertBelow(node, i int32) int32 {
	if node < 0 {
		return i
	}
	if a.promises[i].rank > a.promises[node].rank {
		left, right := a.split(node, i)
		a.promises[i].left, a.promises[i].right = left, right
		a.pull(i)
		return i
	}
	if a.before(i, node) {
		left := a.insertBelow(a.promises[node].left, i)
		a.promises[node].left = left
	} else {
		right := a.insertBelow(a.promises[node].right, i)
		a.promises[node].right = right
	}
	a.pull(node)
	return node
}

// split parts a subtree into what comes before promise i and what comes after.
func (a *agenda) split(node, i int32) (left, right int32) {
	if node < 0 {
		return -1, -1
	}
	p := &a.promises[node]
	if a.before(node, i) {
		p.right, right = a.split(p.right, i)
		left = node
	} else {
		left, p.left = a.split(p.left, i)
		right = node
	}
	a.pull(node)
	return left, right
}

func (a *agenda) removeBelow(node, i int32) int32 {
	p := &a.promises[node]
	if node == i {
		return a.merge(p.left, p.right)
	}
	if a.before(i, node) {
		p.left = a.removeBelow(p.left, i)
	} else {
		p.right = a.removeBelow(p.right, i)
	}
	a.pull(node)
	return node
}

func (a *agenda) merge(left, right int32) int32 {
	switch {
	case left < 0:
		return right
	case right < 0:
		return left
	case a.promises[left].rank > a.promises[right].rank:
		p := &a.promises[left]
		p.right = a.merge(p.right, right)
		a.pull(left)
		return left
	}
	p := &a.promises[right]
	p.left = a.merge(left, p.left)
	a.pull(right)
	return right
}

// pull derives what a node says about its subtree from its children.
func (a *agenda) pull(node int32) {
	p := &a.promises[node]
	p.narrow, p.short = none, grid.Never
	if p.committed {
		p.narrow, p.short = p.processors, p.estimate
	}
	for _, child := range [...]int32{p.left, p.right} {
		if child >= 0 {
			q := &a.promises[child]
			p.narrow = min(p.narrow, q.narrow)
			p.short = min(p.short, q.short)
		}
	}
}

// next returns the first committed promise after a position in the order that may
// fit the window if it starts now, going by its width class, or -1. The position
// is (start, seq). A promise only needs room until its own start, as it has room
// from there.
func (a *agenda) next(node int32, start grid.Time, seq uint64, earliest, now grid.Time, w *window) int32 {
	if node < 0 {
		return -1
	}
	p := &a.promises[node]
	if p.narrow == none {
		return -1
	}
	if k := width(p.narrow); k >= w.widths || w.reach[k] < min(p.short, earliest-now) {
		return -1
	}
	if p.start > start || p.start == start && p.seq > seq {
		if i := a.next(p.left, start, seq, earliest, now, w); i >= 0 {
			return i
		}
		if p.committed {
			if k := width(p.processors); k < w.widths && w.reach[k] >= min(p.estimate, p.start-now) {
				return node
			}
		}
	}
	return a.next(p.right, start, seq, max(earliest, p.start), now, w)
}
