package lease

import "gridnode/grid"

// recent remembers keys for a span, and no more than so many: the oldest go first.
// A key is remembered from when it was first added.
type recent[K comparable] struct {
	span  grid.Time
	most  int
	known map[K]struct{}
	order []seen[K] // from first on
	first int
}

type seen[K comparable] struct {
	key K
	at  grid.Time
}

func newRecent[K comparable](span grid.Time, most int) recent[K] {
	return recent[K]{span: span, most: most, known: make(map[K]struct{})}
}

// add remembers a key and reports whether it was not known.
func (r *recent[K]) add(now grid.Time, key K) bool {
	r.expire(now)
	if _, ok := r.known[key]; ok {
		return false
	}
	if len(r.known) == r.most {
		r.drop()
	}
	r.known[key] = struct{}{}
	r.order = append(r.order, seen[K]{key, now})
	return true
}

// has reports whether a key is remembered.
func (r *recent[K]) has(now grid.Time, key K) bool {
	r.expire(now)
	_, ok := r.known[key]
	return ok
}

func (r *recent[K]) expire(now grid.Time) {
	for r.first < len(r.order) && r.order[r.first].at <= now-r.span {
		r.drop()
	}
}

// drop forgets the oldest key.
func (r *recent[K]) drop() {
	delete(r.known, r.order[r.first].key)
	r.first++
	if r.first > 64 && r.first > len(r.order)/2 {
		n := copy(r.order, r.order[r.first:])
		clear(r.order[n:])
		r.order, r.first = r.order[:n], 0
	}
}
