package testnet

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/testnet/draw"
)

// Network is a set of sites in virtual time: one order of events, one clock. Everything that
// happens is determined by its Config and its members, and by nothing else: not by how many
// workers there are. Not safe for concurrent use.
type Network struct {
	cfg       Config
	now       grid.Time
	members   []member
	index     grid.SiteIndex     // of members
	topics    map[string][]int32 // sites that hear what is published
	lanes     []*lane            // of sites; a power of two
	joint     atomic.Bool        // sites do things together, or die within their steps: no strides
	common    eventQueue         // what is not one site's alone
	outside   slots[func()]      // calls among it
	inserted  uint64             // events so far
	turns     []int32            // sites that had an input at this instant and are owed a Tick
	observers []Observer
	faults    faults
	clocks    wallClocks
	oracle    oracle
	providers providers
	attended  [][]int32 // by site: with whom it keeps a connection (EffectAttend)
	events    int64
	strides   int64 // that it went through
	merging   bool  // what a stride has logged is merged

	source    Source
	arrival   arrival // the next job of source
	token     uint64  // of the last user
	submitted []*lane // whose jobs arrive in a stride, in order
	err       error
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
	trace   trace
	_       [16]byte // whole lines
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
	n := &Network{cfg: cfg, topics: make(map[string][]int32), providers: make(providers)}
	for range lanesOf(cfg.Workers) {
		n.lanes = append(n.lanes, newLane(n))
	}
	n.faults.n, n.faults.copies = n, make(map[int32]map[string][]byte)
	return n, nil
}

// Add adds a site, calls its New and returns its index. It gets its first Tick at
// the present instant.
func (n *Network) Add(m Member) (int, error) {
	if _, known := n.find(m.ID); known || m.ID == "" {
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
		ID: m.ID, Clock: m.Clock, Rating: m.Rating, New: m.New, Router: m.Router, core: core, armed: grid.Never, routed: grid.Never, executions: none, trace: newTrace(),
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
	n.attended = append(n.attended, nil)
	n.index.Add(m.ID, s)
	n.oracle.add(m.ID, s)
	n.laneOf(s).owe(s)
	return int(s), nil
}

// Subscribe makes sites members of a topic: what one of them publishes reaches the others.
func (n *Network) Subscribe(topic string, sites ...int) {
	for _, s := range sites {
		n.topics[topic] = append(n.topics[topic], int32(s))
	}
}

// Feed sets where jobs come from. Only the next one is held in memory.
func (n *Network) Feed(source Source) { n.source = source }

// Inject gives a site an input at an instant that is not past. It is lost if the site is down then.
func (n *Network) Inject(at grid.Time, site int, in grid.Input) {
	n.laneOf(int32(site)).inject(at, int32(site), anyIncarnation, in)
}

// anyIncarnation marks an input that a restart in between does not make void.
const anyIncarnation = ^uint32(0)

// Now is the present true instant.
func (n *Network) Now() grid.Time { return n.now }

// Len returns the number of sites.
func (n *Network) Len() int { return len(n.members) }

// ID returns a site's name.
func (n *Network) ID(site int) grid.SiteID { return n.members[site].ID }

// Index returns the index of the site of that name, and whether there is one.
func (n *Network) Index(id grid.SiteID) (site int, ok bool) {
	s, ok := n.find(id)
	return int(s), ok
}

func (n *Network) find(id grid.SiteID) (s int32, ok bool) {
	return n.index.Find(id, func(s int32) grid.SiteID { return n.members[s].ID })
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
func (n *Network) Counter(site int) *Counter {
	return n.laneOf(int32(site)).counts.of(n.inLane(int32(site)))
}

// Events returns how many events have happened.
func (n *Network) Events() int64 { return n.events }

// Strides returns how many strides its workers went through side by side.
func (n *Network) Strides() int64 { return n.strides }

// Lost returns how many messages the network lost, those at partitions included.
func (n *Network) Lost() (count int64) {
	for _, l := range n.lanes {
		count += l.wires.lost
	}
	return count
}

// TraceHash returns the hash over everything that has happened to each site: equal for equal
// runs, on every machine, with any number of workers.
func (n *Network) TraceHash() uint64 {
	t := newTrace()
	for i := range n.members {
		t.add(uint64(n.members[i].trace))
	}
	return uint64(t)
}

// Pending returns how many events have yet to happen.
func (n *Network) Pending() int {
	count := n.common.len()
	for _, l := range n.lanes {
		count += l.queue.len()
	}
	return count
}

// Unanswered returns how many users have had no answer to their submissions. Where no
// site can crash nobody asks for one.
func (n *Network) Unanswered() (count int) {
	for _, l := range n.lanes {
		count += len(l.open)
	}
	return count
}

// Wake gives a site a Tick at the end of the present instant: something has changed
// that it was not told.
func (n *Network) Wake(site int) { n.laneOf(int32(site)).owe(int32(site)) }

// Drained reports whether no job is left to be submitted.
func (n *Network) Drained() bool { return n.source == nil && n.arrival.job == nil }
