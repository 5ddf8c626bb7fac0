package matchmaking

import (
	"fmt"

	"gridnode/testnet/measure"
	"gridnode/testnet/reproduce"
	"gridnode/testnet/scenario/delegation"
)

// readings are those that were chosen; scenario/delegation carries them out.
var readings = []reproduce.Reading{
	{
		Of: "when site managers make their rounds", Sentence: "The matchmaking cycle occurs every 300 s",
		Chosen: "one cycle of the simulator, all site managers in step",
	}, {
		Of:       "where a job manager of fcondor goes next",
		Sentence: "The user's job manager will switch to a new site manager whenever the current site manager cannot solve all of its resource demands",
		Chosen:   "to the next of a list in order, where it waits “for the target SM's next matchmaking cycle”; each cluster's stream is one user with one job manager, whose usage is halved in a day",
	}, {
		Of:       "how wide jobs are",
		Sentence: "Unless otherwise specified, we use the default LFM parameter values … to generate a load of a given level, for a system of known size",
		Chosen:   "default parameters for one size of system, whatever the cluster: 338 processors, with which the sets have the printed 11 827 jobs in the mean; a job that is wider than its cluster never runs under condor and sep-c",
	}, {
		Of: "delegations of a job", Sentence: "the number of delegations of a job, which is defined as the length of its delegation chain",
		Chosen: "mean over the jobs that are delegated, as the others have no chain; a row has the mean over all jobs",
	},
}

// alternative is a reading that was not chosen, or several.
type alternative struct {
	name string
	read func(cfg *delegation.Config)
}

var alternatives = []alternative{
	{"as chosen", func(*delegation.Config) {}},
	{"rounds at random instants", func(cfg *delegation.Config) { cfg.Phase = delegation.PhaseRandom }},
	{"job managers to random sites", func(cfg *delegation.Config) { cfg.Flocking = delegation.FlockingRandom }},
	{"random instants, random sites", func(cfg *delegation.Config) {
		cfg.Phase, cfg.Flocking = delegation.PhaseRandom, delegation.FlockingRandom
	}},
	{"jobs as wide as on each cluster", func(cfg *delegation.Config) { cfg.Sizes = delegation.SizesCluster }},
	{"as wide as on each cluster, more wide ones", func(cfg *delegation.Config) { cfg.Sizes = delegation.SizesWide }},
	{"as wide as on each cluster, random instants and sites", func(cfg *delegation.Config) {
		cfg.Sizes, cfg.Phase, cfg.Flocking = delegation.SizesCluster, delegation.PhaseRandom, delegation.FlockingRandom
	}},
}

func alternativeNamed(name string) alternative {
	for _, a := range alternatives {
		if a.name == name {
			return a
		}
	}
	panic("matchmaking: no reading " + name)
}

// alternativePoints are the loads at which readings are compared, DAS and Grid'5000, and
// what the paper prints of them.
var alternativePoints = []struct {
	das, g5k int
	goodput  reproduce.Number // of dmm over that of fcondor, in percent
}{{80, 80, 32}, {dasLoad, 100, reproduce.None}, {dasLoad, 150, reproduce.None}}

// alternativeArchitectures are those whose comparison hangs on the readings.
var alternativeArchitectures = []string{"dmm", "fcondor"}

// caseOf returns a case of a reading: of the chosen ones the plain one.
func caseOf(a alternative, architecture string, das, g5k int) matchCase {
	c := plain(architecture, das, g5k)
	if a.name != alternatives[0].name {
		c.reading = a.name
	}
	return c
}

func alternativeCases() (list []matchCase) {
	for _, a := range alternatives {
		for _, p := range alternativePoints {
			for _, architecture := range alternativeArchitectures {
				list = append(list, caseOf(a, architecture, p.das, p.g5k))
			}
		}
	}
	return list
}

// metricJobs is how many jobs a set has.
var metricJobs = matchMetric{"jobs of a set", reproduce.Jobs, 0, func(r *measure.Result) reproduce.Number {
	jobs, _, _ := delegation.Submitted(r)
	return reproduce.Number(jobs)
}}

// otherReadings compares the readings.
func (s *matchStudy) otherReadings() reproduce.Experiment {
	e := reproduce.Experiment{Title: "Other readings", Beyond: true, Text: []string{
		"Columns are the loads of the DAS and Grid'5000. The paper has 32 % more goodput of dmm than of fcondor at 80/80; at 60/150 dmm finishes over 95 % of the jobs and no other more than 80 %. The chosen readings have all sets, the others the first five.",
	}}
	columns := []string{}
	for _, p := range alternativePoints {
		columns = append(columns, fmt.Sprintf("%d/%d", p.das, p.g5k))
	}
	for _, a := range alternatives {
		row := func(name string, unit reproduce.Unit, decimals int, of func(dmm, fcondor matchCase) reproduce.Number) reproduce.Measure {
			m := reproduce.Measure{Name: name, Unit: unit, Decimals: decimals, Alternative: true}
			for _, p := range alternativePoints {
				m.Cells = append(m.Cells, reproduce.Cell{Published: reproduce.None, Here: of(caseOf(a, "dmm", p.das, p.g5k), caseOf(a, "fcondor", p.das, p.g5k))})
			}
			return m
		}
		over := func(m matchMetric) func(dmm, fcondor matchCase) reproduce.Number {
			return func(dmm, fcondor matchCase) reproduce.Number { gain, _ := s.pairs(dmm, fcondor, m); return gain }
		}
		goodput := row("goodput of dmm over fcondor", reproduce.Percent, 1, over(metricGoodput))
		for i, p := range alternativePoints {
			goodput.Cells[i].Published = p.goodput
		}
		e.Tables = append(e.Tables, reproduce.Table{Title: "Readings: " + a.name, Columns: columns, Measures: []reproduce.Measure{
			goodput,
			row("jobs finished by dmm", reproduce.Percent, 1, func(dmm, _ matchCase) reproduce.Number { return s.mean(dmm, metricJF) }),
			row("jobs finished by fcondor", reproduce.Percent, 1, func(_, fcondor matchCase) reproduce.Number { return s.mean(fcondor, metricJF) }),
			row("wait of fcondor over that of dmm", "times", 1, func(dmm, fcondor matchCase) reproduce.Number {
				return reproduce.Ratio(float64(s.mean(fcondor, metricAWT)), float64(s.mean(dmm, metricAWT)))
			}),
			row("jobs of a set", reproduce.Jobs, 0, func(dmm, _ matchCase) reproduce.Number { return s.mean(dmm, metricJobs) }),
		}})
	}
	return e
}
