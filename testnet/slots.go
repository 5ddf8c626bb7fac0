package testnet

// none is the index of nothing.
const none int32 = -1

// slots keeps values under small numbers that are used again. The zero value is ready.
type slots[T any] struct {
	items []T
	free  []int32
}

// put stores v and returns its number.
func (s *slots[T]) put(v T) int32 {
	if last := len(s.free) - 1; last >= 0 {
		i := s.free[last]
		s.free = s.free[:last]
		s.items[i] = v
		return i
	}
	s.items = append(s.items, v)
	return int32(len(s.items) - 1)
}

// take returns what is stored under i and frees the number.
func (s *slots[T]) take(i int32) T {
	var zero T
	v := s.items[i]
	s.items[i] = zero
	s.free = append(s.free, i)
	return v
}
