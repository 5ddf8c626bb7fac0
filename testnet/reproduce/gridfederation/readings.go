package gridfederation

import (
	"context"
	"fmt"
	"slices"

	"gridnode/grid"
	"gridnode/testnet/reproduce"
	"gridnode/testnet/workload"
)

// reading is a way to read the paper where its text is open, or a load other than
// that of the windows, on the days of the first window.
type reading struct {
	name string
	days func(days [][]workload.Job) [][]workload.Job // nil: as they are
	with func(c *federationCase)                      // nil: as it is

	used             [][]workload.Job
	alone, federated *outcome
	economy          [len(populations)]*outcome // at table 1
	scale            [][2]*outcome              // the first and the last size, OFC and OFT
}

// planReadings lists them. The first is the one of the experiments.
func (s *federationStudy) planReadings() ([]*reading, error) {
	readings := []*reading{
		{name: "as above"},
		{name: "infeasible sites not asked", with: func(c *federationCase) { c.skipInfeasible = true }},
		{name: "strict FCFS", with: func(c *federationCase) { c.queue = "fcfs" }},
	}
	if s.o.Traces != "" {
		byLoad, err := s.daysByLoad()
		if err != nil {
			return nil, err
		}
		readings = append(readings, &reading{name: "days by load", days: func([][]workload.Job) [][]workload.Job { return byLoad }})
	}
	for _, percent := range []int64{75, 125, 150} {
		readings = append(readings, &reading{name: fmt.Sprintf("run times × %.2f", float64(percent)/100), days: func(days [][]workload.Job) [][]workload.Job {
			return mapJobs(days, func(_ int, j *workload.Job) {
				j.RunTime, j.Estimate = j.RunTime*grid.Time(percent)/100, j.Estimate*grid.Time(percent)/100
			})
		}})
	}
	return readings, nil
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

// daysByLoad returns other days: those with about the published number of jobs whose
// load comes closest to what table 2 implies, and for sites without a log days of the
// model with jobs as wide as on the site.
func (s *federationStudy) daysByLoad() ([][]workload.Job, error) {
	logged, err := s.logs()
	if err != nil {
		return nil, err
	}
	days := make([][]workload.Job, len(s.sites))
	for i := range s.sites {
		if logged[i] {
			days[i], _, err = s.sites[i].ReadDays(s.o.Traces, workload.Options{})
		} else {
			days[i], err = s.sites[i].GenerateDays(i, workload.EmbeddedSeed)
		}
		if err != nil {
			return nil, err
		}
	}
	return days, nil
}

// ends are the smallest and the largest size.
func (s *federationStudy) ends() []int {
	if len(s.sizes) == 1 {
		return s.sizes
	}
	return []int{s.sizes[0], s.sizes[len(s.sizes)-1]}
}

// runs lists a reading's runs.
func (r *reading) runs(s *federationStudy) (runs []reproduce.Run) {
	r.used = s.windows[0].days
	if r.days != nil {
		r.used = r.days(r.used)
	}
	add := func(to **outcome, c federationCase) {
		if r.with != nil {
			r.with(&c)
		}
		runs = append(runs, reproduce.Run{Name: r.name + ": " + c.name(), Weight: c.weight(), Do: func(ctx context.Context) (err error) {
			*to, err = s.run(ctx, r.used, c)
			return err
		}})
	}
	add(&r.alone, federationCase{mode: "independent", sites: len(s.sites)})
	add(&r.federated, federationCase{mode: "federated", sites: len(s.sites)})
	r.scale = make([][2]*outcome, len(s.ends()))
	for p := range populations {
		add(&r.economy[p], federationCase{mode: "economy", oft: populations[p].oft, sites: len(s.sites)})
	}
	for i, oft := range []int{0, 100} {
		for n, size := range s.ends() {
			add(&r.scale[n][i], federationCase{mode: "economy", oft: oft, sites: size})
		}
	}
	return runs
}

// load returns the load offered at a site, or at all, in percent.
func (s *federationStudy) load(days [][]workload.Job, site int) reproduce.Number {
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
func (s *federationStudy) compareReadings() reproduce.Experiment {
	t := reproduce.Table{Title: "Key figures by reading"}
	for _, r := range s.readings {
		t.Columns = append(t.Columns, r.name)
	}
	measure := func(name string, unit reproduce.Unit, decimals int, published reproduce.Number, f func(r *reading) reproduce.Number) {
		m := reproduce.Measure{Name: name, Unit: unit, Decimals: decimals}
		for _, r := range s.readings {
			m.Cells = append(m.Cells, reproduce.Cell{Published: published, Here: f(r)})
		}
		t.Measures = append(t.Measures, m)
	}
	measure("load offered", reproduce.Percent, 1, reproduce.None, func(r *reading) reproduce.Number { return s.load(r.used, siteAll) })
	measure("accepted alone", reproduce.Percent, 2, publishedAlone.accepted[siteAll], func(r *reading) reproduce.Number { return r.alone.accepted(siteAll) })
	measure("accepted federated", reproduce.Percent, 2, publishedFederated.accepted[siteAll], func(r *reading) reproduce.Number { return r.federated.accepted(siteAll) })
	for p := range populations {
		measure("rejected, "+populations[p].name, reproduce.Jobs, 0, reproduce.None, func(r *reading) reproduce.Number { return reproduce.Number(r.economy[p].Total.Rejected) })
	}
	for p := range populations {
		measure("incentive, "+populations[p].name, reproduce.Millions, 0, publishedIncentive[p], func(r *reading) reproduce.Number { return reproduce.Number(r.economy[p].earnedBy(siteAll) / 1e6) })
	}
	for p := range populations {
		measure("incentive within the two days, "+populations[p].name, reproduce.Millions, 0, publishedIncentive[p], func(r *reading) reproduce.Number { return reproduce.Number(r.economy[p].timely / 1e6) })
	}
	for n, size := range s.ends() {
		for i, name := range []string{"OFC", "OFT"} {
			published := reproduce.None
			if p, ok := publishedPerJob[size]; ok {
				published = p[2*i]
			}
			measure(fmt.Sprintf("messages per job, %d sites, %s", size, name), reproduce.Messages, 2, published, func(r *reading) reproduce.Number { return r.scale[n][i].perJob() })
		}
	}
	last := s.ends()[len(s.ends())-1]
	measure(fmt.Sprintf("utilisation of KTH, NASA and SP2, %d sites, OFT", last), reproduce.Percent, 1, reproduce.None, func(r *reading) reproduce.Number { return r.scale[len(r.scale)-1][1].busyFast() })
	return reproduce.Experiment{
		Title:  "Other readings and loads",
		Claims: s.reconcile(),
		Text: []string{
			"Claims of experiments 3 and 5 are listed here with the readings and loads at which they hold.",
			fmt.Sprintf("Messages per job are a matter of load. Under OFT every job asks the small fast sites first (KTH, NASA and SDSC SP2; %d of %d sites), two messages each, and goes on until one has room in time: they are nearly full at any of these loads, so what a job takes grows with their number, and it falls with the load of the days, as fewer jobs find them full.", fastOf(last), last),
			"The order of total incentive is that of small differences: table 1's prices make computing cost the same everywhere, so as long as all jobs are accepted the totals differ by the tenth of the time that is communication, which is longer at the cheap sites. The published differences, 2 to 9 %, must then be work that is not paid for. Rejected jobs do it here once the load is high enough. Work that ends after the two days does it for OFC, where the cheap sites' queues are long: within the two days the totals under OFC and 50/50 come close to the published ones, in their order; under OFT they do not.",
			"Response and budget of all users compare a federation that accepts what sites alone reject: a long job rejected at home counts with its time at an idle home, the same job accepted elsewhere may take twice as long. At no reading or load tried here does either mean fall, whichever way a rejected job is counted. Beside it, users of NASA iPSC, of whom none is rejected alone, wait longer under OFT, as published.",
			"Where the text is open it was read in more than one way, on the first window. As above: home is asked without a message; sites that could not finish a job in time even if idle are asked as long as a later one could (the loop of section 2.2 to the letter); a site promises the earliest gap that fits.",
			"Infeasible sites not asked: home leaves out those it knows to be too slow or too narrow. Strict FCFS: a site promises no start before that of an earlier promise, as a space-shared simulator without backfilling does. " +
				"Days by load: at each site the days with about the published number of jobs (within a twentieth) whose processor-seconds come closest to what table 2 implies (utilisation / share accepted), and LANL Origin's jobs as wide as the model makes them on 2048 processors. " +
				"Run times ×: the same jobs at another load.",
		},
		Tables: []reproduce.Table{t},
	}
}
