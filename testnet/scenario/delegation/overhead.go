package delegation

import (
	"strings"

	"gridnode/grid"
	"gridnode/testnet"
)

// Overhead counts the messages that manage the workload, by the types of the paper
// (§5.1) and in its Condor-like model (§4.2): a job manager (JM) per user, a site
// manager (SM) per site, a resource manager (RM) per processor.
type Overhead struct {
	NotifyBroker int64 // JM and RM tell the SM of a request, a start, an end
	Negotiate    int64 // SM and JM about a request that a round of matchmaking looks at
	JobData      int64 // JM and RM: the job, and its result
	Claim        int64 // match, claim, its confirmation, release: SM, JM and RM
	DMM          int64 // SM and SM: all messages about leases but keep-alives
	KeepAlive    int64 // JM and RM, each way every 300 s while a job runs; SM and SM while a lease lasts
}

// keepAlive is the time between two keep-alives.
const keepAlive = 300 * grid.Second

// Map returns the counts by name.
func (o *Overhead) Map() map[string]int64 {
	return map[string]int64{
		"notify-broker": o.NotifyBroker, "negotiate": o.Negotiate, "job-data-exchange": o.JobData,
		"match-claim-release": o.Claim, "dmm": o.DMM, "keep-alive": o.KeepAlive,
	}
}

// Workload returns the messages that manage the workload without DMM's own.
func (o *Overhead) Workload() int64 { return o.NotifyBroker + o.Negotiate + o.JobData + o.Claim }

// started and ended count the messages of an execution.
func (d *delegated) started(x *testnet.Execution) {
	n := x.Job.Processors
	d.running[x.ID] = *x
	if home, _ := d.n.Index(x.Job.Home); d.dmm() && x.Site == home {
		d.negotiated(1) // by a round of its own site
	}
	d.overhead.NotifyBroker += n // RM to SM: busy
	d.overhead.JobData += n      // JM to RM: the job
	d.overhead.Claim += 1 + 3*n  // SM to JM and to RM: match; JM to RM: claim; RM to JM: claimed
}

func (d *delegated) ended(x *testnet.Execution) {
	delete(d.running, x.ID)
	n := x.Job.Processors
	d.overhead.NotifyBroker += n // RM to SM: free
	d.overhead.JobData += n      // RM to JM: the result
	d.overhead.Claim += 1 + n    // JM to SM and to RM: release
	d.keptAlive(x, x.End)
}

// keptAlive counts the keep-alives of an execution until an instant.
func (d *delegated) keptAlive(x *testnet.Execution, until grid.Time) {
	d.overhead.KeepAlive += 2 * x.Job.Processors * int64((until-x.Start)/keepAlive)
}

// submitted counts the messages of a submission.
func (d *delegated) submitted() {
	d.sampled()
	d.submissions++
	d.overhead.NotifyBroker++ // JM to SM: the request
}

// negotiated counts the messages about a request that a round looks at.
func (d *delegated) negotiated(requests int) { d.overhead.Negotiate += 2 * int64(requests) }

// leases counts the messages about leases that were sent, by type.
func (o *Overhead) leases(sent map[string]int64) {
	for name, count := range sent {
		switch {
		case name == "lease.renew":
			o.KeepAlive += 2 * count // with its answer
		case strings.HasPrefix(name, "lease."):
			o.DMM += count
		}
	}
	o.DMM -= sent["lease.renew"] // answers to keep-alives
}
