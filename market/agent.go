package market

import (
	"cmp"
	"fmt"
	"math/rand/v2"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/internal/wire"
	"gridnode/market/bank"
	"gridnode/market/keepalive"
)

// Agent is the Grid-Federation agent (GFA) of one site: it places the jobs of
// its own users and admits those of others. It is deterministic, reads no clock
// and is not safe for concurrent use.
type Agent struct {
	office   office
	broker   broker   // jobs of ours on their way to a site
	away     away     // jobs of ours that other sites have
	provider provider // jobs of others, promised and accepted
}

// New returns an agent that knows no jobs. cfg must be valid (Config.Validate),
// or New panics. cluster is shared with the rest of the site: the agent makes and
// takes back reservations in it and nothing else. rng makes all random choices.
func New(cfg Config, cluster *lrms.Cluster, dir *directory.Directory, rng *rand.Rand) *Agent {
	if err := cfg.Validate(); err != nil {
		panic(err.Error())
	}
	a := new(Agent)
	a.office = office{cfg: cfg.WithDefaults(), cluster: cluster, dir: dir, gossip: dir.Load, rng: rng, slabs: cmp.Or(cfg.Slabs, new(Slabs))}
	a.office.tariff = newTariff(&a.office.cfg)
	a.away = newAway(&a.office)
	a.broker = newBroker(&a.office, &a.away)
	a.provider = newProvider(&a.office)
	return a
}

// UseBank makes the agent pay for jobs elsewhere with cheques of desk's bank, if it
// has one, and take the cheques of others. It is called before any Step.
func (a *Agent) UseBank(desk *bank.Desk) { a.office.desk = desk }

// Quote returns what this site offers at now, as the directory would publish it,
// without sequence, issue time and lifetime.
func (a *Agent) Quote(now grid.Time) directory.Quote { return a.office.quote(now) }

// Answers returns what sites have answered that were asked to guarantee a job, and what this
// one has answered.
func (a *Agent) Answers() (received, given Answers) {
	return a.broker.answers, a.provider.admission.answers
}

// Price returns what the site charges at the moment, a processor-hour.
func (a *Agent) Price() grid.Price { return a.office.tariff.price }

// SetPrice changes what the site charges from now on, within the owner's bounds if it
// follows demand, and returns what that is. Guarantees that were given keep their
// price. A price that is not 1 to grid.CreditsMax micro-credits is an error and
// changes nothing.
func (a *Agent) SetPrice(price grid.Price) (grid.Price, error) { return a.office.tariff.set(price) }

// CastOut says that a site is a member of the federation no longer, and that nothing will be
// heard of it until TakeIn: its results are kept for it no more, and its cheques presented
// without its receipts. Jobs that it has of this home are waited for as those of any site
// that is silent; those whose cheque is not there yet do not go to it.
func (a *Agent) CastOut(now grid.Time, site grid.SiteID, out *grid.Outbox) {
	if a.office.outcasts == nil {
		a.office.outcasts = make(map[grid.SiteID]bool)
	}
	a.office.outcasts[site] = true
	a.provider.castOut(now, site, out)
	a.away.castOut(site, out)
}

// TakeIn says that a site is a member again.
func (a *Agent) TakeIn(site grid.SiteID) { delete(a.office.outcasts, site) }

// Outcasts returns the sites of which nothing will be heard. It is the agent's.
func (a *Agent) Outcasts() map[grid.SiteID]bool { return a.office.outcasts }

// Step applies one input at time now and appends the effects to out. What is due
// is done first, whatever the input. now never decreases.
func (a *Agent) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	a.office.tariff.watch(now, &a.office)
	for t := a.office.timers.Pop(now); t != nil; t = a.office.timers.Pop(now) {
		t.Owner.due(a, now, out)
	}
	if a.provider.held.Next() <= now {
		a.provider.held.Tick(now, a.provider.starts(now), out)
	}
	switch in := in.(type) {
	case grid.Tick: // what was due is done
	case *grid.Delivery:
		a.deliver(now, in.From, in.Message, out)
	case *grid.Undelivered:
		a.undelivered(now, in, out)
	case *directory.Found:
		a.broker.found(now, in, out)
	case *Place:
		a.broker.place(now, in, out)
	case *Preview:
		a.broker.preview(now, in, out)
	case *Stop:
		if !a.broker.stop(now, in.Job, out) {
			a.away.stop(now, in, out)
		}
	case *Pay:
		a.away.pay(now, in, out)
	case *Resume:
		a.away.resume(now, in, out)
	case *Ended:
		a.provider.ended(now, in, out)
	case *Abandoned:
		a.provider.abandoned(now, in, out)
	case *Restore:
		a.provider.restore(now, in)
	case *Begun:
		a.provider.begun(now, in)
	default:
		panic(fmt.Sprintf("market: unknown input %T", in))
	}
	a.broker.wake(now, out)
}

// NextTimer returns when Step next needs a Tick, and grid.Never if it needs none.
func (a *Agent) NextTimer() grid.Time { return min(a.office.timers.Next(), a.provider.held.Next()) }

func (a *Agent) deliver(now grid.Time, from grid.SiteID, message grid.Message, out *grid.Outbox) {
	if from == a.office.cfg.Site {
		return // nobody negotiates with himself over the network
	}
	a.office.memory.Heard(from)
	switch m := message.(type) {
	case *Negotiate:
		a.provider.negotiated(now, from, m, out)
	case *Reply:
		a.broker.replied(now, from, m, out)
	case *JobSubmission:
		a.provider.submitted(now, from, m, out)
	case *JobCompletion:
		a.away.completion(now, from, m, out)
	case *Acknowledge:
		if m.Of == wire.MarketJobCompletion {
			a.provider.acknowledged(now, from, m, out)
		} else {
			a.away.acknowledged(now, from, m, out)
		}
	case *Cancel:
		a.provider.cancelled(now, from, m, out)
	case *keepalive.Renew:
		a.away.renew(now, from, m, out)
	case *keepalive.Renewed:
		a.provider.held.Renewed(now, from, m, out)
	default:
		panic(fmt.Sprintf("market: message %T is of another protocol", message))
	}
}

// undelivered draws the conclusions from a message that certainly never arrived.
func (a *Agent) undelivered(now grid.Time, in *grid.Undelivered, out *grid.Outbox) {
	switch m := in.Message.(type) {
	case *Negotiate:
		a.broker.unanswered(now, in.To, m, out)
	case *Reply:
		a.provider.admission.undelivered(now, m)
	case *JobSubmission:
		a.away.unsubmitted(now, in.To, m, out)
	}
	// The others are repeated by timers, or the other side's timers make up for them.
}
