package delegation

import (
	"context"
	"fmt"
	"time"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
	"gridnode/testnet/workload"
)

// delegationReport is the configuration as a result shows it, with what only this
// scenario counts.
type delegationReport struct {
	Config
	Jobs        int               `json:"jobs"`        // submitted
	Finished    measure.Ratio     `json:"finished"`    // share of them
	Finishable  measure.Ratio     `json:"finishable"`  // share of them that end before the last one arrives if none waits
	Started     int64             `json:"started"`     // executions begun
	Possible    measure.Decimal   `json:"possible"`    // processor-seconds of those that end in time if none waits
	Area        measure.Decimal   `json:"area"`        // processor-seconds of the jobs, with those that did not finish
	Overhead    map[string]int64  `json:"overhead"`    // messages by the paper's types (§5.1)
	Delegations lease.Delegations `json:"delegations"` // dmm
	Samples     []Sample          `json:"samples,omitempty"`
	Inputs      []scenario.Input  `json:"inputs,omitempty"`
	counts      Overhead
}

// delegated is a run of the scenario.
type delegated struct {
	cfg    Config
	n      *testnet.Network
	jobs   []workload.Job
	inputs []scenario.Input // where they came from, if from logs

	overhead    Overhead
	submissions int64
	starts      int64
	ends        int64
	running     map[grid.TaskID]testnet.Execution
	samples     []Sample
	nextSample  grid.Time
}

// Place returns a place for what Run returns, where another process has run it.
func Place() *measure.Result { return &measure.Result{Config: new(delegationReport)} }

// Measured returns what only this scenario reports: messages by the paper's types,
// the share of jobs that finished, and the delegations. The result must be one of
// Run's.
func Measured(r *measure.Result) (o Overhead, finished measure.Ratio, d lease.Delegations) {
	report := r.Config.(*delegationReport)
	return report.counts, report.Finished, report.Delegations
}

// Started returns which share of the jobs had begun by the end of the run. The result must
// be one of Run's.
func Started(r *measure.Result) measure.Ratio {
	report := r.Config.(*delegationReport)
	return measure.Ratio(measure.SumOf(report.Started).Over(measure.SumOf(int64(report.Jobs)), 10_000))
}

// Possible returns the goodput in processor-seconds if no job waited. The result must be one
// of Run's.
func Possible(r *measure.Result) measure.Decimal { return r.Config.(*delegationReport).Possible }

// Submitted returns how many jobs were submitted, which share of them could have
// finished by the last submission had none waited, and their load on all processors
// over cfg.Days. The result must be one of Run's.
func Submitted(r *measure.Result) (jobs int64, finishable measure.Ratio, load float64) {
	report := r.Config.(*delegationReport)
	var processors int64
	for _, s := range r.Sites {
		processors += s.Processors
	}
	return int64(report.Jobs), report.Finishable, report.Area.Float() / (float64(processors) * report.Days * grid.Day.Seconds())
}

// Run runs the scenario. Cancelling ctx ends it with ctx's error. An error
// wrapping ErrConfig is about cfg.
func Run(ctx context.Context, cfg Config) (*measure.Result, error) {
	match, err := cfg.validate()
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	d := &delegated{cfg: cfg, running: make(map[grid.TaskID]testnet.Execution), jobs: cfg.Workload}
	if d.jobs == nil {
		if d.jobs, d.inputs, err = cfg.Jobs(); err != nil {
			return nil, err
		}
	}
	if len(d.jobs) == 0 {
		return nil, scenario.ConfigError("days", "%v: no job is submitted in that time", cfg.Days)
	}
	if d.n, err = testnet.New(testnet.Config{Seed: draw.Mix(cfg.Seed, cfg.Set), Inputs: d.drives()}); err != nil {
		return nil, err
	}
	if err := d.build(match); err != nil {
		return nil, err
	}
	return d.run(ctx, begun)
}

// run lets the network run until the last job arrives, and works the result out.
func (d *delegated) run(ctx context.Context, begun time.Time) (*measure.Result, error) {
	var rows *measure.JobRows
	var err error
	if d.cfg.Out != "" && d.cfg.Common.Jobs {
		if rows, err = measure.CreateRows(d.cfg.Out); err != nil {
			return nil, err
		}
		defer rows.Close()
	}
	last := d.jobs[len(d.jobs)-1].Submit
	c := measure.Collect(d.n, 0, last, rows)
	c.Leased = d.lender
	home := workload.Home{Rating: grid.Rating{Speed: 1, Bandwidth: 1}}
	var homes []workload.Home
	for site := range d.n.Len() {
		home.ID = delegationID(site)
		homes = append(homes, home)
	}
	var split goodputs
	d.n.Observe(testnet.Observer{
		Start: func(now grid.Time, x *testnet.Execution) { d.sampled(); d.starts++; d.started(x) },
		Event: func(_ grid.Time, _ int, e *grid.Event) {
			if d.dmm() && e.Kind == grid.JobSubmitted { // the others count by themselves
				d.submitted()
			}
		},
		End: func(now grid.Time, x *testnet.Execution) {
			d.sampled()
			split.add(d, x)
			d.ends++
			d.ended(x)
			if d.dmm() {
				return // the home says so itself
			}
			home, _ := d.n.Index(x.Job.Home)
			c.Event(now, home, &grid.Event{
				Kind: grid.JobFinished, Job: x.Job, Epoch: firstEpoch, Site: delegationID(x.Site), Result: grid.Result{Start: x.Start, End: x.End},
			})
		},
	})
	source := &scenario.Feed{Source: (*workload.Jobs)(&d.jobs), QoS: workload.QoS{Length: workload.LengthEstimate}, Homes: homes, Adjust: d.adjust}
	jobs := d.jobs // the feed consumes d.jobs
	total := len(jobs)
	area := areaOf(jobs, grid.Never)
	d.n.Feed(source)
	p := scenario.NewProgress(d.cfg.Progress, "delegation", int64(total), func() int64 { return source.Read })
	d.n.Pulse(p.Pulse)
	until, stop := last, d.n.Drained
	if d.cfg.Drain {
		until, stop = last+drainMax, func() bool { return d.ends == int64(total) }
	}
	err = d.n.Run(ctx, until, stop)
	p.Stop()
	if err == nil {
		err = c.Err
	}
	if err != nil {
		return nil, fmt.Errorf("delegation, seed %d: %w", d.cfg.Seed, err)
	}
	report := &delegationReport{Config: d.cfg, Jobs: total, Started: d.starts, Area: area, Samples: d.samples, Inputs: d.inputs, Finishable: finishable(jobs), Possible: possible(jobs)}
	result := c.Result("delegation", report, d.described(), begun)
	d.account(result, report, &split)
	if d.cfg.Out != "" {
		err = result.Save(d.cfg.Out)
	}
	return result, err
}

// finishable returns the share of jobs that end before the last one is submitted if
// none of them waits.
func finishable(jobs []workload.Job) measure.Ratio {
	last, n := jobs[len(jobs)-1].Submit, int64(0)
	for i := range jobs {
		if jobs[i].Submit+jobs[i].RunTime <= last {
			n++
		}
	}
	return measure.Ratio(measure.SumOf(n).Over(measure.SumOf(int64(len(jobs))), 10_000))
}

// possible returns the processor-seconds of those jobs that finishable counts.
func possible(jobs []workload.Job) measure.Decimal {
	return areaOf(jobs, jobs[len(jobs)-1].Submit)
}

// areaOf returns the processor-seconds of the jobs that end by then if they do not wait.
func areaOf(jobs []workload.Job, by grid.Time) measure.Decimal {
	var s, unit measure.Sum
	for i := range jobs {
		if jobs[i].Submit+jobs[i].RunTime <= by {
			s.Add(jobs[i].Processors, int64(jobs[i].RunTime))
		}
	}
	unit.Add(int64(grid.Second), 1)
	return measure.Decimal(s.Over(unit, 100))
}

// described names the sites for the result.
func (d *delegated) described() (list []measure.Site) {
	for site := range d.n.Len() {
		s := measure.Site{Name: delegationName(site)}
		if site < clusters {
			s.Processors = clusterSizes[site]
		}
		list = append(list, s)
	}
	return list
}

// adjust names the user of a job, if its log does not: who shares a queue, and under
// fcondor a JM.
func (d *delegated) adjust(j *grid.Job) {
	if j.User != "" {
		return
	}
	j.User = userNames[draw.Mix(j.ID.Lo, 1)%uint64(d.cfg.Users)]
}

// usersMax bounds Config.Users.
const usersMax = 60

var userNames = func() (names [usersMax]string) {
	for i := range names {
		names[i] = fmt.Sprintf("u%02d", i)
	}
	return names
}()

// account completes the result with what only this scenario knows.
func (d *delegated) account(r *measure.Result, report *delegationReport, g *goodputs) {
	var unit measure.Sum
	unit.Add(int64(grid.Second), 1)
	area := func(s measure.Sum) measure.Decimal { return measure.Decimal(s.Over(unit, 100)) }
	r.Total.GoodputIntraSite, r.Total.GoodputIntraGrid, r.Total.GoodputInterGrid = area(g.intraSite), area(g.intraGrid), area(g.interGrid)
	for site := range d.n.Len() {
		m, ok := d.n.Core(site).(interface{ Delegations() lease.Delegations })
		if !ok {
			continue
		}
		of := m.Delegations()
		t := &report.Delegations
		t.Asked += of.Asked
		t.Refused += of.Refused
		t.Brought += of.Brought
		t.Hops += of.Hops
		t.Passed += of.Passed
		t.Served += of.Served
		t.Rejected += of.Rejected
		t.CancelledTime += of.CancelledTime
		r.Sites[site].DelegationsPerJob = measure.Ratio(measure.SumOf(of.Hops).Over(measure.SumOf(r.Sites[site].Submitted), 10_000))
	}
	r.Total.DelegationsPerJob = measure.Ratio(measure.SumOf(report.Delegations.Hops).Over(measure.SumOf(r.Total.Submitted), 10_000))
	d.overhead.leases(r.Messages.ByType)
	// Executions that have not ended keep their managers busy, too.
	for _, x := range d.running {
		d.keptAlive(&x, d.n.Now())
	}
	report.counts, report.Overhead = d.overhead, d.overhead.Map()
	report.Finished = measure.Ratio(measure.SumOf(r.Total.Finished).Over(measure.SumOf(int64(report.Jobs)), 10_000))
}
