package testnet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/testnet/draw"
)

// Network is a set of sites in virtual time: one queue of events, one clock, one
// goroutine. Everything that happens is determined by its Config and its members.
// Not safe for concurrent use.
type Network struct {
	cfg       Config
	now       grid.Time
	queue     eventQueue
	members   []member
	index     map[grid.SiteID]int32
	turns     []int32 // sites that had an input at this instant and are owed a Tick
	observers []Observer
	counts    counts
	tasks     executor
	calls     slots[func()]
	faults    faults
	clocks    wallClocks
	wires     wires
	oracle    oracle
	users     users
	providers providers
	trace     trace
	events    int64
	ticking   bool // the step under way is a Tick

	source  Source
	arrival *grid.Job // the next job of source
	where   int

	inputs  slots[grid.Input] // injected
	lookups slots[lookup]     // of the oracle
	err     error

	// Reused from step to step.
	out         grid.Outbox
	keys        []grid.Key
	answers     []grid.Input
	delivery    grid.Delivery
	delivered   int32 // whose message delivery is
	undelivered grid.Undelivered
	closest     grid.Closest
	ended       grid.TaskEnded
}

// member is a site. What nearly every event reads comes first, in two cache lines: with
// many sites nothing of one is in the processor's cache when the next event is about it.
type member struct {
	core   Site // nil while it is down
	router Router
	ID     grid.SiteID // what is exported is as in Member
	Clock  Clock

	armed       grid.Time // earliest timer event in the queue; grid.Never if none
	routed      grid.Time // when the router needs a Tick; grid.Never without one
	away        *away     // nil: it has neither lent nor borrowed, nor run a gang
	link        rand.PCG
	slow        grid.Time // how much longer what it sends and gets takes
	executions  int32     // list in executor
	incarnation uint32
	downs       int32 // faults in force that keep it down
	owed        bool  // in turns
	off         bool  // the machine, not only the daemon, is down
	fuse        bool  // the daemon crashes within its next step, once that has saved

	records map[string][]byte
	orders  map[grid.Key][]recordOrder // by what is looked up for them
	Rating  grid.Rating
	New     func(incarnation int) (Site, error)
	Router  func(incarnation int) Router
	_       [24]byte // whole lines
}

// New returns a network without sites.
func New(cfg Config) (*Network, error) {
	if err := cfg.Link.Validate(); err != nil {
		return nil, err
	}
	if cfg.DialTimeout == 0 {
		cfg.DialTimeout = 5 * grid.Second
	}
	if cfg.Closest == 0 {
		cfg.Closest = 20
	}
	n := &Network{
		cfg: cfg, index: make(map[grid.SiteID]int32),
		users: users{open: make(map[uint64]pending)}, trace: newTrace(),
	}
	n.wires = wires{n: n, topics: make(map[string][]int32)}
	n.faults.n, n.tasks.n, n.providers.n = n, n, n
	return n, nil
}

// Add adds a site, calls its New and returns its index. It gets its first Tick at
// the present instant.
func (n *Network) Add(m Member) (int, error) {
	if _, known := n.index[m.ID]; known || m.ID == "" {
		return 0, fmt.Errorf("add site %q: the name is empty or taken", m.ID)
	}
	if m.Clock.Offset < 0 || m.Clock.Drift < -DriftMax || m.Clock.Drift > DriftMax {
		return 0, fmt.Errorf("add site %q: clock offset %v, drift %d ppm: want an offset of 0 or more and a drift of at most %d", m.ID, m.Clock.Offset, m.Clock.Drift, DriftMax)
	}
	core, err := m.New(0)
	if err != nil {
		return 0, fmt.Errorf("add site %q: %w", m.ID, err)
	}
	s := int32(len(n.members))
	added := member{
		ID: m.ID, Clock: m.Clock, Rating: m.Rating, New: m.New, Router: m.Router, core: core, armed: grid.Never, routed: grid.Never, executions: none,
		link: *draw.PCG(n.cfg.Seed, m.ID, draw.ForLinks),
	}
	if m.Router != nil {
		added.router = m.Router(0)
		added.asked()
	}
	if n.cfg.Durable {
		added.records = make(map[string][]byte)
	}
	n.members = append(n.members, added)
	n.index[m.ID] = s
	n.oracle.add(m.ID, s)
	n.owe(s)
	return int(s), nil
}

// Observe adds an observer; observers are called in the order they were added.
func (n *Network) Observe(o Observer) { n.observers = append(n.observers, o) }

// Subscribe makes sites members of a topic: what one of them publishes reaches the others.
func (n *Network) Subscribe(topic string, sites ...int) {
	for _, s := range sites {
		n.wires.topics[topic] = append(n.wires.topics[topic], int32(s))
	}
}

// Feed sets where jobs come from. Only the next one is held in memory.
func (n *Network) Feed(source Source) { n.source = source }

// Inject gives a site an input at an instant that is not past. It is lost if the site is down then.
func (n *Network) Inject(at grid.Time, site int, in grid.Input) {
	n.inject(at, int32(site), anyIncarnation, in)
}

// anyIncarnation marks an input that a restart in between does not make void.
const anyIncarnation = ^uint32(0)

func (n *Network) inject(at grid.Time, site int32, incarnation uint32, in grid.Input) {
	n.queue.push(max(at, n.now), classOther, event{
		kind: eventInput, to: site, from: site, generation: incarnation, index: n.inputs.put(in),
	})
}

// Now is the present true instant.
func (n *Network) Now() grid.Time { return n.now }

// Len returns the number of sites.
func (n *Network) Len() int { return len(n.members) }

// ID returns a site's name.
func (n *Network) ID(site int) grid.SiteID { return n.members[site].ID }

// Index returns the index of the site of that name, and whether there is one.
func (n *Network) Index(id grid.SiteID) (site int, ok bool) {
	s, ok := n.index[id]
	return int(s), ok
}

// Clock returns how a site's clock runs.
func (n *Network) Clock(site int) Clock { return n.members[site].Clock }

// Seed returns the seed of the run.
func (n *Network) Seed() uint64 { return n.cfg.Seed }

// Pulse has f called every few thousand events, instead of Config.Pulse.
func (n *Network) Pulse(f func()) { n.cfg.Pulse = f }

// Core returns the logic of a site, nil while it is down.
func (n *Network) Core(site int) Site { return n.members[site].core }

// Counter counts the messages of a site by kind and direction.
type Counter = wire.Counter

// Counter returns the message counts of a site, over all its incarnations.
func (n *Network) Counter(site int) *Counter { return n.counts.of(site) }

// Events returns how many events have happened.
func (n *Network) Events() int64 { return n.events }

// Lost returns how many messages the network lost, those at partitions included.
func (n *Network) Lost() int64 { return n.wires.lost }

// TraceHash returns the hash over everything that has happened: equal for equal
// runs, on every machine.
func (n *Network) TraceHash() uint64 { return uint64(n.trace) }

// Pending returns how many events have yet to happen.
func (n *Network) Pending() int { return n.queue.len() }

// Unanswered returns how many users have had no answer to their submissions. Where no
// site can crash nobody asks for one.
func (n *Network) Unanswered() int { return len(n.users.open) }

// Wake gives a site a Tick at the end of the present instant: something has changed
// that it was not told.
func (n *Network) Wake(site int) { n.owe(int32(site)) }

// Drained reports whether no job is left to be submitted.
func (n *Network) Drained() bool { return n.source == nil && n.arrival == nil }

// Run lets time pass until the instant until (included), until nothing is left to
// happen, or until stop, asked after each instant, returns true; stop may be nil.
// It returns ctx's error if that ends first, a fault of the source, of a restart
// or of a check, and otherwise nil. It may be called again with a later until.
func (n *Network) Run(ctx context.Context, until grid.Time, stop func() bool) error {
	const patience = 1 << 12 // events between two looks at ctx
	look := n.events + patience
	n.settle()
	for n.err == nil {
		if err := n.fetch(); err != nil {
			return err
		}
		at := n.queue.next()
		if n.arrival != nil {
			at = min(at, n.arrival.Submit)
		}
		if at == grid.Never || at > until {
			break
		}
		n.now = max(n.now, at)
		if err := n.instant(); err != nil {
			return err
		}
		if n.events >= look {
			look = n.events + patience
			if n.cfg.Pulse != nil {
				n.cfg.Pulse()
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if stop != nil && stop() {
			return n.err
		}
	}
	if n.err == nil && until != grid.Never {
		n.now = max(n.now, until)
	}
	return n.err
}

// instant lets everything of the present instant happen: the events, ends of
// executions first; then submissions, in the order of the source; then one Tick
// for each site concerned. What a Tick causes at once belongs to the same instant.
func (n *Network) instant() error {
	for n.err == nil {
		switch {
		case n.queue.next() <= n.now:
			n.happen(n.queue.pop())
		case n.arrival != nil && n.arrival.Submit <= n.now:
			job := n.arrival
			n.arrival = nil
			n.submit(int32(n.where), job)
			if err := n.fetch(); err != nil {
				return err
			}
		case len(n.turns) > 0:
			n.settle()
			continue
		default:
			return n.err
		}
		n.events++
		if n.cfg.Check != nil && (n.cfg.CheckEvery <= 1 || n.events%n.cfg.CheckEvery == 0) {
			if err := n.cfg.Check(n.now); err != nil {
				return fmt.Errorf("at %v after %d events: %w", n.now, n.events, err)
			}
		}
	}
	return n.err
}

// fetch makes arrival the next job of the source, unless it is known already.
func (n *Network) fetch() error {
	if n.arrival != nil || n.source == nil {
		return nil
	}
	job, site, err := n.source.Next()
	if errors.Is(err, io.EOF) {
		n.source = nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("read jobs: %w", err)
	}
	if site < 0 || site >= len(n.members) {
		panic(fmt.Sprintf("testnet: job %s is for site %d of %d", job.ID, site, len(n.members)))
	}
	if job.Submit < n.now {
		return fmt.Errorf("read jobs: job %s is submitted at %v, after one submitted at %v: sort the trace by submit time", job.Name, job.Submit, n.now)
	}
	n.arrival, n.where = job, site
	return nil
}

// happen carries out one event.
func (n *Network) happen(e event) {
	n.trace.event(n.now, &e)
	switch e.kind {
	case eventDeliver:
		n.wires.deliver(&e)
	case eventUndelivered:
		m := &n.members[e.to]
		if m.core == nil || m.incarnation != e.generation {
			return
		}
		n.undelivered = grid.Undelivered{To: n.members[e.from].ID, Message: e.message}
		n.hand(e.to, e.message.MessageKind(), &n.undelivered)
	case eventTimer:
		n.timer(e.to)
	case eventTaskEnd:
		n.tasks.taskEnd(&e)
	case eventInput:
		in := n.inputs.take(e.index)
		if e.generation == anyIncarnation || e.generation == n.members[e.to].incarnation {
			n.step(e.to, in)
		}
	case eventClosest:
		n.answerClosest(&e)
	case eventFault:
		n.faults.strike(e.index)
	case eventCall:
		n.calls.take(e.index)()
	}
}

// step feeds one input to a site and carries out what it orders. A site that is
// down gets nothing.
func (n *Network) step(s int32, in grid.Input) {
	m := &n.members[s]
	if m.core == nil {
		return
	}
	m.core.Step(m.Clock.Local(n.now), in, n.outbox())
	n.carryOut(s)
	if m.away != nil && m.core != nil {
		if ended, ok := in.(*grid.TaskEnded); ok {
			m.away.acknowledge(ended.ID)
		}
	}
	n.owe(s)
}

// hand feeds an input about a message of that kind to the router if it speaks it,
// else to the site.
func (n *Network) hand(s int32, kind grid.Kind, in grid.Input) {
	m := &n.members[s]
	if m.router == nil || !m.router.Speaks(kind) {
		n.step(s, in)
		return
	}
	m.router.Step(m.Clock.Local(n.now), in, n.outbox())
	m.asked()
	n.carryRouter(s)
	n.armRouter(s)
}
