package reproduce

import (
	"context"
	"fmt"
	"slices"

	"gridnode/internal/grid"
	"gridnode/internal/workload"
)

// reading is a way to read the paper where its text is open, or a load other than
// that of the windows, on the days of the first window.
type reading struct {
	name string
	days func(days [][]workload.Job) [][]workload.Job // nil: as they are
	with func(c *federationCase)                      // nil: as it is

	used             [][]workload.Job
	alone, federated *outcome
	economy          [2]*outcome   // OFC and OFT at table 1
	scale            [][2]*outcome // the first and the last size
}

// planReadings lists them. The first is the one of the experiments.
func (s *federationStudy) planReadings() []*reading {
	readings := []*reading{
		{name: "as above"},
		{name: "infeasible sites not asked", with: func(c *federationCase) { c.skipInfeasible = true }},
		{name: "strict FCFS", with: func(c *federationCase) { c.queue = "fcfs" }},
		{name: "Origin narrow", days: narrowOrigin},
		{name: "Origin narrow, FCFS", days: narrowOrigin, with: func(c *federationCase) { c.queue = "fcfs" }},
	}
	for _, percent := range []int64{75, 125, 150} {
		readings = append(readings, &reading{name: fmt.Sprintf("run times × %.2f", float64(percent)/100), days: func(days [][]workload.Job) [][]workload.Job {
			return mapJobs(days, func(_ int, j *workload.Job) {
				j.RunTime, j.Estimate = j.RunTime*grid.Time(percent)/100, j.Estimate*grid.Time(percent)/100
			})
		}})
	}
	return readings
}

// mapJobs returns changed copies of the jobs.
func mapJobs(days [][]workload.Job, change func(site int, j *workload.Job)) [][]workload.Job {
	out := make([][]workload.Job, len(days))
	for site := range days {
		out[site] = slices.Clone(days[site])
		for i := range out[site] {
			change(site, &out[site][i])
		}
	}
	return out
}

// originFactor is how much longer LANL Origin's jobs must be to take the response
// time that is published for them (6 201 s under OFT), rather than the generator's.
const originFactor = 8

// narrowOrigin makes LANL Origin's jobs longer and as much narrower.
func narrowOrigin(days [][]workload.Job) [][]workload.Job {
	return mapJobs(days, func(site int, j *workload.Job) {
		if site != siteOrigin {
			return
		}
		width := max((j.Processors+originFactor/2)/originFactor, 1)
		j.RunTime = max(j.RunTime*grid.Time(j.Processors)/grid.Time(width), 1)
		j.Estimate = max(j.Estimate*grid.Time(j.Processors)/grid.Time(width), j.RunTime)
		j.Processors = width
	})
}

// ends are the smallest and the largest size.
func (s *federationStudy) ends() []int {
	if len(s.sizes) == 1 {
		return s.sizes
	}
	return []int{s.sizes[0], s.sizes[len(s.sizes)-1]}
}

// runs lists a reading's runs.
func (r *reading) runs(s *federationStudy) (runs []Run) {
	r.used = s.windows[0].days
	if r.days != nil {
		r.used = r.days(r.used)
	}
	add := func(to **outcome, c federationCase) {
		if r.with != nil {
			r.with(&c)
		}
		runs = append(runs, Run{Name: r.name + ": " + c.name(), Weight: c.weight(), Do: func(ctx context.Context) (err error) {
			*to, err = s.run(ctx, r.used, c)
			return err
		}})
	}
	add(&r.alone, federationCase{mode: "independent", sites: len(s.sites)})
	add(&r.federated, federationCase{mode: "federated", sites: len(s.sites)})
	r.scale = make([][2]*outcome, len(s.ends()))
	for i, oft := range []int{0, 100} {
		add(&r.economy[i], federationCase{mode: "economy", oft: oft, sites: len(s.sites)})
		for n, size := range s.ends() {
			add(&r.scale[n][i], federationCase{mode: "economy", oft: oft, sites: size})
		}
	}
	return runs
}

// load returns the load offered at a site, or at all, in percent.
func (s *federationStudy) load(days [][]workload.Job, site int) Number {
	if site != siteAll {
		return offeredLoad(days[site], s.sites[site].Processors)
	}
	var processors int64
	var all []workload.Job
	for i := range s.sites {
		processors += s.sites[i].Processors
		all = append(all, days[i]...)
	}
	return offeredLoad(all, processors)
}

// compareReadings puts the key figures of all readings side by side.
func (s *federationStudy) compareReadings() Experiment {
	t := Table{Title: "Key figures by reading"}
	for _, r := range s.readings {
		t.Columns = append(t.Columns, r.name)
	}
	measure := func(name string, unit Unit, decimals int, published Number, f func(r *reading) Number) {
		m := Measure{Name: name, Unit: unit, Decimals: decimals}
		for _, r := range s.readings {
			m.Cells = append(m.Cells, Cell{Published: published, Here: f(r)})
		}
		t.Measures = append(t.Measures, m)
	}
	measure("load offered", Percent, 1, None, func(r *reading) Number { return s.load(r.used, siteAll) })
	measure("accepted alone", Percent, 2, publishedAlone.accepted[siteAll], func(r *reading) Number { return r.alone.accepted(siteAll) })
	measure("accepted federated", Percent, 2, publishedFederated.accepted[siteAll], func(r *reading) Number { return r.federated.accepted(siteAll) })
	for i, name := range []string{"OFC", "OFT"} {
		published := []Number{publishedIncentive[0], publishedIncentive[2]}[i]
		measure("incentive, "+name, Millions, 0, published, func(r *reading) Number { return Number(r.economy[i].earnedBy(siteAll) / 1e6) })
	}
	for n, size := range s.ends() {
		for i, name := range []string{"OFC", "OFT"} {
			published := None
			if p, ok := publishedPerJob[size]; ok {
				published = p[2*i]
			}
			measure(fmt.Sprintf("messages per job, %d sites, %s", size, name), Messages, 2, published, func(r *reading) Number { return r.scale[n][i].perJob() })
		}
	}
	return Experiment{
		Title: "Other readings and loads",
		Text: []string{
			"Where the text is open it was read in more than one way, on the first window. As above: home is asked without a message; sites that could not finish a job in time even if idle are asked as long as a later one could (the loop of section 2.2 to the letter); a site promises the earliest gap that fits.",
			"Infeasible sites not asked: home leaves out those it knows to be too slow or too narrow. Strict FCFS: a site promises no start before that of an earlier promise, as a space-shared simulator without backfilling does. " +
				fmt.Sprintf("Origin narrow: the generated jobs of LANL Origin are about %d times longer and as much narrower, so that their response time comes near the published one. ", originFactor) +
				"Run times ×: the same jobs at another load.",
		},
		Tables: []Table{t},
	}
}
