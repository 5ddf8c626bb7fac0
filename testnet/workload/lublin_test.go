package workload

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gridnode/grid"
)

// kolmogorovSmirnov returns the two-sample statistic, the largest distance of the
// empirical distribution functions, and its asymptotic p-value for continuous
// distributions. Ties are stepped over together. It sorts both samples.
func kolmogorovSmirnov(a, b []float64) (d, p float64) {
	slices.Sort(a)
	slices.Sort(b)
	for i, j := 0, 0; i < len(a) && j < len(b); {
		x := min(a[i], b[j])
		for i < len(a) && a[i] <= x {
			i++
		}
		for j < len(b) && b[j] <= x {
			j++
		}
		d = max(d, math.Abs(float64(i)/float64(len(a))-float64(j)/float64(len(b))))
	}
	root := math.Sqrt(float64(len(a)) * float64(len(b)) / float64(len(a)+len(b)))
	lambda := (root + 0.12 + 0.11/root) * d
	if lambda < 0.2 {
		return d, 1
	}
	for k, sign := 1.0, 2.0; k < 100; k, sign = k+1, -sign {
		p += sign * math.Exp(-2*k*k*lambda*lambda)
	}
	return d, min(max(p, 0), 1)
}

// permutationP returns the p-value of the same statistic for samples with ties: the
// share of random splits of both samples together that are at least as far apart.
// The asymptotic value is too large for them (the test is too kind), because the
// distribution functions can only differ where there are values.
func permutationP(a, b []float64, rng *rand.Rand) float64 {
	const splits = 499
	d, _ := kolmogorovSmirnov(slices.Clone(a), slices.Clone(b))
	// Ranks of the values, so that a split costs one pass over the distinct values.
	values := slices.Concat(a, b)
	slices.Sort(values)
	distinct := slices.Compact(slices.Clone(values))
	ranks := make([]int32, len(values))
	for i, v := range values {
		rank, _ := slices.BinarySearch(distinct, v)
		ranks[i] = int32(rank)
	}
	both := make([]int, len(distinct))
	for _, rank := range ranks {
		both[rank]++
	}
	first := make([]int, len(distinct))
	far := 1
	for range splits {
		rng.Shuffle(len(ranks), func(i, j int) { ranks[i], ranks[j] = ranks[j], ranks[i] })
		clear(first)
		for _, rank := range ranks[:len(a)] {
			first[rank]++
		}
		inFirst, inBoth, split := 0, 0, 0.0
		for rank := range distinct {
			inFirst += first[rank]
			inBoth += both[rank]
			split = max(split, math.Abs(float64(inFirst)/float64(len(a))-float64(inBoth-inFirst)/float64(len(b))))
		}
		if split >= d-1e-12 {
			far++
		}
	}
	return float64(far) / (splits + 1)
}

type distributions struct{ runTimes, sizes, gaps []float64 }

// take reads n jobs.
func take(t testing.TB, s Source, n int) (c distributions) {
	t.Helper()
	last := grid.Time(0)
	var job Job
	for range n {
		if ok, err := s.Next(&job); err != nil || !ok {
			t.Fatalf("job %d: ok=%v err=%v", len(c.sizes)+1, ok, err)
		}
		c.runTimes = append(c.runTimes, job.RunTime.Seconds())
		c.sizes = append(c.sizes, float64(job.Processors))
		c.gaps = append(c.gaps, (job.Submit - last).Seconds())
		last = job.Submit
	}
	return c
}

func lublinFile(t testing.TB) *Trace {
	trace, err := OpenTrace(filepath.Join(tracesDir(t), "lublin_256.swf.gz"), Filter{NoEstimate: NoEstimateRunTime}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { trace.Close() })
	return trace
}

func newGenerator(t testing.TB, m Model, seed uint64) *Generator {
	t.Helper()
	g, err := NewGenerator(m, Rand(seed, 0))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

const fileJobs = 10000

// unlessShort returns n, or short under -short (for the race detector, under which
// this package, which starts no goroutine, is many times slower).
func unlessShort(n, short int) int {
	if testing.Short() {
		return short
	}
	return n
}

// TestDistributions compares the generator with a file that the published program
// wrote: 10,000 jobs for 256 processors (TestPublishedProgram tells with which
// settings). Each of the seeds must pass for each of the distributions.
//
// Sizes are discrete, which makes the asymptotic p-value too large; the one from
// permutations is exact, and counts. Gaps of one run depend on each other, through
// the time of day, which makes their p-value a little too small: of the seeds 1 to
// 1000, 1.2 % fall to 0.01 or below in the gaps, 1.4 % in the sizes (as 1 % would),
// none in the run times (the file's own are close to the middle).
func TestDistributions(t *testing.T) {
	want := take(t, lublinFile(t), fileJobs)
	for seed := uint64(1); seed <= uint64(unlessShort(20, 2)); seed++ {
		got := take(t, newGenerator(t, Lublin(256), seed), fileJobs)
		exact := permutationP(got.sizes, want.sizes, rand.New(rand.NewPCG(seed, 1)))
		dRunTime, pRunTime := kolmogorovSmirnov(got.runTimes, want.runTimes)
		dSize, pSize := kolmogorovSmirnov(got.sizes, want.sizes)
		dGap, pGap := kolmogorovSmirnov(got.gaps, want.gaps)
		t.Logf("seed %2d: run time D=%.4f p=%.3f; size D=%.4f p=%.3f (asymptotic %.3f); inter-arrival D=%.4f p=%.3f",
			seed, dRunTime, pRunTime, dSize, exact, pSize, dGap, pGap)
		if min(pRunTime, exact, pSize, pGap) <= 0.01 {
			t.Errorf("seed %d: p = %.4f for the run times, %.4f for the sizes, %.4f for the inter-arrival times, want all above 0.01",
				seed, pRunTime, exact, pGap)
		}
	}
}

// TestDistributionsDiffer checks that the comparison would notice other settings.
func TestDistributionsDiffer(t *testing.T) {
	want := take(t, lublinFile(t), fileJobs)
	for _, tt := range []struct {
		name   string
		change func(m *Model)
		of     func(c *distributions) []float64
	}{
		{"sizes meeting at 2^4.5", func(m *Model) { m.Kinds[0].Sizes.Med = 4.5 }, func(c *distributions) []float64 { return c.sizes }},
		{"more serial jobs", func(m *Model) { m.Kinds[0].Sizes.Serial = 0.2927 }, func(c *distributions) []float64 { return c.sizes }},
		{"run times of batch jobs", func(m *Model) { m.Kinds[0].RunTimes = LublinKinds(256).Kinds[0].RunTimes }, func(c *distributions) []float64 { return c.runTimes }},
		{"run times apart from sizes", func(m *Model) { m.Kinds[0].RunTimes.Slope = 0 }, func(c *distributions) []float64 { return c.runTimes }},
		{"gaps of batch jobs", func(m *Model) { m.Kinds[0].Arrivals = LublinKinds(256).Kinds[0].Arrivals }, func(c *distributions) []float64 { return c.gaps }},
		{"a day without cycle", func(m *Model) { m.Kinds[0].Arrivals.Day = Gamma{1.0001, 1e6} }, func(c *distributions) []float64 { return c.gaps }},
		{"twice the jobs", func(m *Model) { m.Shape.JobsPerDay = 190 }, func(c *distributions) []float64 { return c.gaps }},
	} {
		m := Lublin(256)
		tt.change(&m)
		got := take(t, newGenerator(t, m, 1), fileJobs)
		if d, p := kolmogorovSmirnov(tt.of(&got), tt.of(&want)); p > 0.001 {
			t.Errorf("%s: D=%.4f p=%.4f, want it told apart", tt.name, d, p)
		}
	}
}

// drand48 is the random number generator of System V and POSIX that the published
// program uses.
type drand48 uint64

func (r *drand48) next() float64 {
	*r = (*r*0x5deece66d + 0xb) & (1<<48 - 1)
	return float64(*r) / (1 << 48)
}

// gamma draws by Jain's method, as the published program does: a sum of exponential
// numbers for the whole part of the shape, and a beta times an exponential number
// for the rest.
func (r *drand48) gamma(g Gamma) float64 {
	sum := 0.0
	for range int(g.Shape) {
		sum -= math.Log(r.next())
	}
	if rest := g.Shape - math.Floor(g.Shape); rest > 0 {
		x, y := 1.0, 1.0
		for x+y > 1 {
			x = math.Pow(r.next(), 1/rest)
			y = math.Pow(r.next(), 1/(1-rest))
		}
		sum -= x / (x + y) * math.Log(r.next())
	}
	return sum * g.Scale
}

// TestPublishedProgram replays the published program's own random numbers through
// Lublin(256) and gets the file back, every job to the second. So the file was made
// with the parameters for all jobs (not batch and interactive apart), sizes up to 2^8
// that meet at 2^5.5, run times up to e^12 s, from midnight, with the seed below
// (found by trying the seconds of 1998 to 2023: the program takes the time of day);
// and the parameters here are those of the program.
func TestPublishedProgram(t *testing.T) {
	trace := lublinFile(t)
	k := Lublin(256).Kinds[0]
	weights := k.Arrivals.weights()
	const seed = 1487089399 // 14 February 2017
	r := drand48(seed<<16 + 0x330e)

	bucket, points, reminder, submit := 0, 0.0, 0.0, 0.0
	gap := func() float64 {
		for {
			if x := r.gamma(k.Arrivals.Gap); x <= logGapMax {
				return math.Exp(x) / halfHour
			}
		}
	}
	arrive := func() {
		points += gap()
		slots := 0.0
		for points > weights[bucket] {
			points -= weights[bucket]
			bucket = (bucket + 1) % halfHoursPerDay
			slots++
		}
		into := points / weights[bucket]
		submit = math.Floor(submit + (slots+into-reminder)*halfHour)
		reminder = into
	}
	gap() // it draws a first batch job even when there are no batch jobs
	arrive()
	var job Job
	for i := range fileJobs {
		want := Job{Number: int64(i + 1), Submit: grid.Time(submit) * grid.Second, Processors: 1}
		arrive()
		if u := r.next(); u > k.Sizes.Serial {
			low, high := k.Sizes.Med, k.Sizes.High
			if r.next() <= k.Sizes.LowShare {
				low, high = k.Sizes.Low, k.Sizes.Med
			}
			power := r.next()*(high-low) + low
			if u <= k.Sizes.Serial+k.Sizes.Power2 {
				power = math.Floor(power + 0.5)
			}
			want.Processors = int64(math.Pow(2, power) + 0.5)
		}
		x := math.Inf(1)
		for x > logRunTimeMax {
			g := k.RunTimes.Long
			if r.next() <= k.RunTimes.shortProbability(want.Processors) {
				g = k.RunTimes.Short
			}
			x = r.gamma(g)
		}
		want.RunTime = grid.Time(math.Exp(x)) * grid.Second
		want.Estimate = want.RunTime
		if ok, err := trace.Next(&job); !ok || err != nil || job != want {
			t.Fatalf("job %d: the file has %+v (%v, %v), the program would write %+v", i+1, job, ok, err, want)
		}
	}
	if ok, err := trace.Next(&job); ok || err != nil {
		t.Errorf("after the last job: %v, %v", ok, err)
	}
}

// TestSameJobsEverywhere pins the jobs of a seed: they must be the same on every
// machine and with every compiler. If a change of the generator is meant, change
// the numbers, and say in the commit that embedded workloads change.
func TestSameJobsEverywhere(t *testing.T) {
	grids := Lublin(64)
	grids.SetSerial(0.95)
	grids.Shape = Shape{Load: 0.7}
	kinds := LublinKinds(100)
	kinds.StartHour = 8
	kinds.Shape = Shape{JobsPerDay: 1000, Load: 0.9}
	for _, tt := range []struct {
		name  string
		model Model
		want  uint64
	}{
		{"all", Lublin(256), 0xa1d6ef8a681aff4a},
		{"grid", grids, 0x8b6a7eed6258382},
		{"kinds", kinds, 0x700986e92909282c},
	} {
		h := fnv.New64a()
		c := take(t, newGenerator(t, tt.model, 7), 20000)
		for i := range c.sizes {
			for _, v := range [...]float64{c.runTimes[i], c.sizes[i], c.gaps[i]} {
				bits := math.Float64bits(v)
				for shift := 0; shift < 64; shift += 8 {
					h.Write([]byte{byte(bits >> shift)})
				}
			}
		}
		if got := h.Sum64(); got != tt.want {
			t.Errorf("%s: hash of 20000 jobs %#x, want %#x", tt.name, got, tt.want)
		}
	}
}

// TestMeans compares the exact means with those of many jobs.
func TestMeans(t *testing.T) {
	grids := Lublin(128)
	grids.SetSerial(0.95)
	shaped := Lublin(100)
	shaped.Shape = Shape{JobsPerDay: 500, Load: 0.8}
	kinds := LublinKinds(128)
	kinds.Shape = Shape{MeanRunTime: grid.Hour, Load: 1.5}
	odd := Lublin(3)
	for _, tt := range []struct {
		name  string
		model Model
	}{{"256", Lublin(256)}, {"95 % serial", grids}, {"500 a day at load 0.8", shaped}, {"kinds", kinds}, {"3", odd}, {"1", Lublin(1)}} {
		n := unlessShort(400_000, 20_000)
		g := newGenerator(t, tt.model, 11)
		var runTime, processors, work, gap spread
		last := grid.Time(0)
		var job Job
		for range n {
			if ok, err := g.Next(&job); !ok || err != nil {
				t.Fatal(ok, err)
			}
			if job.Processors < 1 || job.Processors > tt.model.Processors {
				t.Fatalf("%s: a job of %d processors", tt.name, job.Processors)
			}
			seconds := job.RunTime.Seconds() + 0.5 // fractions were dropped
			runTime.add(seconds)
			processors.add(float64(job.Processors))
			work.add(seconds * float64(job.Processors))
			gap.add((job.Submit - last).Seconds())
			last = job.Submit
		}
		want := tt.model.Means()
		for name, c := range map[string]struct {
			got  spread
			want float64
		}{
			"run time": {runTime, want.RunTime}, "processors": {processors, want.Processors}, "work": {work, want.Work},
			"gap": {gap, 86400 / want.JobsPerDay},
		} {
			mean, deviation := c.got.mean()
			// Five standard errors; gaps within a day depend on each other a little.
			if math.Abs(mean-c.want) > 5*deviation+1e-9 {
				t.Errorf("%s: mean %s %.4f ± %.4f, want %.4f", tt.name, name, mean, deviation, c.want)
			}
		}
		if load := want.Work * want.JobsPerDay / 86400 / float64(tt.model.Processors); math.Abs(load/want.Load-1) > 1e-9 {
			t.Errorf("%s: load %v is not work × rate / processors = %v", tt.name, want.Load, load)
		}
	}
	if got := shaped.Means(); math.Abs(got.JobsPerDay-500) > 1e-6 || math.Abs(got.Load-0.8) > 1e-9 {
		t.Errorf("shaped for 500 jobs a day and load 0.8, means %+v", got)
	}
	if got := kinds.Means(); math.Abs(got.RunTime-3600) > 1e-6 || math.Abs(got.Load-1.5) > 1e-9 {
		t.Errorf("shaped for an hour and load 1.5, means %+v", got)
	}
	// Delegated matchmaking, §5.3: "With these parameters, the average job runtime
	// is around one hour."
	if got := grids.Means().RunTime; got < 3400 || got > 3800 {
		t.Errorf("mean run time with 95 %% serial jobs: %v s, want about an hour", got)
	}
}

// spread is the sum of numbers and of their squares.
type spread struct{ n, sum, squares float64 }

func (s *spread) add(x float64) { s.n++; s.sum += x; s.squares += x * x }

// mean returns the mean and its standard error.
func (s *spread) mean() (mean, deviation float64) {
	mean = s.sum / s.n
	return mean, math.Sqrt(max(s.squares/s.n-mean*mean, 0) / s.n)
}

// TestDailyCycle checks that jobs come when people work.
func TestDailyCycle(t *testing.T) {
	for _, start := range []int{0, 9} {
		m := Lublin(64)
		m.StartHour = start
		m.Shape.JobsPerDay = 2000
		g := newGenerator(t, m, 3)
		var byHour [24]int
		var job Job
		for range unlessShort(200_000, 20_000) {
			if ok, err := g.Next(&job); !ok || err != nil {
				t.Fatal(ok, err)
			}
			byHour[(int(job.Submit/grid.Hour)+start)%24]++
		}
		if byHour[14] < 4*byHour[5] || byHour[14] < 2*byHour[23] {
			t.Errorf("from %d o'clock: jobs by hour of the day %v, want most in the afternoon, fewest before dawn", start, byHour)
		}
	}
}

func TestModelCheck(t *testing.T) {
	for _, tt := range []struct {
		change func(m *Model)
		want   string
	}{
		{func(m *Model) { m.Processors = 0 }, "0 processors"},
		{func(m *Model) { m.Processors = 1 << 25 }, "33554432 processors"},
		{func(m *Model) { m.Kinds = nil }, "0 kinds"},
		{func(m *Model) { m.StartHour = 24 }, "start hour 24"},
		{func(m *Model) { m.Kinds[0].Sizes.Serial = math.NaN() }, "want probabilities"},
		{func(m *Model) { m.Kinds[0].Sizes.Power2 = 0.9 }, "want probabilities"},
		{func(m *Model) { m.Kinds[0].Sizes.High = 9 }, "want them rising"},
		{func(m *Model) { m.Kinds[0].Sizes.Low = 7 }, "want them rising"},
		{func(m *Model) { m.Kinds[0].RunTimes.Base = math.Inf(1) }, "base +Inf"},
		{func(m *Model) { m.Kinds[0].RunTimes.Long.Shape = 0.5 }, "long run times: gamma distribution of shape 0.5"},
		{func(m *Model) { m.Kinds[0].RunTimes.Short.Scale = 1 }, "short run times: scale 1"},
		{func(m *Model) { m.Kinds[0].Arrivals.Gap = Gamma{100, 0.9} }, "gaps: only"},
		{func(m *Model) { m.Kinds[0].Arrivals.Day.Scale = 0 }, "day: gamma"},
		{func(m *Model) { m.Shape.JobsPerDay = -1 }, "-1 jobs a day"},
		{func(m *Model) { m.Shape.Load = math.NaN() }, "load NaN"},
		{func(m *Model) { m.Shape.MeanRunTime = -1 }, "mean run time"},
		{func(m *Model) { m.Shape = Shape{1, grid.Hour, 1} }, "two of them fix the third"},
	} {
		m := Lublin(128)
		tt.change(&m)
		if _, err := NewGenerator(m, Rand(1, 0)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want it to say %q", err, tt.want)
		}
	}
	for _, processors := range []int64{1, 2, 3, 4, 5, 8, 100, 1 << 20} {
		for _, m := range []Model{Lublin(processors), LublinKinds(processors)} {
			if err := m.Check(); err != nil {
				t.Errorf("%d processors: %v", processors, err)
			}
		}
	}
}

// TestSizesAddUp checks the exact distribution of sizes: it sums to one, and agrees
// with what is drawn.
func TestSizesAddUp(t *testing.T) {
	for _, processors := range []int64{1, 2, 3, 7, 100, 256, 1000} {
		for _, m := range []Model{Lublin(processors), LublinKinds(processors)} {
			for i := range m.Kinds {
				sum, last := 0.0, int64(0)
				m.Kinds[i].Sizes.each(processors, func(n int64, p float64) {
					if n <= last || n > processors || p <= 0 {
						t.Fatalf("%d processors: size %d after %d with probability %v", processors, n, last, p)
					}
					sum, last = sum+p, n
				})
				if math.Abs(sum-1) > 1e-9 {
					t.Errorf("%d processors, kind %d: probabilities sum to %v", processors, i, sum)
				}
			}
		}
	}
}
