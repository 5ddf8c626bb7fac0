package workload

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"

	"gridnode/grid"
)

// Target is what is known of the two days of an experiment.
type Target struct {
	Jobs int64 // number of jobs
	Area int64 // their processors × run time, in processor-seconds; 0 if unknown
}

// Days are the jobs of two consecutive days of a source.
type Days struct {
	Start grid.Time // of the first day, in the source
	Jobs  []Job     // in order of submission; instant 0 is Start
}

// Area returns the processor-seconds of the jobs, 2^60 at most.
func (d *Days) Area() int64 { return area(d.Jobs) }

// TwoDays returns the jobs of two consecutive days of a source, shifted so that
// the first day starts at instant 0, and that day's start in the source.
//
// Grid-Federation replays two days of each log; it prints how many jobs they had
// and how busy the machine was, but not which days they were. The rule here: of
// all pairs of days, counted from the first submission, take the one whose number
// of jobs comes closest to the target's, where up to a twentieth off is close
// enough; of equally close ones the one with the closest area; of those the
// earliest. A source shorter than two days is taken whole.
//
// It reads the source to its end and holds at most six days of jobs.
func TwoDays(src Source, target Target) (days []Job, start grid.Time, err error) {
	best, err := BestDays(src, target, 1)
	if err != nil || len(best) == 0 {
		return nil, 0, err
	}
	return best[0].Jobs, best[0].Start, nil
}

// BestDays returns the n pairs of days that come closest to the target by the rule
// of TwoDays, the closest first, none of which shares a day with a closer one. There
// are fewer if the source is shorter. It holds at most 6n days of jobs.
func BestDays(src Source, target Target, n int) ([]Days, error) {
	// Each pair shares a day with two others: among so many there are n apart.
	d := daysSearch{target: target, most: max(3*n-2, 1)}
	if err := each(src, d.add); err != nil {
		return nil, err
	}
	d.endDay()
	var best []Days
	for i := range d.best {
		c := &d.best[i]
		if len(best) == n || slices.ContainsFunc(best, func(b Days) bool { return distance(int64(b.Start), int64(c.Start)) < int64(2*grid.Day) }) {
			continue
		}
		for j := range c.Jobs {
			c.Jobs[j].Submit -= c.Start
		}
		best = append(best, c.Days)
	}
	return best, nil
}

type daysSearch struct {
	target           Target
	most             int       // pairs to keep
	first            grid.Time // submission of the first job
	any              bool
	day              int64 // number of the day at hand
	yesterday, today []Job
	best             []candidateDays // the closest first
	found            bool            // best are pairs of days
}

// candidateDays are days and how far they are from the target.
type candidateDays struct {
	Days
	jobsOff, areaOff int64
}

func (d *daysSearch) add(job *Job) {
	if !d.any {
		d.any, d.first = true, job.Submit
	}
	day := int64((job.Submit - d.first) / grid.Day)
	if d.day < day {
		d.endDay()
		d.yesterday, d.today = d.today, d.yesterday[:0]
		if d.day++; d.day < day {
			d.endDay() // of a day without jobs; more of them change nothing
			d.yesterday = d.yesterday[:0]
			d.day = day
		}
	}
	d.today = append(d.today, *job)
}

// endDay considers yesterday and today.
func (d *daysSearch) endDay() {
	if len(d.yesterday)+len(d.today) == 0 {
		return
	}
	if pair := d.day > 0; pair && !d.found {
		d.found, d.best = true, d.best[:0] // the first day alone is only a stopgap
	}
	c := candidateDays{jobsOff: d.farFromJobs(int64(len(d.yesterday) + len(d.today)))}
	if d.target.Area != 0 {
		c.areaOff = distance(area(d.yesterday)+area(d.today), d.target.Area)
	}
	at := len(d.best)
	for at > 0 && c.closer(&d.best[at-1]) {
		at--
	}
	if at == d.most {
		return
	}
	if len(d.best) == d.most {
		c.Jobs = d.best[d.most-1].Jobs // its memory
		d.best = d.best[:d.most-1]
	}
	c.Jobs = append(append(c.Jobs[:0], d.yesterday...), d.today...)
	c.Start = d.first + grid.Time(max(d.day-1, 0))*grid.Day
	d.best = slices.Insert(d.best, at, c)
}

// closer reports whether c is closer to the target than b; both have one.
func (c *candidateDays) closer(b *candidateDays) bool {
	if c.jobsOff != b.jobsOff {
		return c.jobsOff < b.jobsOff
	}
	return c.areaOff < b.areaOff
}

// farFromJobs returns by how many jobs n is too far off.
func (d *daysSearch) farFromJobs(n int64) int64 {
	return max(distance(n, d.target.Jobs)-d.target.Jobs/20, 0)
}

func distance(a, b int64) int64 { return max(a-b, b-a) }

// area returns the processor-seconds of jobs, 2^60 at most.
func area(jobs []Job) int64 {
	const limit = 1 << 60
	sum := int64(0)
	for i := range jobs {
		// At most 2^24 processors for 2^34 seconds each.
		sum = min(sum+jobs[i].Processors*int64(jobs[i].RunTime/grid.Second), limit)
	}
	return sum
}

// Target returns what table 2 tells of the site's two days. What was offered is
// taken to be what the machine did over the share of the jobs that it accepted.
func (s *Site) Target() Target {
	return Target{
		Jobs: s.Jobs,
		Area: int64(s.load() * float64(s.Processors) * (2 * grid.Day).Seconds()),
	}
}

func (s *Site) load() float64 { return s.Utilization / s.Accepted }

// DayPairs returns every two consecutive days of a source that have least to most
// jobs, in order. Days are counted from the first submission, and each is in two
// pairs. It reads the source to its end.
func DayPairs(src Source, least, most int64) ([]Days, error) {
	var pairs []Days
	var yesterday, today []Job
	var first grid.Time
	day := int64(-1)
	end := func() {
		if n := int64(len(yesterday) + len(today)); day > 0 && n >= least && n <= most {
			d := Days{Start: first + grid.Time(day-1)*grid.Day, Jobs: slices.Concat(yesterday, today)}
			for i := range d.Jobs {
				d.Jobs[i].Submit -= d.Start
			}
			pairs = append(pairs, d)
		}
		yesterday, today = today, yesterday[:0]
		day++
	}
	err := each(src, func(job *Job) {
		if day < 0 {
			first, day = job.Submit, 0
		}
		for at := int64((job.Submit - first) / grid.Day); day < at; {
			if len(yesterday)+len(today) == 0 {
				day = at // days without jobs, which nobody looks for
				break
			}
			end()
		}
		today = append(today, *job)
	})
	if err != nil {
		return nil, err
	}
	end()
	return pairs, nil
}

// ReadDayPairs is DayPairs for the site's log, as ReadDays takes it.
func (s *Site) ReadDayPairs(dir string, o Options, least, most int64) ([]Days, error) {
	t, err := s.OpenLog(dir, o)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return DayPairs(t, least, most)
}

// ReadDays returns the two days of the site's log that come closest to its Target
// (TwoDays), and when they start in the log. Jobs without an estimate get their
// run time for one, since some of the logs have none at all. It fails if the site has no log or the log cannot be read from dir.
func (s *Site) ReadDays(dir string, o Options) (days []Job, start grid.Time, err error) {
	best, err := s.ReadBestDays(dir, o, 1)
	if err != nil || len(best) == 0 {
		return nil, 0, err
	}
	return best[0].Jobs, best[0].Start, nil
}

// ReadBestDays is ReadDays for the n best pairs of days (BestDays).
func (s *Site) ReadBestDays(dir string, o Options, n int) ([]Days, error) {
	t, err := s.OpenLog(dir, o)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return BestDays(t, s.Target(), n)
}

// OpenLog opens the site's log. Jobs without an estimate get their run time for one.
// The caller closes it.
func (s *Site) OpenLog(dir string, o Options) (*Trace, error) {
	if s.Trace == "" {
		return nil, fmt.Errorf("%s: its log is not published; use GenerateDays", s.Name)
	}
	filter := Filter{Processors: s.Processors, NoEstimate: NoEstimateRunTime}
	return OpenTrace(filepath.Join(dir, s.Trace), filter, o)
}

// generatedDays is the length of the stream that GenerateDays takes its two days
// from: long enough to find some that come close, short enough for many sites.
const generatedDays = 14

// Model returns the model of the site's workload: that of Lublin and Feitelson for
// all jobs, with the number of jobs and the offered load of its Target.
func (s *Site) Model() Model { return s.ModelOf(s.Processors) }

// ModelOf is Model with jobs as wide as on a machine of so many processors: at the
// same load they run the longer the narrower they are.
func (s *Site) ModelOf(processors int64) Model {
	m := Lublin(processors)
	m.Shape = Shape{JobsPerDay: float64(s.Jobs) / 2, Load: s.load() * float64(s.Processors) / float64(processors)}
	return m
}

// GenerateDays returns two days from the site's Model, chosen like those of a log.
// The same index and seed give the same jobs on every machine; different indices
// give independent ones.
func (s *Site) GenerateDays(index int, seed uint64) ([]Job, error) {
	g, err := NewGenerator(s.Model(), Rand(seed, index))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	days, _, err := TwoDays(&Window{Source: g, Span: generatedDays * grid.Day}, s.Target())
	return days, err
}

// Rand returns the random numbers of a site's workload, which depend on nothing
// but the seed of the run and the site's index.
func Rand(seed uint64, index int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(index)))
}

// EmbeddedSeed is the seed of the workload that is used where none is given.
const EmbeddedSeed = 1

// Embedded returns two days of generated jobs at sites (GenerateDays), so that a
// federation can be run without a file.
func Embedded(sites []Site, seed uint64) (*Merge, error) {
	sources := make([]Source, len(sites))
	for i := range sites {
		days, err := sites[i].GenerateDays(i, seed)
		if err != nil {
			return nil, err
		}
		sources[i] = (*Jobs)(&days)
	}
	return NewMerge(sources...), nil
}
