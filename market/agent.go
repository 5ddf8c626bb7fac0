package market

import (
	"cmp"
	"fmt"
	"math/rand/v2"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/market/bank"
)

// Agent is the Grid-Federation agent (GFA) of one site: it places the jobs of
// its own users and admits those of others. It is deterministic, reads no clock
// and is not safe for concurrent use.
type Agent struct {
	// Rejected counts quotes whose price is none: not positive, or too large.
	Rejected int64

	cfg     Config
	cluster *lrms.Cluster
	dir     *directory.Directory
	rng     *rand.Rand
	timers  grid.Alarms[alarmed]
	memory  Memory
	gossip  Gossip     // of dir
	desk    *bank.Desk // nil: nobody pays anybody

	// Home's side.
	placing  map[grid.JobID]*placement
	queries  map[directory.QueryID]*placement
	migrated map[grid.JobID]*migrated // jobs of ours that other sites have
	requests uint64                   // of the newest negotiation
	freed    []*memory                // sites with room for jobs that wait to be asked for
	spare    []*placement             // used placements, ready for the next job
	ranking  ranking                  // scratch
	ties     []tie                    // at the fronts of the directory's orders, oldest first

	repricing repricing

	// The asked site's side.
	holds  map[grid.JobID]*hold
	remote map[grid.JobID]*remote // jobs of others that were accepted here
	grants uint64                 // newest name of a guarantee
	unused []*hold

	slabs *Slabs
}

// New returns an agent that knows no jobs. cfg must be valid (Config.Validate),
// or New panics. cluster is shared with the rest of the site: the agent makes and
// takes back reservations in it and nothing else. rng makes all random choices.
func New(cfg Config, cluster *lrms.Cluster, dir *directory.Directory, rng *rand.Rand) *Agent {
	if err := cfg.Validate(); err != nil {
		panic(err.Error())
	}
	return &Agent{
		cfg: cfg.WithDefaults(), cluster: cluster, dir: dir, rng: rng, gossip: dir.Load,
		placing:  make(map[grid.JobID]*placement),
		queries:  make(map[directory.QueryID]*placement),
		migrated: make(map[grid.JobID]*migrated),
		holds:    make(map[grid.JobID]*hold),
		remote:   make(map[grid.JobID]*remote),
		slabs:    cmp.Or(cfg.Slabs, new(Slabs)),
	}
}

// UseBank makes the agent pay for jobs elsewhere with cheques of desk's bank, if it
// has one, and take the cheques of others. It is called before any Step.
func (a *Agent) UseBank(desk *bank.Desk) { a.desk = desk }

// Quote returns what this site offers at now, as the directory would publish it,
// without sequence, issue time and lifetime.
func (a *Agent) Quote(now grid.Time) directory.Quote {
	state := a.cluster.State(now)
	return directory.Quote{
		Site: a.cfg.Site, Name: a.cfg.Name, Resources: a.cfg.Resources, Rating: a.cfg.Rating,
		Price: a.cfg.Price, Cost: a.cfg.Cost, Foreign: a.cfg.Foreign,
		Free: state.Free, Widest: state.Widest, Wait: min(state.Wait, grid.SpanMax),
	}
}

// alarmed is something of the agent that waits for an instant.
type alarmed interface {
	due(a *Agent, now grid.Time, out *grid.Outbox)
}

// Step applies one input at time now and appends the effects to out. What is due
// is done first, whatever the input. now never decreases.
func (a *Agent) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	a.watchDemand(now)
	for t := a.timers.Pop(now); t != nil; t = a.timers.Pop(now) {
		t.Owner.due(a, now, out)
	}
	switch in := in.(type) {
	case grid.Tick: // what was due is done
	case *grid.Delivery:
		a.deliver(now, in.From, in.Message, out)
	case *grid.Undelivered:
		a.undelivered(now, in, out)
	case *directory.Found:
		a.found(now, in, out)
	case *Place:
		a.place(now, in, out)
	case *Stop:
		a.stop(now, in, out)
	case *Ended:
		a.ended(now, in, out)
	case *Abandoned:
		a.abandoned(now, in, out)
	case *Preview:
		a.preview(now, in, out)
	case *Pay:
		a.pay(now, in, out)
	case *Resume:
		a.resume(now, in, out)
	case *Restore:
		a.restore(in)
	default:
		panic(fmt.Sprintf("market: unknown input %T", in))
	}
	a.wake(now, out)
}

// NextTimer returns when Step next needs a Tick, and grid.Never if it needs none.
func (a *Agent) NextTimer() grid.Time { return a.timers.Next() }

func (a *Agent) deliver(now grid.Time, from grid.SiteID, message grid.Message, out *grid.Outbox) {
	if from == a.cfg.Site {
		return // nobody negotiates with himself over the network
	}
	a.memory.Heard(from)
	switch m := message.(type) {
	case *Negotiate:
		a.negotiated(now, from, m, out)
	case *Reply:
		a.replied(now, from, m, out)
	case *JobSubmission:
		a.submitted(now, from, m, out)
	case *JobCompletion:
		a.completion(now, from, m, out)
	case *Acknowledge:
		a.acknowledged(now, from, m, out)
	case *Cancel:
		a.cancelled(now, from, m, out)
	default:
		panic(fmt.Sprintf("market: message %T is of another protocol", message))
	}
}

// undelivered draws the conclusions from a message that certainly never arrived.
func (a *Agent) undelivered(now grid.Time, in *grid.Undelivered, out *grid.Outbox) {
	switch m := in.Message.(type) {
	case *Negotiate:
		a.unanswered(now, in.To, m.Task, m.Request, out)
	case *Reply:
		if h := a.holds[m.Task.Job]; h != nil && m.Hold != 0 && h.token == m.Hold {
			a.release(now, h)
		}
	case *JobSubmission:
		a.unsubmitted(now, in.To, m, out)
	}
	// The others are repeated by timers, or the other side's timers make up for them.
}

// number returns a number higher than last that was never used before, not even
// before a restart, as long as the clock does not go back across it. The instant
// in it lets the receiver tell how much later one request was made than another.
func number(last uint64, now grid.Time) uint64 {
	return max(last+1, uint64(max(now, 0))<<numberShift, 1)
}

const numberShift = 8

// numberSpan returns by how much the request newer was made later than older.
func numberSpan(newer, older uint64) grid.Time {
	if newer <= older {
		return 0
	}
	return grid.Time((newer - older) >> numberShift)
}

// backoff is the pause between repetitions of a message that nobody confirmed.
type backoff struct{ pause grid.Time }

const (
	backoffFirst = 2 * grid.Second
	// backoffMax bounds the pause while a site waits for an answer, backoffResult
	// while a result waits for its home: a home that comes back speaks first.
	backoffMax    = grid.Minute
	backoffResult = 10 * grid.Minute
)

// next returns when to repeat: after 2 s, 4 s, … at most longest, each up to a
// quarter later, so that a site that comes back is not met by everybody at once.
func (b *backoff) next(now, longest grid.Time, rng *rand.Rand) grid.Time {
	b.pause = min(max(2*b.pause, backoffFirst), longest)
	return now.Add(b.pause).Add(grid.Time(rng.Int64N(int64(b.pause / 4))))
}
