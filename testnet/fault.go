package testnet

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"gridnode/grid"
	"gridnode/node/pilot"
)

// FaultKind is what goes wrong.
type FaultKind uint8

// Faults. Each begins at Fault.At and is over after Fault.For.
const (
	// FaultDaemon kills a site's daemon. What it had not saved is gone; its
	// executions go on under their shims and are adopted at the restart.
	FaultDaemon FaultKind = iota
	// FaultTorn kills a site's daemon within a step: what the step saved is durable,
	// nothing of what it ordered besides has left.
	FaultTorn
	// FaultMachine cuts a site's power: the daemon and all executions die.
	FaultMachine
	// FaultPartition cuts the links between Sites and all others: messages vanish.
	FaultPartition
	// FaultOneWay cuts the links from Sites to all others; what these say arrives.
	FaultOneWay
	// FaultSlow has all that comes to a site and leaves it take Delay longer.
	FaultSlow
	// FaultStep sets the clock of a site's machine by Delay, which may be negative.
	FaultStep
	// FaultStill has the clock of a site's machine stand still. Its time comes back after it.
	FaultStill
	// FaultSlew has the clocks of a site gain Delay microseconds a second, or lose them, as long
	// as that is SlewMax at most with their drift.
	FaultSlew
	// FaultOld cuts a site's power, and has it come up with a copy of its store that was made
	// Delay before: what it has saved since is forgotten.
	FaultOld
)

var faultNames = [...]string{"daemon", "torn", "machine", "partition", "oneway", "slow", "step", "still", "slew", "old"}

// FaultKinds is how many kinds of faults there are.
const FaultKinds = FaultOld + 1

// String returns the fault's name in lists of faults and in reports.
func (k FaultKind) String() string { return faultNames[k] }

// Kills reports whether it takes a site down.
func (k FaultKind) Kills() bool { return k < FaultPartition || k == FaultOld }

// Cuts reports whether it is one of links: sites stay up.
func (k FaultKind) Cuts() bool { return k >= FaultPartition && k <= FaultSlow }

// Clocks reports whether it is one of clocks: sites stay up, and are heard.
func (k FaultKind) Clocks() bool { return k >= FaultStep && k <= FaultSlew }

// Fault is one thing that goes wrong and heals.
type Fault struct {
	Kind  FaultKind
	At    grid.Time
	For   grid.Time // more than 0; grid.Never: it does not heal
	Sites []int     // a single one unless Kind is FaultPartition or FaultOneWay
	Delay grid.Time // of FaultSlow, FaultStep, FaultSlew and FaultOld

	healing bool // this is the end of the fault at index begun
	copying bool // … or it is FaultOld's copy that is made, for the one at that index
	begun   int32
}

// cut is a partition in force.
type cut struct {
	fault  int32
	inside []bool // by site
	oneway bool   // only what leaves them is lost
}

// Schedule makes a fault happen. Faults that keep a site down may overlap: it is
// restarted when the last of them is over.
func (n *Network) Schedule(f Fault) error {
	switch {
	case f.Kind >= FaultKinds || f.For <= 0 || len(f.Sites) == 0 || f.Delay < 0 && !f.Kind.Clocks() || len(f.Sites) != 1 && f.Kind != FaultPartition && f.Kind != FaultOneWay:
		return fmt.Errorf("fault %d of sites %v for %v: want one site (a partition: at least one) and a time of more than 0", f.Kind, f.Sites, f.For)
	case !f.Kind.Cuts() && f.Kind != FaultSlew && !n.cfg.Durable:
		return fmt.Errorf("a %v fault needs a network that keeps what its sites save (Config.Durable)", f.Kind)
	}
	for _, s := range f.Sites {
		if s < 0 || s >= len(n.members) {
			return fmt.Errorf("%v fault at site %d of %d", f.Kind, s, len(n.members))
		}
	}
	if f.Kind == FaultTorn {
		n.joint.Store(true)
	}
	f.At = max(f.At, n.now)
	begun := int32(len(n.faults.planned))
	n.faults.plan(f)
	if f.Kind == FaultOld {
		made := f
		made.At, made.copying, made.begun = max(f.At-f.Delay, n.now), true, begun
		n.faults.plan(made)
	}
	if f.For != grid.Never {
		f.At, f.healing, f.begun = f.At.Add(f.For), true, begun
		n.faults.plan(f)
	}
	return nil
}

// faults are what happens to the sites of a network and to what lies between them.
type faults struct {
	n       *Network
	planned []Fault
	cuts    []cut                       // partitions that are on
	copies  map[int32]map[string][]byte // of stores, by the index of the fault that brings one back
}

func (fs *faults) plan(f Fault) {
	n := fs.n
	s := int32(f.Sites[0])
	n.order(&n.common, f.At, classOther, event{kind: eventFault, to: s, from: s, index: int32(len(n.faults.planned))})
	n.faults.planned = append(n.faults.planned, f)
}

// strike lets a fault begin or end.
func (fs *faults) strike(i int32) {
	n := fs.n
	f := &n.faults.planned[i]
	s := int32(f.Sites[0])
	m := &n.members[s]
	if f.copying {
		fs.copies[f.begun] = m.copied()
		return
	}
	fs.tell(f)
	switch {
	case f.Kind == FaultSlow && f.healing:
		m.slow -= f.Delay
		return
	case f.Kind == FaultSlow:
		m.slow += f.Delay
		return
	case f.Kind.Cuts():
		fs.partition(i, f)
		return
	case f.Kind.Clocks():
		n.clocks.strike(n, i, f)
		return
	}
	switch {
	case f.healing:
		m.downs--
		if m.downs == 0 && m.core == nil {
			fs.restart(s)
		}
		m.fuse = m.fuse && m.downs > 0
	case f.Kind == FaultTorn:
		m.downs++
		m.fuse = m.core != nil
	default:
		m.downs++
		fs.crash(s, f.Kind != FaultDaemon)
		if older, made := fs.copies[i]; made {
			m.records = older
			delete(fs.copies, i)
		}
	}
}

// die begins a fault now: the site's daemon dies within its step, and is down for a span.
func (fs *faults) die(s int32, span grid.Time) {
	f := Fault{Kind: FaultTorn, At: fs.n.now, For: span, Sites: []int{int(s)}}
	begun := int32(len(fs.planned))
	fs.planned = append(fs.planned, f)
	fs.tell(&f)
	fs.n.members[s].downs++
	f.At, f.healing, f.begun = f.At.Add(span), true, begun
	fs.plan(f)
}

// tell tells observers that a fault begins or ends.
func (fs *faults) tell(f *Fault) {
	for i := range fs.n.observers {
		if g := fs.n.observers[i].Fault; g != nil {
			g(fs.n.now, f)
		}
	}
}

// Healing reports whether f is told to observers because it is over.
func (f *Fault) Healing() bool { return f.healing }

func (fs *faults) partition(i int32, f *Fault) {
	n := fs.n
	if f.healing {
		fs.cuts = slices.DeleteFunc(fs.cuts, func(c cut) bool { return c.fault == f.begun })
		for i := range n.members {
			if r, ok := n.members[i].router.(interface{ Rejoin() }); ok {
				r.Rejoin()
			}
		}
		return
	}
	c := cut{fault: i, inside: make([]bool, len(n.members)), oneway: f.Kind == FaultOneWay}
	for _, s := range f.Sites {
		c.inside[s] = true
	}
	fs.cuts = append(fs.cuts, c)
	fs.divided(&c, f.Sites)
}

// severed reports whether a partition keeps what one site sends from another.
func (fs *faults) severed(from, to int32) bool {
	for i := range fs.cuts {
		if c := &fs.cuts[i]; c.inside[from] != c.inside[to] && (c.inside[from] || !c.oneway) {
			return true
		}
	}
	return false
}

// crash takes a site down. Its executions die with its machine only.
func (fs *faults) crash(s int32, machine bool) {
	n := fs.n
	m := &n.members[s]
	fs.parted(s, machine)
	m.core, m.router, m.routed, m.fuse = nil, nil, grid.Never, false
	m.armed = grid.Never
	if m.away != nil {
		m.away.crash(machine)
	}
	if !machine {
		return
	}
	m.off = true
	tasks := &n.laneOf(s).tasks
	for i := m.executions; i != none; i = tasks.slots[i].next {
		if x := &tasks.slots[i]; x.state == executionAlive {
			x.Lost = true
			tasks.gone(x)
		}
	}
}

// restart brings a site up again from what it had saved, and tells it of every
// execution it had, before its first Tick. Users who had no answer ask again.
func (fs *faults) restart(s int32) {
	n := fs.n
	m, l := &n.members[s], n.laneOf(s)
	m.incarnation++
	m.off = false
	n.clocks.takeUp(n, s)
	core, err := m.New(int(m.incarnation))
	if err != nil {
		n.err = fmt.Errorf("restart site %s at %v: %w", m.ID, n.now, err)
		return
	}
	m.core = core
	if m.Router != nil {
		m.router = m.Router(int(m.incarnation))
		m.asked()
	}
	var known []int32
	for i := m.executions; i != none; i = l.tasks.slots[i].next {
		known = append(known, i)
	}
	slices.Reverse(known) // in the order they were started
	if m.away != nil {
		m.away.boot()
		fs.found(s, known)
	}
	if r, ok := core.(Recoverer); ok {
		if err := r.Recover(m.Clock.Local(n.now), m.saved, l.outbox()); err != nil {
			n.err = fmt.Errorf("restart site %s at %v: recover: %w", m.ID, n.now, err)
			return
		}
		l.carryOut(s)
	}
	for _, i := range known {
		if m.core == nil { // it has died again: it is told the rest next time
			return
		}
		if x := &l.tasks.slots[i]; x.state == executionOver && x.Squad == nil {
			l.tasks.report(s, i)
		} else if n.cfg.Inputs.Adopted != nil {
			l.step(s, n.cfg.Inputs.Adopted(x.ID, x.stamps[0]))
		}
	}
	if m.away != nil {
		m.away.report()
	}
	l.step(s, grid.Tick{}) // as a host does: what is left is taken up before anything new comes
	l.resubmit(s)
	if m.router != nil { // a node of the DHT that comes back looks itself up
		l.closestTo(s, sha256.Sum256([]byte(m.ID)))
	}
	l.owe(s)
}

// found tells a daemon that is up again which squads are there.
func (fs *faults) found(s int32, known []int32) {
	l := fs.n.laneOf(s)
	for _, i := range known {
		x := &l.tasks.slots[i]
		if x.Squad == nil {
			continue
		}
		in := &pilot.Found{ID: x.ID, Tasks: x.Squad.Tasks()}
		if x.state == executionOver {
			ended := l.tasks.outcome(x)
			end := pilot.EndOf(&ended)
			in.Ended = &end
		}
		l.away(s).step(in)
	}
}
