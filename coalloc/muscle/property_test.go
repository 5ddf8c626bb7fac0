package muscle

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
	"gridnode/internal/lrms/titan"
)

// anyBatch draws a batch with everything that is legal in it: clusters that are busy,
// jobs that are too wide or barred somewhere, deadlines that have passed.
func anyBatch(t *rapid.T) *Batch {
	b := &Batch{}
	for range rapid.IntRange(1, 4).Draw(t, "clusters") {
		c := Cluster{Processors: rapid.IntRange(1, 12).Draw(t, "processors"), Weights: titan.Weights{OverDeadline: 1}}
		if rapid.Bool().Draw(t, "busy") {
			for range c.Processors {
				c.Free = append(c.Free, grid.Time(rapid.IntRange(0, 20).Draw(t, "free")))
			}
		}
		b.Clusters = append(b.Clusters, c)
	}
	for range rapid.IntRange(0, 25).Draw(t, "jobs") {
		j := Job{Processors: rapid.IntRange(1, 13).Draw(t, "size"), Deadline: grid.Time(rapid.IntRange(-20, 60).Draw(t, "deadline"))}
		if rapid.IntRange(0, 9).Draw(t, "none") == 0 {
			j.Deadline = grid.Never
		}
		for range b.Clusters {
			j.Spans = append(j.Spans, grid.Time(rapid.IntRange(0, 12).Draw(t, "span"))) // 0: barred
		}
		b.Jobs = append(b.Jobs, j)
	}
	return b
}

// TestNothingIsLost: whatever the policy, each job is in one share, at a cluster where
// it fits, or in Unplaced if it fits nowhere; and MUSCLE's seeds are schedules without
// overlap that are no shorter than a lower bound and as its placements say.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := anyBatch(t)
		for name, packing := range packings(t, b) {
			count := make([]int, len(b.Jobs))
			for c := range packing.Shares {
				share := &packing.Shares[c]
				for _, job := range share.Jobs {
					count[job]++
					if j := &b.Jobs[job]; j.Spans[c] == 0 || j.Processors > b.Clusters[c].Processors {
						t.Fatalf("%s: job %d is at cluster %d, where it does not fit", name, job, c)
					}
				}
				if packing.Placements != nil {
					checkSeed(t, b, packing, c)
				}
			}
			if !slices.IsSorted(packing.Unplaced) {
				t.Fatalf("%s: jobs %v are not placed, in this order", name, packing.Unplaced)
			}
			for _, job := range packing.Unplaced {
				count[job]++
				if packing.Placements != nil && packing.Placements[job].Cluster >= 0 {
					t.Fatalf("%s: job %d is not placed, and is planned as %+v", name, job, packing.Placements[job])
				}
				for c := range b.Clusters {
					if b.fits(int(job), c) {
						t.Fatalf("%s: job %d is not placed, but fits cluster %d", name, job, c)
					}
				}
			}
			for job, n := range count {
				if n != 1 {
					t.Fatalf("%s: job %d is %d times in the shares", name, job, n)
				}
			}
		}
	})
}

func packings(t *rapid.T, b *Batch) map[string]*Packing {
	all := map[string]*Packing{}
	keep := func(name string, p *Packing, err error) {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = p
	}
	p, err := Pack(b, Published, draws(1))
	keep("published", p, err)
	p, err = Pack(b, Urgent, draws(1))
	keep("urgent", p, err)
	p, err = DLL(b)
	keep("DLL", p, err)
	p, err = WRAND(b, draws(1))
	keep("WRAND", p, err)
	return all
}

func checkSeed(t *rapid.T, b *Batch, packing *Packing, c int) {
	share := &packing.Shares[c]
	p := b.Problem(c, share)
	if err := share.Seed.Validate(p); err != nil {
		t.Fatal(err)
	}
	starts := share.Seed.Starts(p, nil)
	var area, longest, end grid.Time
	until := make([]grid.Time, p.Processors) // columns are in the order of the starts
	copy(until, p.Free)
	for i, job := range share.Jobs {
		place := packing.Placements[job]
		if place.Cluster != c || place.Start != starts[i] {
			t.Fatalf("job %d starts at %v at cluster %d, its placement is %+v", job, starts[i], c, place)
		}
		for processor := range share.Seed.Processors(p, int32(i)) {
			if starts[i] < until[processor] {
				t.Fatalf("job %d starts at %v on processor %d, which is busy until %v", job, starts[i], processor, until[processor])
			}
			until[processor] = starts[i] + p.Jobs[i].Span
		}
		area += p.Jobs[i].Span * grid.Time(p.Jobs[i].Processors)
		longest = max(longest, p.Jobs[i].Span)
		end = max(end, starts[i]+p.Jobs[i].Span)
	}
	if f := p.Measure(&share.Seed); f.Makespan != end || end < longest || end*grid.Time(p.Processors) < area {
		t.Fatalf("makespan %v of jobs that end at %v, the longest takes %v and all %v", f.Makespan, end, longest, area)
	}
}

// naiveTable is algorithm 1 word for word.
func naiveTable(sizes []int, rows int) [][][]int {
	table := make([][][]int, rows+1)
	in := func(row, job int) bool {
		return slices.ContainsFunc(table[row], func(c []int) bool { return slices.Contains(c, job) })
	}
	for i, size := range sizes {
		for j := 1; j <= rows; j++ {
			if size == j {
				table[j] = append(table[j], []int{i})
			}
			if size < j {
				for _, composition := range table[j-size] {
					if !slices.Contains(composition, i) && !slices.ContainsFunc(composition, func(job int) bool { return in(j, job) }) {
						table[j] = append(table[j], append([]int{i}, composition...))
						break
					}
				}
			}
		}
	}
	return table
}

func TestTableIsAlgorithm1(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, 70).Draw(t, "rows")
		sizes := rapid.SliceOfN(rapid.IntRange(1, rows+2), 0, 70).Draw(t, "sizes")
		want, got := naiveTable(sizes, rows), NewTable(sizes, rows)
		for row := 1; row <= rows; row++ {
			if !slices.EqualFunc(got.Row(row), want[row], slices.Equal) {
				t.Fatalf("row %d of %v is %v, want %v", row, sizes, got.Row(row), want[row])
			}
		}
	})
}

// TestSearch: what fill returns fits its row exactly and has no job twice and none
// that is allocated; if it returns nothing, no job that is left fits.
func TestSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, 200).Draw(t, "rows")
		sizes := rapid.SliceOfN(rapid.IntRange(1, rows), 1, 40).Draw(t, "sizes")
		s := newSearch(NewTable(sizes, rows))
		for range len(sizes) + 1 {
			space := rapid.IntRange(1, rows).Draw(t, "space")
			jobs, row := s.fill(space)
			sum := 0
			for _, job := range jobs {
				if s.taken[job] {
					t.Fatalf("job %d is allocated already, or twice in %v", job, jobs)
				}
				s.taken[job] = true
				sum += sizes[job]
			}
			if sum != row || row > space {
				t.Fatalf("%v fill %d processors of a space of %d, found in row %d", jobs, sum, space, row)
			}
			for job, size := range sizes {
				if len(jobs) == 0 && size <= space && !s.taken[job] {
					t.Fatalf("job %d of %d processors is left, but nothing was found for %d", job, size, space)
				}
			}
		}
	})
}

// TestFewest: of the compositions of a row the first with the fewest allocated jobs is taken, but
// not the one that consists of the job to be replaced alone.
func TestFewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, 40).Draw(t, "rows")
		sizes := rapid.SliceOfN(rapid.IntRange(1, rows), 1, 30).Draw(t, "sizes")
		s := newSearch(NewTable(sizes, rows))
		for job := range sizes {
			s.taken[job], s.pending[job] = rapid.Bool().Draw(t, "taken"), rapid.Bool().Draw(t, "pending")
		}
		except := rapid.IntRange(-1, len(sizes)-1).Draw(t, "except")
		row := rapid.IntRange(1, rows).Draw(t, "row")
		if except >= 0 {
			row = sizes[except]
		}
		lead, allocated := -1, 0
		for _, jobs := range s.table.Row(row) {
			n := 0
			for _, job := range jobs {
				if s.taken[job] || s.pending[job] {
					n++
				}
			}
			if (lead < 0 || n < allocated) && !slices.Equal(jobs, []int{except}) {
				lead, allocated = jobs[0], n
			}
		}
		if got, n := s.fewest(row, except); got != lead || lead >= 0 && n != allocated {
			t.Fatalf("of row %d without job %d that of job %d with %d allocated, want %d with %d", row, except, got, n, lead, allocated)
		}
	})
}

// TestWorkIsShared: the shares of a batch may take as much work as there is, in proportion to their jobs.
func TestWorkIsShared(t *testing.T) {
	b := drawn(1, 40, 2, 16)
	packing, err := Pack(b, Published, draws(1))
	if err != nil {
		t.Fatal(err)
	}
	const set = 10
	cfg := PlanConfig{Config: titan.Config{Set: set, Stable: 1000, Generations: 1000}, Work: 100_000}
	for c := range b.Clusters {
		p, err := NewPlanner(cfg, draws(2))
		if err != nil {
			t.Fatal(err)
		}
		problem := b.Problem(c, &packing.Shares[c])
		n := len(problem.Jobs)
		generations, _ := p.Plan(b, problem, &packing.Shares[c])
		share, one := cfg.Work*n/len(b.Jobs), set*n*problem.Processors
		if want := (share + one - 1) / one; generations != want {
			t.Errorf("%d jobs of %d: %d generations, want %d", n, len(b.Jobs), generations, want)
		}
	}
}

// TestSameSeedSamePacking: ties of equal clusters are drawn, and nothing else is.
func TestSameSeedSamePacking(t *testing.T) {
	b := drawn(1, 60, 4, 16)
	differs := false
	for seed := range uint64(4) {
		a, _ := Pack(b, Published, draws(seed))
		again, _ := Pack(b, Published, draws(seed))
		other, _ := Pack(b, Published, draws(seed+1))
		if !slices.Equal(a.Placements, again.Placements) {
			t.Fatalf("seed %d gives two packings", seed)
		}
		differs = differs || !slices.Equal(a.Placements, other.Placements)
	}
	if !differs {
		t.Error("equal clusters are never drawn")
	}
}

// TestBadBatches: errors say what is wrong.
func TestBadBatches(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(b *Batch)
		want   error
	}{
		{"no cluster", func(b *Batch) { b.Clusters = nil }, ErrBatch},
		{"too many jobs", func(b *Batch) { b.Jobs = make([]Job, JobsMax+1) }, ErrBatch},
		{"no processors", func(b *Batch) { b.Clusters[0].Processors = 0 }, ErrBatch},
		{"too many processors", func(b *Batch) { b.Clusters[0].Processors = ProcessorsMax + 1 }, ErrBatch},
		{"all weights zero", func(b *Batch) { b.Clusters[1].Weights = titan.Weights{} }, titan.ErrWeights},
		{"negative weight", func(b *Batch) { b.Clusters[1].Weights.Idle = -1 }, titan.ErrWeights},
		{"job of no processors", func(b *Batch) { b.Jobs[3].Processors = 0 }, ErrBatch},
		{"negative run time", func(b *Batch) { b.Jobs[3].Spans[1] = -1 }, ErrBatch},
		{"endless run time", func(b *Batch) { b.Jobs[3].Spans[1] = grid.SpanMax + 1 }, ErrBatch},
		{"job from the future", func(b *Batch) { b.Jobs[3].Arrival = 1 }, ErrBatch},
		{"job from before time", func(b *Batch) { b.Jobs[3].Arrival = -grid.SpanMax - 1 }, ErrBatch},
		{"has a job of no processors", func(b *Batch) { b.Clusters[0].Has = []Held{{}} }, ErrBatch},
		{"has a job of too many", func(b *Batch) { b.Clusters[0].Has = []Held{{Processors: ProcessorsMax + 1}} }, ErrBatch},
		{"has a job of negative time", func(b *Batch) { b.Clusters[0].Has = []Held{{Processors: 1, Span: -1}} }, ErrBatch},
		{"has a job that is endless", func(b *Batch) { b.Clusters[0].Has = []Held{{Processors: 1, Span: grid.SpanMax + 1}} }, ErrBatch},
		{"has too many jobs", func(b *Batch) { b.Clusters[0].Has = slices.Repeat([]Held{{Processors: 1}}, HeldMax+1) }, ErrBatch},
		{"negative queue", func(b *Batch) { b.Clusters[0].Queued = -1 }, ErrBatch},
		{"run time missing", func(b *Batch) { b.Jobs[3].Spans = b.Jobs[3].Spans[:1] }, ErrBatch},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := worked()
			tt.change(b)
			if _, err := Pack(b, Published, draws(1)); !errors.Is(err, tt.want) || !errors.Is(err, ErrBatch) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			if _, err := DLL(b); !errors.Is(err, ErrBatch) {
				t.Errorf("DLL: error %v, want %v", err, ErrBatch)
			}
		})
	}
}

// TestBatchBounds: what is at a bound is shared out.
func TestBatchBounds(t *testing.T) {
	b := worked()
	b.Clusters[0].Has = slices.Repeat([]Held{{Processors: ProcessorsMax, Span: grid.SpanMax}}, HeldMax)
	b.Jobs[3].Arrival, b.Jobs[3].Spans[1], b.Jobs[2].Spans[1] = -grid.SpanMax, grid.SpanMax, 0
	if err := b.Validate(); err != nil {
		t.Error(err)
	}
}

// TestZeroSlack: jobs that miss their deadlines anyway are shared out all the same,
// and by Urgent over both clusters.
func TestZeroSlack(t *testing.T) {
	b := worked()
	for i := range b.Jobs {
		b.Jobs[i].Deadline = -grid.Second
	}
	for _, rule := range []Rule{Published, Urgent} {
		packing, err := Pack(b, rule, draws(1))
		if err != nil {
			t.Fatal(err)
		}
		if n, m := len(packing.Shares[0].Jobs), len(packing.Shares[1].Jobs); n+m != 6 || n == 0 || m == 0 {
			t.Errorf("rule %d: %d and %d jobs, want all 6 over both clusters", rule, n, m)
		}
	}
}

// TestBaselines: DLL picks the least load by equation 6, and WRAND wide and fast
// clusters more often, in proportion.
func TestBaselines(t *testing.T) {
	b := &Batch{Clusters: []Cluster{{Processors: 4, Weights: titan.DefaultWeights}, {Processors: 8, Weights: titan.DefaultWeights}}}
	for range 3000 {
		b.Jobs = append(b.Jobs, Job{Processors: 2, Deadline: grid.Never, Spans: []grid.Time{6 * grid.Second, 3 * grid.Second}})
	}
	p, err := DLL(b)
	if err != nil {
		t.Fatal(err)
	}
	// Loads rise by 3 and by 0.75 per job: the first gets a fifth.
	if n := len(p.Shares[0].Jobs); n != 600 {
		t.Errorf("DLL gives the slow cluster %d of 3000 jobs, want 600", n)
	}
	wide, narrow := []grid.Time{1, 1}, []grid.Time{2, 2}
	small := &Batch{Clusters: []Cluster{{Processors: 4, Weights: titan.DefaultWeights}, {Processors: 4, Weights: titan.DefaultWeights}}, Jobs: []Job{
		{Processors: 4, Deadline: grid.Never, Spans: wide}, {Processors: 1, Deadline: grid.Never, Spans: narrow}, {Processors: 1, Deadline: grid.Never, Spans: narrow}, {Processors: 1, Deadline: grid.Never, Spans: wide},
	}}
	if q, err := DLL(small); err != nil || !slices.Equal(q.Shares[0].Jobs, []int32{0, 3}) { // loads 1 and 0, 1/2, 1
		t.Errorf("DLL gives the first of two clusters %v, want the first and the last job; error %v", q.Shares[0].Jobs, err)
	}
	small.Clusters[0].Free = []grid.Time{1, 1, 0, 0} // it has jobs already: loads 1/2 and 0, then 1/2 and 1, 1 and 1, 3/2 and 1
	if q, err := DLL(small); err != nil || !slices.Equal(q.Shares[0].Jobs, []int32{1, 2}) {
		t.Errorf("DLL gives the first of two clusters, which is busy, %v, want the second and the third job; error %v", q.Shares[0].Jobs, err)
	}
	if p, err = WRAND(b, draws(1)); err != nil {
		t.Fatal(err)
	}
	if n := len(p.Shares[0].Jobs); n < 540 || n > 660 { // 4/6 against 8/3; σ is 22
		t.Errorf("WRAND gives the slow cluster %d of 3000 jobs, want about 600", n)
	}
}

// TestReach: the sums that jobs which are left can have are found by naive search.
func TestReach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		space := rapid.IntRange(1, 200).Draw(t, "space")
		s := newSearch(NewTable(rapid.SliceOfN(rapid.IntRange(1, 150), 0, 10).Draw(t, "sizes"), 200))
		want := map[int]bool{0: true}
		for job, size := range s.table.sizes {
			if s.taken[job] = rapid.IntRange(0, 3).Draw(t, "taken") == 0; s.taken[job] {
				continue
			}
			for sum := space; sum >= size; sum-- {
				want[sum] = want[sum] || want[sum-size]
			}
		}
		s.reach(space)
		for sum := range space + 1 {
			if got := s.sums[sum/64]&(1<<(sum%64)) != 0; got != want[sum] {
				t.Fatalf("%v, taken %v: a sum of %d is reached: %v, want %v", s.table.sizes, s.taken, sum, got, want[sum])
			}
		}
	})
}
