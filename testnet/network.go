package testnet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/testnet/draw"
)

// Site is what the virtual network drives: the protocol logic of one site.
// Several inputs of one instant come one after the other, then one grid.Tick:
// whatever is to be decided once per instant (a scheduling pass) is decided there.
type Site interface {
	Step(now grid.Time, in grid.Input, out *grid.Outbox)
	NextTimer() grid.Time
}

// Recoverer is a Site that can go on from what it had saved before a crash.
// Records come in the order of their keys.
type Recoverer interface {
	Recover(now grid.Time, records iter.Seq2[string, []byte], out *grid.Outbox) error
}

// Source yields jobs in order of their submission, and the index of the site each
// is submitted at. Next returns io.EOF after the last one. The network owns a job
// from then on until it hands it to its site.
type Source interface {
	Next() (job *grid.Job, site int, err error)
}

// Inputs makes the inputs whose types belong to the site's package.
// The network uses what they return before it calls them again.
type Inputs struct {
	Submit  func(token uint64, job *grid.Job) grid.Input       // a user submits; token 0: no answer is wanted
	Adopted func(task grid.TaskID, start grid.Time) grid.Input // after a restart: the execution is still alive
}

// Observer sees what happens and changes nothing. Any field may be nil.
// What it is given is valid until it returns, jobs for ever.
type Observer struct {
	Event  func(now grid.Time, site int, e *grid.Event)  // a site told it
	Answer func(now grid.Time, site int, a grid.Answer)  // a site answered it
	Start  func(now grid.Time, x *Execution)             // an execution has started
	End    func(now grid.Time, x *Execution)             // an execution has ended
	Ready  func(now grid.Time, site int, id grid.TaskID) // a task of a gang can be started there at once
	Turn   func(now grid.Time, site int)                 // a site has had its Tick and is at rest
	Fault  func(now grid.Time, f *Fault)                 // a fault strikes
}

// Config of a virtual network. The zero value is a perfect network without faults.
type Config struct {
	Seed   uint64
	Link   Link
	Inputs Inputs

	// Durable keeps what sites save, so that they can be restarted.
	Durable bool

	// DialTimeout is after how long a sender learns that a machine is off. (That a
	// machine is up and its daemon down it learns in one round trip.)
	DialTimeout grid.Time

	// Check is called after every CheckEvery events (0: after each); an error ends the run.
	Check      func(now grid.Time) error
	CheckEvery int64

	// Pulse, if set, is called every few thousand events.
	Pulse func()

	// Closest is how many sites the oracle names for a key; 0 means 20, Kademlia's k.
	Closest int
}

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
	wires     wires
	oracle    oracle
	users     users
	providers map[grid.Key][]providerRecord
	trace     trace
	events    int64

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
	undelivered grid.Undelivered
	closest     grid.Closest
	ended       grid.TaskEnded
}

// Member is what a site is made of.
type Member struct {
	ID     grid.SiteID
	Rating grid.Rating // how fast its processors run jobs; zero: as fast as their homes
	Clock  Clock

	// New makes the site's logic; it is called once at the start and once at each
	// restart, with the number of restarts so far.
	New func(incarnation int) (Site, error)

	// Router makes the site's node of the DHT. If it is nil an oracle answers.
	Router func(incarnation int) Router
}

type member struct {
	core        Site // nil while it is down
	router      Router
	armed       grid.Time // earliest timer event in the queue; grid.Never if none
	owed        bool      // in turns
	downs       int       // faults in force that keep it down
	off         bool      // the machine, not only the daemon, is down
	fuse        bool      // the daemon crashes within its next step, once that has saved
	executions  int32     // list in executor
	incarnation uint32
	link        rand.PCG
	Member
	records map[string][]byte
	away    *away // nil: it has neither lent nor borrowed, nor run a gang
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
	n.faults.n, n.tasks.n = n, n
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
		Member: m, core: core, armed: grid.Never, executions: none,
		link: *draw.PCG(n.cfg.Seed, m.ID, draw.ForLinks),
	}
	if m.Router != nil {
		added.router = m.Router(0)
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
	n.carryRouter(s)
	n.armRouter(s)
}

// owe puts a site on the list of those that get a Tick at the end of the instant.
func (n *Network) owe(s int32) {
	if m := &n.members[s]; !m.owed {
		m.owed = true
		n.turns = append(n.turns, s)
	}
}

// tick is made once: a zero-size value in an interface costs nothing to pass.
var tick grid.Input = grid.Tick{}

// settle gives every site that had an input its Tick and sets its timer.
func (n *Network) settle() {
	for i := 0; i < len(n.turns); i++ {
		s := n.turns[i]
		n.members[s].owed = false
		n.turn(s)
		for j := range n.observers {
			if turn := n.observers[j].Turn; turn != nil {
				turn(n.now, int(s))
			}
		}
	}
	n.turns = n.turns[:0]
}

// ticksMax bounds how often a site may want another Tick at one instant: the cores
// of one site answer each other in a few rounds.
const ticksMax = 1000

// turn gives a site Ticks until it is at rest.
func (n *Network) turn(s int32) {
	m := &n.members[s]
	for ticks := 0; m.core != nil; ticks++ {
		n.trace.tick(s)
		now := m.Clock.Local(n.now)
		m.core.Step(now, tick, n.outbox())
		n.carryOut(s)
		if m.core == nil {
			return
		}
		next := m.core.NextTimer()
		if next > now {
			n.arm(s, next)
			n.armRouter(s)
			return
		}
		if ticks == ticksMax {
			panic(fmt.Sprintf("testnet: site %s has had %d Ticks at %v and wants one at %v", m.ID, ticks, now, next))
		}
	}
}

// nextTimer returns when the site needs a Tick, on its own clock.
func (m *member) nextTimer() grid.Time {
	at := m.core.NextTimer()
	if m.router != nil {
		at = min(at, m.router.NextTimer())
	}
	return at
}

// armRouter makes sure that the site's router gets a Tick when it wants one.
func (n *Network) armRouter(s int32) {
	if m := &n.members[s]; m.router != nil {
		if next := m.router.NextTimer(); next != grid.Never {
			n.arm(s, next)
		}
	}
}

// arm makes sure that the site gets a Tick when its clock shows next. A timer event
// that comes too early is not taken out of the queue: when it comes it is put off.
func (n *Network) arm(s int32, next grid.Time) {
	m := &n.members[s]
	if at := m.Clock.True(next); at < m.armed {
		m.armed = at
		n.queue.push(at, classOther, event{kind: eventTimer, to: s, from: s})
	}
}

// timer gives a site its Tick if it still wants it now. Of several timer events
// only the one it is armed for counts.
func (n *Network) timer(s int32) {
	m := &n.members[s]
	if m.armed != n.now {
		return
	}
	m.armed = grid.Never
	if m.core == nil {
		return
	}
	now := m.Clock.Local(n.now)
	if m.router != nil && m.router.NextTimer() <= now {
		n.trace.tick(^s)
		m.router.Step(now, tick, n.outbox())
		n.carryRouter(s)
	}
	if m.core != nil && m.core.NextTimer() <= now {
		n.owe(s)
	} else if m.core != nil && !m.owed { // otherwise its turn arms it
		n.arm(s, m.nextTimer())
	}
}
