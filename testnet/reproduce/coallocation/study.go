package coallocation

import (
	"context"
	"fmt"
	"slices"

	"gridnode/grid"
	"gridnode/testnet/reproduce"
	"gridnode/testnet/scenario/coallocation"
)

var Paper = reproduce.Paper{
	Name:  "co-allocation",
	Title: "O. Sonmez, H. Mohamed and D. Epema: On the benefit of processor co-allocation in multicluster grid systems (2008)",
	Plan:  planCoallocation,
}

// coallocationCase is one of the scenario's set-ups; its runs differ in the seed.
type coallocationCase struct {
	policy, application string
	utilization         int // net, %
	limit               int // of clusters
	sizes               jobSizes
	with                bool // Delft, and without Leiden
	grouped             bool
	background          int // %; more than 0: a real run, of four hours
}

// jobSizes are the sizes of jobs of a set-up.
type jobSizes int

const (
	narrow jobSizes = iota // sections VI-B and VI-C
	wide                   // section VII-B
	widest                 // section VII-A
)

// nodes are the sizes themselves.
func (z jobSizes) nodes() []int64 {
	return [][]int64{{8, 16, 32}, {32, 48, 64}, {64}}[z]
}

// The real runs of the paper: "a workload is calculated to utilize approximately 40% of
// the system on average", for four hours, with the background load of other users "between
// 10% and 30% across the system".
const (
	realUtilization = 40
	realBackground  = 20
	realHours       = 4
)

// otherBackgrounds are the ends of that range.
var otherBackgrounds = []int{10, 30}

// coallocationOutcome is what came of a run. Its means are over jobs.
type coallocationOutcome struct {
	response, wait, observed, split reproduce.Number // s, s, %, % of jobs
	runTime                         reproduce.Number // within one cluster, s
	clusters                        reproduce.Number // that a split job runs on, mean; None without any
	longer                          reproduce.Number // by which split jobs run, %; None without any
	delft                           reproduce.Number // % of split jobs that run there, too; None without any
	queue                           reproduce.Number // s from submission to placement
	tries, failures                 reproduce.Number // placements tried, and of them claims that failed
	busy                            reproduce.Number // background load, %
}

// coallocationStudy is the paper's evaluation over some workloads.
type coallocationStudy struct {
	o            reproduce.Options
	utilizations []int // of figures 7 and 8
	bigger       []int // of figure 10
	outcomes     map[coallocationCase][]coallocationOutcome
	cases        []coallocationCase
	singles      map[single]*reproduce.Number // what one job takes, s
}

// coallocationWorkloads is how many workloads stand behind each figure for each of
// Options.Windows: near saturation two workloads of a day differ much, and a day takes
// a hundredth of a second.
const coallocationWorkloads = 4

// latencyGroup divides DAS-3 into the three clusters that are near each other and the
// one that is not, Leiden or Delft.
const latencyGroup = 500 * grid.Microsecond

// applicationsMPI are the applications of figure 4.
var applicationsMPI = []string{"prime", "poisson", "wave"}

// applicationsCCR are the synthetic applications of figure 8.
var applicationsCCR = []string{"ccr=0.1", "ccr=0.25", "ccr=0.5", "ccr=1", "ccr=4"}

// applicationsMilder are those that figure 10 is run with besides Wave, to see which
// one would saturate where the paper's Wave does.
var applicationsMilder = []string{"ccr=0.1", "ccr=0.25", "ccr=0.5", "ccr=1"}

func planCoallocation(_ context.Context, o reproduce.Options) (*reproduce.Study, error) {
	s := &coallocationStudy{o: o, outcomes: map[coallocationCase][]coallocationOutcome{}, singles: map[single]*reproduce.Number{}}
	for u := 10; u <= 95; u += 5 { // table IV needs 95
		s.utilizations = append(s.utilizations, u)
	}
	for u := 20; u <= 80; u += 5 {
		s.bigger = append(s.bigger, u)
	}
	if o.Sizes != nil { // tests
		s.utilizations, s.bigger = o.Sizes, o.Sizes
	}
	s.plan()
	study := &reproduce.Study{Notes: s.notes(), Readings: readings, Report: s.report}
	for _, c := range s.cases {
		results := make([]coallocationOutcome, o.Windows*coallocationWorkloads)
		s.outcomes[c] = results
		study.Runs = append(study.Runs, reproduce.Run{Name: fmt.Sprintf("%+v", c), Weight: int64(c.utilization), Result: &results, Do: func(ctx context.Context) (err error) {
			for i := range results {
				if results[i], err = s.run(ctx, c, o.Seed+uint64(i)); err != nil {
					return err
				}
			}
			return nil
		}})
	}
	for _, one := range s.singlePlan() {
		result := new(reproduce.Number)
		s.singles[one] = result
		study.Runs = append(study.Runs, reproduce.Run{Name: fmt.Sprintf("%+v", one), Weight: 1, Result: result, Do: func(ctx context.Context) (err error) {
			*result, err = one.run(ctx, o.Seed)
			return err
		}})
	}
	return study, nil
}

// plan lists what is to be run, each once.
func (s *coallocationStudy) plan() {
	seen := map[coallocationCase]bool{}
	add := func(c coallocationCase) {
		if c = c.base(); !seen[c] {
			seen[c] = true
			s.cases = append(s.cases, c)
		}
	}
	for _, u := range s.utilizations {
		for _, application := range slices.Concat(applicationsMPI, applicationsCCR) {
			add(coallocationCase{policy: "wf", application: application, utilization: u})
			add(coallocationCase{policy: "fcm", application: application, utilization: u})
			if !s.o.Quick {
				add(coallocationCase{policy: "adaptive", application: application, utilization: u})
			}
		}
		add(coallocationCase{policy: "fcm", application: "wave", utilization: u, limit: 2})
	}
	for _, u := range s.bigger {
		for _, with := range []bool{false, true} {
			for _, c := range curves(with) {
				c.utilization = u
				add(c.coallocationCase)
			}
			for _, application := range applicationsMilder {
				add(coallocationCase{policy: "fcm", application: application, utilization: u, sizes: wide, with: with})
			}
		}
	}
	backgrounds := []int{realBackground}
	if !s.o.Quick {
		backgrounds = append(backgrounds, otherBackgrounds...)
	}
	for _, background := range backgrounds {
		for _, application := range applicationsMPI {
			add(realRun("wf", application, background))
			add(realRun("fcm", application, background))
		}
		for _, with := range []bool{false, true} {
			for _, c := range curves(with) {
				add(c.realRun(background))
			}
		}
	}
}

// base returns the set-up whose runs are those of c: if no job is split it does not
// matter how much it communicates, and Wave alone has a run time of its own.
func (c coallocationCase) base() coallocationCase {
	if c.policy == "wf" && c.application != "wave" {
		c.application = "prime"
	}
	if c.application == "ccr=0.25" {
		c.application = "poisson" // the same run time and CCR
	}
	return c
}

func (s *coallocationStudy) run(ctx context.Context, c coallocationCase, seed uint64) (o coallocationOutcome, err error) {
	cfg := coallocation.Default()
	cfg.Seed, cfg.Policy, cfg.Application, cfg.Utilization, cfg.MaxClusters = seed, c.policy, c.application, float64(c.utilization), c.limit
	cfg.Sizes = c.sizes.nodes()
	if c.with {
		cfg.Without = "leiden"
	}
	if c.grouped {
		cfg.Group = latencyGroup
	}
	if c.background > 0 {
		cfg.Background, cfg.Hours = float64(c.background), realHours
	}
	var jobs, split, clusters, delft, tries, failures int64
	var queue, longer grid.Time
	o.runTime = 180
	if c.application == "wave" {
		o.runTime = 200
	}
	cfg.Ended = func(j coallocation.Job) {
		jobs++
		queue += j.Placed - j.Submit
		tries, failures = tries+int64(j.Tries), failures+int64(j.Failures)
		if j.Clusters > 1 {
			split, clusters = split+1, clusters+int64(j.Clusters)
			longer += j.End - j.Start - grid.Time(o.runTime)*grid.Second
			if slices.Contains(j.Where, "delft") {
				delft++
			}
		}
	}
	r, err := coallocation.Run(ctx, cfg)
	if err != nil {
		return o, err
	}
	mean := func(v, of int64) reproduce.Number { return reproduce.Ratio(float64(v), float64(of)) }
	o.response, o.wait = reproduce.Number(r.Total.ResponseTime.Float()), reproduce.Number(r.Total.AWT.Float())
	o.observed = reproduce.Number(100 * r.Total.Utilization.Float())
	o.split = reproduce.PercentOf(r.Total.Coallocated, r.Total.Finished)
	o.clusters, o.delft = mean(clusters, split), reproduce.PercentOf(delft, split)
	o.longer = 100 * mean(int64(longer/grid.Millisecond), split) / (1000 * o.runTime)
	o.queue = mean(int64(queue/grid.Millisecond), 1000*jobs)
	o.tries, o.failures = mean(tries, jobs), mean(failures, jobs)
	o.busy = reproduce.Number(coallocation.Busy(r))
	return o, nil
}

func (s *coallocationStudy) notes() []string {
	return []string{
		"Workloads are generated: jobs of one application, Poisson arrivals at the rate that the net utilization needs, sizes drawn evenly; no logs are needed. KOALA and every cluster are sites as in production; messages take no time.",
		fmt.Sprintf("Every figure is the mean over %d workloads that differ in the seed; the range is over them.", s.o.Windows*coallocationWorkloads),
	}
}
