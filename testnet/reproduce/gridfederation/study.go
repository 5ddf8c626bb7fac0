package gridfederation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gridnode/grid"
	"gridnode/testnet/reproduce"
	"gridnode/testnet/workload"
)

var Paper = reproduce.Paper{
	Name:  "grid-federation",
	Title: "R. Ranjan, A. Harwood and R. Buyya: Grid-Federation, a resource management model for cooperative federation of distributed clusters (2004)",
	Plan:  planFederation,
}

// Sites of table 1 that the text speaks of, by index.
const (
	siteCTC = iota
	siteKTH
	siteCM5
	siteOrigin
	siteNASA
	sitePar96
	siteBlue
	siteSP2
	siteAll // the column for all together
)

// populations are the users of experiments 3 to 5: the share, in percent, of those
// who seek OFT.
var populations = [3]struct {
	oft  int
	name string
}{{0, "OFC"}, {50, "50/50"}, {100, "OFT"}}

// federationStudy is the paper's evaluation over some pairs of days.
type federationStudy struct {
	o        reproduce.Options
	sites    []workload.Site // table 1
	sizes    []int           // of experiment 5
	windows  []*federationWindow
	readings []*reading

	coordinated [][2]*outcome // by size; OFC and OFT
	pricing     []*pricingCase
}

// federationWindow is two days of jobs at every site, and what came of them.
type federationWindow struct {
	days             [][]workload.Job // by site
	alone, federated *outcome
	economy          [3]*outcome   // table 1, by population
	scale            [][3]*outcome // by size and population; nil if not run
}

func planFederation(ctx context.Context, o reproduce.Options) (*reproduce.Study, error) {
	s := &federationStudy{o: o, sites: workload.Table1(), sizes: publishedSizes}
	if o.Sizes != nil {
		s.sizes = o.Sizes
	}
	inputs, err := s.readWindows()
	if err != nil {
		return nil, err
	}
	if !o.Quick {
		if s.readings, err = s.planReadings(ctx); err != nil {
			return nil, err
		}
	}
	return &reproduce.Study{Runs: s.runs(), Notes: s.notes(inputs), Readings: chosenReadings(), Inputs: inputs, Report: s.report}, nil
}

// modelName is the source of generated jobs.
const modelName = "Lublin-Feitelson model"

// readWindows reads or generates the jobs of all windows.
func (s *federationStudy) readWindows() (inputs []reproduce.Input, err error) {
	for range s.o.Windows {
		s.windows = append(s.windows, &federationWindow{scale: make([][3]*outcome, len(s.sizes))})
	}
	logged, err := s.logs()
	if err != nil {
		return nil, err
	}
	chosen, err := s.daysByLoad(logged, s.o.Windows)
	if err != nil {
		return nil, err
	}
	for i := range s.sites {
		for w, window := range s.windows {
			d := &chosen[i][min(w, len(chosen[i])-1)] // a log too short for that many windows
			window.days = append(window.days, d.Jobs)
			inputs = append(inputs, reproduce.Input{
				Workload: w + 1, Site: s.sites[i].Name, Source: d.source, Start: int64(d.Start / grid.Second), Jobs: int64(len(d.Jobs)),
				Load: offeredLoad(d.Jobs, s.sites[i].Processors), Lines: d.lines,
			})
		}
	}
	slices.SortStableFunc(inputs, func(a, b reproduce.Input) int { return a.Workload - b.Workload })
	return inputs, nil
}

// logs returns which sites' logs are there, by site. If a directory of logs is
// given, at least one has to be.
func (s *federationStudy) logs() ([]bool, error) {
	logged := make([]bool, len(s.sites))
	if s.o.Traces == "" {
		return logged, nil
	}
	for i := range s.sites {
		if s.sites[i].Trace == "" {
			continue
		}
		_, err := os.Stat(filepath.Join(s.o.Traces, s.sites[i].Trace))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, reproduce.ConfigError("traces", "%v", err)
		}
		logged[i] = err == nil
	}
	if !slices.Contains(logged, true) {
		return nil, reproduce.ConfigError("traces", "%s: none of the logs of table 1 is there, such as %s", s.o.Traces, s.sites[0].Trace)
	}
	return logged, nil
}

// offeredLoad returns the processor-seconds of two days' jobs over those of the
// processors, in percent.
func offeredLoad(jobs []workload.Job, processors int64) reproduce.Number {
	d := workload.Days{Jobs: jobs}
	return reproduce.Number(100 * float64(d.Area()) / (float64(processors) * (2 * grid.Day).Seconds()))
}

// notes says how it was done.
func (s *federationStudy) notes(inputs []reproduce.Input) []string {
	var generated []string
	for _, in := range inputs[:len(s.sites)] {
		if strings.HasPrefix(in.Source, modelName) {
			generated = append(generated, fmt.Sprintf("%s (%s)", in.Site, in.Source))
		}
	}
	if len(generated) == len(s.sites) {
		return []string{
			"No logs were given (--traces), so all jobs are generated: two days by the model of Lublin and Feitelson (2003) for each site, with the number of jobs and the load of table 2. The published figures do not apply to them; they stand here only to show what is compared once logs are given.",
			spreadNote(s.o.Windows, "windows differ in the seed of the model"),
		}
	}
	notes := []string{
		"Printed figures are used for one thing besides comparison: to choose the days. Of the two days the paper prints what experiment 1 made of them; their number of jobs and the work that table 2 implies (utilisation / share accepted) say which days to look for.",
		spreadNote(s.o.Windows, "the others are the next best pairs of days by the same rule that share no day with a better one"),
	}
	if len(generated) > 0 {
		notes = append(notes, fmt.Sprintf("No log is published any more, or none was given, of %s. Two days of the model of Lublin and Feitelson (2003) are taken instead, with the number of jobs and the load of table 2 and jobs as wide as the model makes them on that many processors; a seed for each window.",
			strings.Join(generated, ", ")))
	}
	return notes
}

func spreadNote(windows int, others string) string {
	if windows == 1 {
		return "One window was run, so no spread is given."
	}
	return fmt.Sprintf("“Here” is the first window; “mean of windows” and “range” are over %d: %s.", windows, others)
}

// runs lists everything that is to be run.
func (s *federationStudy) runs() (runs []reproduce.Run) {
	add := func(to **outcome, w *federationWindow, c federationCase) {
		runs = append(runs, reproduce.Run{Name: c.name(), Weight: c.weight(), Result: to, Do: func(ctx context.Context) (err error) {
			*to, err = s.run(ctx, w.days, c)
			return err
		}})
	}
	for i, w := range s.windows {
		add(&w.alone, w, federationCase{mode: "independent", sites: len(s.sites)})
		add(&w.federated, w, federationCase{mode: "federated", sites: len(s.sites)})
		for p := range populations {
			add(&w.economy[p], w, federationCase{mode: "economy", oft: populations[p].oft, sites: len(s.sites)})
		}
		for n, size := range s.sizes {
			// The spread is given where there is a published figure.
			if _, published := publishedPerJob[size]; i > 0 && !published {
				continue
			}
			for p := range populations {
				add(&w.scale[n][p], w, federationCase{mode: "economy", oft: populations[p].oft, sites: size})
			}
		}
	}
	if !s.o.Quick {
		runs = append(runs, s.coordinatedRuns()...)
		runs = append(runs, s.pricingRuns()...)
	}
	for _, r := range s.readings {
		runs = append(runs, r.runs(s)...)
	}
	return runs
}

// experiments are those of the paper.
func (s *federationStudy) experiments() []reproduce.Experiment {
	return []reproduce.Experiment{s.experiment1(), s.experiment2(), s.experiment3(), s.experiment4(), s.experiment5()}
}

// report makes the experiments.
func (s *federationStudy) report() []reproduce.Experiment {
	e := s.experiments()
	if !s.o.Quick {
		e = append(e, s.compareCoordinated(), s.comparePricing(), s.compareReadings())
	}
	return e
}
