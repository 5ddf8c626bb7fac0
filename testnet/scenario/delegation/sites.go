package delegation

import (
	"fmt"

	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/lease"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
)

// delegationSubmit is the input by which a site gets a job of its own.
type delegationSubmit struct{ job *grid.Job }

// dmm reports whether the architecture is ours: then the sites are whole ones.
func (d *delegated) dmm() bool { return d.cfg.Architecture == "dmm" }

// drives returns the inputs that the sites of the architecture know.
func (d *delegated) drives() testnet.Inputs {
	if d.dmm() {
		return scenario.Inputs()
	}
	return testnet.Inputs{Submit: func(used grid.Input, _ uint64, job *grid.Job) grid.Input {
		in, ok := used.(*delegationSubmit)
		if !ok {
			in = new(delegationSubmit)
		}
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
	if d.dmm() {
		total = delegation31
	}
	for site := range total {
		phase := d.phase(site, cycle)
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
	if d.dmm() && d.cfg.Ordering == lease.OrderGossip.String() {
		for site := range total {
			d.n.Subscribe(gossipTopic, site)
		}
	}
	return nil
}

// newDelegationCluster returns the processors of a site: "we assume that each site employs a
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
		if in.job.Processors <= s.cluster.Processors() { // a wider one never runs
			if err := s.cluster.Submit(now, requestOf(in.job)); err != nil {
				panic(fmt.Sprintf("testnet: a job does not fit into the queue: %v", err))
			}
			s.jobs[taskOf(in.job)] = in.job
		}
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
