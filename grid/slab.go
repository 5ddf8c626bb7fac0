package grid

// Slab hands out zeroed values of T cut from chunks, so that allocating many
// small messages costs one allocation per chunk. The garbage collector frees a
// chunk when the last value cut from it is unreachable. The zero value is ready.
type Slab[T any] struct{ chunk []T }

const slabChunk = 64

// New returns a pointer to a zero T.
func (s *Slab[T]) New() *T {
	if len(s.chunk) == 0 {
		s.chunk = make([]T, slabChunk)
	}
	v := &s.chunk[0]
	s.chunk = s.chunk[1:]
	return v
}
