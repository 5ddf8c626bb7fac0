package slurm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"gridnode/grid"
	"gridnode/node/shim"
	"gridnode/node/shim/link"
)

// ways carry what tasks of gangs on compute nodes say to the others, and these to them. Where a
// task is to listen by its address on this machine the daemon does instead, and joins what comes
// there with a connection that the shim of its node makes. For what such a task wants of others
// its shim calls; the daemon takes it to the address of that one on this machine, where the task
// is, or whoever forwards to it. Safe for concurrent use.
//
// Shims outlive a daemon, and so do their listeners: what was begun is kept in the work directory,
// and taken up by the next daemon when the shim calls.
type ways struct {
	shim   func(g *glidein, node int) *shim.Client // nil: not connected now
	orders orders

	mu     sync.Mutex
	open   map[string]*way // by the name of the task's process
	asked  map[uint64]*asked
	newest uint64 // number of a request

	bridges *link.Bridges
}

// way is that of one task.
type way struct {
	task      string
	pilot     *glidein
	node      int
	rank      int
	addresses []string // by rank, on this machine
	listener  net.Listener
	begun     chan struct{} // closed once its shim was told to start the task
	ctx       context.Context
	end       context.CancelFunc
}

// asked is a connection that a shim was asked for.
type asked struct {
	*way
	comes chan link.End // of one
}

// askedMax is how long a shim may take to call: it waits for the task, and says nothing meanwhile.
const askedMax = link.ListenMax + 10*time.Second

// nodePause is between looks whether a node is connected again.
const nodePause = 100 * time.Millisecond

func newWays(o orders, shim func(*glidein, int) *shim.Client) *ways {
	return &ways{shim: shim, orders: o, bridges: link.NewBridges(), open: make(map[string]*way), asked: make(map[uint64]*asked)}
}

// wayEnd is between the names of a pilot and of a task in the name of a file that keeps a way.
const wayEnd = ".way."

// begin makes the way of a task of a squad that is about to start on a node elsewhere, by its
// number there, and returns what its shim is told by start. It lasts until over is called, and ctx.
func (w *ways) begin(ctx context.Context, wg *sync.WaitGroup, name string, g *glidein, node int, squad *grid.Squad, number int) (*shim.Peers, error) {
	rank := squad.Gang.FirstOf(squad.Part) + number
	if rank >= len(squad.Addresses) {
		return nil, fmt.Errorf("task %d has no address", rank)
	}
	peers := &shim.Peers{Gang: fmt.Sprint(squad.Gang.Task), Rank: rank, Addresses: squad.Addresses}
	text, err := json.Marshal(peers)
	if err != nil {
		return nil, err
	}
	if err := w.orders.note(g.batch.name, wayEnd+name, text); err != nil { // with this machine the connections are gone, too
		return nil, fmt.Errorf("slurm.workdir: %w", err)
	}
	return peers, w.listen(ctx, wg, name, g, node, peers)
}

// again makes the way of a task anew that an earlier daemon has begun, if it has.
func (w *ways) again(ctx context.Context, wg *sync.WaitGroup, name string, g *glidein, node int) error {
	text, err := w.orders.read(g.batch.name, wayEnd+name)
	if text == nil || err != nil {
		return err
	}
	peers := new(shim.Peers)
	err = json.Unmarshal(text, peers)
	if err == nil && (peers.Rank < 0 || peers.Rank >= len(peers.Addresses)) {
		err = fmt.Errorf("rank %d of %d", peers.Rank, len(peers.Addresses))
	}
	if err != nil {
		return fmt.Errorf("%s%s%s: %w", g.batch.name, wayEnd, name, err)
	}
	err = w.listen(ctx, wg, name, g, node, peers)
	w.started(name)
	return err
}

// start has a shim start a task, which may have a way.
func (w *ways) start(c *shim.Client, spec shim.Spec) error {
	err := c.Start(spec)
	w.started(spec.ID)
	return err
}

// started notes that the shim of a task was told to start it: now it can be asked for a connection to that.
// Of one that has no way that is of no use.
func (w *ways) started(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.open[name]
	if x == nil {
		return
	}
	select {
	case <-x.begun:
	default:
		close(x.begun)
	}
}

// listen takes what comes for a task, unless it does so already.
func (w *ways) listen(ctx context.Context, wg *sync.WaitGroup, name string, g *glidein, node int, peers *shim.Peers) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open[name] != nil {
		return nil
	}
	l, err := net.Listen("tcp", peers.Addresses[peers.Rank])
	if err != nil {
		return fmt.Errorf("listen for task %d, which is on another machine: %w", peers.Rank, err)
	}
	x := &way{task: name, pilot: g, node: node, rank: peers.Rank, addresses: peers.Addresses, listener: l, begun: make(chan struct{})}
	x.ctx, x.end = context.WithCancel(ctx)
	w.open[name] = x
	context.AfterFunc(x.ctx, func() { l.Close() })
	wg.Go(func() {
		link.AcceptEach(x.ctx, l, func(c net.Conn) { wg.Go(func() { w.join(x, c, w.ask) }) })
	})
	return nil
}

// over ends the way of a task that has ended. What it has sent is still under way. One that has
// none is none.
func (w *ways) over(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if x := w.open[name]; x != nil {
		x.listener.Close()
		time.AfterFunc(link.DrainMax, func() { w.end(x) })
		_ = os.Remove(w.orders.path(x.pilot.batch.name, wayEnd+name)) // else it goes with the pilot
	}
}

// end ends a way with what is on it.
func (w *ways) end(x *way) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open[x.task] == x {
		delete(w.open, x.task)
	}
	x.end()
}

// overAll ends the ways of all tasks of a pilot, whose files go with it.
func (w *ways) overAll(g *glidein) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, x := range w.open {
		if x.pilot == g {
			delete(w.open, name)
			x.end()
		}
	}
}

// join joins a connection with another one, which is yet to be made.
func (w *ways) join(x *way, c net.Conn, dial func(*way) (link.End, error)) {
	w.bridges.Join(x.ctx, c, func() (link.End, error) { return dial(x) })
}

// ask has the shim of a task make a connection to it.
func (w *ways) ask(x *way) (link.End, error) {
	a := &asked{x, make(chan link.End, 1)}
	w.mu.Lock()
	w.newest++
	number := w.newest
	w.asked[number] = a
	w.mu.Unlock()
	late := time.NewTimer(askedMax)
	defer late.Stop()
	err := w.reach(x, number, late.C)
	if err == nil {
		select {
		case c := <-a.comes:
			return c, nil
		case <-late.C:
			err = errors.New("its shim does not call")
		case <-x.ctx.Done():
			err = x.ctx.Err()
		}
	}
	w.mu.Lock()
	delete(w.asked, number)
	w.mu.Unlock()
	select {
	case c := <-a.comes: // in the last moment
		link.Reset(c)
	default:
	}
	return nil, err
}

// reach tells the shim of a task of a request, once it was told of the task, as others of the gang may
// start before, and its node is connected: after a restart, or when its connection broke, it calls again.
func (w *ways) reach(x *way, number uint64, late <-chan time.Time) error {
	select {
	case <-x.begun:
	case <-late:
		return errors.New("it is not started")
	case <-x.ctx.Done():
		return x.ctx.Err()
	}
	for {
		err := errors.New("its node is not connected")
		if client := w.shim(x.pilot, x.node); client != nil {
			err = client.Reach(number, x.task)
		}
		if err == nil {
			return nil
		}
		select {
		case <-time.After(nodePause):
		case <-late:
			return err
		case <-x.ctx.Done():
			return x.ctx.Err()
		}
	}
}

// serve takes a connection that a shim makes for a task of its node.
func (w *ways) serve(c link.End, hello *link.Hello) {
	theirs := func(x *way) bool {
		return x.task == hello.Way.Task && x.pilot.batch.name == hello.Name && x.node == hello.Node
	}
	w.mu.Lock()
	if n := hello.Way.Number; n != 0 {
		if a := w.asked[n]; a != nil && theirs(a.way) {
			delete(w.asked, n)
			a.comes <- c
			c = nil
		}
		w.mu.Unlock()
		if c != nil {
			link.Reset(c)
		}
		return
	}
	x := w.open[hello.Way.Task]
	w.mu.Unlock()
	if x == nil || !theirs(x) || hello.Way.Rank >= len(x.addresses) || hello.Way.Rank == x.rank {
		link.Reset(c)
		return
	}
	w.join(x, c, func(x *way) (link.End, error) { return dialTask(x.ctx, x.addresses[hello.Way.Rank]) })
}

// taskPause is between attempts to reach a task that does not listen yet.
const taskPause = 20 * time.Millisecond

// dialTask connects to a task, or to whoever forwards to it, which may begin to listen a moment later.
func dialTask(ctx context.Context, address string) (link.End, error) {
	ctx, cancel := context.WithTimeout(ctx, link.ListenMax)
	defer cancel()
	var d net.Dialer
	for {
		c, err := d.DialContext(ctx, "tcp", address)
		if end, ok := c.(link.End); err == nil && ok {
			return end, nil
		}
		select {
		case <-time.After(taskPause):
		case <-ctx.Done():
			return nil, fmt.Errorf("it does not listen: %w", err)
		}
	}
}
