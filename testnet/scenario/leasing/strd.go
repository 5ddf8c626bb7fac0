package leasing

import (
	"fmt"

	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/lease"
	"gridnode/testnet"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
)

// strd is a network of two-layer sites ("The gain of resource delegation", section
// 4): every site is a lease.Domain over its lrms.Cluster, and all are partners. They
// negotiate without delay, as in the paper.
type strd struct {
	n      *testnet.Network
	sites  []*strdSite
	loans  map[grid.TaskID]strdLoan // of running jobs with leased processors
	told   func(site int, at grid.Time, borrowed, lent int64)
	pass   []lrms.Request // reused
	starts []lease.Started
}

// strdLoan is what a running job has from another site.
type strdLoan struct {
	lender     int // index of the site
	processors int64
}

// strdSite is one site; it implements Site.
type strdSite struct {
	net      *strd
	index    int
	domain   *lease.Domain
	partners []int // sites by the index of the domain's partners
	jobs     map[grid.TaskID]*grid.Job
	borrowed int64 // processors of others in its domain
	lent     int64 // own processors in others' domains
}

// arrival is a job that a user submits.
type arrival struct{ job *grid.Job }

// newSTRD adds the sites of w to a network of its own.
func newSTRD(cfg *Config, policy lease.Policy, discipline lrms.Discipline, w *logs) (*strd, error) {
	input := new(arrival)
	n, err := testnet.New(testnet.Config{Seed: cfg.Seed, Inputs: testnet.Inputs{
		Submit: func(_ uint64, job *grid.Job) grid.Input { input.job = job; return input },
	}})
	if err != nil {
		return nil, err
	}
	net := &strd{n: n, loans: make(map[grid.TaskID]strdLoan), told: cfg.Leases}
	for i, site := range w.sites {
		cluster, err := lrms.New(lrms.Config{Processors: site.Processors, Discipline: discipline, QueueMax: scenario.JobsMax})
		if err != nil {
			return nil, err
		}
		s := &strdSite{net: net, index: i, domain: lease.NewDomain(cluster, policy), jobs: make(map[grid.TaskID]*grid.Job)}
		net.sites = append(net.sites, s)
		home := &w.homes[i]
		if _, err := n.Add(testnet.Member{ID: home.ID, Rating: home.Rating, New: func(int) (testnet.Site, error) { return s, nil }}); err != nil {
			return nil, err
		}
	}
	for i, s := range net.sites {
		for j, other := range net.sites {
			if i != j {
				s.domain.Join(other.domain)
				s.partners = append(s.partners, j)
			}
		}
	}
	return net, nil
}

// Step implements Site.
func (s *strdSite) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	started := s.net.starts[:0]
	switch in := in.(type) {
	case *arrival:
		started = s.submit(now, in.job, started, out)
	case *grid.TaskEnded:
		s.ended(now, in, out)
	case grid.Tick:
		started = s.domain.Schedule(now, s.net.pass, started)
	default:
		panic(fmt.Sprintf("testnet: unknown input %T", in))
	}
	for i := range started {
		s.start(now, &started[i], out)
	}
	s.net.starts = started[:0]
}

// NextTimer implements Site: a domain makes no promises.
func (s *strdSite) NextTimer() grid.Time { return grid.Never }

func (s *strdSite) submit(now grid.Time, job *grid.Job, started []lease.Started, out *grid.Outbox) []lease.Started {
	id := grid.TaskID{Job: job.ID, Epoch: 1}
	out.Tell(grid.Event{Kind: grid.JobSubmitted, Job: job})
	s.jobs[id] = job
	started, err := s.domain.Submit(now, lrms.Request{ID: id, Processors: job.Processors, Estimate: job.Estimate}, started)
	if err != nil {
		delete(s.jobs, id)
		out.Tell(grid.Event{Kind: grid.JobRefused, Job: job, Text: err.Error()})
	}
	return started
}

func (s *strdSite) start(now grid.Time, x *lease.Started, out *grid.Outbox) {
	if x.Leased > 0 {
		lender := s.partners[x.Lender]
		s.net.loans[x.ID] = strdLoan{lender, x.Leased}
		s.net.lease(now, s.index, lender, x.Leased)
		s.net.n.Wake(lender) // it has fewer processors: its queue is looked at anew
	}
	out.Start(grid.Task{ID: x.ID, Job: s.jobs[x.ID], Limit: x.Estimate})
}

func (s *strdSite) ended(now grid.Time, e *grid.TaskEnded, out *grid.Outbox) {
	job := s.jobs[e.ID]
	delete(s.jobs, e.ID)
	s.domain.Ended(now, e.ID)
	if l, leased := s.net.loans[e.ID]; leased {
		delete(s.net.loans, e.ID)
		s.net.lease(now, s.index, l.lender, -l.processors)
		s.net.n.Wake(l.lender) // it has processors to schedule
	}
	out.Tell(grid.Event{Kind: grid.JobFinished, Job: job, Epoch: e.ID.Epoch, Site: job.Home, Result: e.Result})
}

// lease says that processors went from a lender to a borrower, or, if negative, back.
func (net *strd) lease(now grid.Time, borrower, lender int, processors int64) {
	b, l := net.sites[borrower], net.sites[lender]
	b.borrowed += processors
	l.lent += processors
	if net.told != nil {
		net.told(borrower, now, b.borrowed, b.lent)
		net.told(lender, now, l.borrowed, l.lent)
	}
}

// leased says how much of an execution runs on another site's processors.
func (net *strd) leased(x *testnet.Execution) (lender int, processors int64) {
	l := net.loans[x.ID]
	return l.lender, l.processors
}

// inspect completes the result: what the sites asked each other for, and checks
// that every processor is back.
func (net *strd) inspect(r *measure.Result) {
	var all lease.Requests
	for i, s := range net.sites {
		q := s.domain.Requests()
		all.Sent += q.Sent
		all.Granted += q.Granted
		r.Sites[i].DelegationsPerJob = measure.Ratio(measure.SumOf(q.Granted).Over(measure.SumOf(r.Sites[i].Submitted), 10_000))
	}
	r.Total.DelegationsPerJob = measure.Ratio(measure.SumOf(all.Granted).Over(measure.SumOf(r.Total.Submitted), 10_000))
	r.Messages.ByType["strd.request"] = all.Sent
	r.Messages.ByType["strd.grant"] = all.Granted
	r.Messages.ByType["strd.refuse"] = all.Sent - all.Granted
	r.Messages.ByType["strd.return"] = all.Granted
}

// returned reports, as an error, processors that are not where they belong.
func (net *strd) returned(w *logs) error {
	for i, s := range net.sites {
		if s.borrowed != 0 || s.lent != 0 || len(net.loans) > 0 {
			return fmt.Errorf("%s still borrows %d and lends %d processors although all jobs have ended", w.sites[i].Name, s.borrowed, s.lent)
		}
	}
	return nil
}
