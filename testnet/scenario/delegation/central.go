package delegation

import (
	"gridnode/grid"
	"gridnode/internal/lrms"
)

// centralQueue is the one queue of the architectures cern and central, served in the
// order of arrival: "the centralized architectures operated with FCFS may keep many
// jobs blocked in the queue when the oldest job cannot find its needed resources"
// (§6.2). Messages take no time in this scenario (assumption 1), so what its parts
// know of each other is shared.
type centralQueue struct {
	d     *delegated
	sites []*centralSite
	queue []*grid.Job
	first int

	// central: "the information about the number of free resources is gathered
	// periodically by a monitoring service". cern: 0, sites pull when they are free.
	cycle    grid.Time
	next     grid.Time
	believed []int64 // free processors by site, less what was sent there since

	pulls int // cern: whose turn it is
}

// centralSite is a cluster that runs what the queue gives it.
type centralSite struct {
	*centralQueue
	site    int
	cluster *lrms.Cluster
}

// centralRun is the input by which a cluster starts a job that it was given.
type centralRun struct{ job *grid.Job }

func (q *centralQueue) newSite(site int) (*centralSite, error) {
	cluster, err := newDelegationCluster(site)
	s := &centralSite{centralQueue: q, site: site, cluster: cluster}
	q.sites = append(q.sites, s)
	q.believed = append(q.believed, clusterSizes[site])
	return s, err
}

// NextTimer implements Site: the first site is where the monitoring service runs.
func (s *centralSite) NextTimer() grid.Time {
	if s.site > 0 || s.cycle == 0 {
		return grid.Never
	}
	return s.next
}

// Step implements Site.
func (s *centralSite) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	switch in := in.(type) {
	case *delegationSubmit:
		s.queue = append(s.queue, in.job)
		s.d.submitted()
		out.Tell(grid.Event{Kind: grid.JobSubmitted, Job: in.job, Epoch: firstEpoch})
	case *centralRun:
		out.Start(grid.Task{ID: taskOf(in.job), Job: in.job})
	case *grid.TaskEnded:
		s.cluster.Ended(now, in.ID)
		s.cluster.Schedule(now, nil)
	case grid.Tick:
		if s.cycle > 0 && s.site == 0 && now >= s.next {
			s.next += s.cycle
			for i, other := range s.sites {
				s.believed[i] = other.cluster.Idle(now)
				s.d.overhead.NotifyBroker++
			}
		}
		s.dispatch(now, s.site, out)
	}
}

// dispatch gives jobs from the head of the queue to sites, until one finds no room.
func (q *centralQueue) dispatch(now grid.Time, here int, out *grid.Outbox) {
	for q.first < len(q.queue) {
		job := q.queue[q.first]
		at := q.choose(now, job.Processors)
		if at < 0 {
			break
		}
		q.first++
		q.d.negotiated(1)
		q.believed[at] -= job.Processors
		if err := q.sites[at].cluster.Lend(now, requestOf(job)); err != nil {
			panic("testnet: a job for a site without room: " + err.Error())
		}
		if at == here {
			out.Start(grid.Task{ID: taskOf(job), Job: job})
		} else {
			q.d.n.Inject(q.d.n.Now(), at, &centralRun{job})
		}
	}
	if q.first > 1024 && q.first > len(q.queue)/2 {
		q.queue = append(q.queue[:0], q.queue[q.first:]...)
		q.first = 0
	}
}

// choose returns a site with room for a job, or -1: under central the one that is
// believed to have the most, under cern the next that would pull.
func (q *centralQueue) choose(now grid.Time, processors int64) int {
	best := -1
	if q.cycle > 0 {
		for i, free := range q.believed {
			if free >= processors && (best < 0 || free > q.believed[best]) {
				best = i
			}
		}
		return best
	}
	for range q.sites {
		q.pulls = (q.pulls + 1) % len(q.sites)
		if q.sites[q.pulls].cluster.Idle(now) >= processors {
			return q.pulls
		}
	}
	return best
}
