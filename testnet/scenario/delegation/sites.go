package delegation

import (
	"fmt"
	"math/rand/v2"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/lease"
	"gridnode/testnet"
	"gridnode/testnet/draw"
)

// delegationSubmit is the input by which a site gets a job of its own.
type delegationSubmit struct{ job *grid.Job }

func delegationInputs() testnet.Inputs {
	in := new(delegationSubmit)
	return testnet.Inputs{Submit: func(_ uint64, job *grid.Job) grid.Input {
		in.job = job
		return in
	}}
}

// build makes the sites of the architecture.
func (d *delegated) build(match lease.MatchConfig) error {
	cycle := grid.Time(d.cfg.Cycle) * grid.Second
	var central *centralQueue
	var flock *flock
	switch d.cfg.Architecture {
	case "cern", "central":
		central = &centralQueue{d: d}
		if d.cfg.Architecture == "central" {
			central.cycle, central.next = cycle, cycle
		}
	case "fcondor":
		flock = newFlock(d)
	}
	total := clusters
	if d.cfg.Architecture == "dmm" {
		total = delegation31
	}
	for site := range total {
		// Site managers were not started at the same moment.
		phase := grid.Time(draw.PCG(d.cfg.Seed, delegationID(site), draw.ForClock).Uint64() % uint64(cycle))
		_, err := d.n.Add(testnet.Member{ID: delegationID(site), New: func(int) (testnet.Site, error) {
			switch d.cfg.Architecture {
			case "dmm":
				return d.newDMM(site, match, phase)
			case "fcondor":
				return flock.newSite(site, cycle, phase)
			case "cern", "central":
				return central.newSite(site)
			case "sep-c":
				return d.newCondor(site, 0, 0)
			}
			return d.newCondor(site, cycle, phase)
		}})
		if err != nil {
			return err
		}
	}
	if d.cfg.Architecture == "dmm" && d.cfg.Ordering == lease.OrderGossip.String() {
		for site := range total {
			d.n.Subscribe(delegationTopic, site)
		}
	}
	return nil
}

// newCluster returns the processors of a site: "we assume that each site employs a
// FCFS policy, without backfilling" (assumption 3).
func newDelegationCluster(site int) (*lrms.Cluster, error) {
	cfg := lrms.Config{Discipline: lrms.FCFS}
	if site < clusters {
		cfg.Processors = clusterSizes[site]
	}
	return lrms.New(cfg)
}

// firstEpoch is that of every job: nothing is lost in this scenario.
const firstEpoch = 1

func taskOf(job *grid.Job) grid.TaskID { return grid.TaskID{Job: job.ID, Epoch: firstEpoch} }

func requestOf(job *grid.Job) lrms.Request {
	return lrms.Request{ID: taskOf(job), Processors: job.Processors, Estimate: job.Estimate}
}

// condorSite runs its own jobs on its own processors, in rounds of matchmaking
// (condor) or at once (sep-c).
type condorSite struct {
	d       *delegated
	cluster *lrms.Cluster
	jobs    map[grid.TaskID]*grid.Job // those that have not ended
	cycle   grid.Time                 // 0: at once
	next    grid.Time
	started []lrms.Request
}

func (d *delegated) newCondor(site int, cycle, phase grid.Time) (*condorSite, error) {
	cluster, err := newDelegationCluster(site)
	next := phase
	if cycle == 0 {
		next = grid.Never
	}
	return &condorSite{d: d, cluster: cluster, jobs: make(map[grid.TaskID]*grid.Job), cycle: cycle, next: next}, err
}

// NextTimer implements Site.
func (s *condorSite) NextTimer() grid.Time { return s.next }

// Step implements Site.
func (s *condorSite) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	switch in := in.(type) {
	case *delegationSubmit:
		if err := s.cluster.Submit(now, requestOf(in.job)); err != nil {
			panic(fmt.Sprintf("testnet: a generated job does not fit its cluster: %v", err))
		}
		s.jobs[taskOf(in.job)] = in.job
		s.d.submitted()
		out.Tell(grid.Event{Kind: grid.JobSubmitted, Job: in.job, Epoch: firstEpoch})
	case *grid.TaskEnded:
		s.cluster.Ended(now, in.ID)
		delete(s.jobs, in.ID)
	case grid.Tick:
		if s.cycle > 0 {
			if now < s.next {
				return
			}
			s.next += s.cycle
		}
		s.started = s.cluster.Schedule(now, s.started[:0])
		s.d.negotiated(len(s.started) + blocked(s.cluster))
		for _, r := range s.started {
			out.Start(grid.Task{ID: r.ID, Job: s.jobs[r.ID]})
		}
	}
}

// blocked returns 1 if the head of the queue was looked at and did not fit, else 0.
func blocked(cluster *lrms.Cluster) int {
	if cluster.Demand() > 0 {
		return 1
	}
	return 0
}

// dmmSite is a site manager of Delegated MatchMaking with its cluster, if it has one.
type dmmSite struct {
	d       *delegated
	site    int
	id      grid.SiteID
	cluster *lrms.Cluster
	book    *lease.Book
	match   *lease.Matchmaker
	gossip  *directory.Directory      // nil: it says nothing and hears nothing
	jobs    map[grid.TaskID]*grid.Job // those that have not ended
	binding []binding                 // by time
	bind    grid.Time
	started []lrms.Request
}

// binding is a job whose processors are here and cannot be used yet.
type binding struct {
	at   grid.Time
	task grid.TaskID
}

// leaseTerm is how long a lease lasts without a keep-alive. No site of this scenario
// fails, so nothing but messages comes of a shorter one; those that Condor would
// send are counted by keepAlive.
const leaseTerm = 6 * grid.Hour

const delegationTopic = "delegation/load"

func (d *delegated) newDMM(site int, match lease.MatchConfig, phase grid.Time) (*dmmSite, error) {
	s := &dmmSite{d: d, site: site, id: delegationID(site), jobs: make(map[grid.TaskID]*grid.Job), bind: grid.Time(d.cfg.Bind) * grid.Second}
	var err error
	if s.cluster, err = newDelegationCluster(site); err != nil {
		return nil, err
	}
	if s.book, err = lease.New(lease.Config{Site: s.id, Term: leaseTerm}, s.cluster); err != nil {
		return nil, err
	}
	match.Links, match.Phase = delegationLinks(site), phase
	var loads lease.Loads
	if match.Ordering == lease.OrderGossip {
		s.gossip = directory.New(directory.Config{
			Self: s.id, Federation: "delegation", Topic: delegationTopic, GossipInterval: 30 * grid.Second,
		}, rand.New(draw.PCG(d.cfg.Seed, s.id, draw.ForRouter)))
		loads = func(site grid.SiteID) (int64, uint64, bool) {
			l, ok := s.gossip.Load(site)
			return l.Widest, l.Sequence, ok
		}
		for other := range clusters {
			if !linked(match.Links, delegationID(other)) && other != site {
				match.Members = append(match.Members, delegationID(other))
			}
		}
	}
	s.match, err = lease.NewMatchmaker(match, s.cluster, s.book, loads, rand.New(draw.PCG(d.cfg.Seed, s.id, draw.ForSite)))
	return s, err
}

func linked(links []lease.Link, site grid.SiteID) bool {
	for _, l := range links {
		if l.Site == site {
			return true
		}
	}
	return false
}

// NextTimer implements Site.
func (s *dmmSite) NextTimer() grid.Time {
	at := min(s.book.NextTimer(), s.match.NextTimer())
	if len(s.binding) > 0 {
		at = min(at, s.binding[0].at)
	}
	if s.gossip != nil {
		at = min(at, s.gossip.NextTimer())
	}
	return at
}

// Step implements Site.
func (s *dmmSite) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	switch in := in.(type) {
	case *delegationSubmit:
		if err := s.match.Submit(now, lease.Work{Request: requestOf(in.job), Born: now}, out); err != nil {
			panic(fmt.Sprintf("testnet: a generated job does not fit its cluster: %v", err))
		}
		s.jobs[taskOf(in.job)] = in.job
		s.d.submitted()
		out.Tell(grid.Event{Kind: grid.JobSubmitted, Job: in.job, Epoch: firstEpoch})
	case *grid.TaskEnded:
		if !s.match.Ended(now, in.ID, out) {
			s.cluster.Ended(now, in.ID)
		}
		delete(s.jobs, in.ID)
	case *grid.Delivery:
		if _, ok := in.Message.(*directory.LoadReport); ok {
			s.gossip.Step(now, in, out)
		} else {
			s.book.Step(now, in, out)
		}
	case *grid.Undelivered:
		s.book.Step(now, in, out)
	case grid.Tick:
		s.tick(now, out)
	}
	s.locals(now, out)
}

// tick does what is decided once per instant.
func (s *dmmSite) tick(now grid.Time, out *grid.Outbox) {
	s.book.Step(now, grid.Tick{}, out)
	s.locals(now, out)
	s.match.Step(now, grid.Tick{}, out)
	s.started = s.match.Dispatch(now, s.started[:0], out)
	s.d.negotiated(len(s.started))
	for _, r := range s.started {
		s.start(r.ID, out)
	}
	for len(s.binding) > 0 && s.binding[0].at <= now {
		s.start(s.binding[0].task, out)
		s.binding = s.binding[1:]
	}
	if s.gossip != nil {
		free := max(s.cluster.Idle(now)-s.cluster.Demand(), 0)
		s.gossip.SetLoad(now, directory.Load{Free: s.cluster.Idle(now), Widest: free}, out)
		s.gossip.Step(now, grid.Tick{}, out)
	}
}

// locals carries on what the cores of the site say to each other.
func (s *dmmSite) locals(now grid.Time, out *grid.Outbox) {
	for i := 0; i < len(out.Locals); i++ {
		switch in := out.Locals[i].(type) {
		case *lease.Brought:
			if at, ok := s.d.n.Index(in.Lease.Source); ok {
				s.d.source[in.Task] = at
			}
			s.binding = append(s.binding, binding{now + s.bind, in.Task})
			if s.bind == 0 {
				s.start(in.Task, out)
				s.binding = s.binding[:len(s.binding)-1]
			}
		case *lease.Lost:
			panic(fmt.Sprintf("testnet: job %s lost its processors at %v: %v", in.Task.Job, now, in.Cause))
		default:
			s.match.Step(now, in, out)
		}
	}
	clear(out.Locals)
	out.Locals = out.Locals[:0]
}

func (s *dmmSite) start(id grid.TaskID, out *grid.Outbox) {
	out.Start(grid.Task{ID: id, Job: s.jobs[id]})
}
