package titan

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"gridnode/grid"
)

// Bounds of a Problem. A set of SetMax schedules of JobsMax jobs on ProcessorsMax
// processors takes 32 MiB; a larger cluster is planned in units of several
// processors by the caller.
const (
	ProcessorsMax = 4096
	JobsMax       = 4096
	WeightMax     = 1000
)

// Errors of Problem.Validate, wrapped with the values. The caller is at fault.
var (
	// ErrProblem: the problem is out of bounds, or contradicts itself.
	ErrProblem = errors.New("titan: invalid problem")
	// ErrWeights: a weight is negative or too large, or all are zero.
	ErrWeights = errors.New("invalid weights")
)

// Job is what is planned.
type Job struct {
	Processors int       // 1 to Problem.Processors
	Span       grid.Time // its run time here, 1 to grid.SpanMax
	Deadline   grid.Time // by when it should have finished, from the plan's zero; negative if that has passed; grid.Never if it has none
}

// Weights say how much the parts of CP matter to whom the cluster belongs; each is
// 0 to WeightMax, and one of them at least 1.
type Weights struct {
	OverDeadline int64 // W^o
	Makespan     int64 // W^m
	Idle         int64 // W^i
}

// DefaultWeights are those of most of the paper's figures.
var DefaultWeights = Weights{OverDeadline: 4, Makespan: 3, Idle: 1}

// Validate returns an error wrapping ErrWeights.
func (w Weights) Validate() error {
	for _, v := range []int64{w.OverDeadline, w.Makespan, w.Idle} {
		if v < 0 || v > WeightMax {
			return fmt.Errorf("%w: %s: each is 0 to %d", ErrWeights, w, WeightMax)
		}
	}
	if w.total() == 0 {
		return fmt.Errorf("%w: %s: one has to be more than zero", ErrWeights, w)
	}
	return nil
}

func (w Weights) total() int64 { return w.OverDeadline + w.Makespan + w.Idle }

// String prints what ParseWeights reads.
func (w Weights) String() string {
	return fmt.Sprintf("%d,%d,%d", w.OverDeadline, w.Makespan, w.Idle)
}

// ParseWeights reads O,M,I: the weights of over-deadline, makespan and idle time.
func ParseWeights(s string) (Weights, error) {
	fields := strings.Split(s, ",")
	var v [3]int64
	if len(fields) != len(v) {
		return Weights{}, fmt.Errorf("%w: %q: want three whole numbers O,M,I: of over-deadline, makespan and idle time", ErrWeights, s)
	}
	for i, field := range fields {
		n, err := strconv.ParseInt(strings.TrimSpace(field), 10, 64)
		if err != nil {
			return Weights{}, fmt.Errorf("%w: %q: %q is no whole number", ErrWeights, s, field)
		}
		v[i] = n
	}
	w := Weights{OverDeadline: v[0], Makespan: v[1], Idle: v[2]}
	return w, w.Validate()
}

// Problem is a batch of jobs for one cluster. Instants count from the plan's zero,
// which is usually now. Times are microseconds unless Coarsen made the unit larger.
type Problem struct {
	Processors int         // identical ones, 1 to ProcessorsMax
	Free       []grid.Time // when each of them is free, at least 0; nil if all are at 0
	Jobs       []Job       // at most JobsMax
	Weights    Weights
}

// Validate returns an error wrapping ErrProblem or ErrWeights, which names the field.
func (p *Problem) Validate() error {
	if err := p.ValidateFields(); err != nil {
		return err
	}
	if p.worst() > costMax {
		return fmt.Errorf("%w: the batch is too long to be added up in microseconds: Coarsen it", ErrProblem)
	}
	return nil
}

// ValidateFields is Validate for a problem that may yet have to be coarsened.
func (p *Problem) ValidateFields() error {
	switch {
	case p.Processors < 1 || p.Processors > ProcessorsMax:
		return fmt.Errorf("%w: %d processors, want 1 to %d", ErrProblem, p.Processors, ProcessorsMax)
	case len(p.Jobs) > JobsMax:
		return fmt.Errorf("%w: %d jobs, want at most %d", ErrProblem, len(p.Jobs), JobsMax)
	case p.Free != nil && len(p.Free) != p.Processors:
		return fmt.Errorf("%w: %d processors, but %d instants at which they are free", ErrProblem, p.Processors, len(p.Free))
	}
	for i, at := range p.Free {
		if at < 0 || at > grid.SpanMax {
			return fmt.Errorf("%w: processor %d is free at %v, want 0 to %v", ErrProblem, i, at, grid.SpanMax)
		}
	}
	for i, j := range p.Jobs {
		switch {
		case j.Processors < 1 || j.Processors > p.Processors:
			return fmt.Errorf("%w: job %d needs %d processors of %d", ErrProblem, i, j.Processors, p.Processors)
		case j.Span < 1 || j.Span > grid.SpanMax:
			return fmt.Errorf("%w: job %d runs for %v, want more than nothing and at most %v", ErrProblem, i, j.Span, grid.SpanMax)
		case j.Deadline < -grid.SpanMax:
			return fmt.Errorf("%w: the deadline of job %d passed %v ago, want at most %v", ErrProblem, i, -j.Deadline, grid.SpanMax)
		}
	}
	return p.Weights.Validate()
}

// words is how many 64-bit words a set of processors takes.
func (p *Problem) words() int { return (p.Processors + 63) / 64 }

// costMax bounds the weighted sum of CP, so that its sum over a set of schedules fits.
const costMax = math.MaxInt64 >> 12

// worst is more than the weighted sum of any schedule that leaves no processor
// without need. It only says how large numbers get.
func (p *Problem) worst() float64 {
	var horizon, late float64
	for _, at := range p.Free {
		horizon = max(horizon, float64(at))
	}
	for _, j := range p.Jobs {
		horizon += float64(j.Span)
		late = max(late, -float64(j.Deadline))
	}
	w, m, n := p.Weights, float64(p.Processors), float64(len(p.Jobs))
	return float64(w.Idle)*m*horizon + float64(w.Makespan)*horizon + float64(w.OverDeadline)*n*(horizon+late)
}

// Coarsen counts p's times in larger units, 2, 4, 8, … microseconds, until no sum can
// overflow, and returns by how many bits they were cut. It is 0 unless a batch is so
// long that microseconds do not matter: a hundred jobs of a day on a thousand
// processors.
func (p *Problem) Coarsen() (cut uint) {
	for ; p.worst() > costMax; cut++ {
		for i := range p.Free {
			p.Free[i] >>= 1
		}
		for i := range p.Jobs {
			j := &p.Jobs[i]
			j.Span = j.Span/2 + j.Span%2
			if j.Deadline != grid.Never {
				j.Deadline >>= 1
			}
		}
	}
	return cut
}
