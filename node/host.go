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
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/prometheus/client_golang/prometheus"

	"gridnode/coalloc"
	"gridnode/coalloc/dataset"
	"gridnode/directory"
	"gridnode/directory/record"
	"gridnode/directory/sibling"
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/market/bank"
	"gridnode/market/fee"
	"gridnode/node/forward"
	"gridnode/node/logging"
	"gridnode/node/mailbox"
	"gridnode/node/member"
	"gridnode/node/notify"
	"gridnode/node/p2p"
	"gridnode/node/reach"
	"gridnode/node/run"
	"gridnode/node/sandbox"
	"gridnode/node/shim"
	"gridnode/node/site"
	"gridnode/node/store"
	"gridnode/node/store/rotated"
	"gridnode/node/tally"
	"gridnode/node/tracing"
	"gridnode/node/witness"
)

// HostConfig describes a node.
type HostConfig struct {
	Home       string // directory of everything it keeps; empty: nothing is kept
	Work       string // directory of what tasks read and write, if an engine needs another than Home
	Key        crypto.PrivKey
	Federation string
	Listen     []string          // as reach.Listen reads them, at least one
	Join       []string          // as reach.Peer reads them
	Reach      reach.Config      // how others find a way here
	Version    string            // told to peers
	Member     *Card             // nil: the federation is open to everybody
	Renewed    func(*Card) error // keeps a new card before it is used; nil: nobody does

	Site site.Config // the host fills in IDs, signing and gossip
	Seed uint64      // of every random choice of the site; 0 draws one

	Profile    p2p.Profile
	BucketSize int         // Kademlia's k; 0 for the profile's
	Parallel   int         // Kademlia's α; 0 for the profile's
	Memory     *p2p.Memory // connects the hosts of one process without sockets; nil for TCP and QUIC

	FetchMax int64 // most bytes of data sets copied here for one job; 0: none
	Files    FilesConfig

	Accounts run.Accounts // whom jobs run as
	Shared   string       // directory of what they have as other accounts; with Accounts only

	Sandbox sandbox.Config // walls and limits of jobs; of the zero value the walls count: the best there are
	Means   *sandbox.Means // what this machine has for them; nil: looked for when needed
	Modules ModulesConfig
	GPUs    []run.GPU // of this machine, as tasks are told; Site.GPUs has the same

	Store store.Options // without Site, Federation and Log

	// History bounds the files of the job log, which lie in Home; Files 0: none is kept.
	History rotated.Options
	Shim    shim.Options

	// Executor makes what runs tasks on a site that neither lends nor borrows; its ends
	// are given to ended, from any goroutine. nil: Engine says.
	Executor func(ended func(*grid.TaskEnded)) (Executor, error)

	// Engine makes what runs tasks and keeps pilots. nil: processes under a shim.
	Engine run.Opener

	Metrics prometheus.Registerer // gets the numbers of libp2p; nil: nobody wants them
	Trace   tracing.Config        // of the zero value nothing is traced

	Logger *slog.Logger // nil discards; gets at most so many records of one message (logging.Quietly)
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

	member *membership // nil: the federation is open, and no job of others runs here
	guests lodgings
	pilots *pilots // nil if cfg.Executor runs the tasks

	modules *modules        // nil: no modules are run
	history *history        // nil: no job log is kept
	filer   *filer          // nil: this node keeps nothing
	witness *witness.Teller // nil: nobody remembers how far its store is

	inbox      *inbox
	questions  questions
	subscribed subscriptions
	tally      tally.Counter

	fetch    *fetchers
	deposit  *deposits
	streams  *streams
	notify   *notify.Caller // nil: this node keeps nothing
	bring    *bringer
	consoles consoles

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
	cfg.Logger = logging.Quietly(cfg.Logger)
	id, err := peer.IDFromPrivateKey(cfg.Key)
	if err != nil {
		return nil, fmt.Errorf("identity of the node: %w", err)
	}
	h := &Host{
		cfg: cfg, id: grid.SiteID(id.String()), log: cfg.Logger, inbox: newInbox(),
		stopping: make(chan struct{}), quit: make(chan struct{}), ended: make(chan struct{}), done: make(chan struct{}),
	}
	h.files = run.Files{Home: cfg.Home, Site: h.id, Work: cfg.Work, Shared: cfg.Shared, Log: cfg.Files.Log}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.fetch = &fetchers{h: h, sites: make(map[grid.SiteID]*fetchSite), wake: make(chan struct{}, 1)}
	h.deposit = &deposits{h: h, jobs: mailbox.New[deposit](), open: make(map[grid.JobID]chan struct{})}
	h.streams = &streams{h: h, jobs: make(map[grid.JobID]*stream)}
	h.bring = newBringer(h, cfg.FetchMax)
	if cfg.Home != "" {
		h.notify = notify.New(notifyConfig(h))
	}
	h.loop = loop{h: h, clock: clock{time.Now()}, tracer: tracing.New(cfg.Trace, h.id, cfg.Site.Name, cfg.Version)}
	h.guests.h, h.consoles.h = h, h
	if h.member, err = newMembership(h); err != nil {
		h.cancel()
		return nil, err
	}
	h.keepToItself()
	if err := h.start(ctx); err != nil {
		h.release()
		return nil, err
	}
	if h.member != nil {
		h.net.Handle(admissionProtocol, h.member.serve)
		h.wg.Go(h.member.stayMember)
	}
	if h.pilots != nil {
		h.net.Handle(pilotProtocol, h.pilots.serve)
		h.net.HandleTasks(forward.Protocol, h.pilots.forward.Serve)
	}
	if cfg.Home != "" {
		h.net.Handle(outputProtocol, h.serveOutput)
		h.net.Handle(contentProtocol, h.filer.serve)
		h.net.Handle(dataProtocol, h.filer.serve)
		h.wg.Go(h.filer.home.run)
		h.net.Handle(consoleProtocol, h.consoles.serve)
		h.wg.Go(h.fetch.run)
		h.wg.Go(h.deposit.run)
		h.wg.Go(func() { h.notify.Run(h.ctx) })
		h.wg.Go((&pruner{h}).run)
	}
	if h.history != nil {
		h.history.begin()
	}
	if h.witness != nil {
		testify(h)
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

// keepToItself has a node without a membership run no jobs of other sites: whoever knows
// its address could send them.
func (h *Host) keepToItself() {
	s := &h.cfg.Site
	if h.member != nil || !s.Foreign && !s.Modules && !s.Lease.Lend && s.Head == "" {
		return
	}
	h.log.Warn("jobs of other sites are refused, and no processors are lent, whatever the settings say: the federation is open")
	s.Foreign, s.Modules, s.Lease.Lend, s.Head = false, false, false, ""
}

// start brings everything up, in the order in which one part needs another.
func (h *Host) start(ctx context.Context) error {
	var err error
	if h.loop.store, err = h.openStore(); err != nil {
		return err
	}
	if h.witness = newTeller(h); h.witness != nil {
		if err := h.witness.Ask(ctx); err != nil {
			return err
		}
	}
	if h.history, err = newHistory(h); err != nil {
		return err
	}
	if h.filer, err = newFiler(h); err != nil {
		return fmt.Errorf("files of jobs: %w", err)
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
	open := h.cfg.Engine
	if open == nil {
		open = run.OpenProcesses(h.cfg.Shim)
	}
	var err error
	part := "run"
	if h.cfg.Engine != nil {
		part = "slurm"
	}
	setup := run.Setup{
		Files: h.files, Name: h.cfg.Site.Name, Logger: h.log.With(logging.PartKey, part), Accounts: h.cfg.Accounts, Guest: h.guests.name, Rules: h.rule, Walls: h.cfg.Sandbox.Walls, Means: h.cfg.Means,
		Ended: x.ended, Pilots: x.tell, Room: func(r *site.Room) { h.inbox.put(r) }, GPUs: h.cfg.GPUs,
		Job: func(id grid.JobID) *grid.Job { // recover calls it, which has the loop
			v, _ := h.loop.site.Glance(id)
			return v.Job
		},
	}
	if h.modules, err = newModules(h, &setup); err == nil {
		g := newStaging(h, x)
		if g.Engine, err = open(ctx, setup); err == nil {
			x.own = g
		}
	}
	if err != nil {
		x.Close()
		return nil, err // and not a nil *pilots
	}
	h.pilots = x
	return x, nil
}

// rule says what a job may do here. It is where the owner's rules for guests have their say.
func (h *Host) rule(task *grid.Task) sandbox.Rule {
	r := h.cfg.Sandbox.Rule(task.Job.Home != h.id, run.Needs(task), h.cfg.Site.Memory)
	return h.guests.narrow(r, task)
}

// siteConfig fills in what only the host knows.
func (h *Host) siteConfig() site.Config {
	c := h.cfg.Site
	c.ID = h.id
	c.Directory.Federation = h.cfg.Federation
	c.Siblings.Size = cmp.Or(c.Siblings.Size, sibling.SizeDefault)
	c.Record.Lifetime = cmp.Or(c.Record.Lifetime, record.LifetimeDefault)
	c.Record.Seal = func(payload []byte) ([]byte, error) { return wire.Seal(h.cfg.Key, record.Domain, payload) }
	c.Directory.Seal = func(payload []byte) ([]byte, error) { return wire.Seal(h.cfg.Key, directory.Domain, payload) }
	if h.member != nil {
		c.Members = h.member.roll()
	}
	if h.history != nil {
		c.History = &site.HistoryConfig{Last: h.history.files.Last()}
	}
	if h.loop.tracer != nil {
		c.Market.Sought = h.loop.tracer.Sought
	}
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
		Key: h.cfg.Key, Federation: h.cfg.Federation, Listen: h.cfg.Listen, Join: h.cfg.Join, Reach: h.cfg.Reach,
		Memory: h.cfg.Memory, Profile: h.cfg.Profile, BucketSize: h.cfg.BucketSize, Parallel: h.cfg.Parallel,
		Metrics: h.cfg.Metrics,
		Agent:   "gridnode/" + h.cfg.Version, Protocols: []*wire.Protocol{&market.Protocol, directory.NewProtocol(new(verified).open), &lease.Protocol, &bank.Protocol, &fee.Protocol, &dataset.Protocol, &sibling.Protocol, &record.Protocol, &gossip},
		Deliver: h.inbox.deliver, Report: h.inbox.put, Logger: h.log.With(logging.PartKey, "p2p"),
		Now:   func() time.Time { return time.UnixMicro(int64(h.Now())) },
		Moved: func(addrs []string) { h.inbox.put(&site.Here{Addresses: addrs}) },
	}
	if h.member != nil {
		p := member.NewProtocol(h.cfg.Member.Federation)
		c.Membership, c.Protocols = h.member.gate(), append(c.Protocols, p)
		c.Topics = append(c.Topics, p2p.Topic{Name: member.Topic, Protocol: p, SizeMax: wire.FrameMax})
	}
	if h.cfg.Home != "" {
		c.Remember = filepath.Join(h.cfg.Home, peersFile)
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
	stayDrained(h, now)
	l.step(now, &site.Here{Addresses: h.Addrs()})
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
	h.history.close()
	if h.loop.store != nil {
		errs = append(errs, h.loop.store.Close())
	}
	h.wg.Wait()
	h.subscribed.close()
	stopTracing(h)
	return errors.Join(errs...)
}

// stopTracing exports what has ended. What the collector has not taken within drainMax is lost.
func stopTracing(h *Host) {
	ctx, cancel := context.WithTimeout(context.Background(), drainMax)
	defer cancel()
	if err := h.loop.tracer.Close(ctx); err != nil {
		h.log.Warn("some spans of jobs were not exported", "error", err)
	}
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
	if h.witness != nil {
		h.witness.Close(ctx)
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

// Silent returns which of these sites do not answer; see p2p.Silent.
func (h *Host) Silent(ctx context.Context, sites []grid.SiteID) []grid.SiteID {
	return p2p.Silent(ctx, h.net, sites)
}

// Diagnose returns how this node is reached; see p2p.Network.Diagnose.
func (h *Host) Diagnose(ctx context.Context) *reach.Diagnosis { return h.net.Diagnose(ctx) }

// Warden returns what keeps peers to their allowances, and those out that are banned.
func (h *Host) Warden() *p2p.Warden { return h.net.Warden }

// Counter returns the messages counted so far.
func (h *Host) Counter() wire.Counter { return h.net.Counter() }

// Net returns what went wrong on the network so far.
func (h *Host) Net() p2p.Stats { return h.net.Stats() }

// Inputs returns how many inputs the site was given so far, ticks included.
func (h *Host) Inputs() int64 { return h.loop.steps.Load() }

// Now returns the node's time.
func (h *Host) Now() grid.Time { return h.loop.clock.now() }

// Tally returns what has happened to jobs so far.
func (h *Host) Tally() tally.Counts { return h.tally.Read() }

// Waiting returns how many inputs wait for the loop: answers to its own orders, messages of
// peers and requests of users.
func (h *Host) Waiting() (orders, peers, users int) {
	h.inbox.mu.Lock()
	defer h.inbox.mu.Unlock()
	return len(h.inbox.own), h.inbox.wire.count, h.inbox.users.count
}
