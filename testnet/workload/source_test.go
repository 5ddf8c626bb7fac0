package workload

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
)

// collect reads a source to its end.
func collect(t interface{ Fatalf(string, ...any) }, s Source) []Job {
	var jobs []Job
	var job Job
	for {
		ok, err := s.Next(&job)
		if err != nil {
			t.Fatalf("after %d jobs: %v", len(jobs), err)
		}
		if !ok {
			if ok, err := s.Next(&job); ok || err != nil {
				t.Fatalf("after the end: %v, %v", ok, err)
			}
			return jobs
		}
		jobs = append(jobs, job)
	}
}

// drawJobs draws jobs in submission order; until bounds the submit times.
func drawJobs(t *rapid.T, label string, until grid.Time) []Job {
	submits := rapid.SliceOfN(rapid.Int64Range(0, int64(until)), 0, 40).Draw(t, label)
	slices.Sort(submits)
	jobs := make([]Job, len(submits))
	for i, submit := range submits {
		processors := rapid.Int64Range(1, 8).Draw(t, "processors")
		jobs[i] = Job{Number: int64(i + 1), Submit: grid.Time(submit), RunTime: grid.Minute, Estimate: grid.Hour, Processors: processors}
	}
	return jobs
}

func TestFilterJob(t *testing.T) {
	sound := Record{
		Number: 7, Submit: 100 * grid.Second, RunTime: grid.Minute, Processors: 4, ProcessorsRequested: 8,
		TimeRequested: grid.Hour, MemoryRequested: 1 << 20,
	}
	kept := Job{Number: 7, Submit: 100 * grid.Second, RunTime: grid.Minute, Estimate: grid.Hour, Processors: 8, Memory: 1 << 20}
	with := func(change func(r *Record, j *Job)) (r Record, j Job) {
		r, j = sound, kept
		change(&r, &j)
		return r, j
	}
	for _, tt := range []struct {
		name   string
		filter Filter
		change func(r *Record, j *Job)
		want   Reason
	}{
		{"sound", Filter{Processors: 8}, func(*Record, *Job) {}, Kept},
		{"size from field 5", Filter{}, func(r *Record, j *Job) { r.ProcessorsRequested, j.Processors = Unknown, 4 }, Kept},
		{"requested zero", Filter{}, func(r *Record, j *Job) { r.ProcessorsRequested, j.Processors = 0, 4 }, Kept},
		{"killed at the estimate", Filter{}, func(r *Record, j *Job) { r.RunTime, j.RunTime = 2*grid.Hour, grid.Hour }, Kept},
		{"no memory", Filter{}, func(r *Record, j *Job) { r.MemoryRequested, j.Memory = Unknown, 0 }, Kept},
		{"at instant 0", Filter{}, func(r *Record, j *Job) { r.Submit, j.Submit = 0, 0 }, Kept},
		{"no submit", Filter{}, func(r *Record, _ *Job) { r.Submit = Unknown }, WithoutSubmit},
		{"at the end", Filter{Until: 100 * grid.Second}, func(*Record, *Job) {}, Late},
		{"before the end", Filter{Until: 100*grid.Second + 1}, func(*Record, *Job) {}, Kept},
		{"no run time", Filter{}, func(r *Record, _ *Job) { r.RunTime = Unknown }, WithoutRunTime},
		{"run time zero", Filter{}, func(r *Record, _ *Job) { r.RunTime = 0 }, WithoutRunTime},
		{"no processors", Filter{}, func(r *Record, _ *Job) { r.Processors, r.ProcessorsRequested = 0, Unknown }, WithoutProcessors},
		{"too wide", Filter{Processors: 7}, func(*Record, *Job) {}, TooWide},
		{"no estimate", Filter{}, func(r *Record, _ *Job) { r.TimeRequested = Unknown }, WithoutEstimate},
		{"run time for estimate", Filter{NoEstimate: NoEstimateRunTime}, func(r *Record, j *Job) { r.TimeRequested, j.Estimate = 0, grid.Minute }, Kept},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, want := with(tt.change)
			var got Job
			if reason := tt.filter.Job(&r, &got); reason != tt.want {
				t.Fatalf("%v, want %v", reason, tt.want)
			}
			if tt.want != Kept {
				want = Job{}
			}
			if got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestCountsText(t *testing.T) {
	counts := Counts{Kept: 3, TooWide: 2, WithoutEstimate: 1}
	if got, want := counts.String(), "3 kept, 2 wider than the machine, 1 no estimate"; got != want || counts.Total() != 6 {
		t.Errorf("%q of %d, want %q of 6", got, counts.Total(), want)
	}
	for _, s := range []string{"drop", "runtime"} {
		if n, err := ParseNoEstimate(s); err != nil || n.String() != s {
			t.Errorf("ParseNoEstimate(%q) = %v, %v", s, n, err)
		}
	}
	if _, err := ParseNoEstimate("keep"); err == nil || !strings.Contains(err.Error(), `"keep": want drop`) {
		t.Errorf("ParseNoEstimate(keep): %v", err)
	}
}

func TestTraceOutOfOrder(t *testing.T) {
	text := strings.Join([]string{line(2, "100"), line(2, "200"), line(2, "150"), line(2, "200"), line(2, "250")}, "\n")
	trace := func(o Options) *Trace {
		r, err := NewReader(strings.NewReader(text), "test.swf", o)
		if err != nil {
			t.Fatal(err)
		}
		return NewTrace(r, Filter{})
	}
	strict := trace(Options{Strict: true})
	var job Job
	for range 2 {
		if ok, err := strict.Next(&job); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	_, err := strict.Next(&job)
	if want := "test.swf:3: submitted at 150 s, before the job above it (200 s): sort the file by submit time (field 2)"; err == nil || err.Error() != want || !errors.Is(err, ErrMalformed) {
		t.Errorf("error %v, want %s", err, want)
	}
	if _, again := strict.Next(&job); again != err {
		t.Errorf("then %v, want the same again", again)
	}
	lenient := trace(Options{})
	if jobs := collect(t, lenient); len(jobs) != 4 || jobs[3].Submit != 250*grid.Second {
		t.Errorf("lenient: %+v", jobs)
	}
	if s := lenient.Skipped(); s.Lines != 1 || s.Reasons[0].Line != 3 {
		t.Errorf("lenient: skipped %+v", s)
	}
	if counts := lenient.Counts(); counts[Kept] != 4 {
		t.Errorf("lenient: %v", &counts)
	}
}

func TestUsers(t *testing.T) {
	users := func(text string) (names []string) {
		r, err := NewReader(strings.NewReader(text), "test", Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, job := range collect(t, NewTrace(r, Filter{NoEstimate: NoEstimateRunTime})) {
			names = append(names, job.User)
		}
		return names
	}
	if got := fmt.Sprintf("%q", users(line(12, "97")+"\n"+line(12, "-1")+"\n"+line(12, "97"))); got != `["user97" "" "user97"]` {
		t.Errorf("SWF: %s", got)
	}
	long := strings.ReplaceAll(gwfSample, "U3 ", strings.Repeat("u", userMaxSize+1)+" ")
	long = strings.ReplaceAll(long, "1119277025.25", "1119277025")
	if got := fmt.Sprintf("%q", users(long)); got != `["U12" "user9" "U12"]` {
		t.Errorf("GWF: %s", got)
	}
}

// failing is a source that breaks after its jobs.
type failing struct {
	Jobs
	err error
}

func (f *failing) Next(job *Job) (bool, error) {
	if ok, _ := f.Jobs.Next(job); ok {
		return true, nil
	}
	return false, f.err
}

func TestMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sources []Source
		var want []Job
		for site := range rapid.IntRange(0, 6).Draw(t, "sites") {
			jobs := drawJobs(t, fmt.Sprintf("site %d", site), 20)
			for _, job := range jobs {
				job.Site = site
				want = append(want, job)
			}
			sources = append(sources, (*Jobs)(&jobs))
		}
		slices.SortStableFunc(want, func(a, b Job) int {
			return cmp.Or(cmp.Compare(a.Submit, b.Submit), cmp.Compare(a.Site, b.Site))
		})
		if got := collect(t, NewMerge(sources...)); !slices.Equal(got, want) {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
	})
}

func TestMergeFails(t *testing.T) {
	broken := errors.New("broken")
	jobs := func(submits ...grid.Time) (jobs Jobs) {
		for i, submit := range submits {
			jobs = append(jobs, Job{Number: int64(i), Submit: submit})
		}
		return jobs
	}
	sound := jobs(1, 3, 5)
	m := NewMerge(&sound, &failing{jobs(2), broken})
	var job Job
	for _, want := range []grid.Time{1, 2} {
		if ok, err := m.Next(&job); !ok || err != nil || job.Submit != want {
			t.Fatalf("%+v, %v, %v, want the job of %d: what came before the error is sound", job, ok, err, want)
		}
	}
	for range 2 {
		if ok, err := m.Next(&job); ok || err != broken {
			t.Errorf("%v, %v, want the error", ok, err)
		}
	}
	if ok, err := NewMerge(&failing{nil, broken}).Next(&job); ok || err != broken {
		t.Errorf("at the start: %v, %v, want the error", ok, err)
	}
}

func TestWindowAndFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs := drawJobs(t, "jobs", 20)
		start := grid.Time(rapid.Int64Range(0, 20).Draw(t, "start"))
		span := grid.Time(rapid.Int64Range(0, 20).Draw(t, "span"))
		left := rapid.Int64Range(0, 40).Draw(t, "first")
		var want []Job
		for _, job := range jobs {
			if job.Submit >= start && job.Submit < start+span && int64(len(want)) < left {
				job.Submit -= start
				want = append(want, job)
			}
		}
		got := collect(t, &First{&Window{(*Jobs)(&jobs), start, span}, left})
		if !slices.Equal(got, want) {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
	})
}

func TestTwoDays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs := drawJobs(t, "jobs", 9*grid.Day)
		target := Target{Jobs: rapid.Int64Range(0, 60).Draw(t, "target jobs"), Area: rapid.Int64Range(0, 3000).Draw(t, "target area")}
		wantDays, wantStart := naiveTwoDays(slices.Clone(jobs), target)
		days, start, err := TwoDays((*Jobs)(&jobs), target)
		if err != nil || start != wantStart || !slices.Equal(days, wantDays) {
			t.Fatalf("from %v: %+v (%v)\nwant from %v: %+v", start, days, err, wantStart, wantDays)
		}
	})
	// The first day alone is closer, but it is no pair of days.
	jobs := Jobs{{Number: 1}, {Number: 2, Submit: grid.Day}, {Number: 3, Submit: grid.Day}, {Number: 4, Submit: 2 * grid.Day}}
	if days, start, err := TwoDays(&jobs, Target{Jobs: 1}); err != nil || start != 0 || len(days) != 3 {
		t.Errorf("from %v: %+v (%v), want the first two days", start, days, err)
	}
	broken := errors.New("broken")
	if _, _, err := TwoDays(&failing{Jobs{{Submit: 1}}, broken}, Target{}); err != broken {
		t.Errorf("error %v, want the source's", err)
	}
}

// TestBestDays: the n best pairs are those of a naive search that takes the best pair
// away, with every pair that shares a day with it, and searches again.
func TestBestDays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs := drawJobs(t, "jobs", 12*grid.Day)
		target := Target{Jobs: rapid.Int64Range(0, 60).Draw(t, "target jobs"), Area: rapid.Int64Range(0, 3000).Draw(t, "target area")}
		n := rapid.IntRange(1, 4).Draw(t, "n")
		source := Jobs(slices.Clone(jobs))
		best, err := BestDays(&source, target, n)
		if err != nil {
			t.Fatal(err)
		}
		want := naiveBestDays(jobs, target, n)
		if len(best) != len(want) {
			t.Fatalf("%d pairs, want %d", len(best), len(want))
		}
		for i := range want {
			if best[i].Start != want[i].Start || !slices.Equal(best[i].Jobs, want[i].Jobs) {
				t.Fatalf("pair %d: %+v\nwant %+v", i, best[i], want[i])
			}
		}
	})
}

func naiveBestDays(jobs []Job, target Target, n int) (best []Days) {
	if len(jobs) == 0 {
		return nil
	}
	first := jobs[0].Submit
	last := int64((jobs[len(jobs)-1].Submit - first) / grid.Day)
	all := []Days{}
	for day := range max(last, 1) {
		d := Days{Start: first + grid.Time(day)*grid.Day}
		for _, job := range jobs {
			if at := job.Submit - d.Start; at >= 0 && at < 2*grid.Day {
				job.Submit = at
				d.Jobs = append(d.Jobs, job)
			}
		}
		if len(d.Jobs) > 0 {
			all = append(all, d)
		}
	}
	off := func(d Days) int64 { return max(distance(int64(len(d.Jobs)), target.Jobs)-target.Jobs/20, 0) }
	areaOff := func(d Days) int64 {
		if target.Area == 0 {
			return 0
		}
		return distance(d.Area(), target.Area)
	}
	slices.SortStableFunc(all, func(a, b Days) int {
		return cmp.Or(cmp.Compare(off(a), off(b)), cmp.Compare(areaOff(a), areaOff(b)))
	})
	for len(all) > 0 && len(best) < n {
		chosen := all[0]
		best = append(best, chosen)
		all = slices.DeleteFunc(all, func(d Days) bool {
			return d.Start < chosen.Start+2*grid.Day && chosen.Start < d.Start+2*grid.Day
		})
	}
	return best
}

// naiveTwoDays tries every pair of days.
func naiveTwoDays(jobs []Job, target Target) (best []Job, start grid.Time) {
	if len(jobs) == 0 {
		return nil, 0
	}
	first, last := jobs[0].Submit, jobs[len(jobs)-1].Submit
	far := [2]int64{1 << 62, 1 << 62}
	for day := grid.Time(0); day == 0 || first+(day+1)*grid.Day <= last; day++ {
		from := first + day*grid.Day
		var pair []Job
		sum := int64(0)
		for _, job := range jobs {
			if job.Submit >= from && job.Submit < from+2*grid.Day {
				job.Submit -= from
				pair = append(pair, job)
				sum += job.Processors * int64(job.RunTime/grid.Second)
			}
		}
		distances := [2]int64{max(distance(int64(len(pair)), target.Jobs)-target.Jobs/20, 0), 0}
		if target.Area > 0 {
			distances[1] = distance(sum, target.Area)
		}
		if len(pair) > 0 && slices.Compare(distances[:], far[:]) < 0 {
			best, start, far = pair, from, distances
		}
	}
	return best, start
}

func TestSourcesAllocateNothing(t *testing.T) {
	r, err := NewReader(strings.NewReader(strings.Repeat(line(1, "1")+"\n", 5000)), "test.swf", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]Source{
		"Trace":     NewTrace(r, Filter{}),
		"Generator": newGenerator(t, LublinKinds(64), 1),
		"Merge":     NewMerge(newGenerator(t, Lublin(64), 1), newGenerator(t, Lublin(8), 2), newGenerator(t, Lublin(8), 3)),
	} {
		var job Job
		next := func() {
			if ok, err := s.Next(&job); !ok || err != nil {
				t.Fatal(ok, err)
			}
		}
		next()
		if allocs := testing.AllocsPerRun(1000, next); allocs != 0 {
			t.Errorf("%s: %v allocations a job, want none", name, allocs)
		}
	}
}

// TestDayPairs: the pairs are those of a naive search.
func TestDayPairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs := drawJobs(t, "jobs", 12*grid.Day)
		least := rapid.Int64Range(0, 10).Draw(t, "least")
		most := least + rapid.Int64Range(0, 20).Draw(t, "slack")
		var want []Days
		for day := grid.Time(0); len(jobs) > 0 && jobs[0].Submit+(day+1)*grid.Day <= jobs[len(jobs)-1].Submit; day++ {
			d := Days{Start: jobs[0].Submit + day*grid.Day}
			for _, job := range jobs {
				if at := job.Submit - d.Start; at >= 0 && at < 2*grid.Day {
					job.Submit = at
					d.Jobs = append(d.Jobs, job)
				}
			}
			if n := int64(len(d.Jobs)); n >= max(least, 1) && n <= most {
				want = append(want, d)
			}
		}
		source := Jobs(slices.Clone(jobs))
		pairs, err := DayPairs(&source, max(least, 1), most)
		if err != nil || len(pairs) != len(want) {
			t.Fatalf("%d pairs (%v), want %d", len(pairs), err, len(want))
		}
		for i := range want {
			if pairs[i].Start != want[i].Start || !slices.Equal(pairs[i].Jobs, want[i].Jobs) {
				t.Fatalf("pair %d: %+v\nwant %+v", i, pairs[i], want[i])
			}
		}
	})
	broken := errors.New("broken")
	if _, err := DayPairs(&failing{Jobs{{Submit: 1}}, broken}, 0, 9); err != broken {
		t.Errorf("error %v, want the source's", err)
	}
}
