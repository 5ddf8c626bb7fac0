package p2p

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	dht "github.com/libp2p/go-libp2p-kad-dht"
	"github.com/libp2p/go-libp2p-kad-dht/records"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	routedhost "github.com/libp2p/go-libp2p/p2p/host/routed"
	"github.com/libp2p/go-libp2p/p2p/protocol/ping"
	"github.com/multiformats/go-multiaddr"
	"github.com/prometheus/client_golang/prometheus"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/node/p2p/allowance"
	"gridnode/node/reach"
)

// Profile is how much a node may spend on its connections.
type Profile uint8

const (
	// ProfileNode is one node per machine: buckets of 20, 3 look-up messages at
	// a time, up to about 128 connections, libp2p's resource limits.
	ProfileNode Profile = iota
	// ProfileFleet is many nodes in one process: buckets of 11, 3 look-up messages
	// at a time, no resource accounting, and connections that are idle are ended above 24.
	ProfileFleet
)

// Topic is a gossip topic and the protocol whose messages travel on it.
type Topic struct {
	Name     string // as in EffectPublish
	Protocol *wire.Protocol
	SizeMax  int // bytes of an encoded message, at least 1
}

// Config is what a node needs to take part in a federation's network.
type Config struct {
	Key        crypto.PrivKey // its identity
	Federation string         // 1 to 64 characters of a-z 0-9 . _ -; nodes of other federations are not in its DHT
	Listen     []string       // as reach.Listen reads them, at least one; none is added
	Join       []string       // as reach.Peer reads them; may be empty
	Remember   string         // file for the addresses of peers, read at the next start; empty for none
	Reach      reach.Config   // how others find a way here
	Memory     *Memory        // carries the connections; nil for TCP and QUIC
	Profile    Profile
	BucketSize int // Kademlia's k, at least bucketMin; 0 for the profile's
	Parallel   int // Kademlia's α; 0 for the profile's
	Agent      string
	Protocols  []*wire.Protocol
	Topics     []Topic
	Logger     *slog.Logger          // nil discards
	Metrics    prometheus.Registerer // gets libp2p's numbers; nil: nobody wants them

	Membership *Membership // nil: everybody is admitted

	// Now is the clock that the node goes by, which it tells members; nil: the machine's. It is
	// called concurrently.
	Now func() time.Time
	// Deliver takes a message of a peer. It returns false when there is no room for one
	// of that peer now. It must not block; it is called concurrently.
	Deliver func(*grid.Delivery) bool
	// Report takes what became of an order (*grid.Undelivered, *grid.Closest),
	// at most one per order, and *grid.Parted. It must not block; it is called concurrently, also
	// from inside Send and Closest.
	Report func(grid.Input)
	// Moved, if set, takes the addresses that the node listens on when they are others than
	// before, as Addrs returns them. It must not block.
	Moved func(addrs []string)
}

// ErrListen is wrapped by Start's error for an address that cannot be listened on.
var ErrListen = errors.New("cannot listen")

// ErrConfig is wrapped by Start's errors about its Config.
var ErrConfig = errors.New("bad network configuration")

// Network is a node's place in the peer-to-peer network. All methods may be
// called concurrently.
type Network struct {
	cfg      Config
	self     grid.SiteID
	host     host.Host
	gate     *gate // nil: everybody is admitted
	reach    *reach.Service
	routed   host.Host // dials peers of which only the DHT knows the address
	router   *dht.IpfsDHT
	topics   map[string]*topic
	protocol map[grid.Kind]*wire.Protocol // by which protocol a kind travels
	join     []peer.AddrInfo
	known    *acquaintances
	log      *slog.Logger

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	Warden  *Warden // set when the network starts, and never changed
	stats   stats
	inbound inbound
	out     outbounds
	lookups backlog[grid.Key]
	records backlog[recordOrder]
	seeker  *seeker
	pings   pings
	kept    kept
	used    *uses         // nil unless idle connections are ended
	probing atomic.Int32  // probes under way
	enough  int           // connections from which on no further is made to measure a latency
	joined  chan struct{} // closed when the first attempt to join is over
	rejoin  chan struct{} // holds a token when the node may be alone again
	shut    chan struct{} // holds one when a peer to join through has ended a young connection: it may not let the node in
	met     chan struct{} // holds a token when somebody has connected
}

// Start brings a node into the network and returns once it listens; joining goes
// on in the background. The error wraps ErrConfig or ErrListen if either is the
// reason. The network lives until Close.
func Start(cfg Config) (*Network, error) {
	listen, join, err := cfg.check()
	if err != nil {
		return nil, err
	}
	n := newNetwork(cfg)
	n.join, n.known = join, acquainted(cfg.Remember)
	if n.reach, err = reach.New(cfg.Reach, listen); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if err := n.start(listen); err != nil {
		n.Close()
		return nil, err
	}
	n.wg.Go(n.stayJoined)
	if n.used != nil {
		n.wg.Go(newShedder(n).run)
	}
	if cfg.Remember != "" {
		n.wg.Go(n.keepRemembering)
	}
	return n, nil
}

// newNetwork returns a network that is not started.
func newNetwork(cfg Config) *Network {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	n := &Network{
		cfg: cfg, log: cfg.Logger,
		protocol: make(map[grid.Kind]*wire.Protocol), topics: make(map[string]*topic),
		joined: make(chan struct{}), rejoin: make(chan struct{}, 1), shut: make(chan struct{}, 1), met: make(chan struct{}, 1),
	}
	if cfg.Profile == ProfileFleet {
		n.used = &uses{at: make(map[peer.ID]time.Time)}
	}
	n.Warden = newWarden(n)
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.lookups = backlog[grid.Key]{n: n, alive: lookupsMax, most: lookupsWaitingMax, carry: n.lookUp}
	n.records = backlog[recordOrder]{n: n, alive: recordOrdersAlive, most: recordOrdersMax, carry: n.carryRecords}
	n.seeker = newSeeker(n)
	n.out.peers = make(map[grid.SiteID]*outbound)
	n.inbound.peers = make(map[peer.ID]*source)
	return n
}

func (n *Network) start(listen []multiaddr.Multiaddr) error {
	var err error
	keeper := &doorkeeper{n: n}
	if n.host, err = n.newHost(keeper, reach.QUIC(listen)); err != nil {
		return fmt.Errorf("start libp2p: %w", err)
	}
	if n.cfg.Membership != nil {
		n.gate = newGate(n.host, n.cfg.Membership, n.reach.Strangers(), &n.stats, n.log.Info)
		n.host, keeper.gate = n.gate, n.gate
	}
	n.self = grid.SiteID(n.host.ID().String())
	for _, p := range n.cfg.Protocols {
		for kind := range p.Decoders {
			n.protocol[kind] = p
		}
		n.host.SetStreamHandler(protocol.ID(p.ID), n.receive(p))
	}
	ping.NewPingService(&meteredHost{n.host, n, allowance.Lookups})
	n.router, err = dht.New(&meteredHost{n.host, n, allowance.Lookups},
		dht.Mode(dht.ModeServer),
		dht.ProtocolPrefix(protocol.ID("/gridnode/"+n.cfg.Federation)),
		dht.BucketSize(n.cfg.bucketSize()),
		dht.Concurrency(n.cfg.parallel()),
		dht.DisableAutoRefresh(), // stayJoined does it, with a fifth of the messages
		// Provider records say who holds a data set. Nothing stores values, so nobody may
		// fill this node with them.
		dht.DisableValues(), dht.ProviderDatastore(newProviderRecords()),
		dht.ProviderManagerOpts(records.Cache(noCache{}), records.ProvideValidity(recordLife), records.ProviderAddrTTL(recordAddrLife)))
	if err != nil {
		return fmt.Errorf("start DHT: %w", err)
	}
	n.routed = routedhost.Wrap(n.host, n.router)
	if err := n.reach.Start(n.host, n.reachEnv()); err != nil {
		return err
	}
	if err := n.startGossip(); err != nil {
		return fmt.Errorf("start gossip: %w", err)
	}
	n.Handle(checking, func(_ grid.SiteID, s network.Stream) error { return serveCheck(s, n.cfg.Now) })
	n.host.Network().Notify(n.watch())
	// Last: whoever connects meets a node that is complete.
	for _, addr := range listen {
		if err := n.host.Network().Listen(addr); err != nil {
			return fmt.Errorf("%w on %s: %w", ErrListen, addr, listenCause(err))
		}
	}
	return n.watchAddrs()
}

// Close leaves the network and waits until every goroutine of it has ended.
// Messages still waiting are lost. A second Close does nothing.
func (n *Network) Close() error {
	if n.ctx.Err() != nil {
		return nil
	}
	if n.router != nil {
		n.remember()
	}
	n.inbound.mu.Lock()
	n.inbound.closed = true
	n.inbound.mu.Unlock()
	n.cancel() // ends gossip, too: pubsub has no Close
	var errs []error
	if n.router != nil {
		errs = append(errs, n.router.Close())
	}
	n.reach.Close()
	if n.host != nil {
		errs = append(errs, n.host.Close())
	}
	if n.gate != nil {
		n.gate.close()
	}
	n.wg.Wait()
	return errors.Join(errs...)
}

// Self returns this node's ID.
func (n *Network) Self() grid.SiteID { return n.self }

// Addrs returns the addresses at which others reach the node, each with its /p2p/ID: those
// first at which most can.
func (n *Network) Addrs() []string {
	info := host.InfoFromHost(n.host)
	reach.Order(info.Addrs)
	addrs, err := peer.AddrInfoToP2pAddrs(info)
	if err != nil {
		return nil
	}
	return text(addrs)
}

// Protocols returns those of which peers can ask a node for streams, its own and libp2p's,
// sorted.
func Protocols(n *Network) []string {
	return slices.Sorted(slices.Values(protocol.ConvertToStrings(n.host.Mux().Protocols())))
}

// Handle serves streams of a protocol of the driver's own, one goroutine each.
// serve must end when the stream fails; the stream is reset when it returns an
// error and closed otherwise, and an error that wraps wire.ErrMalformed is counted.
// The streams of one peer are bounded.
func (n *Network) Handle(id string, serve func(from grid.SiteID, s network.Stream) error) {
	n.handle(id, forDriver, serve)
}

// HandleTasks is Handle for streams between tasks of jobs: a peer may have many.
func (n *Network) HandleTasks(id string, serve func(from grid.SiteID, s network.Stream) error) {
	n.handle(id, forTasks, serve)
}

func (n *Network) handle(id string, u use, serve func(from grid.SiteID, s network.Stream) error) {
	n.host.SetStreamHandler(protocol.ID(id), func(s network.Stream) {
		src, ok := n.enter(s, u)
		if !ok {
			return
		}
		defer n.leave(src, u)
		err := serve(grid.SiteID(s.Conn().RemotePeer().String()), s)
		if errors.Is(err, wire.ErrMalformed) {
			n.stats.malformed()
			n.Warden.fault(s.Conn())
		}
		end(s, err)
	})
}

// Open opens a stream of a protocol of the driver's own to a site, dialling it if
// needed. The caller closes or resets it.
func (n *Network) Open(ctx context.Context, to grid.SiteID, id string) (network.Stream, error) {
	p, err := peer.Decode(string(to))
	if err != nil {
		return nil, fmt.Errorf("site %q: %w", to, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*dialTimeMax)
	defer cancel()
	return n.routed.NewStream(ctx, p, protocol.ID(id))
}

// Greet shows every peer that this node's proof of membership is a new one.
func (n *Network) Greet() {
	if n.gate != nil {
		n.wg.Go(func() { n.gate.again(n.ctx) })
	}
}

// Expel ends the connections of a peer that is a member no longer, and takes none of it
// for span. Unless words is empty, a connected peer is told them first, in place of a proof;
// one that is not may come to be told.
func (n *Network) Expel(site grid.SiteID, span time.Duration, words []byte) {
	p, err := peer.Decode(string(site))
	if err != nil || n.gate == nil {
		return
	}
	if len(words) == 0 {
		n.gate.expel(p, span)
		return
	}
	n.gate.shut(p)
	n.wg.Go(func() {
		if n.gate.tell(n.ctx, p, words) {
			n.gate.expel(p, span)
		}
		_ = n.host.Network().ClosePeer(p)
	})
}

// end finishes a stream: cleanly if err is nil.
func end(s network.Stream, err error) {
	if err != nil {
		s.Reset()
		return
	}
	s.Close()
}

// Kademlia returns how nodes of the profile look up: the size k of buckets and
// answers, and the number α of requests under way.
func (p Profile) Kademlia() (k, alpha int) {
	if p == ProfileFleet {
		return bucketMin, parallel
	}
	return 20, parallel
}

func (c *Config) bucketSize() int {
	k, _ := c.Profile.Kademlia()
	return cmp.Or(c.BucketSize, k)
}

func (c *Config) parallel() int {
	_, alpha := c.Profile.Kademlia()
	return cmp.Or(c.Parallel, alpha)
}

// check returns the parsed addresses, or an error that wraps ErrConfig.
func (c *Config) check() (listen []multiaddr.Multiaddr, join []peer.AddrInfo, err error) {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, args...))
	}
	if c.Key == nil || c.Deliver == nil || c.Report == nil {
		return nil, nil, bad("key, Deliver and Report are needed")
	}
	if c.BucketSize != 0 && c.BucketSize < bucketMin {
		return nil, nil, bad("buckets of %d peers: want at least %d, see bucketMin", c.BucketSize, bucketMin)
	}
	if c.Federation == "" || len(c.Federation) > 64 || strings.Trim(c.Federation, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" {
		return nil, nil, bad("federation name %q: want 1 to 64 characters of a-z 0-9 . _ -", c.Federation)
	}
	if len(c.Listen) == 0 {
		return nil, nil, bad("no address to listen on: want something like 127.0.0.1:7531")
	}
	for _, text := range c.Listen {
		addrs, err := reach.Listen(text)
		if err != nil {
			return nil, nil, bad("listen address %q: %v", text, err)
		}
		listen = append(listen, addrs...)
	}
	for _, text := range c.Join {
		info, err := reach.Peer(text)
		if err != nil {
			return nil, nil, bad("address to join %q: %v", text, err)
		}
		join = append(join, info)
	}
	return listen, mergeInfos(join), nil
}
