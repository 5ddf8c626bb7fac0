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
func (s *federationStudy) planReadings(ctx context.Context) ([]*reading, error) {
	readings := []*reading{
		{name: "as above"},
		{name: "infeasible sites not asked", with: func(c *federationCase) { c.skipInfeasible = true }},
		{name: "strict FCFS", with: func(c *federationCase) { c.queue = "fcfs" }},
	}
	if s.o.Traces != "" {
		days, err := s.daysByRow(ctx)
		if err != nil {
			return nil, err
		}
		readings = append(readings, &reading{name: "days by table 2's rows", days: func([][]workload.Job) [][]workload.Job { return days }})
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

// daysByRow returns the days whose rows of table 2 come closest.
func (s *federationStudy) daysByRow(ctx context.Context) ([][]workload.Job, error) {
	logged, err := s.logs()
	if err != nil {
		return nil, err
	}
	chosen, err := s.likelyPairs(ctx, logged)
	if err != nil {
		return nil, err
	}
	days := make([][]workload.Job, len(s.sites))
	for i := range chosen {
		days[i] = chosen[i][0].Jobs
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
		runs = append(runs, reproduce.Run{Name: r.name + ": " + c.name(), Weight: c.weight(), Result: to, Do: func(ctx context.Context) (err error) {
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

// study returns the evaluation by a reading, at the smallest and largest size.
func (r *reading) study(s *federationStudy) *federationStudy {
	w := &federationWindow{days: r.used, alone: r.alone, federated: r.federated, economy: r.economy}
	for n := range r.scale {
		w.scale = append(w.scale, [len(populations)]*outcome{0: r.scale[n][0], 2: r.scale[n][1]})
	}
	return &federationStudy{o: s.o, sites: s.sites, sizes: s.ends(), windows: []*federationWindow{w}}
}

// explained shows how far each reading explains each experiment.
func (s *federationStudy) explained() reproduce.Table {
	t := reproduce.Table{
		Title: "How far a reading explains each experiment",
		Note:  "Of the figures that the paper prints, the share that ours are within 10 % and 25 % of (percentages in points), and how many of the claims in words hold.",
	}
	var scores [][]reproduce.Score // by reading and experiment
	for _, r := range s.readings {
		t.Columns = append(t.Columns, r.name)
		var row []reproduce.Score
		for _, e := range r.study(s).experiments() {
			row = append(row, reproduce.ScoreOf([]reproduce.Experiment{e}))
		}
		scores = append(scores, row)
	}
	measure := func(name string, unit reproduce.Unit, f func(c *reproduce.Score) reproduce.Number, experiment int) {
		m := reproduce.Measure{Name: name, Unit: unit}
		for r := range scores {
			m.Cells = append(m.Cells, reproduce.Cell{Published: reproduce.None, Here: f(&scores[r][experiment])})
		}
		t.Measures = append(t.Measures, m)
	}
	for e := range scores[0] {
		c := &scores[0][e]
		if c.Figures > 0 {
			measure(fmt.Sprintf("experiment %d: of %d figures within 10 %%", e+1, c.Figures), reproduce.Percent, func(c *reproduce.Score) reproduce.Number {
				return reproduce.PercentOf(int64(c.Within10), int64(c.Figures))
			}, e)
			measure("within 25 %", reproduce.Percent, func(c *reproduce.Score) reproduce.Number {
				return reproduce.PercentOf(int64(c.Within25), int64(c.Figures))
			}, e)
		}
		measure(fmt.Sprintf("of %d claims hold", c.Claims), "", func(c *reproduce.Score) reproduce.Number { return reproduce.Number(c.Hold) }, e)
	}
	return t
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
		measure("with communication, "+populations[p].name, reproduce.Millions, 0, publishedIncentive[p], func(r *reading) reproduce.Number {
			return reproduce.Number(r.economy[p].incentive(siteAll).taken / 1e6)
		})
	}
	all := func(o *outcome, f func(*users) reproduce.Number) reproduce.Number {
		u := o.everybody()
		return f(&u)
	}
	measure("response time, alone", reproduce.Seconds, 0, publishedResponse[siteAll][0], func(r *reading) reproduce.Number { return all(r.alone, (*users).meanResponse) })
	measure("response time, OFT", reproduce.Seconds, 0, publishedResponse[siteAll][3], func(r *reading) reproduce.Number { return all(r.economy[2], (*users).meanResponse) })
	measure("budget spent, alone", reproduce.Credits, 0, publishedBudget[siteAll][0], func(r *reading) reproduce.Number { return all(r.alone, (*users).meanBudget) })
	measure("budget spent, OFC", reproduce.Credits, 0, publishedBudget[siteAll][1], func(r *reading) reproduce.Number { return all(r.economy[0], (*users).meanBudget) })
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
		Title: "Other readings and loads", Beyond: true,
		Claims: s.reconcile(),
		Text: []string{
			"Claims that hang on load or reading, with the readings and loads at which they hold. What counts is the first reading, that of the experiments: a claim that holds at another one only does not hold.",
			fmt.Sprintf("Messages per job are a matter of load. Under OFT every job asks the small fast sites first (KTH, NASA and SDSC SP2; %d of %d sites), two messages each, and goes on until one has room in time: they are nearly full at any of these loads, so what a job takes grows with their number, and it falls with the load of the days, as fewer jobs find them full.", fastOf(last), last),
			"The order of total incentive is that of the work that is rejected: table 1's prices make computing cost the same everywhere, so as long as all jobs are accepted the totals are equal, and they differ by what is rejected once the load is high enough.",
			"Response and budget of all users compare a federation that accepts what sites alone reject. With the expectation of the home that rejected them, jobs that wait alone count with that wait.",
			"Where the text is open it was read in more than one way, on the first window. As above: home is asked without a message; sites that could not finish a job in time even if idle are asked as long as a later one could (the loop of section 2.2 to the letter); a site promises the earliest gap that fits.",
			"Infeasible sites not asked: home leaves out those it knows to be too slow or too narrow. Strict FCFS: a site promises no start before that of an earlier promise, as a space-shared simulator without backfilling does. " +
				fmt.Sprintf("Days by table 2's rows: experiment 1 is run on every pair of days whose number of jobs is within %d %% of table 2's, and the pair whose row comes closest is taken at each site (least sum of the differences in jobs, as a share of them, in utilisation and in jobs accepted); days of the model are looked for with jobs as wide as on machines from %d processors up by powers of two. ", 100/pairTolerance, widthsFirst) +
				"Run times ×: the same jobs at another load.",
		},
		Tables: []reproduce.Table{t, s.explained()},
	}
}
