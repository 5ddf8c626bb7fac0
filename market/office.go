package market

import (
	"math/rand/v2"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/internal/wire"
	"gridnode/market/bank"
)

// office is what the parts of an agent share: what the site is, what it knows of
// others, and what it speaks through. Each part owns the jobs of its own side.
type office struct {
	cfg     Config
	cluster *lrms.Cluster
	dir     *directory.Directory
	gossip  Gossip // of dir
	rng     *rand.Rand
	timers  grid.Alarms[alarmed]
	memory  Memory
	desk    *bank.Desk // nil: nobody pays anybody
	guests  Guests     // nil: the owner has no rules
	tariff  tariff
	slabs   *Slabs

	outcasts map[grid.SiteID]bool // see Agent.CastOut; nil: there are none
}

// alarmed is something of the agent that waits for an instant.
type alarmed interface {
	due(a *Agent, now grid.Time, out *grid.Outbox)
}

// quote returns what this site offers at now (Agent.Quote).
func (o *office) quote(now grid.Time) directory.Quote {
	state := o.cluster.State(now)
	q := o.cfg.Offer.Quote()
	q.Price, q.Free, q.Widest, q.Wait = o.tariff.price, state.Free, state.Widest, min(state.Wait, grid.SpanMax)
	q.GPUs = o.cluster.Stock(now)
	return q
}

// load returns what this site tells with every reply.
func (o *office) load(now grid.Time) Load {
	state := o.cluster.State(now)
	l := Load{Free: max(state.Free, 0), Widest: max(state.Widest, 0), Wait: min(state.Wait, grid.SpanMax), Price: o.tariff.price}
	if q, ok := o.dir.Known(o.cfg.Site); ok {
		l.Sequence = q.Sequence
	}
	return l
}

// priceOf returns what a processor-hour of a job costs here at present, with its GPUs.
func (o *office) priceOf(job *grid.Job) grid.Price {
	return job.GPUs.Price(o.tariff.price, job.Processors, o.cfg.GPUWeight)
}

// cost returns what a job costs here at the present price.
func (o *office) cost(job *grid.Job) grid.Credits {
	return job.CostAt(o.cfg.Rating, o.priceOf(job), o.cfg.Cost)
}

// payer returns the bank whose cheque is to pay for a job that costs cost elsewhere;
// empty if nobody pays.
func (o *office) payer(cost grid.Credits) grid.SiteID {
	if o.desk == nil || cost == 0 {
		return ""
	}
	return o.desk.Bank()
}

func (o *office) sendCancel(to grid.SiteID, c Cancel, out *grid.Outbox) {
	m := o.slabs.cancel.New()
	*m = c
	out.Send(to, m)
}

// acknowledge confirms a message of a kind that was about a guarantee, or says that
// no such guarantee is known.
func (o *office) acknowledge(to grid.SiteID, task grid.TaskID, of grid.Kind, hold uint64, unknown bool, out *grid.Outbox) {
	m := o.slabs.acknowledge.New()
	*m = Acknowledge{Task: task, Of: of, Hold: hold, Unknown: unknown}
	out.Send(to, m)
}

// acknowledgeResult confirms a completion, with home's receipt if a cheque pays.
func (o *office) acknowledgeResult(to grid.SiteID, c *JobCompletion, cost grid.Credits, out *grid.Outbox) {
	m := o.slabs.acknowledge.New()
	*m = Acknowledge{Task: c.Task, Of: wire.MarketJobCompletion}
	if o.desk != nil && !c.Abandoned {
		m.Agreement = o.desk.Agree(c.Task, to, cost, out)
	}
	out.Send(to, m)
}
