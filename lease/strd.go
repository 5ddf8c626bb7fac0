package lease

import (
	"fmt"

	"gridnode/grid"
	"gridnode/internal/lrms"
)

// Policy says for which jobs a Domain asks its partners.
type Policy uint8

// Policies ("The gain of resource delegation", section 5).
const (
	// Local never asks.
	Local Policy = iota

	// SSTRD asks for the job that was submitted.
	SSTRD

	// XSTRD asks for every job in the queue, from its head on.
	XSTRD
)

var policyNames = [...]string{"local", "s-strd", "x-strd"}

// String returns "local", "s-strd" or "x-strd".
func (p Policy) String() string { return policyNames[p] }

// ParsePolicy reads what String prints.
func ParsePolicy(s string) (Policy, error) {
	for p, name := range policyNames {
		if s == name {
			return Policy(p), nil
		}
	}
	return 0, fmt.Errorf("%q: want local, s-strd or x-strd", s)
}

// Domain is a site's local scheduling domain: "all processors that are exclusively
// controlled by the LRMS", which grows by what partners grant and shrinks by what
// they are granted (section 4.1). A lease is for one job: it begins with the job
// and ends when the job does.
//
// The owner calls, for everything that happens at an instant, Ended and then
// Submit, and Schedule once after them. It starts what Submit and Schedule return.
// Domains that are partners belong to one owner and are given the same instants.
type Domain struct {
	cluster  *lrms.Cluster
	policy   Policy
	partners []*Domain
	loans    map[grid.TaskID]loan // of its running jobs, as far as they have leased processors
	requests Requests
}

// loan is what a job has from a partner.
type loan struct {
	lender int // index of partners
	own    bool
}

// Requests counts what a domain has asked its partners for.
type Requests struct {
	Sent    int64
	Granted int64
}

// Started is a job that starts now.
type Started struct {
	lrms.Request
	Leased int64 // of its processors, those that a partner granted
	Lender int   // the partner, in the order they were given; nothing if Leased is 0
}

// NewDomain returns the domain of a cluster without jobs.
func NewDomain(cluster *lrms.Cluster, policy Policy) *Domain {
	return &Domain{cluster: cluster, policy: policy, loans: make(map[grid.TaskID]loan)}
}

// Join makes partners of d, which asks them in this order.
func (d *Domain) Join(partners ...*Domain) { d.partners = append(d.partners, partners...) }

// Requests returns what d has asked for so far.
func (d *Domain) Requests() Requests { return d.requests }

// Submit puts a job into the queue and appends to started what can start now
// because a partner helps. The errors are lrms.Cluster.Submit's.
func (d *Domain) Submit(now grid.Time, r lrms.Request, started []Started) ([]Started, error) {
	// "it is automatically forwarded to and enqueued at the LRMS"
	if err := d.cluster.Submit(now, r); err != nil {
		return started, err
	}
	switch d.policy {
	case SSTRD:
		started, _ = d.help(now, r, started)
	case XSTRD:
		// "applied for each job in the queue (including the new job), starting at the
		// queue's head". The first refusal ends it: what the partner has not got for
		// one job it is not asked for again at this instant.
		for waiting := range d.cluster.Waiting {
			refused := false
			if started, refused = d.help(now, waiting, started); refused {
				break
			}
		}
	}
	return started, nil
}

// help leases what a queued job lacks and starts the job, or reports that every
// partner refused.
func (d *Domain) help(now grid.Time, r lrms.Request, started []Started) (_ []Started, refused bool) {
	// "checks whether there are enough idle resources available to directly execute
	// the job. In the positive case, the DRMS leaves further handling to the LRMS."
	idle := d.cluster.Idle(now)
	lacking := r.Processors - idle
	if lacking <= 0 {
		return started, false
	}
	for i, partner := range d.partners {
		d.requests.Sent++
		if !partner.grant(now, r.ID, lacking, r.Estimate) {
			continue
		}
		d.requests.Granted++
		// "the job is prioritized for direct execution"
		d.cluster.Cancel(now, r.ID)
		if idle > 0 {
			d.occupy(now, lrms.Request{ID: r.ID, Processors: idle, Estimate: r.Estimate})
		}
		d.loans[r.ID] = loan{lender: i, own: idle > 0}
		return append(started, Started{Request: r, Leased: lacking, Lender: i}), false
	}
	return started, true
}

// grant lends processors for a span if that many are idle, and reports whether it
// does. What is leased is not among them: it only ever runs the job it was leased
// for ("it is not allowed to grant already leased resources to a third party").
func (d *Domain) grant(now grid.Time, id grid.TaskID, processors int64, span grid.Time) bool {
	if processors > d.cluster.Idle(now) {
		return false
	}
	d.occupy(now, lrms.Request{ID: id, Processors: processors, Estimate: span})
	return true
}

// occupy takes idle processors.
func (d *Domain) occupy(now grid.Time, r lrms.Request) {
	if err := d.cluster.Adopt(now, r, now); err != nil {
		panic(fmt.Sprintf("lease: idle processors cannot be taken: %v", err))
	}
}

// Ended takes back the processors of a job of d and returns its lender's to it: "After
// completion of the job, which is not necessarily equal to the user estimate, leased
// resources are returned to the granting site." It returns the lender, for which
// Schedule has to follow, or -1. An unknown job changes nothing.
func (d *Domain) Ended(now grid.Time, id grid.TaskID) (lender int) {
	l, leased := d.loans[id]
	if !leased {
		d.cluster.Ended(now, id)
		return -1
	}
	if l.own {
		d.cluster.Ended(now, id)
	}
	d.partners[l.lender].cluster.Ended(now, id)
	delete(d.loans, id)
	return l.lender
}

// Schedule makes a pass of the LRMS and appends to started what it starts.
func (d *Domain) Schedule(now grid.Time, pass []lrms.Request, started []Started) []Started {
	for _, r := range d.cluster.Schedule(now, pass[:0]) {
		started = append(started, Started{Request: r})
	}
	return started
}
