package shim

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"gridnode/node/shim/link"
)

// ways lead between the tasks of gangs on this node and those elsewhere, through the daemon. For
// each task of a gang there is a listener here, where the tasks of that gang on this node find
// it; for what comes from elsewhere the daemon asks. Safe for concurrent use; a nil one has none.
type ways struct {
	ctx  context.Context // of all
	dial func(context.Context, link.Way) (link.End, error)
	wg   sync.WaitGroup

	bridges *link.Bridges
	drain   time.Duration // link.DrainMax, less in tests

	mu    sync.Mutex
	gangs map[string]*gangWays
}

// gangWays are those of one gang.
type gangWays struct {
	ctx       context.Context
	end       context.CancelFunc
	addresses []string       // by rank, as the daemon has them
	listeners []net.Listener // by rank
	here      map[int]string // tasks on this node, by rank
	some      string         // task that is or was on this node: for whom the daemon is called
}

const (
	wayPause  = 20 * time.Millisecond  // between attempts, doubling
	wayPauses = 500 * time.Millisecond // up to this
)

func newWays(ctx context.Context, dial func(context.Context, link.Way) (link.End, error)) *ways {
	return &ways{ctx: ctx, dial: dial, bridges: link.NewBridges(), drain: link.DrainMax, gangs: make(map[string]*gangWays)}
}

// open makes the ways of a task and returns its spec with them; that of one without peers as it is.
func (w *ways) open(spec *Spec) (*Spec, error) {
	p := spec.Peers
	if p == nil {
		return spec, nil
	}
	if w == nil {
		return nil, errors.New("this shim makes no ways to tasks elsewhere")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	g := w.gangs[p.Gang]
	if g == nil {
		var err error
		if g, err = w.listen(p.Addresses); err != nil {
			return nil, err
		}
		w.gangs[p.Gang] = g
	}
	if len(p.Addresses) != len(g.addresses) {
		return nil, errors.New("its gang has another size here")
	}
	addresses := make([]string, len(p.Addresses))
	for rank, l := range g.listeners {
		addresses[rank] = l.Addr().String()
	}
	addresses[p.Rank] = p.Addresses[p.Rank]
	moved, err := spec.at(addresses)
	if err == nil {
		g.here[p.Rank], g.some = spec.ID, spec.ID
	} else if len(g.here) == 0 {
		w.remove(p.Gang)
	}
	return moved, err
}

// listen begins to listen for each task of a gang.
func (w *ways) listen(addresses []string) (*gangWays, error) {
	g := &gangWays{addresses: addresses, here: make(map[int]string)}
	for range addresses {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			for _, l := range g.listeners {
				l.Close()
			}
			return nil, err
		}
		g.listeners = append(g.listeners, l)
	}
	g.ctx, g.end = context.WithCancel(w.ctx)
	for rank, l := range g.listeners {
		context.AfterFunc(g.ctx, func() { l.Close() })
		w.wg.Go(func() {
			link.AcceptEach(g.ctx, l, func(c net.Conn) {
				w.wg.Go(func() { w.join(g, c, func(ctx context.Context) (link.End, error) { return w.toward(ctx, g, rank) }) })
			})
		})
	}
	return g, nil
}

// leave ends the ways of a gang with its last task here. A task that has none is none.
func (w *ways) leave(id string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, g := range w.gangs {
		for rank, task := range g.here {
			if task == id {
				delete(g.here, rank)
			}
		}
		if len(g.here) == 0 {
			w.remove(name)
		}
	}
}

// remove ends the ways of a gang. What its tasks have sent before they ended is still under way.
func (w *ways) remove(gang string) {
	time.AfterFunc(w.drain, w.gangs[gang].end)
	delete(w.gangs, gang)
}

// join joins a connection with another one that dial makes.
func (w *ways) join(g *gangWays, c net.Conn, dial func(context.Context) (link.End, error)) {
	w.bridges.Join(g.ctx, c, func() (link.End, error) { return dialed(g.ctx, dial) })
}

// dialed tries to connect, again and again for a while: tasks have no reason to try twice.
func dialed(ctx context.Context, dial func(context.Context) (link.End, error)) (link.End, error) {
	ctx, cancel := context.WithTimeout(ctx, link.ListenMax)
	defer cancel()
	for pause := wayPause; ; pause = min(2*pause, wayPauses) {
		c, err := dial(ctx)
		if err == nil {
			return c, nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// toward connects to a task of a gang: here, or through the daemon.
func (w *ways) toward(ctx context.Context, g *gangWays, rank int) (link.End, error) {
	w.mu.Lock()
	_, near := g.here[rank]
	some := g.some
	w.mu.Unlock()
	if near {
		return dialTask(ctx, g.addresses[rank])
	}
	return w.dial(ctx, link.Way{Task: some, Rank: rank})
}

func dialTask(ctx context.Context, address string) (link.End, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	end, ok := c.(link.End)
	if !ok {
		c.Close()
		return nil, os.ErrInvalid
	}
	return end, nil
}

// reach calls the daemon with what it has asked for: a connection to a task here.
func (w *ways) reach(number uint64, id string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	var g *gangWays
	rank := 0
	for _, other := range w.gangs {
		for r, task := range other.here {
			if task == id {
				g, rank = other, r
			}
		}
	}
	w.mu.Unlock()
	if g == nil {
		return
	}
	w.wg.Go(func() {
		c, err := dialed(g.ctx, func(ctx context.Context) (link.End, error) { return w.dial(ctx, link.Way{Task: id, Number: number}) })
		if err == nil {
			w.join(g, c, func(ctx context.Context) (link.End, error) { return dialTask(ctx, g.addresses[rank]) })
		}
	})
}
