package titan

import (
	"fmt"
	"iter"
	"math/bits"

	"gridnode/grid"
)

// Schedule is TITAN's two-dimensional coding (figure 2): the order of the columns,
// and for each job the processors it runs on.
type Schedule struct {
	Order []int32  // every job once
	Sets  []uint64 // job j has the words from j·w on: a bit per processor
}

// NewSchedule returns a schedule of no columns with room for all jobs of p.
func NewSchedule(p *Problem) Schedule {
	return Schedule{Order: make([]int32, 0, len(p.Jobs)), Sets: make([]uint64, len(p.Jobs)*p.words())}
}

// Give lets a job have a processor.
func (s *Schedule) Give(p *Problem, job int32, processor int) {
	s.Sets[int(job)*p.words()+processor/64] |= 1 << (processor % 64)
}

// Processors yields those of a job, in ascending order.
func (s *Schedule) Processors(p *Problem, job int32) iter.Seq[int] {
	w := p.words()
	return func(yield func(int) bool) {
		for k, x := range s.Sets[int(job)*w : (int(job)+1)*w] {
			for ; x != 0; x &= x - 1 {
				if !yield(64*k + bits.TrailingZeros64(x)) {
					return
				}
			}
		}
	}
}

// Validate returns an error wrapping ErrProblem unless s has every job of p once, on
// as many processors of p as it needs.
func (s *Schedule) Validate(p *Problem) error {
	if len(s.Order) != len(p.Jobs) || len(s.Sets) != len(p.Jobs)*p.words() {
		return fmt.Errorf("%w: a schedule of %d columns for %d jobs", ErrProblem, len(s.Order), len(p.Jobs))
	}
	seen := make([]bool, len(p.Jobs))
	for _, j := range s.Order {
		if j < 0 || int(j) >= len(seen) || seen[j] {
			return fmt.Errorf("%w: a schedule has job %d twice, or there is none", ErrProblem, j)
		}
		seen[j] = true
		n := 0
		for processor := range s.Processors(p, j) {
			if n++; processor >= p.Processors {
				return fmt.Errorf("%w: a schedule has job %d on processor %d of %d", ErrProblem, j, processor, p.Processors)
			}
		}
		if n != p.Jobs[j].Processors {
			return fmt.Errorf("%w: a schedule has job %d on %d processors, it needs %d", ErrProblem, j, n, p.Jobs[j].Processors)
		}
	}
	return nil
}

// copyFrom makes s equal to another schedule of the same problem.
func (s *Schedule) copyFrom(from *Schedule) {
	copy(s.Order, from.Order)
	copy(s.Sets, from.Sets)
}

// Starts appends when each job of p starts under s, by job.
func (s *Schedule) Starts(p *Problem, starts []grid.Time) []grid.Time {
	free := make([]grid.Time, p.Processors)
	copy(free, p.Free)
	at := len(starts)
	starts = append(starts, make([]grid.Time, len(p.Jobs))...)
	w := p.words()
	for _, j := range s.Order {
		starts[at+int(j)] = occupy(free, s.Sets[int(j)*w:(int(j)+1)*w], p.Jobs[j].Span)
	}
	return starts
}

// occupy runs a job on a set of processors, all at once, and returns its start.
func occupy(free []grid.Time, set []uint64, span grid.Time) (start grid.Time) {
	for k, x := range set {
		part := free[64*k:]
		for ; x != 0; x &= x - 1 {
			start = max(start, part[bits.TrailingZeros64(x)])
		}
	}
	end := start + span
	for k, x := range set {
		part := free[64*k:]
		for ; x != 0; x &= x - 1 {
			part[bits.TrailingZeros64(x)] = end
		}
	}
	return start
}

// occupyWord is occupy for clusters of at most 64 processors, and returns the end.
func occupyWord(free []grid.Time, set uint64, span grid.Time) (end grid.Time) {
	start := grid.Time(0)
	for x := set; x != 0; x &= x - 1 {
		start = max(start, free[bits.TrailingZeros64(x)])
	}
	end = start + span
	for x := set; x != 0; x &= x - 1 {
		free[bits.TrailingZeros64(x)] = end
	}
	return end
}

// meet reports whether two sets have a processor in common. b may be longer.
func meet(a, b []uint64) bool {
	b = b[:len(a)]
	for k, x := range a {
		if x&b[k] != 0 {
			return true
		}
	}
	return false
}

// latest returns when the last processor of a set is free.
func latest(free []grid.Time, set []uint64) (at grid.Time) {
	for k, x := range set {
		part := free[64*k:]
		for ; x != 0; x &= x - 1 {
			at = max(at, part[bits.TrailingZeros64(x)])
		}
	}
	return at
}
