package grid

// Slab hands out zeroed values of T cut from chunks, so that allocating many
// small messages costs one allocation per chunk. The garbage collector frees a
// chunk when the last value cut from it is unreachable. The zero value is ready.
type Slab[T any] struct {
	chunk []T
	size  int // of the last chunk
}

// Sizes of chunks: each is twice as large as the one before, as most of thousands of
// slabs may never hand out more than a few values.
const (
	slabChunkMin = 4
	slabChunkMax = 64
)

// New returns a pointer to a zero T.
func (s *Slab[T]) New() *T {
	if len(s.chunk) == 0 {
		s.size = min(max(2*s.size, slabChunkMin), slabChunkMax)
		s.chunk = make([]T, s.size)
	}
	v := &s.chunk[0]
	s.chunk = s.chunk[1:]
	return v
}
