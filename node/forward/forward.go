package forward

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
	bridge "gridnode/node/shim/link"
)

// Protocol is what forwarded connections travel on.
const Protocol = "/gridnode/forward/1.0.0"

// Times.
const (
	openTimeMax = 15 * time.Second // to reach the other site
	openPause   = 250 * time.Millisecond
	nameTimeMax = 10 * time.Second      // for the first frame of a stream
	startPoll   = 20 * time.Millisecond // how often that is tried
	drainMax    = 10 * time.Second      // until what tasks have sent before they ended has arrived
)

// Network opens streams to other sites, as p2p.Network does.
type Network interface {
	Open(ctx context.Context, to grid.SiteID, protocol string) (network.Stream, error)
}

// Forwarder carries connections between the tasks of jobs. Safe for concurrent use.
type Forwarder struct {
	self grid.SiteID
	net  Network
	log  *slog.Logger
	dir  string // where groups are kept; empty: nowhere

	drain time.Duration // drainMax, less in tests

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	groups    map[ID]*group
	unclaimed map[ID]bool  // of them: an earlier node's, of which nobody has spoken yet
	late      *time.Timer  // when these are removed; nil: there were none
	given     map[int]bool // ports that tasks here were given
	conns     int
}

// New returns a forwarder for a site, with the groups that an earlier one has kept in a
// directory; without one nothing is kept. log may not be nil.
func New(self grid.SiteID, net Network, dir string, log *slog.Logger) *Forwarder {
	f := &Forwarder{self: self, net: net, dir: dir, log: log, drain: drainMax, groups: make(map[ID]*group), unclaimed: make(map[ID]bool), given: make(map[int]bool)}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	if dir != "" {
		f.restore()
	}
	return f
}

// Add begins to forward for a job and returns one address per rank: a task here
// listens on that of its own rank, and reaches the others at theirs. A job that is
// there already keeps its addresses. The error wraps ErrGroup, ErrBusy or the
// system's reason not to listen; nothing has changed then.
func (f *Forwarder) Add(job Group) (addresses []string, err error) {
	if err := job.check(f.self); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if g := f.groups[job.ID]; g != nil {
		if !slices.Equal(g.Sites, job.Sites) {
			return nil, fmt.Errorf("%w: %s has other sites already", ErrGroup, job.Task.Job)
		}
		delete(f.unclaimed, job.ID)
		return slices.Clone(g.addresses), nil
	}
	if f.closed || len(f.groups) >= groupsMax {
		return nil, ErrBusy
	}
	g := newGroup(Group{job.ID, slices.Clone(job.Sites)})
	if err := g.listen(f.self, f.given); err != nil {
		f.giveBack(g)
		return nil, err
	}
	if err := f.keep(g); err != nil {
		f.giveBack(g)
		g.close()
		return nil, err
	}
	f.enterGroup(g)
	return slices.Clone(g.addresses), nil
}

// enterGroup has a group served. The caller holds f.mu.
func (f *Forwarder) enterGroup(g *group) {
	f.groups[g.ID] = g
	for rank, l := range g.listeners {
		if l != nil {
			f.wg.Go(func() { f.accept(g, rank, l) })
		}
	}
}

// Remove ends what a job's tasks reach each other by, and what is kept of it. Connections that
// there are have a moment for what was sent before. One that is not there is none.
func (f *Forwarder) Remove(job ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.remove(f.groups[job])
}

// remove is Remove. The caller holds f.mu.
func (f *Forwarder) remove(g *group) {
	if g == nil {
		return
	}
	delete(f.unclaimed, g.ID)
	if f.dir != "" {
		if err := os.Remove(f.path(g.ID)); err != nil {
			f.log.Warn("cannot forget the addresses of a job's tasks", "error", err)
		}
	}
	f.end(g)
	if len(g.conns) > 0 {
		time.AfterFunc(f.drain, func() { f.abort(g) })
	}
}

// end has no new connections of a group. The caller holds f.mu.
func (f *Forwarder) end(g *group) {
	delete(f.groups, g.ID)
	f.giveBack(g)
	g.close()
}

// abort ends the connections of a group.
func (f *Forwarder) abort(g *group) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range g.conns {
		c.abort()
	}
}

// giveBack frees the ports of a group. The caller holds f.mu.
func (f *Forwarder) giveBack(g *group) {
	for _, port := range g.given {
		delete(f.given, port)
	}
}

// Len returns for how many jobs connections are forwarded.
func (f *Forwarder) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.groups)
}

// Close ends everything and waits for it. What is kept the next one takes up.
func (f *Forwarder) Close() {
	f.mu.Lock()
	f.closed = true
	if f.late != nil {
		f.late.Stop()
	}
	clear(f.unclaimed)
	for _, g := range f.groups {
		f.end(g)
	}
	f.mu.Unlock()
	f.cancel()
	f.wg.Wait()
}

// accept takes the connections of tasks here to one elsewhere.
func (f *Forwarder) accept(g *group, rank int, l net.Listener) {
	for {
		c, err := l.Accept()
		switch {
		case err == nil:
			f.wg.Go(func() { f.forward(g, rank, c.(*net.TCPConn)) })
		case errors.Is(err, net.ErrClosed):
			return
		default: // out of descriptors, say: they come back
			f.log.Warn("cannot accept a task's connection", "error", err)
			select {
			case <-time.After(startPoll):
			case <-f.ctx.Done():
				return
			}
		}
	}
}

// forward carries a connection of a task here to the site of the rank it is for.
func (f *Forwarder) forward(g *group, rank int, task *net.TCPConn) {
	c := &link{task: task}
	if !f.enter(g, c) {
		c.abort()
		return
	}
	defer f.leave(g, c)
	s, err := f.open(g, g.Sites[rank])
	if err == nil {
		err = c.attach(s)
	}
	if err == nil {
		err = writeOpen(s, g.ID, rank)
	}
	if err != nil {
		f.log.Warn("cannot forward a task's connection", "job", g.Task.Job, "rank", rank, "site", g.Sites[rank], "error", err)
		c.abort()
		return
	}
	c.run()
}

// open opens a stream to a site, again and again for a while: tasks have no reason
// to try twice.
func (f *Forwarder) open(g *group, to grid.SiteID) (network.Stream, error) {
	ctx, cancel := context.WithTimeout(f.ctx, openTimeMax)
	defer cancel()
	for {
		s, err := f.net.Open(ctx, to, Protocol)
		if err == nil || !f.serves(g) {
			return s, err
		}
		select {
		case <-time.After(openPause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// Serve takes a connection that another site forwards. Its stream is done when it
// returns; an error that wraps wire.ErrMalformed says the site sent nonsense.
func (f *Forwarder) Serve(from grid.SiteID, s network.Stream) error {
	s.SetReadDeadline(time.Now().Add(nameTimeMax))
	r := bufio.NewReaderSize(s, 64)
	job, rank, err := readOpen(r)
	if err != nil {
		return err
	}
	s.SetReadDeadline(time.Time{})
	f.mu.Lock()
	g := f.groups[job]
	f.mu.Unlock()
	if g == nil || rank >= len(g.Sites) || g.Sites[rank] != f.self || !slices.Contains(g.Sites, from) {
		return fmt.Errorf("site %s forwards to task %d of job %s, which is not here for it", from, rank, job.Task.Job)
	}
	c := &link{stream: s, early: r}
	if !f.enter(g, c) {
		return ErrBusy
	}
	defer f.leave(g, c)
	task, err := f.dial(g, rank)
	if err == nil {
		err = c.join(task)
	}
	if err != nil {
		c.abort()
		return fmt.Errorf("task %d of job %s: %w", rank, job.Task.Job, err)
	}
	c.run()
	return nil
}

// dial connects to a task here, which may have started a moment later than the one
// that wants it.
func (f *Forwarder) dial(g *group, rank int) (*net.TCPConn, error) {
	var d net.Dialer
	for began := time.Now(); ; {
		c, err := d.DialContext(f.ctx, "tcp", g.addresses[rank])
		if err == nil {
			return c.(*net.TCPConn), nil
		}
		if time.Since(began) > bridge.ListenMax || !f.serves(g) {
			return nil, fmt.Errorf("it does not listen: %w", err)
		}
		select {
		case <-time.After(startPoll):
		case <-f.ctx.Done():
			return nil, f.ctx.Err()
		}
	}
}

func (f *Forwarder) serves(g *group) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.groups[g.ID] == g
}

// enter notes a connection of a job that is still there.
func (f *Forwarder) enter(g *group, c *link) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.groups[g.ID] != g || f.conns >= connectionsMax {
		return false
	}
	f.conns++
	g.conns[c] = struct{}{}
	c.stays = context.AfterFunc(f.ctx, c.abort)
	return true
}

func (f *Forwarder) leave(g *group, c *link) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns--
	delete(g.conns, c)
	c.stays()
}

// writeOpen says whom a stream is for.
func writeOpen(w io.Writer, job ID, rank int) error {
	id := job.Task.Job.Bytes()
	return wire.WriteProto(w, &wirepb.ForwardOpen{Job: id[:], Epoch: job.Task.Epoch, Rank: uint32(rank), Home: string(job.Home)})
}

// readOpen is its inverse. The error wraps wire.ErrMalformed.
func readOpen(r *bufio.Reader) (job ID, rank int, err error) {
	var m wirepb.ForwardOpen
	if err := wire.ReadProto(r, &m); err != nil {
		return job, 0, wire.Malformed("first frame: %v", err)
	}
	if job.Task.Job, err = grid.JobIDFromBytes(m.Job); err != nil {
		return job, 0, wire.Malformed("%v", err)
	}
	if m.Rank >= grid.PeersMax {
		return job, 0, wire.Malformed("rank %d", m.Rank)
	}
	job.Home, job.Task.Epoch = grid.SiteID(m.Home), m.Epoch
	return job, int(m.Rank), nil
}
