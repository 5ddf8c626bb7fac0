package coallocation

import (
	"context"
	"fmt"

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
	big                 bool
	with                bool // Delft, and without Leiden
	grouped             bool
}

// coallocationOutcome is what came of a run.
type coallocationOutcome struct {
	response, wait, observed, split reproduce.Number // s, s, %, % of jobs
	runTime                         reproduce.Number // within one cluster, s
	clusters                        reproduce.Number // that a split job runs on, mean; None without any
}

// coallocationStudy is the paper's evaluation over some workloads.
type coallocationStudy struct {
	o            reproduce.Options
	utilizations []int // of figures 7 and 8
	bigger       []int // of figure 10
	outcomes     map[coallocationCase][]coallocationOutcome
	cases        []coallocationCase
}

// coallocationWorkloads is how many workloads stand behind each figure for each of
// Options.Windows: near saturation two workloads of a day differ much, and a day takes
// a hundredth of a second.
const coallocationWorkloads = 4

// latencyGroup divides DAS-3 into the three clusters that are near each other and the
// one that is not, Leiden or Delft.
const latencyGroup = 500 * grid.Microsecond

// applicationsCCR are the synthetic applications of figure 8.
var applicationsCCR = []string{"ccr=0.1", "ccr=0.25", "ccr=0.5", "ccr=1", "ccr=4"}

// applicationsMilder are those that figure 10 is run with besides Wave, to see which
// one would saturate where the paper's Wave does.
var applicationsMilder = []string{"ccr=0.1", "ccr=0.25", "ccr=0.5", "ccr=1"}

func planCoallocation(_ context.Context, o reproduce.Options) (*reproduce.Study, error) {
	s := &coallocationStudy{o: o, outcomes: map[coallocationCase][]coallocationOutcome{}}
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
	study := &reproduce.Study{Notes: s.notes(), Report: s.report}
	for _, c := range s.cases {
		results := make([]coallocationOutcome, o.Windows*coallocationWorkloads)
		s.outcomes[c] = results
		study.Runs = append(study.Runs, reproduce.Run{Name: fmt.Sprintf("%+v", c), Weight: int64(c.utilization), Do: func(ctx context.Context) (err error) {
			for i := range results {
				if results[i], err = s.run(ctx, c, o.Seed+uint64(i)); err != nil {
					return err
				}
			}
			return nil
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
		for _, application := range append([]string{"prime", "poisson", "wave"}, applicationsCCR...) {
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
			for _, policy := range []string{"fcm", "ca"} {
				add(coallocationCase{policy: policy, application: "wave", utilization: u, big: true, with: with})
			}
			add(coallocationCase{policy: "ca", application: "wave", utilization: u, big: true, with: with, grouped: true})
			for _, application := range applicationsMilder {
				add(coallocationCase{policy: "fcm", application: application, utilization: u, big: true, with: with})
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
	if c.big {
		cfg.Sizes = []int64{32, 48, 64}
	}
	if c.with {
		cfg.Without = "leiden"
	}
	if c.grouped {
		cfg.Group = latencyGroup
	}
	var split, clusters int
	cfg.Ended = func(j coallocation.Job) {
		if j.Clusters > 1 {
			split, clusters = split+1, clusters+j.Clusters
		}
	}
	r, err := coallocation.Run(ctx, cfg)
	if err != nil {
		return o, err
	}
	o.response, o.wait = reproduce.Number(r.Total.ResponseTime.Float()), reproduce.Number(r.Total.AWT.Float())
	o.observed = reproduce.Number(100 * r.Total.Utilization.Float())
	o.split = reproduce.PercentOf(r.Total.Coallocated, r.Total.Finished)
	if o.clusters = reproduce.None; split > 0 {
		o.clusters = reproduce.Number(clusters) / reproduce.Number(split)
	}
	o.runTime = 180
	if c.application == "wave" {
		o.runTime = 200
	}
	return o, nil
}

func (s *coallocationStudy) notes() []string {
	notes := []string{
		"Workloads are generated: jobs of one application, Poisson arrivals over 24 hours at the rate that the net utilization needs, sizes drawn evenly; no logs are needed.",
		fmt.Sprintf("Every figure is the mean over %d workloads that differ in the seed; the range is over them.", s.o.Windows*coallocationWorkloads),
		"What the paper does not print and had to be filled in: the run times of Prime and Poisson (180 s, that of the synthetic application; CCR 0 and 0.25), how splitting slows an application down (scaled to Wave's 200 s and 750 s; see docs/coallocation.md), a startup of 10 s with the nodes taken (as measured in the paper's real experiments), a scan of the placement queue every 10 s, and when a system is saturated.",
		"Saturated: the mean wait over the 24 hours is more than one and a half run times. The paper says that “the wait times constantly increase without bounds”; over one day that shows as a wait that is long beside the run time.",
	}
	return notes
}
