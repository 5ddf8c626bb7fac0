package slurm

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"gridnode/grid"
	"gridnode/node/pilot"
	"gridnode/node/run"
	"gridnode/node/shim"
)

// lent is what a pilot has that keeps processors of a lease. It ends with the lease, by the last
// word of this daemon about when that is, whether the daemon lives then or not. What it runs is
// known to the site's pilot.Keeper, and to its shims.
type lent struct {
	key    uint64
	until  time.Time // when the lease ends, as far as is known
	again  bool      // by an instant of before a restart of the daemon
	dials  bool      // the keeper waits for it
	dialed time.Time
	ready  chan struct{} // closed once the keeper was told what there is
	squads map[grid.TaskID]int
}

func newLent(key uint64) *lent {
	return &lent{key: key, ready: make(chan struct{}), squads: make(map[grid.TaskID]int)}
}

const (
	// dialMax is how long a pilot may take to call, once somebody wants to use it, until he is told
	// that it is not there: he asks again.
	dialMax = 20 * time.Second
	// beginMax is how long Slurm may take to begin the pilot of a lease, beyond which it is of no use.
	beginMax = 2 * grid.Minute
)

// keepLent asks Slurm for the pilot of a lease, or has it last longer. The caller holds e.mu.
func (e *Engine) keepLent(task *grid.Task) {
	x := run.Process{Task: task.ID}
	now := time.Now()
	if j := e.jobs[x]; j != nil {
		if j.glide != nil {
			j.glide.lent.until, j.glide.lent.again = now.Add(task.Limit.Duration()), task.More > 0
			if task.More > 0 {
				return
			}
			j.glide.each(func(c *shim.Client) { _ = c.Expire(task.Limit) }) // closed: it is told when it calls
		}
		return
	}
	if task.Processors < 1 {
		e.ended(failed(x, e.now(), fmt.Errorf("a lease of %d processors", task.Processors)))
		return
	}
	longest := task.Limit
	if task.Until != 0 && task.Until != grid.Never {
		longest = max(longest, task.Until-e.now())
	}
	e.newest = max(e.newest+1, int64(e.now()))
	j := &job{process: x, name: x.Name() + "." + strconv.FormatInt(e.newest, 36), fresh: true, offered: now, note: note{
		Partner: e.partner(task.Pilot.Site), Ordered: e.now(), Limit: longest, Tasks: task.Processors, Each: 1, Processor: task.Processors,
		Pilot: &keeps{Lease: task.Pilot.Key, Processors: task.Processors},
	}}
	e.own.enter(j)
	j.glide.lent.until = now.Add(task.Limit.Duration())
	e.wg.Add(1)
	go e.submit(j)
	e.soon()
}

// ofLease returns the pilot of a lease, or nil. The caller holds e.mu.
func (e *Engine) ofLease(key uint64) *glidein {
	for _, g := range e.glideins {
		if g.lent != nil && g.lent.key == key && !g.gone {
			return g
		}
	}
	return nil
}

// DialPilot implements run.Engine: the pilot calls by itself.
func (e *Engine) DialPilot(key uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := e.ofLease(key)
	if g == nil {
		e.tell(&pilot.Down{Key: key, Why: "there is no pilot of that lease"})
		return
	}
	g.lent.dials, g.lent.dialed = true, time.Now()
	e.answerDial(g)
}

// answerDial says what a pilot has once all its nodes have called. The caller holds e.mu.
func (e *Engine) answerDial(g *glidein) {
	switch l := g.lent; {
	case !l.dials:
	case g.up():
		l.dials = false
		e.tell(g.adopt())
		close(l.ready)
	case time.Since(l.dialed) > dialMax:
		l.dials = false
		e.tell(&pilot.Down{Key: l.key, Why: "the pilot has not got its processors from Slurm yet"})
	}
}

// arriveLent is called when a node has called. Its ends are told from when ready is closed. The
// caller holds e.mu.
func (e *Engine) arriveLent(g *glidein) (ready <-chan struct{}) {
	if !g.lent.until.IsZero() { // else the daemon has just started, and the shim knows
		left := max(time.Until(g.lent.until), time.Microsecond)
		g.each(func(c *shim.Client) {
			if !g.lent.again || len(c.Adopt()) == 0 { // else it was told, and knows better than the clock
				_ = c.Expire(grid.Time(left.Microseconds()))
			}
		})
	}
	ready = g.lent.ready
	e.answerDial(g)
	return ready
}

// downLent has all nodes of a pilot call anew. The caller holds e.mu.
func (e *Engine) downLent(g *glidein, why string) {
	select {
	case <-g.lent.ready:
		g.lent.ready = make(chan struct{})
		e.tell(&pilot.Down{Key: g.lent.key, Why: why})
	default: // nobody was told that it is there
	}
	g.each(func(c *shim.Client) { go c.Close() })
}

// adopt says what a pilot has, and seats that.
func (g *glidein) adopt() *pilot.Up {
	up := &pilot.Up{Key: g.lent.key}
	at := make(map[grid.TaskID]int)
	clear(g.lent.squads)
	for node, n := range g.nodes {
		for _, t := range n.client.Adopt() {
			x, err := run.ExecutionOf(t.ID)
			if err != nil {
				continue
			}
			if g.kept[t.ID] == nil {
				g.kept[t.ID] = &chair{shares: []share{{node, 0}}, squad: x.Task}
			}
			g.note(x)
			i, known := at[x.Task]
			if !known {
				i = len(up.Tasks)
				at[x.Task] = i
				up.Tasks = append(up.Tasks, pilot.Adopted{ID: x.Task})
			}
			up.Tasks[i].Tasks++
			up.Tasks[i].Running = up.Tasks[i].Running || t.Running
		}
	}
	return up
}

// note remembers how many processes a squad has.
func (g *glidein) note(x run.Process) { g.lent.squads[x.Task] = max(g.lent.squads[x.Task], x.Number+1) }

// endingLent takes the end of what ran under a lease.
func (e *Engine) endingLent(g *glidein, client *shim.Client, end *shim.Ended) {
	x, err := run.ExecutionOf(end.ID)
	if err != nil {
		_ = client.Ack(end.ID) // nobody will ever ask for it
		return
	}
	e.ways.over(end.ID)
	e.mu.Lock()
	if c := g.kept[end.ID]; c != nil {
		g.give(c.shares)
		for i := range c.shares {
			c.shares[i].processors = 0
		}
	}
	e.mu.Unlock()
	if err := e.files.SettleLeased(g.lent.key, x); err != nil {
		e.log.Warn("cannot keep what a task on lent processors left", "job", x.Task.Job, "error", err)
	}
	e.tell(&pilot.Over{Key: g.lent.key, ID: x.Task, Number: x.Number, End: pilot.End{
		Ran: run.EndOf(end) - end.Start, ExitCode: end.ExitCode, Reason: end.Reason, Lost: end.Cause == shim.CauseLost,
	}})
}

// Launch implements run.Engine: the processes of a squad are dealt out to the nodes.
func (e *Engine) Launch(key uint64, task *grid.Task) {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := e.ofLease(key)
	if g == nil || !g.up() {
		return // Down was told, or is
	}
	count, each := 1, task.Job.Processors
	if task.Squad != nil {
		count, each = task.Squad.Tasks(), task.Job.Processors/max(task.Job.Tasks, 1)
	}
	for number := range count {
		x := run.Process{Task: task.ID, Number: number}
		g.note(x)
		spec, err := e.Spec(task, number, filepath.Join(e.files.Pilot(key), x.Name()))
		if err == nil {
			err = e.files.NoteLeased(key, x, task.Job)
		}
		var shares []share
		if err == nil {
			if shares = g.take(each, true); shares == nil { // the keeper counts, too
				shares = []share{{0, 0}}
			}
			n := g.nodes[shares[0].node]
			if n.far && task.Squad != nil && len(task.Squad.Addresses) > 0 {
				spec.Peers, err = e.ways.begin(e.ctx, &e.wg, spec.ID, g, shares[0].node, task.Squad, number)
			}
			if err == nil {
				err = e.ways.start(n.client, spec)
			}
		}
		if err != nil && !isClosed(err) {
			e.ways.over(spec.ID)
			g.give(shares)
			e.tell(&pilot.Unstarted{Key: key, ID: task.ID, Number: number, Why: run.ShortReason(err)})
			continue
		}
		g.kept[spec.ID] = &chair{shares: shares, squad: task.ID}
	}
}

// processes calls do with what is kept of each process of a task of a pilot. The caller holds e.mu.
func (g *glidein) processes(id grid.TaskID, do func(name string, c *shim.Client)) {
	for _, name := range slices.Sorted(maps.Keys(g.kept)) {
		k := g.kept[name]
		if k.squad != id {
			continue
		}
		if c := g.connected(k.shares[0].node); c != nil {
			do(name, c)
		}
	}
}

// Stop implements run.Engine.
func (e *Engine) Stop(key uint64, id grid.TaskID, reason string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if g := e.ofLease(key); g != nil {
		g.processes(id, func(name string, c *shim.Client) { _ = c.Kill(name, reason) }) // closed: Down is told
	}
}

// Forget implements run.Engine.
func (e *Engine) Forget(key uint64, id grid.TaskID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := e.ofLease(key)
	if g == nil {
		return
	}
	g.processes(id, func(name string, c *shim.Client) {
		_ = c.Ack(name) // closed: it is reported again, and forgotten with the pilot
		if x, err := run.ExecutionOf(name); err == nil {
			e.files.ForgetLeased(key, x)
		}
		g.give(g.kept[name].shares)
		delete(g.kept, name)
	})
	delete(g.lent.squads, id)
}

// PilotDir implements run.Engine.
func (e *Engine) PilotDir(key uint64) string { return e.files.Pilot(key) }

// keepLents answers those who have waited for pilots for too long, and ends pilots whose leases are
// over although they have not begun. The caller holds e.mu.
func (e *Engine) keepLents(now time.Time) {
	for _, g := range e.glideins {
		if g.lent == nil || g.gone {
			continue
		}
		e.answerDial(g)
		if len(g.nodes) == 0 && g.batch.wanted == "" && !g.lent.until.IsZero() && now.After(g.lent.until) {
			g.batch.wanted = "its lease is over"
		}
	}
}
