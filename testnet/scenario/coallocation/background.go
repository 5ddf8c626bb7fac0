package coallocation

import (
	"math/rand/v2"

	"gridnode/grid"
	"gridnode/node/site"
	"gridnode/testnet/draw"
	"gridnode/testnet/workload"
)

const usersID = grid.SiteID("users")

// What the paper does not say of the background load: jobs of one to sixteen nodes that
// take a quarter of an hour on average.
var localSizes = []int64{1, 2, 4, 8, 16}

const (
	localRunTime = 15 * grid.Minute
	localLongest = 4 * grid.Hour
	localCheck   = grid.Minute // between two looks whether there is too little
)

// users are those of the clusters, who "submit their (non-grid) jobs straight to the local
// resource managers, bypassing KOALA" (section VI-B). Their jobs arrive by themselves. So
// that the load stays between half and one and a half times its mean, what would be above
// is not submitted, and what is missing below is made up for: "we tried to maintain it
// between 10% and 30% across the system by injecting or killing dummy jobs".
type users struct {
	koala  *koala
	jobs   workload.Source
	where  *rand.Rand
	nodes  int64 // of all clusters
	wanted int64 // of them, on average

	next   workload.Job
	more   bool      // next is to come
	check  grid.Time // of whether there is too little; grid.Never after the window
	number int64

	submitted int64 // nodes of jobs that run or wait
	busy      int64 // nodes of those that run
	most      int64 // of busy
	since     grid.Time
	area      int64 // node-microseconds of what ran within the window
}

// newUsers returns the users of the clusters.
func newUsers(k *koala) *users {
	u := &users{koala: k, where: rand.New(draw.PCG(k.cfg.Seed, usersID, draw.ForSite))}
	for _, c := range k.clusters {
		u.nodes += c.nodes
	}
	u.wanted = int64(float64(u.nodes) * k.cfg.Background / 100)
	var sizes int64
	for _, s := range localSizes {
		sizes += s
	}
	mean := float64(localRunTime) * float64(sizes) / float64(len(localSizes)) / float64(max(u.wanted, 1))
	u.jobs = &workload.Poisson{
		Mean: grid.Time(mean), Sizes: localSizes, RunTime: localRunTime, Longest: localLongest, Until: k.window,
		RNG: rand.New(draw.PCG(k.cfg.Seed, usersID, draw.ForJobs)),
	}
	u.more, _ = u.jobs.Next(&u.next) // it cannot fail
	return u
}

// NextTimer implements testnet.Site.
func (u *users) NextTimer() grid.Time {
	if u.more {
		return min(u.next.Submit, u.check)
	}
	return u.check
}

// Step implements testnet.Site.
func (u *users) Step(now grid.Time, _ grid.Input, _ *grid.Outbox) {
	for u.more && u.next.Submit <= now {
		if u.submitted+u.next.Processors <= u.wanted*3/2 {
			u.submit(now, u.next.Processors, u.next.RunTime)
		}
		u.more, _ = u.jobs.Next(&u.next)
	}
	if u.check > now {
		return
	}
	for least := u.least(now); u.submitted < least; {
		u.submit(now, min(localSizes[len(localSizes)-1], least-u.submitted), localRunTime)
	}
	if u.check = now + localCheck; u.check >= u.koala.window {
		u.check = grid.Never
	}
}

// least returns how many nodes local jobs have at least: at first the mean, so that the
// load is there from the beginning.
func (u *users) least(now grid.Time) int64 {
	if now == 0 {
		return u.wanted
	}
	return u.wanted / 2
}

// submit has a cluster run a local job: a node of all is drawn, and its cluster taken.
func (u *users) submit(now grid.Time, nodes int64, span grid.Time) {
	at, node := 0, u.where.Int64N(u.nodes)
	for ; node >= u.koala.clusters[at].nodes; at++ {
		node -= u.koala.clusters[at].nodes
	}
	u.number++
	u.submitted += nodes
	rating := grid.Rating{Speed: 1, Bandwidth: 1}
	u.koala.n.Inject(now, u.koala.clusters[at].index, &site.Submit{Job: &grid.Job{
		ID: workload.JobID(len(u.koala.clusters)+1, u.number), Home: grid.SiteID(u.koala.clusters[at].name), Resources: grid.Resources{Processors: nodes},
		Tasks: nodes, Submit: now, Estimate: span, RunTime: span, Work: grid.WorkOf(span, 0, rating), Deadline: grid.Never, Budget: grid.NoBudget,
	}})
}

// event follows the local jobs.
func (u *users) event(now grid.Time, e *grid.Event) {
	end := min(now, u.koala.window)
	u.area += u.busy * int64(max(end-u.since, 0))
	u.since = end
	switch e.Kind {
	case grid.JobStarted:
		u.busy += e.Job.Processors
		u.most = max(u.most, u.busy)
	case grid.JobFinished:
		u.busy -= e.Job.Processors
		u.submitted -= e.Job.Processors
	}
}
