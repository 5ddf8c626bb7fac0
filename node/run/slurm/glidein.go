package slurm

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"time"

	"gridnode/grid"
	"gridnode/node/run"
	"gridnode/node/shim"
)

// glidein is a pilot: a job of the cluster that keeps processors on its nodes, where shims
// run what this engine says. It is there for one lease, for the tasks of a gang of this site, or
// for the site's own small jobs.
// Guarded by Engine.mu.
type glidein struct {
	batch *job
	seats
	until   time.Time // nothing of it may be there from then on; zero: not known yet
	reach   int       // how many of its nodes are connected
	parted  time.Time // when one was not last, once the first had called
	leaves  bool      // it takes nothing new, and ends once nothing runs in it
	gone    bool
	cleared bool
	last    time.Time         // when something was placed or ended in it, or it came up
	open    map[string]*job   // of this site's own: launched and not acknowledged, by name
	log     *launches         // of these
	lent    *lent             // of a lease; else nil
	gang    *ofGang           // of a gang of this site; else nil
	nodes   []*calledNode     // by number
	kept    map[string]*chair // of a lease: what runs in it, by name
}

// calledNode is a node of a pilot whose shim has called.
type calledNode struct {
	host   string
	client *shim.Client // nil: it is not connected now
	far    bool         // it is another machine than the daemon's
}

// chair is where a process sits: its shares of nodes, of which the first one has the process.
type chair struct {
	shares []share
	squad  grid.TaskID
}

// keeps is what is noted of a pilot besides a job's.
type keeps struct {
	Lease      uint64      // key of the lease; 0: the site's own
	Gang       grid.TaskID `json:",omitzero"` // of this site; zero: it is of none
	Processors int64
}

// writtenPilot is the file of the order of a pilot.
type writtenPilot struct {
	shim.PilotOrder
	Note note
}

// silence is how long a pilot that runs nothing waits for its daemon: a restart takes less. One of a
// lease waits until the lease ends: its lender would take it for dead, and the lease for broken.
const silence = 45 * grid.Second

// ownMark is in the IDs of the site's own pilots, as whose tasks they are counted: no job is
// called so, as there is a clock in the IDs of jobs.
const ownMark = 0x70696c6f74

// ownPilot names a pilot of this site's own by a number that is used once.
func ownPilot(number int64) run.Process {
	return run.Process{Task: grid.TaskID{Job: grid.JobID{Hi: ownMark, Lo: uint64(number)}, Epoch: 1}}
}

// newGlidein enters a pilot that a job of the cluster is.
func newGlidein(j *job) *glidein {
	g := &glidein{batch: j, last: time.Now(), open: make(map[string]*job), kept: make(map[string]*chair)}
	g.most = j.note.Pilot.Processors
	switch {
	case j.note.Pilot.Lease != 0:
		g.lent = newLent(j.note.Pilot.Lease)
	case j.note.Pilot.Gang != grid.TaskID{}:
		g.gang = &ofGang{id: j.note.Pilot.Gang}
	}
	return g
}

// small reports whether a pilot is kept for small jobs.
func (g *glidein) small() bool { return g.lent == nil && g.gang == nil }

// own reports whether a job is a pilot of the site's own, of which the site knows nothing.
func (j *job) own() bool { return j.glide != nil && j.glide.lent == nil }

// preparePilot writes what a pilot needs into the work directory.
func (e *Engine) preparePilot(j *job) error {
	w := &writtenPilot{Note: j.note}
	w.PilotOrder = shim.PilotOrder{
		Name: j.name, Go: e.orders.path(j.name, ".go"), Gone: e.orders.path(j.name, ".gone.{RUN}"), End: e.orders.path(j.name, ".end"),
		Home: e.orders.path(j.name, homeEnd), Daemon: filepath.Join(e.orders.dir, addressFile), Key: filepath.Join(e.orders.dir, keyFile), Silence: cmp.Or(e.cfg.silence, silence),
	}
	if j.note.Pilot.Lease != 0 {
		w.Silence = grid.SpanMax
	}
	text, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return e.orders.writeText(j.name, text)
}

// homeEnd is how names of directories end in which the shims of a pilot have their records.
const homeEnd = ".home"

// connected returns the shim of a node, nil if it is not connected.
func (g *glidein) connected(node int) *shim.Client {
	if node < len(g.nodes) && g.nodes[node] != nil {
		return g.nodes[node].client
	}
	return nil
}

// up reports whether all nodes are connected.
func (g *glidein) up() bool { return len(g.nodes) > 0 && g.reach == len(g.nodes) && !g.gone }

// each calls do with each shim that is connected.
func (g *glidein) each(do func(*shim.Client)) {
	for _, n := range g.nodes {
		if n != nil && n.client != nil {
			do(n.client)
		}
	}
}

// leave has a pilot take nothing new, and end once nothing runs in it. The caller holds e.mu.
func (e *Engine) leave(g *glidein, why string) {
	if g.leaves {
		return
	}
	g.leaves = true
	e.log.Info("a pilot ends once nothing runs in it", "slurm", g.batch.id, "why", why)
	if len(g.nodes) == 0 && g.batch.wanted == "" { // it has not begun
		g.batch.wanted = why
		return
	}
	g.each(func(c *shim.Client) { _ = c.Retire() }) // closed: it hears when it calls again
}
