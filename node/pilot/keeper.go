package pilot

import (
	"fmt"
	"maps"
	"slices"

	"gridnode/grid"
)

// Keeper is the pilots of a lender: which tasks borrowers may start on the processors of
// their leases, each at most once, and what they are told about them. It reads no clock
// and does no I/O. Not safe for concurrent use.
type Keeper struct {
	self      grid.SiteID
	permits   func(now grid.Time, from grid.SiteID, job *grid.Job) string // nil: all may run
	pilots    map[uint64]*kept
	borrowers map[grid.SiteID]*borrower // of pilots
}

// borrower is a site with leases here.
type borrower struct {
	id      grid.SiteID
	pilots  int
	session uint64 // the newest; 0: none yet
	open    bool
}

// kept is a pilot.
type kept struct {
	key        uint64
	borrower   *borrower
	processors int64
	until      grid.Time
	state      keptState
	gang       grid.TaskID // whose tasks it has; zero: none was here
	used       int64       // by tasks that run or are prepared
	unknown    int         // tasks that run, on nobody knows how many processors
	tasks      map[grid.TaskID]*held
	waiting    []Ordered // while it is dialled
}

type keptState uint8

const (
	keptDown keptState = iota
	keptDialled
	keptUp
)

// held is a task that a pilot has, or whose end is kept until it is acknowledged.
type held struct {
	id         grid.TaskID
	state      heldState
	processors int64      // it takes; 0: none, or not known
	unknown    bool       // it runs, on nobody knows how many
	task       *grid.Task // until it runs
	goes       bool       // preparing: start it then
	follower   uint64     // the session in which it is reported about; 0: none
	ran        bool       // it was started
	stopped    bool       // it was told to end
	tasks      int        // how many it is; 0: not known
	found      int        // of its tasks after a restart, until its borrower says how many there are; 0: all
	roll       roll
}

type heldState uint8

const (
	heldPreparing heldState = iota
	heldReady
	heldRunning
	heldOver
)

// isOver reports whether a task is there and has ended.
func (t *held) isOver() bool { return t != nil && t.state == heldOver }

// NewKeeper returns the pilots of a site without any.
func NewKeeper(self grid.SiteID) *Keeper {
	return &Keeper{self: self, pilots: make(map[uint64]*kept), borrowers: make(map[grid.SiteID]*borrower)}
}

// Step applies one input at time now and appends to out what the driver must carry out in
// order. An unknown input is a defect: panic.
func (k *Keeper) Step(now grid.Time, in grid.Input, out *Outbox) {
	switch in := in.(type) {
	case grid.Tick:
	case *Keep:
		k.keep(in, out)
	case *Release:
		k.release(in.Key, out)
	case *Up:
		k.up(now, in, out)
	case *Down:
		k.down(in, out)
	case *Over:
		k.over(in, out)
	case *Unstarted:
		if p, t := k.find(in.Key, in.ID); t != nil && t.state == heldRunning {
			p.ended(t, in.Number, End{ExitCode: ExitNoStart, Reason: short(in.Why)}, out)
		}
	case *Prepared:
		k.prepared(in, out)
	case *Ordered:
		k.ordered(now, in, out)
	case *Closed:
		if b := k.borrowers[in.From]; b != nil && b.session == in.Session {
			b.open = false
		}
	default:
		panic(fmt.Sprintf("pilot: unknown input %T of a keeper", in))
	}
}

// NextTimer returns grid.Never: nothing of a keeper is due by itself.
func (k *Keeper) NextTimer() grid.Time { return grid.Never }

// find returns a task and its pilot, nil where there is none.
func (k *Keeper) find(key uint64, id grid.TaskID) (*kept, *held) {
	p := k.pilots[key]
	if p == nil {
		return nil, nil
	}
	return p, p.tasks[id]
}

// keep enters a pilot, and connects to it.
func (k *Keeper) keep(in *Keep, out *Outbox) {
	p := k.pilots[in.Key]
	if p == nil {
		b := k.borrowers[in.Borrower]
		if b == nil {
			b = &borrower{id: in.Borrower}
			k.borrowers[in.Borrower] = b
		}
		b.pilots++
		p = &kept{key: in.Key, borrower: b, processors: in.Processors, tasks: make(map[grid.TaskID]*held)}
		k.pilots[in.Key] = p
	}
	p.until = in.Until
	p.dial(out)
}

func (p *kept) dial(out *Outbox) {
	if p.state == keptDown {
		p.state = keptDialled
		out.order(Dial{p.key})
	}
}

// release forgets a pilot. What runs there ends with it, and the borrower learns from the
// end of its lease: no report says how.
func (k *Keeper) release(key uint64, out *Outbox) {
	p := k.pilots[key]
	if p == nil {
		return
	}
	for i := range p.waiting {
		p.refuse(&p.waiting[i], noLease, out)
	}
	delete(k.pilots, key)
	if p.borrower.pilots--; p.borrower.pilots == 0 {
		delete(k.borrowers, p.borrower.id)
	}
	if p.gang != (grid.TaskID{}) && !k.hasGang(p.borrower, p.gang) {
		out.order(Disband{p.borrower.id, p.gang})
	}
}

// noLease is the reason of a refusal for which the borrower's book has a better one.
const noLease = "no such lease"

func (k *Keeper) hasGang(b *borrower, gang grid.TaskID) bool {
	for _, p := range k.pilots {
		if p.borrower == b && p.gang == gang {
			return true
		}
	}
	return false
}

// up takes in what a pilot has, and what was asked of it meanwhile.
func (k *Keeper) up(now grid.Time, in *Up, out *Outbox) {
	p := k.pilots[in.Key]
	if p == nil || p.state != keptDialled {
		return
	}
	p.state = keptUp
	for _, a := range in.Tasks {
		if p.tasks[a.ID] != nil {
			continue
		}
		p.tasks[a.ID] = &held{id: a.ID, state: heldRunning, ran: true, unknown: a.Running, found: a.Tasks, roll: roll{left: a.Tasks}}
		if a.Running {
			p.unknown++
		}
		if gang, _, squad := grid.SquadOf(a.ID); squad {
			p.gang = gang
		}
	}
	waiting := p.waiting
	p.waiting = nil
	for i := range waiting {
		if p.borrower.open && waiting[i].Session == p.borrower.session { // else it is asked again
			k.obey(now, p, &waiting[i], out)
		}
	}
}

// down drops what a pilot had that has not ended. If it is alive it says so again.
func (k *Keeper) down(in *Down, out *Outbox) {
	p := k.pilots[in.Key]
	if p == nil || p.state == keptDown {
		return
	}
	p.state = keptDown
	waiting := p.waiting
	p.waiting = nil
	for i := range waiting {
		p.refuse(&waiting[i], in.Why, out)
	}
	for _, id := range slices.SortedFunc(maps.Keys(p.tasks), grid.TaskID.Compare) {
		if t := p.tasks[id]; !t.isOver() {
			p.vacate(t)
			delete(p.tasks, id)
			p.tell(t, Report{Kind: ReportRefused, Reason: short(in.Why)}, out)
		}
	}
}

// over takes the end of a task.
func (k *Keeper) over(in *Over, out *Outbox) {
	p, t := k.find(in.Key, in.ID)
	switch {
	case p == nil || p.state != keptUp || t.isOver():
		return
	case t == nil:
		t = &held{id: in.ID, ran: true, roll: roll{left: 1}}
		p.tasks[in.ID] = t
	}
	p.ended(t, in.Number, in.End, out)
}

// ended takes the end of a task of a squad, or of all that are left. With the first that
// fails the others end, and with the last the squad does, which is reported.
func (p *kept) ended(t *held, number int, end End, out *Outbox) {
	failed := t.roll.ended(number, end)
	switch {
	case t.roll.isOver():
		p.vacate(t)
		t.state, t.task = heldOver, nil
		p.tellEnd(t, out)
	case failed:
		p.stop(t, becauseAnother, out)
	}
}

// stop ends what runs of a task, once: the first reason counts.
func (p *kept) stop(t *held, why string, out *Outbox) {
	if !t.stopped {
		t.stopped = true
		out.order(Stop{p.key, t.id, why})
	}
}

// vacate takes a task off its processors.
func (p *kept) vacate(t *held) {
	p.used -= t.processors
	t.processors = 0
	if t.unknown {
		t.unknown = false
		p.unknown--
	}
}

func (p *kept) tellEnd(t *held, out *Outbox) {
	if t.roll.end.Lost {
		p.tell(t, Report{Kind: ReportLost}, out)
		return
	}
	p.tell(t, Report{Kind: ReportEnded, End: t.roll.end}, out)
}

// tell reports about a task, if its borrower listens.
func (p *kept) tell(t *held, r Report, out *Outbox) {
	if b := p.borrower; b.open && t.follower == b.session {
		r.ID = t.id
		out.order(Tell{b.id, b.session, r})
	}
}
