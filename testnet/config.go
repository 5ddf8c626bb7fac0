package testnet

import (
	"iter"

	"gridnode/grid"
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
// is submitted at. Next returns io.EOF after the last one. With several workers it is asked
// ahead of what happens, by the least latency at most. The network owns a job
// from then on until it hands it to its site.
type Source interface {
	Next() (job *grid.Job, site int, err error)
}

// Inputs makes the inputs whose types belong to the site's package.
type Inputs struct {
	// Submit is for a user who submits; token 0: no answer is wanted. Used, if not nil, is something that it returned
	// and that nobody looks at any more.
	Submit  func(used grid.Input, token uint64, job *grid.Job) grid.Input
	Adopted func(task grid.TaskID, start grid.Time) grid.Input // after a restart: the execution is still alive
}

// Observer sees what happens and changes nothing. Any field may be nil.
// What it is given is valid until it returns, jobs for ever.
type Observer struct {
	Event  func(now grid.Time, site int, e *grid.Event) // a site told it
	Answer func(now grid.Time, site int, a grid.Answer) // a site answered it
	Send   func(now grid.Time, from int, to grid.SiteID, m grid.Message)
	Start  func(now grid.Time, x *Execution)               // an execution has started
	End    func(now grid.Time, x *Execution)               // an execution has ended
	Ready  func(now grid.Time, site int, id grid.TaskID)   // a squad can be started there at once
	Expel  func(now grid.Time, site int, x grid.Expulsion) // a site takes nothing of another one any more
	Turn   func(now grid.Time, site int)                   // a site has had its Tick and is at rest
	Fault  func(now grid.Time, f *Fault)                   // a fault strikes
	Step   func(now grid.Time, site int, by grid.Time)     // the clock of a daemon that starts has jumped
}

// Config of a virtual network. The zero value is a perfect network without faults.
type Config struct {
	Seed   uint64
	Link   Link
	Inputs Inputs

	// Durable keeps what sites save, so that they can be restarted.
	Durable bool

	// Tear, if set, is asked of every step that orders something, recoveries included, whether
	// the daemon dies within it. Of one in which it dies anyway, once the step has saved
	// (FaultTorn), it is told. It must not change out.
	Tear func(now grid.Time, site int, out *grid.Outbox, torn bool) Tear

	// Untold, if set, names sites of which observers are told less: nothing of what they tell and
	// answer their users, and of executions of their jobs.
	Untold func(home grid.SiteID) bool

	// Squad, if set, says what befalls the tasks of a part of a gang: how long they take until
	// they can start, Never for ever; and after which time one of them fails, 0: none does.
	Squad func(id grid.TaskID) (ready, fails grid.Time)

	// Linger, if set, says how long a task on a site's own processors goes on that is killed, as
	// one that does not stop when it is asked to.
	Linger func(id grid.TaskID) grid.Time

	// DialTimeout is after how long a sender learns that a machine is off. (That a
	// machine is up and its daemon down it learns in one round trip.)
	DialTimeout grid.Time

	// Check is called after every CheckEvery events (0: after each); an error ends the run.
	Check      func(now grid.Time) error
	CheckEvery int64

	// Pulse, if set, is called every few thousand events.
	Pulse func()

	// Workers is how many processors a run may use; 0 means 1. Whatever it is, the same
	// happens: sites are driven side by side where no message between them can be under way,
	// as long as the least latency of Link is more than 0, what happens does not depend on
	// anything besides (Latency, Coincide, Check, Tear, a stop for Run), and no site lends,
	// borrows or runs gangs. Then observers must go by what they are given alone, and sites
	// must share nothing with those of other lanes (LaneOf).
	Workers int

	// Closest is how many sites the oracle names for a key; 0 means 20, Kademlia's k.
	Closest int
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

// Tear says how a daemon dies within a step. The zero value: it does not.
type Tear struct {
	For  grid.Time // how long it is down; 0: it does not die
	Left int       // how many of the step's orders, besides what is saved and told, leave before

	// Unsaved: the store fails. Nothing of the step is durable, so nothing is told, and
	// nothing leaves.
	Unsaved bool
}
