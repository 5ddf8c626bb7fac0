package muscle

import (
	"context"
	"fmt"

	"gridnode/testnet/measure"
	"gridnode/testnet/reproduce"
	"gridnode/testnet/scenario/packing"
)

var Paper = reproduce.Paper{
	Name:  "muscle",
	Title: "L. He, S.A. Jarvis, D.P. Spooner, X. Chen and G.R. Nudd: Hybrid performance-based workload management for multiclusters and grids (2004)",
	Plan:  planMuscle,
}

// muscleJobs is how many jobs one run has: five workloads make the paper's 20 000.
const muscleJobs = 4000

// Settings of the figures. Queue lengths of figure 4 and deadline ranges of figure 5
// are not printed; the text speaks of 40, 60 and 100 jobs and of loose and urgent
// deadlines.
var (
	muscleQueues    = []int{20, 40, 60, 80, 100, 120, 140, 160} // figure 4
	muscleDeadlines = []float64{1, 3, 5, 7}                     // figure 5: MAX_DR
	muscleLevels    = []int{40, 100}                            // figure 5, and the readings
	muscleWeighted  = []int{40, 100, 160}                       // figure 6
	muscleSizes     = []int{4, 6, 8, 10}                        // figure 7
)

// muscleWeights are those of figure 6.
const muscleWeights = "12,3,1;8,3,1;4,3,1;1,3,1"

// Policies by index.
const (
	byMuscle = iota
	byDLL
	byWRAND
	byUrgent
)

var musclePolicies = [...]string{byMuscle: "muscle", byDLL: "dll", byWRAND: "wrand", byUrgent: "urgent"}

var musclePolicyNames = [...]string{byMuscle: "MUSCLE", byDLL: "DLL", byWRAND: "WRAND", byUrgent: "urgent first"}

// muscleCase is one setting; equal ones are run once.
type muscleCase struct {
	policy, reading int // of musclePolicies and muscleReadings
	queue, clusters int
	load            float64 // at which MUSCLE has about so many jobs in the queue
	loosest         float64
	weights, sizes  string
}

// muscleFigure4 is the setting of figure 4, from which the others depart.
func muscleFigure4(policy, queue int) muscleCase {
	return muscleCase{policy: policy, queue: queue, load: loadAt["uniform"][queue], loosest: 5, weights: "4,3,1", sizes: "uniform"}
}

func muscleFigure5(policy, queue int, loosest float64) muscleCase {
	c := muscleFigure4(policy, queue)
	c.loosest = loosest
	return c
}

func muscleFigure6(policy, queue int) muscleCase {
	c := muscleFigure4(policy, queue)
	c.weights = muscleWeights
	return c
}

// muscleFigure7 has clusters of 20, 24, … processors, and 80 jobs for the first four of
// them; "the ratio of the mean number of jobs in the queue to the total processing
// capability remains unchanged".
func muscleFigure7(policy, clusters int) muscleCase {
	const processors = 20 + 24 + 28 + 32
	capacity := clusters * (20 + 2*(clusters-1))
	c := muscleFigure4(policy, (80*capacity+processors/2)/processors)
	c.clusters, c.load, c.weights, c.sizes = clusters, loadOfClusters[clusters], "8,3,1", "log"
	return c
}

// muscleSized is the setting of figure 4 with other job sizes.
func muscleSized(policy, queue int, sizes string) muscleCase {
	c := muscleFigure4(policy, queue)
	c.sizes, c.load = sizes, loadAt[sizes][queue]
	return c
}

// muscleStudy is the paper's evaluation.
type muscleStudy struct {
	o       reproduce.Options
	jobs    int // of a run
	order   []muscleCase
	results map[muscleCase][]*measure.Result // by workload
	exact   [][]exactBatch                   // by setting of exactSettings
}

func planMuscle(_ context.Context, o reproduce.Options) (*reproduce.Study, error) {
	s := &muscleStudy{o: o, jobs: muscleJobs, results: map[muscleCase][]*measure.Result{}}
	if o.Jobs > 0 {
		s.jobs = o.Jobs
	}
	for policy := byMuscle; policy <= byWRAND; policy++ {
		s.wantPublished(policy)
		for reading := range muscleReadings {
			for _, queue := range muscleLevels {
				if !o.Quick {
					s.want(muscleFigure4(policy, queue).read(reading))
				}
			}
		}
	}
	if !o.Quick {
		for _, queue := range muscleQueues {
			s.want(muscleFigure4(byUrgent, queue))
		}
		for _, queue := range muscleWeighted {
			s.want(muscleFigure6(byUrgent, queue))
		}
	}
	study := &reproduce.Study{Notes: s.notes(), Readings: chosenReadings(), Report: s.report}
	for _, c := range s.order {
		for w := range o.Windows {
			study.Runs = append(study.Runs, reproduce.Run{Name: c.name(), Weight: int64(s.jobs), Result: &s.results[c][w], Do: func(ctx context.Context) (err error) {
				s.results[c][w], err = packing.Run(ctx, s.config(c, w))
				return err
			}})
		}
	}
	if !o.Quick {
		study.Runs = append(study.Runs, s.planExact()...)
	}
	return study, nil
}

// wantPublished enters the settings of the paper for a policy.
func (s *muscleStudy) wantPublished(policy int) {
	for _, queue := range muscleQueues {
		s.want(muscleFigure4(policy, queue))
	}
	for _, queue := range muscleLevels {
		for _, loosest := range muscleDeadlines {
			s.want(muscleFigure5(policy, queue, loosest))
		}
		for _, sizes := range muscleDistributions {
			s.want(muscleSized(policy, queue, sizes))
		}
	}
	for _, queue := range muscleWeighted {
		s.want(muscleFigure6(policy, queue))
	}
	for _, clusters := range muscleSizes {
		s.want(muscleFigure7(policy, clusters))
	}
}

// want enters a case that is to be run.
func (s *muscleStudy) want(c muscleCase) {
	if s.results[c] == nil {
		s.results[c] = make([]*measure.Result, s.o.Windows)
		s.order = append(s.order, c)
	}
}

// by returns the case with another policy.
func (c muscleCase) by(policy int) muscleCase {
	c.policy = policy
	return c
}

// read returns the case at another reading.
func (c muscleCase) read(reading int) muscleCase {
	c.reading = reading
	return c
}

func (c muscleCase) name() string {
	return fmt.Sprintf("%s, %d jobs, %d clusters, weights %s, %s sizes, deadlines to %v, %s",
		musclePolicies[c.policy], c.queue, c.clusters, c.weights, c.sizes, c.loosest, muscleReadings[c.reading].name)
}

// config is the case as the scenario takes it.
func (s *muscleStudy) config(c muscleCase, workload int) packing.Config {
	cfg := packing.Default()
	cfg.Seed, cfg.Total = s.o.Seed+uint64(workload), s.jobs
	cfg.Policy, cfg.Queue, cfg.Clusters, cfg.Load = musclePolicies[c.policy], c.queue, c.clusters, c.load
	cfg.DeadlineRange[1], cfg.Weights, cfg.Sizes = c.loosest, c.weights, c.sizes
	muscleReadings[c.reading].change(&cfg)
	return cfg
}

// notes says how it was done.
func (s *muscleStudy) notes() []string {
	notes := []string{
		fmt.Sprintf("The jobs are drawn as in section 5, so no logs are needed: %d for each setting, in %d workloads that differ in the seed. “Here” is the mean over the workloads.", s.o.Windows*s.jobs, s.o.Windows),
		"The clusters are members of a head, as in production: jobs are submitted to the head, shared out by muscle.Head, planned by muscle.Planner, and done by the members with EASY. All figures are of executed jobs, for all policies.",
		"Printed figures are used for one thing besides comparison: of the thresholds in the appendix the one is chosen whose margins over DLL come closest to those of figure 4.",
		"A margin is (theirs − MUSCLE's) / theirs, in percent.",
	}
	if s.o.Traces != "" {
		notes = append(notes, "--traces says nothing here.")
	}
	return notes
}

// report makes the experiments.
func (s *muscleStudy) report() []reproduce.Experiment {
	e := []reproduce.Experiment{worked(), s.levels(), s.deadlines(), s.weighted(), s.clusters(), s.distributions()}
	if !s.o.Quick {
		e = append(e, s.readings(), s.variant(), s.optimal())
	}
	return e
}
