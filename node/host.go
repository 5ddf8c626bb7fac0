package node

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"gridnode/coalloc"
	"gridnode/coalloc/dataset"
	"gridnode/directory"
	"gridnode/directory/sibling"
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/market/bank"
	"gridnode/node/forward"
	"gridnode/node/p2p"
	"gridnode/node/run"
	"gridnode/node/shim"
	"gridnode/node/site"
	"gridnode/node/store"
)

// HostConfig describes a node.
type HostConfig struct {
	Home       string // directory of everything it keeps; empty: nothing is kept
	Key        crypto.PrivKey
	Federation string
	Listen     []string // multiaddrs, at least one
	Join       []string // multiaddrs with /p2p/ID
	Version    string   // told to peers

	Site site.Config // the host fills in IDs, signing and gossip
	Seed uint64      // of every random choice of the site; 0 draws one

	Profile    p2p.Profile
	BucketSize int         // Kademlia's k; 0 for the profile's
	Parallel   int         // Kademlia's α; 0 for the profile's
	Memory     *p2p.Memory // connects the hosts of one process without sockets; nil for TCP

	FetchMax int64 // most bytes of data sets copied here for one job; 0: none

	Store store.Options // without Site, Federation and Log
	Shim  shim.Options

	// Executor makes what runs tasks; its ends are given to ended, from any goroutine.
	// nil: processes under a shim.
	Executor func(ended func(*grid.TaskEnded)) (Executor, error)

	Logger *slog.Logger // nil discards; gets at most so many records of one message (quietLog)
}

// Host is a running node: the driver of one Site on libp2p, Badger and child
// processes. Its methods may be called concurrently.
type Host struct {
	cfg   HostConfig
	id    grid.SiteID
	log   *slog.Logger
	files run.Files
	net   *p2p.Network
	loop  loop
	own   *run.Processes // nil if cfg.Executor runs the tasks

	pilots *pilots // nil if cfg.Executor runs the tasks

	inbox      *inbox
	questions  questions
	subscribed subscriptions

	fetch   *fetchers
	bring   *bringer
	copying atomic.Int32 // data sets being copied from here

	ctx      context.Context // of the host's goroutines besides the loop
	cancel   context.CancelFunc
	wg       sync.WaitGroup
	once     sync.Once
	stopping chan struct{} // closed when Close begins
	quit     chan struct{} // closed when the loop is to end
	ended    chan struct{} // closed when the loop has ended: nothing is answered any more
	done     chan struct{} // closed when everything has ended
	err      error         // set before done is closed
}

// drainMax is how long a stopping node waits for its last messages to leave.
const drainMax = 2 * time.Second

// Start starts a node and returns once it has recovered, listens, and takes
// requests; joining the federation goes on in the background. ctx bounds Start only.
// Errors wrap those of the store (store.ErrLocked if another daemon has the home),
// of p2p (ErrListen, ErrConfig), of Recover and of the executor.
func Start(ctx context.Context, cfg HostConfig) (*Host, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Logger = quietly(cfg.Logger)
	id, err := peer.IDFromPrivateKey(cfg.Key)
	if err != nil {
		return nil, fmt.Errorf("identity of the node: %w", err)
	}
	h := &Host{
		cfg: cfg, id: grid.SiteID(id.String()), log: cfg.Logger, inbox: newInbox(),
		stopping: make(chan struct{}), quit: make(chan struct{}), ended: make(chan struct{}), done: make(chan struct{}),
	}
	h.files = run.Files{Home: cfg.Home, Site: h.id}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.fetch = &fetchers{h: h, sites: make(map[grid.SiteID]*fetchSite), wake: make(chan struct{}, 1)}
	h.bring = newBringer(h, cfg.FetchMax)
	h.loop = loop{h: h, clock: clock{time.Now()}}
	if err := h.start(ctx); err != nil {
		h.release()
		return nil, err
	}
	if cfg.Home != "" {
		h.net.Handle(outputProtocol, h.serveOutput)
		h.net.Handle(fetchProtocol, h.serveFetch)
		if h.pilots != nil {
			h.net.Handle(pilotProtocol, h.pilots.serve)
			h.net.HandleTasks(forward.Protocol, h.pilots.forward.Serve)
		}
		h.wg.Go(h.fetch.run)
		h.wg.Go(h.prune)
	}
	go func() {
		h.err = h.loop.run()
		if h.err != nil {
			h.log.Error("the node stops", "error", h.err)
		}
		h.err = errors.Join(h.err, h.release())
		close(h.done)
	}()
	return h, nil
}

// start brings everything up, in the order in which one part needs another.
func (h *Host) start(ctx context.Context) error {
	var err error
	if h.loop.store, err = h.openStore(); err != nil {
		return err
	}
	if h.loop.site, err = site.New(h.siteConfig(), h.seed()); err != nil {
		return err
	}
	if h.net, err = p2p.Start(h.netConfig()); err != nil {
		return err // before a shim is started in vain
	}
	if h.loop.exec, err = h.executor(ctx); err != nil {
		return fmt.Errorf("start executor: %w", err)
	}
	return h.recover()
}

func (h *Host) executor(ctx context.Context) (Executor, error) {
	if h.cfg.Executor != nil {
		return h.cfg.Executor(func(e *grid.TaskEnded) { h.inbox.put(e) })
	}
	x := newPilots(h)
	p, err := run.StartProcesses(ctx, run.ProcessConfig{
		Files: h.files, Name: h.cfg.Site.Name, Shim: h.cfg.Shim, Logger: h.log, Pilots: x.tell,
	}, x.ended)
	if err != nil {
		x.Close()
		return nil, err // and not a nil *pilots
	}
	x.own, h.own, h.pilots = p, p, x
	return x, nil
}

func (h *Host) openStore() (*store.Store, error) {
	if h.cfg.Home == "" {
		return nil, nil
	}
	if err := h.files.Make(); err != nil {
		return nil, err
	}
	options := h.cfg.Store
	options.Site, options.Federation = string(h.id), h.cfg.Federation
	options.Log = func(format string, args ...any) { h.log.Warn(fmt.Sprintf(format, args...), "part", "store") }
	return store.Open(filepath.Join(h.cfg.Home, "store"), options)
}

// siteConfig fills in what only the host knows.
func (h *Host) siteConfig() site.Config {
	c := h.cfg.Site
	c.ID = h.id
	c.Directory.Federation = h.cfg.Federation
	c.Siblings.Size = cmp.Or(c.Siblings.Size, sibling.SizeDefault)
	c.Directory.Seal = func(payload []byte) ([]byte, error) { return wire.Seal(h.cfg.Key, directory.Domain, payload) }
	c.Bank.Seal = func(domain string, payload []byte) ([]byte, error) { return wire.Seal(h.cfg.Key, domain, payload) }
	return c
}

// gossip is what siblings tell each other.
var gossip = wire.Protocol{
	ID: directory.Gossip.ID,
	Decoders: map[grid.Kind]wire.Decoder{
		wire.GossipLoad:    directory.Gossip.Decoders[wire.GossipLoad],
		wire.GossipLatency: coalloc.GossipDecoder,
	},
}

func (h *Host) netConfig() p2p.Config {
	c := p2p.Config{
		Key: h.cfg.Key, Federation: h.cfg.Federation, Listen: h.cfg.Listen, Join: h.cfg.Join,
		Memory: h.cfg.Memory, Profile: h.cfg.Profile, BucketSize: h.cfg.BucketSize, Parallel: h.cfg.Parallel,
		Agent: "gridnode/" + h.cfg.Version, Protocols: []*wire.Protocol{&market.Protocol, directory.NewProtocol(new(verified).open), &lease.Protocol, &bank.Protocol, &dataset.Protocol, &sibling.Protocol, &gossip},
		Deliver: h.inbox.offer, Report: h.inbox.put, Logger: h.log.With("part", "p2p"),
	}
	if h.cfg.Home != "" {
		c.Remember = filepath.Join(h.cfg.Home, "peers")
	}
	return c
}

// seed returns the seed of the site's random choices.
func (h *Host) seed() uint64 {
	if h.cfg.Seed != 0 {
		return h.cfg.Seed
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}

// recover makes the first turn: what was stored, what still runs, what ended while
// no daemon was there.
func (h *Host) recover() error {
	l := &h.loop
	now := l.clock.now()
	if l.store != nil {
		records, failed := l.store.All("")
		if err := l.site.Recover(now, records, &l.out); err != nil {
			return fmt.Errorf("recover: %w", err)
		}
		if err := failed(); err != nil {
			return fmt.Errorf("recover: %w", err)
		}
		l.encode()
	}
	running, ended, err := l.exec.Recover()
	if err != nil {
		return fmt.Errorf("recover running jobs: %w", err)
	}
	for i := range running {
		l.step(now, &running[i])
	}
	for i := range ended {
		l.ended = append(l.ended, ended[i].ID)
		l.step(now, &ended[i])
	}
	return l.finish(now)
}

// release closes what start has opened, in reverse.
func (h *Host) release() error {
	h.once.Do(func() { close(h.stopping) })
	h.cancel()
	h.inbox.close()
	close(h.ended)
	var errs []error
	if h.net != nil {
		errs = append(errs, h.net.Close())
	}
	if h.loop.exec != nil {
		errs = append(errs, h.loop.exec.Close())
	}
	if h.loop.store != nil {
		errs = append(errs, h.loop.store.Close())
	}
	h.wg.Wait()
	h.subscribed.close()
	return errors.Join(errs...)
}

// Close withdraws the site's quote, lets what is under way leave for at most
// drainMax, and stops the node. Processes run on under their shim. It returns Err.
func (h *Host) Close() error {
	first := false
	h.once.Do(func() { close(h.stopping); first = true })
	if first {
		h.drain()
		close(h.quit)
	}
	<-h.done
	return h.err
}

// Kill stops the node at once: nothing is withdrawn and nothing waited for, as if its
// process had died. What was acknowledged is in the store.
func (h *Host) Kill() {
	h.once.Do(func() { close(h.stopping); close(h.quit) })
	<-h.done
}

// drain tells the directory that the site goes, and gives messages time to leave.
func (h *Host) drain() {
	ctx, cancel := context.WithTimeout(context.Background(), drainMax)
	defer cancel()
	stepped := &look{at: func(*site.Site) {}, done: make(chan struct{})}
	h.inbox.put(&site.Drain{})
	h.inbox.put(stepped)
	select {
	case <-stepped.done:
	case <-h.ended:
		return
	case <-ctx.Done():
		return
	}
	h.net.Flush(ctx)
}

// Done is closed when the node has stopped, by Close or by a failure.
func (h *Host) Done() <-chan struct{} { return h.done }

// Err returns why the node stopped, once Done is closed; nil if it was closed.
func (h *Host) Err() error {
	select {
	case <-h.done:
		return h.err
	default:
		return nil
	}
}

// ID returns the site's ID.
func (h *Host) ID() grid.SiteID { return h.id }

// Addrs returns the addresses others join through, each with /p2p/ID.
func (h *Host) Addrs() []string { return h.net.Addrs() }

// Peers returns the connected peers; see p2p.Network.Peers.
func (h *Host) Peers(ctx context.Context) []p2p.Peer { return h.net.Peers(ctx) }

// Counter returns the messages counted so far.
func (h *Host) Counter() wire.Counter { return h.net.Counter() }

// Net returns what went wrong on the network so far.
func (h *Host) Net() p2p.Stats { return h.net.Stats() }

// Inputs returns how many inputs the site was given so far, ticks included.
func (h *Host) Inputs() int64 { return h.loop.steps.Load() }

// Now returns the node's time.
func (h *Host) Now() grid.Time { return h.loop.clock.now() }
