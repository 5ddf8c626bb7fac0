package titan

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
)

func draws(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// anyProblem draws a problem with everything that is legal in it.
func anyProblem(t *rapid.T) *Problem {
	p := &Problem{Processors: rapid.IntRange(1, 140).Draw(t, "processors")}
	if rapid.Bool().Draw(t, "busy") {
		for range p.Processors {
			p.Free = append(p.Free, grid.Time(rapid.IntRange(0, 30).Draw(t, "free")))
		}
	}
	for range rapid.IntRange(0, 20).Draw(t, "jobs") {
		j := Job{
			Processors: rapid.IntRange(1, p.Processors).Draw(t, "size"), Span: grid.Time(rapid.IntRange(1, 50).Draw(t, "span")),
			Deadline: grid.Time(rapid.IntRange(-20, 200).Draw(t, "deadline")),
		}
		if rapid.IntRange(0, 9).Draw(t, "none") == 0 {
			j.Deadline = grid.Never
		}
		p.Jobs = append(p.Jobs, j)
	}
	p.Weights = Weights{int64(rapid.IntRange(0, 12).Draw(t, "o")), int64(rapid.IntRange(0, 3).Draw(t, "m")), int64(rapid.IntRange(1, 3).Draw(t, "i"))}
	return p
}

// arrival is the schedule of the jobs as they came, on the processors free first.
func arrival(p *Problem) Schedule {
	s := NewSchedule(p)
	for i := range p.Jobs {
		s.Order = append(s.Order, int32(i))
	}
	p.Settle(&s)
	return s
}

func newTitan(t interface{ Fatal(...any) }, cfg Config, seed uint64) *Titan {
	titan, err := New(cfg, draws(seed))
	if err != nil {
		t.Fatal(err)
	}
	return titan
}

// TestGenerations: every schedule of every generation has each job once on as many
// processors as it needs, without overlap and no shorter than a lower bound; CP never
// rises; the result is never worse than the seed.
func TestGenerations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyProblem(t)
		cfg := Config{Set: 8, Generations: 30, Settle: rapid.SampledFrom([]int{0, 30}).Draw(t, "settle")}
		titan := newTitan(t, cfg, rapid.Uint64().Draw(t, "seed"))
		seed := arrival(p)
		if err := titan.Set(p, seed); err != nil {
			t.Fatal(err)
		}
		cost := titan.costOf(&seed)
		for !titan.Done() {
			titan.Generation()
			for i := range titan.now {
				m := &titan.now[i]
				if err := m.Validate(p); err != nil {
					t.Fatal(err)
				}
				checkStarts(t, p, &m.Schedule, m.cost)
				titan.wide = !titan.wide
				if cost := titan.costOf(&m.Schedule); cost != m.cost {
					t.Fatalf("cost is %d, and %d the other way", m.cost, cost)
				}
				titan.wide = !titan.wide
			}
			if titan.Cost() > cost {
				t.Fatalf("generation %d: cost rises from %d to %d", titan.generation, cost, titan.Cost())
			}
			cost = titan.Cost()
		}
	})
}

// checkStarts works starts and cost out anew, interval by interval.
func checkStarts(t *rapid.T, p *Problem, s *Schedule, cost int64) {
	starts := s.Starts(p, nil)
	type interval struct{ from, to grid.Time }
	taken := make([][]interval, p.Processors)
	var over, makespan, area grid.Time
	longest := grid.Time(0)
	for _, j := range s.Order {
		job := &p.Jobs[j]
		end := starts[j] + job.Span
		for processor := range s.Processors(p, j) {
			if p.Free != nil && starts[j] < p.Free[processor] {
				t.Fatalf("job %d starts at %v on a processor that is free at %v", j, starts[j], p.Free[processor])
			}
			for _, other := range taken[processor] {
				if starts[j] < other.to && other.from < end {
					t.Fatalf("job %d overlaps another on processor %d", j, processor)
				}
			}
			taken[processor] = append(taken[processor], interval{starts[j], end})
		}
		if job.Deadline != grid.Never && end > job.Deadline {
			over += end - job.Deadline
		}
		makespan, longest = max(makespan, end), max(longest, job.Span)
		area += job.Span * grid.Time(job.Processors)
	}
	if makespan < longest || makespan*grid.Time(p.Processors) < area {
		t.Fatalf("makespan %v of jobs of which the longest takes %v and all %v", makespan, longest, area)
	}
	idle := grid.Time(0)
	for i := range p.Processors {
		busy, free := grid.Time(0), grid.Time(0)
		if p.Free != nil {
			free = p.Free[i]
		}
		for _, part := range taken[i] {
			busy += part.to - part.from
		}
		idle += max(makespan-free, 0) - busy
	}
	want := p.Weights.OverDeadline*int64(over) + p.Weights.Makespan*int64(makespan) + p.Weights.Idle*int64(idle)
	if f := p.Measure(s); cost != want || f.OverDeadline != over || f.Makespan != makespan || f.Idle != idle {
		t.Fatalf("cost is %d and measured %+v; want %d, %v over, makespan %v, %v idle", cost, f, want, over, makespan, idle)
	}
}

// TestSettle: no schedule of the same order starts a job earlier than the settled one
// would if all before it stand as they do.
func TestSettle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyProblem(t)
		s := arrival(p)
		if err := s.Validate(p); err != nil {
			t.Fatal(err)
		}
		starts := s.Starts(p, nil)
		free := make([]grid.Time, p.Processors)
		copy(free, p.Free)
		for _, j := range s.Order {
			sorted := slices.Sorted(slices.Values(free))
			if want := sorted[p.Jobs[j].Processors-1]; starts[j] != want {
				t.Fatalf("job %d starts at %v, could at %v", j, starts[j], want)
			}
			for processor := range s.Processors(p, j) {
				free[processor] = starts[j] + p.Jobs[j].Span
			}
		}
	})
}

// hard is a problem with room for improvement.
func hard(jobs, processors int) *Problem {
	rng := draws(9)
	p := &Problem{Processors: processors, Weights: DefaultWeights}
	for range jobs {
		span := grid.Time(5+rng.IntN(95)) * grid.Second
		p.Jobs = append(p.Jobs, Job{1 + rng.IntN(processors/2), span, span * grid.Time(1+rng.IntN(5))})
	}
	return p
}

// TestSameSeed: same seed, same schedule; another seed, another one; and a Titan that
// was used before is as good as new.
func TestSameSeed(t *testing.T) {
	p := hard(25, 20)
	run := func(titan *Titan) ([]int32, []uint64, int64) {
		if err := titan.Set(p, arrival(p)); err != nil {
			t.Fatal(err)
		}
		titan.Run()
		return slices.Clone(titan.Best().Order), slices.Clone(titan.Best().Sets), titan.Cost()
	}
	order, sets, cost := run(newTitan(t, Config{}, 1))
	used := newTitan(t, Config{}, 1)
	if err := used.Set(hard(60, 100)); err != nil {
		t.Fatal(err)
	}
	used.Run()
	used.rng = draws(1)
	for _, titan := range []*Titan{newTitan(t, Config{}, 1), used} {
		if o, s, c := run(titan); c != cost || !slices.Equal(o, order) || !slices.Equal(s, sets) {
			t.Errorf("the same seed gives another schedule: cost %d, before %d", c, cost)
		}
	}
	if o, s, _ := run(newTitan(t, Config{}, 2)); slices.Equal(o, order) && slices.Equal(s, sets) {
		t.Error("another seed gives the same schedule")
	}
	seed := arrival(p)
	if before := used.costOf(&seed); cost >= before {
		t.Errorf("nothing is gained over the seed: %d after %d", cost, before)
	}
}

// TestStops: a run ends when it is stable, or at its bound, and at once without jobs.
func TestStops(t *testing.T) {
	p := hard(25, 20)
	for _, tt := range []struct {
		cfg         Config
		least, most int
	}{
		{Config{Stable: 5}, 5, 900},
		{Config{Stable: 900, Generations: 40}, 40, 40},
		{Config{Stable: 1}, 1, 100},
	} {
		titan := newTitan(t, tt.cfg, 1)
		if err := titan.Set(p); err != nil {
			t.Fatal(err)
		}
		if n := titan.Run(); n < tt.least || n > tt.most || !titan.Done() || titan.Run() != 0 {
			t.Errorf("%+v: %d generations, want %d to %d", tt.cfg, n, tt.least, tt.most)
		}
	}
	titan := newTitan(t, Config{}, 1)
	if err := titan.Set(&Problem{Processors: 3, Weights: DefaultWeights}); err != nil || titan.Run() != 0 || len(titan.Best().Order) != 0 {
		t.Errorf("without jobs: error %v, best %v", err, titan.Best())
	}
}

// TestCoarsen: a batch whose sums overflow is refused, and fits in larger units.
func TestCoarsen(t *testing.T) {
	p := &Problem{Processors: ProcessorsMax, Weights: Weights{WeightMax, WeightMax, WeightMax}}
	for range 10 {
		p.Jobs = append(p.Jobs, Job{ProcessorsMax, grid.SpanMax, -grid.SpanMax}, Job{1, 1, grid.Never})
	}
	titan := newTitan(t, Config{Set: SetMax, Generations: 1}, 1)
	if err := titan.Set(p); !errors.Is(err, ErrProblem) {
		t.Fatalf("error %v, want %v", err, ErrProblem)
	}
	if cut := p.Coarsen(); cut == 0 || p.Jobs[0].Span != grid.SpanMax>>cut+1 || p.Jobs[1].Span != 1 || p.Jobs[1].Deadline != grid.Never {
		t.Fatalf("cut by %d bits: %+v", cut, p.Jobs[:2])
	}
	if err := titan.Set(p); err != nil {
		t.Fatal(err)
	}
	titan.Generation()
	for i := range titan.now {
		if titan.now[i].cost < 0 || titan.chance[i] < 0 {
			t.Fatalf("cost %d and fitness %d overflow", titan.now[i].cost, titan.chance[i])
		}
	}
	if q := hard(100, 100); q.Coarsen() != 0 {
		t.Error("an ordinary batch is counted in coarse units")
	}
}

// TestBadInput: errors say what is wrong, and nothing is searched.
func TestBadInput(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(p *Problem, s *Schedule)
		want   error
	}{
		{"no processors", func(p *Problem, _ *Schedule) { p.Processors = 0 }, ErrProblem},
		{"too many processors", func(p *Problem, _ *Schedule) { p.Processors = ProcessorsMax + 1 }, ErrProblem},
		{"too many jobs", func(p *Problem, _ *Schedule) { p.Jobs = make([]Job, JobsMax+1) }, ErrProblem},
		{"wider than the cluster", func(p *Problem, _ *Schedule) { p.Jobs[2].Processors = 21 }, ErrProblem},
		{"no run time", func(p *Problem, _ *Schedule) { p.Jobs[2].Span = 0 }, ErrProblem},
		{"deadline too long ago", func(p *Problem, _ *Schedule) { p.Jobs[2].Deadline = -grid.Never }, ErrProblem},
		{"free in the past", func(p *Problem, _ *Schedule) { p.Free = make([]grid.Time, 20); p.Free[3] = -1 }, ErrProblem},
		{"free of other processors", func(p *Problem, _ *Schedule) { p.Free = make([]grid.Time, 19) }, ErrProblem},
		{"negative weight", func(p *Problem, _ *Schedule) { p.Weights.Idle = -1 }, ErrWeights},
		{"large weight", func(p *Problem, _ *Schedule) { p.Weights.Idle = WeightMax + 1 }, ErrWeights},
		{"no weight", func(p *Problem, _ *Schedule) { p.Weights = Weights{} }, ErrWeights},
		{"seed without a job", func(_ *Problem, s *Schedule) { s.Order = s.Order[1:] }, ErrProblem},
		{"seed with a job twice", func(_ *Problem, s *Schedule) { s.Order[1] = s.Order[0] }, ErrProblem},
		{"seed with a processor too few", func(_ *Problem, s *Schedule) { s.Sets[0] &= s.Sets[0] - 1 }, ErrProblem},
		{"seed with a foreign processor", func(_ *Problem, s *Schedule) { s.Sets[0] = s.Sets[0]&(s.Sets[0]-1) | 1<<63 }, ErrProblem},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := hard(5, 20)
			s := arrival(p)
			tt.change(p, &s)
			if err := newTitan(t, Config{}, 1).Set(p, s); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}
	for _, cfg := range []Config{{Set: 3}, {Set: SetMax + 1}, {Stable: -1}, {Generations: GenerationsMax + 1}, {Settle: 101}} {
		if _, err := New(cfg, draws(1)); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
	for _, text := range []string{"", "4,3", "4,3,1,1", "4,x,1", "-1,3,1", "0,0,0", "1001,0,0"} {
		if w, err := ParseWeights(text); !errors.Is(err, ErrWeights) {
			t.Errorf("%q is read as %v, %v", text, w, err)
		}
	}
	if w, err := ParseWeights("12, 3,1"); err != nil || w != (Weights{12, 3, 1}) || w.String() != "12,3,1" {
		t.Errorf("12,3,1 is read as %v, %v", w, err)
	}
}

// BenchmarkGeneration breeds a generation of 50 schedules.
func BenchmarkGeneration(b *testing.B) {
	for _, size := range []struct {
		name             string
		jobs, processors int
		settle           int
	}{{"100x20", 100, 20, 0}, {"100x128", 100, 128, 0}, {"100x1000", 100, 1000, 0}, {"100x128/settle", 100, 128, 30}} {
		b.Run(size.name, func(b *testing.B) {
			t := newTitan(b, Config{Stable: GenerationsMax, Generations: GenerationsMax, Settle: size.settle}, 1)
			if err := t.Set(hard(size.jobs, size.processors)); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				t.Generation()
			}
		})
	}
}
