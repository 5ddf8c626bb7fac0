package muscle

// search looks up what to put into a space (algorithms 2 and 3).
type search struct {
	table *Table
	taken []bool // jobs that were allocated, or may not run where the space is

	// For the composition that is being completed:
	chosen   []int32 // array q of the paper
	pending  []bool  // jobs in chosen
	replaced []bool  // taken jobs for which an alternative has been looked for
	touched  []int32 // jobs of pending and replaced, to clear them

	sums []uint64 // a bit per number of processors that jobs which are left fill together
}

func newSearch(t *Table) *search {
	p := len(t.sizes)
	return &search{table: t, taken: make([]bool, p), pending: make([]bool, p), replaced: make([]bool, p), sums: make([]uint64, t.rows/64+1)}
}

// reach works out how many processors the jobs that are left can fill exactly. Other
// rows need not be searched: no alternatives could complete a composition of theirs.
func (s *search) reach(space int) {
	clear(s.sums)
	s.sums[0] = 1
	for job, size := range s.table.sizes {
		if s.taken[job] || size > space {
			continue
		}
		whole, part := size/64, size%64
		for k := space / 64; k >= whole; k-- {
			x := s.sums[k-whole] << part
			if part > 0 && k > whole {
				x |= s.sums[k-whole-1] >> (64 - part)
			}
			s.sums[k] |= x
		}
	}
}

// fill returns the jobs for a space of that many processors (algorithm 3), and the
// row in which they were found: the widest up to the space in which the composition
// with the fewest allocated jobs has none, or has alternatives for all of them. It
// returns none if no job that is left fits into the space.
func (s *search) fill(space int) (jobs []int32, row int) {
	space = min(space, s.table.rows)
	s.reach(space)
	for row := space; row > 0; row-- {
		if s.sums[row/64]&(1<<(row%64)) == 0 {
			continue
		}
		lead, allocated := s.fewest(row, -1)
		if lead < 0 {
			continue
		}
		s.begin()
		if allocated == 0 {
			s.choose(row, lead)
			return s.chosen, row
		}
		if s.complete(row, lead) {
			return s.chosen, row
		}
	}
	return nil, 0
}

// begin forgets the composition before.
func (s *search) begin() {
	for _, job := range s.touched {
		s.pending[job], s.replaced[job] = false, false
	}
	s.chosen, s.touched = s.chosen[:0], s.touched[:0]
}

// fewest returns the leader of the composition of a row in which the fewest jobs are
// allocated, the first if there are several, and how many they are; -1 if the row is
// empty. The composition that consists of the job except alone is left out.
//
// A job that is in array q counts as allocated: the paper does not say so, but
// without that two jobs could be replaced by the same one.
func (s *search) fewest(row, except int) (lead, allocated int) {
	lead = -1
	for at := range s.table.leaders(row) {
		n := 0
		for job := range s.table.each(row, at) {
			if s.taken[job] || s.pending[job] {
				n++
			}
		}
		if at == except && s.table.rest[row*len(s.table.sizes)+at] < 0 {
			continue
		}
		if lead < 0 || n < allocated {
			lead, allocated = at, n
		}
		if n == 0 {
			break // there is none with fewer
		}
	}
	return lead, allocated
}

// choose puts the jobs of a composition into q.
func (s *search) choose(row, lead int) {
	for job := range s.table.each(row, lead) {
		s.chosen = append(s.chosen, int32(job))
		s.pending[job] = true
		s.touched = append(s.touched, int32(job))
	}
}

// complete puts the jobs of a composition into q, with alternatives for those that
// are allocated (algorithm 2), and reports whether there were enough.
//
// As printed the algorithm may call itself for ever: two allocated jobs of the same
// size are each other's alternative. Here an alternative is looked for once per job
// and space; where it would be again, the search fails. So it ends after at most p
// alternatives.
func (s *search) complete(row, lead int) bool {
	for job := range s.table.each(row, lead) {
		if !s.taken[job] && !s.pending[job] {
			s.chosen = append(s.chosen, int32(job))
			s.pending[job] = true
			s.touched = append(s.touched, int32(job))
			continue
		}
		if s.replaced[job] {
			return false
		}
		s.replaced[job] = true
		s.touched = append(s.touched, int32(job))
		size := s.table.sizes[job]
		other, allocated := s.fewest(size, job)
		switch {
		case other < 0:
			return false // the job itself is all there is in the row
		case allocated == 0:
			s.choose(size, other)
		case !s.complete(size, other):
			return false
		}
	}
	return true
}
