package trie

import (
	"slices"

	"gridnode/grid"
)

// FencesMax bounds the cells split off one cell.
const FencesMax = 128

// Fences are the cells that were split off one cell, as a holder of that one knows them.
// Some may cover others; those that no other one covers are the outer ones. The zero
// value has none.
type Fences struct {
	list   []Fence   // ordered by prefix
	lapse  grid.Time // no outer fence expires before
	shared []Prefix  // the fences as they stand in messages; nil after a change
	digest uint64    // of shared
}

// Len returns how many there are.
func (f *Fences) Len() int { return len(f.list) }

// Add notes that a cell exists, until expires at least. If there are too many already it
// reports false.
func (f *Fences) Add(x Prefix, expires grid.Time) bool {
	i, known := f.seek(x)
	if !known {
		if len(f.list) >= FencesMax {
			return false
		}
		f.list = slices.Insert(f.list, i, Fence{Prefix: x})
		f.shared, f.digest = nil, 0
	}
	f.list[i].Expires = max(f.list[i].Expires, expires)
	f.lapse = min(f.lapse, expires)
	return true
}

// Get returns the fence of a cell, or nil. The pointer is good until one is added or
// expires.
func (f *Fences) Get(x Prefix) *Fence {
	if i, ok := f.seek(x); ok {
		return &f.list[i]
	}
	return nil
}

func (f *Fences) seek(x Prefix) (int, bool) {
	return slices.BinarySearchFunc(f.list, x, func(f Fence, x Prefix) int { return f.Prefix.Compare(x) })
}

// Holders returns who holds the cell of a fence, as far as they have reported.
func (f *Fences) Holders(x Prefix) []grid.SiteID {
	if x := f.Get(x); x != nil {
		return x.Holders
	}
	return nil
}

// Way returns the longest fence that contains a position and is not skip or below it; if
// there is one, that is where a quote at that position belongs. With the root as skip
// all fences count.
func (f *Fences) Way(at Position, skip Prefix) (to Prefix, moved bool) {
	for i := range f.list {
		x := f.list[i].Prefix
		if at.Less(x.Bits) {
			break
		}
		if x.Contains(at) && (skip.IsRoot() || x.Length < skip.Length) {
			to, moved = x, true
		}
	}
	return to, moved
}

// Outer yields the fences that no other one covers, in order.
func (f *Fences) Outer(yield func(*Fence) bool) {
	last := -1
	for i := range f.list {
		if last >= 0 && f.list[last].Covers(f.list[i].Prefix) {
			continue
		}
		last = i
		if !yield(&f.list[i]) {
			return
		}
	}
}

// Ahead yields the fences from a position on, in the order in which a scan comes to them.
func (f *Fences) Ahead(at Position, descending bool) func(yield func(*Fence) bool) {
	return func(yield func(*Fence) bool) {
		step, i := 1, 0
		if descending {
			step, i = -1, len(f.list)-1
		}
		for ; i >= 0 && i < len(f.list); i += step {
			x := &f.list[i]
			if behind := descending && !at.Less(x.Bits) || !descending && !x.End().Less(at); behind && !yield(x) {
				return
			}
		}
	}
}

// Edges returns the digest of the outer fences: holders for whom it is the same know
// the same part of the cell as its own, whatever they know of the cells below those.
func (f *Fences) Edges() (digest uint64) {
	for x := range f.Outer {
		digest = digestWith(digest, x.Prefix)
	}
	return digest
}

// List returns the fences as they go into messages, in order, and their digest. The
// slice is shared by all messages and does not change.
func (f *Fences) List() ([]Prefix, uint64) {
	if f.shared == nil && len(f.list) > 0 {
		f.shared = make([]Prefix, len(f.list))
		for i := range f.list {
			f.shared[i] = f.list[i].Prefix
		}
		f.digest = Digest(f.shared)
	}
	return f.shared, f.digest
}

// Below returns those that the cell x covers, a part of what List returns.
func (f *Fences) Below(x Prefix) []Prefix {
	fences, _ := f.List()
	i, known := slices.BinarySearchFunc(fences, x, Prefix.Compare)
	if known {
		i++
	}
	j := i
	for j < len(fences) && x.Covers(fences[j]) {
		j++
	}
	if i == j {
		return nil
	}
	return fences[i:j:j]
}

// Lapsed reports whether an outer fence has expired. Those that another one covers do
// not count: the holders of their cells report to that one's as soon as there is one.
func (f *Fences) Lapsed(now grid.Time) bool {
	if now < f.lapse || len(f.list) == 0 {
		return false
	}
	f.lapse = grid.Never
	for x := range f.Outer {
		f.lapse = min(f.lapse, x.Expires)
	}
	return now >= f.lapse
}

// Expire drops the fences that have expired.
func (f *Fences) Expire(now grid.Time) {
	n := len(f.list)
	f.list = slices.DeleteFunc(f.list, func(x Fence) bool { return now >= x.Expires })
	if len(f.list) != n {
		f.shared, f.digest = nil, 0
	}
}

// Summary returns what nothing in the cells below exceeds, and false if that is not
// known of one of them.
func (f *Fences) Summary(now grid.Time) (s Summary, ok bool) {
	s = Nothing()
	for x := range f.Outer { // the holders of the others report to theirs
		below, ok := x.Summary(now)
		if !ok {
			return s, false
		}
		s.Merge(below)
	}
	return s, true
}

// Sieve tells of positions in rising order which of them are in no fence.
type Sieve struct {
	list   []Fence
	next   int // the first fence that begins behind the last position
	fenced bool
	edge   Position // the end of the last fence that began, if any
}

// Sieve returns a sieve. It is good until a fence is added or expires.
func (f *Fences) Sieve() Sieve { return Sieve{list: f.list} }

// Passes reports whether a position, which is not below the one before, is in no fence.
func (s *Sieve) Passes(at Position) bool {
	for ; s.next < len(s.list) && !at.Less(s.list[s.next].Bits); s.next++ {
		if end := s.list[s.next].End(); !s.fenced || s.edge.Less(end) {
			s.fenced, s.edge = true, end
		}
	}
	return !s.fenced || s.edge.Less(at)
}
