package delegation

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/testnet/draw"
)

// flock is Condor with flocking (§5.4, fcondor): every user has a job manager (JM),
// which is at one site manager (SM) at a time. In a round of matchmaking the users
// there are sorted by their past usage, and "for each user all feasible demands are
// solved"; a JM whose demands were not all solved goes on to another SM.
type flock struct {
	d     *delegated
	sites []*flockSite
	users map[flockUser]*jobManager
	rng   *rand.Rand
}

type flockUser struct {
	home int
	name string
}

// jobManager is a user's queue.
type jobManager struct {
	home, at int // sites
	order    int // of joining, the last tie-break
	jobs     []*grid.Job
	running  int64     // processors
	usage    float64   // processor-microseconds, decayed
	touched  grid.Time // when usage was worked out
	moved    grid.Time // when it switched to the site where it is; no round of that instant serves it
}

// usageHalfLife is Condor's default (PRIORITY_HALFLIFE).
const usageHalfLife = grid.Day

func newFlock(d *delegated) *flock {
	return &flock{d: d, users: make(map[flockUser]*jobManager), rng: rand.New(draw.PCG(d.cfg.Seed, "flock", draw.ForSite))}
}

// flockSite is a site manager and its cluster.
type flockSite struct {
	*flock
	site    int
	cluster *lrms.Cluster
	here    []*jobManager
	moves   []move // reused
	running map[grid.TaskID]flockRun
	cycle   grid.Time
	next    grid.Time
}

// move is a job manager on its way to another site.
type move struct {
	m  *jobManager
	to int
}

// flockRun is an execution and whose it is.
type flockRun struct {
	owner      *jobManager
	processors int64
}

func (f *flock) newSite(site int, cycle, phase grid.Time) (*flockSite, error) {
	cluster, err := newDelegationCluster(site)
	s := &flockSite{flock: f, site: site, cluster: cluster, running: make(map[grid.TaskID]flockRun), cycle: cycle, next: phase}
	f.sites = append(f.sites, s)
	return s, err
}

// NextTimer implements Site.
func (s *flockSite) NextTimer() grid.Time { return s.next }

// Step implements Site.
func (s *flockSite) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	switch in := in.(type) {
	case *delegationSubmit:
		s.submit(now, in.job)
		out.Tell(grid.Event{Kind: grid.JobSubmitted, Job: in.job, Epoch: firstEpoch})
	case *grid.TaskEnded:
		s.ended(now, in.ID)
	case grid.Tick:
		if now >= s.next {
			s.next += s.cycle
			s.round(now, out)
		}
	}
}

// submit puts a job into the queue of its user, whose JM goes to its own SM if it had
// nothing to do.
func (s *flockSite) submit(now grid.Time, job *grid.Job) {
	key := flockUser{s.site, job.User}
	m := s.users[key]
	if m == nil {
		m = &jobManager{home: s.site, order: len(s.users), touched: now, moved: -1}
		s.users[key] = m
	}
	if len(m.jobs) == 0 {
		s.sites[m.home].join(m)
	}
	m.jobs = append(m.jobs, job)
	s.d.submitted()
}

func (s *flockSite) join(m *jobManager) {
	m.at = s.site
	s.here = append(s.here, m)
}

func (s *flockSite) ended(now grid.Time, id grid.TaskID) {
	r := s.running[id]
	delete(s.running, id)
	r.owner.account(now)
	r.owner.running -= r.processors
	s.cluster.Ended(now, id)
}

// round is a round of matchmaking. Who comes from another site at this very instant has
// "to wait for the target SM's next matchmaking cycle".
func (s *flockSite) round(now grid.Time, out *grid.Outbox) {
	for _, m := range s.here {
		m.account(now)
	}
	slices.SortStableFunc(s.here, func(a, b *jobManager) int {
		return cmp.Or(cmp.Compare(a.usage, b.usage), cmp.Compare(a.order, b.order))
	})
	stay := s.here[:0]
	for _, m := range s.here {
		if m.moved == now {
			stay = append(stay, m)
			continue
		}
		s.serve(now, m, out)
		if len(m.jobs) > 0 { // "switch to a new site manager"
			s.moves = append(s.moves, move{m, s.flock.next(s.site)})
			s.d.overhead.NotifyBroker += 2 // it leaves one and tells the other
		}
	}
	clear(s.here[len(stay):])
	s.here = stay
	for _, v := range s.moves {
		v.m.moved = now
		s.sites[v.to].join(v.m)
	}
	s.moves = s.moves[:0]
}

// serve gives a user whatever fits: "jobs that cannot be temporarily served are
// bypassed by jobs that can".
func (s *flockSite) serve(now grid.Time, m *jobManager, out *grid.Outbox) {
	waiting := m.jobs[:0]
	for _, job := range m.jobs {
		if job.Processors > s.cluster.Idle(now) {
			waiting = append(waiting, job)
			continue
		}
		if err := s.cluster.Lend(now, requestOf(job)); err != nil {
			panic("testnet: a job for a site without room: " + err.Error())
		}
		s.running[taskOf(job)] = flockRun{m, job.Processors}
		m.running += job.Processors
		s.d.negotiated(1)
		out.Start(grid.Task{ID: taskOf(job), Job: job})
	}
	if len(waiting) > 0 {
		s.d.negotiated(1)
	}
	clear(m.jobs[len(waiting):])
	m.jobs = waiting
}

// account brings a user's usage up to now: it halves in a day, and grows with what
// the user's jobs use.
func (m *jobManager) account(now grid.Time) {
	span := float64(now - m.touched)
	m.usage = m.usage*math.Exp2(-span/float64(usageHalfLife)) + span*float64(m.running)
	m.touched = now
}
