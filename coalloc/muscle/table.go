package muscle

import "math/bits"

// Table is the composition table (algorithm 1): row r has compositions of jobs that
// fill r processors exactly. A job is at most once in a row, and each composition of
// a row was appended on behalf of one job, its leader; the others are a composition
// of the row that many processors below.
//
// So a composition is kept as its leader and the leader of the rest, and a row as two
// sets: the jobs in it, and those of them that lead. Compositions stand in a row in
// the order of their leaders, which is that of the jobs.
type Table struct {
	sizes  []int    // of the jobs
	rows   int      // as wide as the widest cluster
	words  int      // of a set of jobs
	member []uint64 // row r has the words from r·words on
	leader []uint64
	rest   []int16 // of the composition that a job leads in a row, at r·jobs + job; -1 if it stands alone
}

// NewTable builds the table of jobs, given by their sizes, for clusters of at most
// rows processors. It takes O(p·m) time for p jobs and m rows as long as rows without
// a new composition are told by their sets, p/64 words each; O(p²·m) at most.
func NewTable(sizes []int, rows int) *Table {
	p := len(sizes)
	t := &Table{sizes: sizes, rows: rows, words: (p + 63) / 64}
	t.member = make([]uint64, (rows+1)*t.words)
	t.leader = make([]uint64, (rows+1)*t.words)
	t.rest = make([]int16, (rows+1)*p)
	for job, size := range sizes {
		if size > rows {
			continue
		}
		t.enter(size, job, -1)
		for row := size + 1; row <= rows; row++ {
			if rest := t.apart(row-size, row, job); rest >= 0 {
				t.enter(row, job, rest)
			}
		}
	}
	return t
}

// enter appends a composition to a row.
func (t *Table) enter(row, job, rest int) {
	t.rest[row*len(t.sizes)+job] = int16(rest)
	t.leader[row*t.words+job/64] |= 1 << (job % 64)
	for at := row; ; {
		t.member[row*t.words+job/64] |= 1 << (job % 64)
		at -= t.sizes[job]
		if rest < 0 {
			return
		}
		job, rest = rest, int(t.rest[at*len(t.sizes)+rest])
	}
}

// apart returns the leader of the first composition of a row that has no job in
// another row and not job itself, or -1. As job is the last so far, it can only lead.
func (t *Table) apart(row, other, job int) int {
	leaders, taken := t.leader[row*t.words:][:t.words], t.member[other*t.words:][:t.words]
	for k, x := range leaders {
		x &^= taken[k]
		if k == job/64 {
			x &^= 1 << (job % 64)
		}
		for ; x != 0; x &= x - 1 {
			if lead := 64*k + bits.TrailingZeros64(x); t.isApart(row, lead, taken) {
				return lead
			}
		}
	}
	return -1
}

func (t *Table) isApart(row, lead int, taken []uint64) bool {
	for at := range t.each(row, lead) {
		if taken[at/64]&(1<<(at%64)) != 0 {
			return false
		}
	}
	return true
}

// each yields the jobs of a composition, its leader first.
func (t *Table) each(row, lead int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for at := lead; at >= 0; {
			rest := int(t.rest[row*len(t.sizes)+at])
			if !yield(at) {
				return
			}
			row -= t.sizes[at]
			at = rest
		}
	}
}

// Row returns the compositions of a row, in order. Rows count from 1.
func (t *Table) Row(row int) (compositions [][]int) {
	for lead := range t.leaders(row) {
		var jobs []int
		for job := range t.each(row, lead) {
			jobs = append(jobs, job)
		}
		compositions = append(compositions, jobs)
	}
	return compositions
}

// leaders yields who leads the compositions of a row, in order.
func (t *Table) leaders(row int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for k, x := range t.leader[row*t.words:][:t.words] {
			for ; x != 0; x &= x - 1 {
				if !yield(64*k + bits.TrailingZeros64(x)) {
					return
				}
			}
		}
	}
}
