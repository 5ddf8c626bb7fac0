package titan

import (
	"fmt"
	"math/rand/v2"

	"gridnode/grid"
)

// Bounds and defaults of Config.
const (
	SetMax         = 1024
	GenerationsMax = 100_000

	// SetDefault is the size that TITAN is measured with.
	SetDefault = 50
	// StableDefault is for how many generations CP must not improve by a thousandth:
	// one alone says little, as most offspring of a good schedule are worse.
	StableDefault = 20
	// GenerationsDefault bounds the run of a batch that keeps improving.
	GenerationsDefault = 1000
)

// improvement is the share of CP, one in so many, below which a generation counts as
// no better than the one before.
const improvement = 1000

// Config is how TITAN searches. The zero value means the defaults.
type Config struct {
	Set         int // schedules in a generation, 4 to SetMax
	Stable      int // generations without improvement after which it ends, 1 to GenerationsMax
	Generations int // generations at most, 1 to GenerationsMax

	// Settle is how many of a hundred offspring have their processors chosen anew:
	// each job, in the order of the columns, gets those that are free first. It is
	// not in the paper, whose processors change by crossover and mutation alone. 0 to 100.
	Settle int
}

// WithDefaults returns c with defaults for what is zero.
func (c Config) WithDefaults() Config {
	if c.Set == 0 {
		c.Set = SetDefault
	}
	if c.Stable == 0 {
		c.Stable = StableDefault
	}
	if c.Generations == 0 {
		c.Generations = GenerationsDefault
	}
	return c
}

// Validate returns an error that names the field of c at fault; zero means default.
func (c Config) Validate() error {
	c = c.WithDefaults()
	switch {
	case c.Set < 4 || c.Set > SetMax:
		return fmt.Errorf("titan: set of %d schedules, want 4 to %d", c.Set, SetMax)
	case c.Stable < 1 || c.Stable > GenerationsMax:
		return fmt.Errorf("titan: stable for %d generations, want 1 to %d", c.Stable, GenerationsMax)
	case c.Generations < 1 || c.Generations > GenerationsMax:
		return fmt.Errorf("titan: %d generations, want 1 to %d", c.Generations, GenerationsMax)
	case c.Settle < 0 || c.Settle > 100:
		return fmt.Errorf("titan: settle %d %% of the offspring, want 0 to 100", c.Settle)
	}
	return nil
}

// Titan searches for a good schedule of one Problem at a time. Its memory is used
// again from problem to problem. Not safe for concurrent use.
type Titan struct {
	cfg Config
	rng *rand.Rand
	p   *Problem

	now, next  []member // two generations; one is bred from the other
	best       int      // of now
	generation int
	stable     int   // generations since CP last improved by enough
	mark       int64 // cost at that time

	wide     bool      // jobs are compared with each other rather than processor by processor
	freeLast grid.Time // when the last processor is free at first
	ends     []ending  // scratch: the jobs so far, the latest end last

	busy   []grid.Time // scratch: when processors are free
	chance []int64     // running sum of fitness
	seen   []bool      // scratch: jobs
	perm   []int32     // scratch: processors
}

// member is a schedule of a generation.
type member struct {
	Schedule
	cost int64 // weighted sum of equation 1: CP times the sum of the weights
}

// ending is when a job ends.
type ending struct {
	at  grid.Time
	job int32
}

// New returns a Titan that draws from rng alone. The error is Config's.
func New(cfg Config, rng *rand.Rand) (*Titan, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Titan{cfg: cfg.WithDefaults(), rng: rng}, nil
}

// Set begins with a problem, which must not change until the next Set: the first
// generation is the seeds, as far as they fit into it, and random schedules. The
// errors are those of Problem.Validate and Schedule.Validate.
func (t *Titan) Set(p *Problem, seeds ...Schedule) error {
	if err := p.Validate(); err != nil {
		return err
	}
	for i := range seeds {
		if err := seeds[i].Validate(p); err != nil {
			return err
		}
	}
	t.p = p
	t.generation, t.stable = 0, 0
	t.makeRoom()
	t.choose()
	for i := range t.now {
		m := &t.now[i]
		if i < len(seeds) {
			m.copyFrom(&seeds[i])
		} else {
			t.scatter(&m.Schedule)
		}
		m.cost = t.costOf(&m.Schedule)
	}
	t.best = t.least()
	t.mark = t.now[t.best].cost
	return nil
}

// makeRoom shapes the generations for the problem.
func (t *Titan) makeRoom() {
	n, w := len(t.p.Jobs), t.p.words()
	for _, generation := range []*[]member{&t.now, &t.next} {
		if *generation == nil {
			*generation = make([]member, t.cfg.Set)
		}
		for i := range *generation {
			m := &(*generation)[i]
			m.Order = resize(m.Order, n)
			m.Sets = resize(m.Sets, n*w)
		}
	}
	t.busy = resize(t.busy, t.p.Processors)
	t.chance = resize(t.chance, t.cfg.Set)
	t.seen = resize(t.seen, n)
	t.perm = resize(t.perm, t.p.Processors)
	for i := range t.perm {
		t.perm[i] = int32(i)
	}
}

// wideMean is from what mean width of the jobs on comparing them may pay: below it
// processors are looked at faster than jobs are kept in order (measured).
const wideMean = 10

// choose decides how schedules are worked out; both ways give the same. Looking at every
// processor of a job takes steps by its width, twice. Looking for the job that ends last
// of those that it shares processors with takes one for each word and each job that runs
// beside it, of which there are about as many as jobs of the mean width fit. It is
// faster where three times the square of the mean width is more than processors × words
// (measured with 20 to 512 processors and 30 to 400 jobs).
func (t *Titan) choose() {
	n, sum := int64(len(t.p.Jobs)), int64(0)
	for i := range t.p.Jobs {
		sum += int64(t.p.Jobs[i].Processors)
	}
	t.wide = sum >= wideMean*n && 3*sum*sum > int64(t.p.Processors*t.p.words())*n*n
	t.freeLast = 0
	for _, at := range t.p.Free {
		t.freeLast = max(t.freeLast, at)
	}
	t.ends = resize(t.ends, len(t.p.Jobs))
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// Run breeds generations until they have stabilised, or Config.Generations of them,
// and returns how many it bred.
func (t *Titan) Run() int {
	before := t.generation
	for !t.Done() {
		t.Generation()
	}
	return t.generation - before
}

// Done reports whether there is nothing to be gained from another generation.
func (t *Titan) Done() bool {
	return len(t.p.Jobs) == 0 || t.stable >= t.cfg.Stable || t.generation >= t.cfg.Generations
}

// Best returns the best schedule of the present generation, which the caller must
// not change and which is valid until the next Generation or Set.
func (t *Titan) Best() *Schedule { return &t.now[t.best].Schedule }

// Cost returns what Best is compared by: CP times the sum of the weights, in the
// problem's unit of time.
func (t *Titan) Cost() int64 { return t.now[t.best].cost }

// least returns the first member of the present generation with the lowest cost.
func (t *Titan) least() int {
	best := 0
	for i := range t.now {
		if t.now[i].cost < t.now[best].cost {
			best = i
		}
	}
	return best
}

// costOf returns the weighted sum of equation 1.
func (t *Titan) costOf(s *Schedule) int64 {
	if t.wide {
		t.ends = t.ends[:0]
	} else {
		t.clear()
	}
	w := t.p.words()
	var over, makespan, used grid.Time
	for _, j := range s.Order {
		job := &t.p.Jobs[j]
		var end grid.Time
		switch {
		case t.wide:
			end = t.follow(s, j)
		case w == 1:
			end = occupyWord(t.busy, s.Sets[j], job.Span)
		default:
			end = occupy(t.busy, s.Sets[int(j)*w:(int(j)+1)*w], job.Span) + job.Span
		}
		makespan = max(makespan, end)
		over += max(end-job.Deadline, 0)
		used += job.Span * grid.Time(job.Processors)
	}
	idle := makespan*grid.Time(t.p.Processors) - used
	for _, at := range t.p.Free {
		idle -= min(at, makespan)
	}
	v := &t.p.Weights
	return v.OverDeadline*int64(over) + v.Makespan*int64(makespan) + v.Idle*int64(idle)
}

// follow runs a job after all those before it that it shares a processor with, and
// returns its end. On each processor jobs end in the order in which they run, so the
// one of them that ends last decides, whoever has run on the others since.
func (t *Titan) follow(s *Schedule, job int32) grid.Time {
	w := t.p.words()
	set := s.Sets[int(job)*w : (int(job)+1)*w]
	start := grid.Time(0)
	for i := len(t.ends) - 1; i >= 0; i-- {
		if e := &t.ends[i]; meet(set, s.Sets[int(e.job)*w:]) {
			start = e.at
			break
		}
	}
	if start < t.freeLast {
		start = max(start, latest(t.p.Free, set))
	}
	end := start + t.p.Jobs[job].Span
	at := len(t.ends)
	t.ends = append(t.ends, ending{})
	for ; at > 0 && t.ends[at-1].at > end; at-- {
		t.ends[at] = t.ends[at-1]
	}
	t.ends[at] = ending{end, job}
	return end
}

// clear forgets what ran in the schedule before.
func (t *Titan) clear() {
	if t.p.Free == nil {
		clear(t.busy)
		return
	}
	copy(t.busy, t.p.Free)
}
