package grid

// AppendOne appends v to list as append does, but where there is no room for it makes room for
// an eighth more and a few, not for twice as many: lists of neighbours that every site of a
// federation keeps, and that hardly grow once they are full.
func AppendOne[T any](list []T, v T) []T {
	if len(list) == cap(list) {
		list = append(make([]T, 0, len(list)+len(list)/8+4), list...)
	}
	return append(list, v)
}
