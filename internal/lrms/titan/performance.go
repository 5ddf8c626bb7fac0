package titan

import "gridnode/grid"

// Performance is what a schedule is measured by. Times are in microseconds.
type Performance struct {
	OverDeadline grid.Time // sum over the jobs of what exceeds their deadlines (θ)
	Makespan     grid.Time // from the plan's zero to the last end (Γ)
	Idle         grid.Time // of all processors, from when they are free to the makespan (ω)
	Missed       int       // jobs that exceed their deadlines
}

// CP returns the comprehensive performance (equation 1) in seconds. It is for
// reports; schedules are compared by integers.
func (f Performance) CP(w Weights) float64 {
	sum := float64(w.Idle)*f.Idle.Seconds() + float64(w.Makespan)*f.Makespan.Seconds() + float64(w.OverDeadline)*f.OverDeadline.Seconds()
	return sum / float64(w.total())
}

// Measure works out what s, a schedule of p, is worth.
func (p *Problem) Measure(s *Schedule) Performance {
	var f Performance
	free := make([]grid.Time, p.Processors)
	copy(free, p.Free)
	w := p.words()
	for _, j := range s.Order {
		job := &p.Jobs[j]
		end := occupy(free, s.Sets[int(j)*w:(int(j)+1)*w], job.Span) + job.Span
		f.Makespan = max(f.Makespan, end)
		if end > job.Deadline {
			f.OverDeadline += end - job.Deadline
			f.Missed++
		}
		f.Idle -= job.Span * grid.Time(job.Processors)
	}
	// A processor that is busy beyond the last end of the batch is not idle.
	for i := range p.Processors {
		from := grid.Time(0)
		if p.Free != nil {
			from = p.Free[i]
		}
		f.Idle += max(f.Makespan-from, 0)
	}
	return f
}
