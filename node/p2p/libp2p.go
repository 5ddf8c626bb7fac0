package p2p

import (
	"time"

	"github.com/libp2p/go-libp2p"
	corecm "github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	libp2pquic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/prometheus/client_golang/prometheus"

	"gridnode/node/p2p/allowance"
	"gridnode/node/p2p/patience"
)

// newHost returns a host that listens nowhere yet. It speaks QUIC only if that is asked
// for, as it has its price: more memory a connection, and goroutines.
func (n *Network) newHost(keeper *doorkeeper, quic bool) (host.Host, error) {
	opts := append(n.reach.Options(),
		libp2p.Identity(n.cfg.Key),
		libp2p.UserAgent(n.cfg.Agent),
		libp2p.NoListenAddrs, // one by one in start, so that each failure is seen
		libp2p.Security(noise.ID, noise.New),
		libp2p.Muxer(yamux.ID, muxer()),
		libp2p.ConnectionGater(keeper),
		metricsOf(n.cfg.Metrics),
		libp2p.Ping(false), // start serves it, metered
		libp2p.UDPBlackHoleSuccessCounter(nil),
		libp2p.IPv6BlackHoleSuccessCounter(nil),
		libp2p.WithDialTimeout(dialTimeMax),
	)
	if n.cfg.Memory != nil {
		opts = append(opts, libp2p.Transport(n.cfg.Memory.transport))
	} else {
		// Without DisableReuseport a second process could listen on the same port.
		opts = append(opts, libp2p.Transport(tcp.NewTCPTransport, tcp.DisableReuseport()))
		if quic {
			opts = append(opts, libp2p.Transport(libp2pquic.NewTransport))
		}
	}
	const low, high, grace = 96, 128, 20 * time.Second
	n.enough = low
	if n.cfg.Profile == ProfileFleet {
		n.enough = shedMost
	}
	resources, err := resources(n)
	if err != nil {
		return nil, err
	}
	opts = append(opts, libp2p.ResourceManager(resources))
	manager, err := connmgr.NewConnManager(low, high, connmgr.WithGracePeriod(grace))
	if err != nil {
		return nil, err
	}
	conns := corecm.ConnManager(manager)
	if n.cfg.Profile == ProfileFleet {
		conns = unprotecting{manager}
	}
	h, err := libp2p.New(append(opts, libp2p.ConnectionManager(conns))...)
	if err != nil {
		manager.Close()
	}
	return h, err
}

// muxer returns libp2p's multiplexer with frames that fit into one message of noise each:
// with its own, every full frame is followed by a message of 17 bytes, encrypted and sent by
// itself. And a peer whose node stands still is sent no more than windowMax on a stream, and a
// machine that has fallen silent is missed (patience.Silence, patience.Answer).
func muxer() *yamux.Transport {
	t := *yamux.DefaultTransport
	t.MaxMessageSize = noise.MaxPlaintextLength
	t.MaxStreamWindowSize = windowMax
	t.KeepAliveInterval, t.ConnectionWriteTimeout = patience.Silence.Duration(), patience.Answer.Duration()
	return &t
}

// metricsOf has libp2p tell its numbers to whoever wants them.
func metricsOf(to prometheus.Registerer) libp2p.Option {
	if to == nil {
		return libp2p.DisableMetrics()
	}
	return libp2p.PrometheusRegisterer(to)
}

// paced is libp2p's accounting of resources, which a peer above its allowance of streams
// waits for: its connection accepts no further one meanwhile.
type paced struct {
	network.ResourceManager
	n *Network
}

// resources returns what the node may spend on connections and streams.
func resources(n *Network) (network.ResourceManager, error) {
	if n.cfg.Profile == ProfileFleet {
		return &paced{&network.NullResourceManager{}, n}, nil
	}
	limits := rcmgr.DefaultLimits
	libp2p.SetDefaultServiceLimits(&limits)
	counted := rcmgr.WithMetricsDisabled()
	if n.cfg.Metrics != nil {
		rcmgr.MustRegisterWith(n.cfg.Metrics)
		reporter, err := rcmgr.NewStatsTraceReporter()
		if err != nil {
			return nil, err
		}
		counted = rcmgr.WithTraceReporter(reporter)
	}
	m, err := rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(limits.AutoScale()), counted)
	if err != nil {
		return nil, err
	}
	return &paced{m, n}, nil
}

// OpenStream implements network.ResourceManager.
func (r *paced) OpenStream(p peer.ID, dir network.Direction) (network.StreamManagementScope, error) {
	if dir == network.DirInbound {
		v := r.n.Warden.meters.Draw(time.Now(), p.String(), allowance.Streams, 1, 0)
		if v.Ban != "" {
			if conns := r.n.host.Network().ConnsToPeer(p); len(conns) > 0 {
				r.n.Warden.ban(p, conns[0].RemoteMultiaddr(), v.Ban)
			}
			return nil, network.ErrResourceLimitExceeded
		}
		if v.Wait > 0 {
			r.n.stats.throttled.Add(1)
			if !r.n.sleep(min(v.Wait, holdMax)) {
				return nil, r.n.ctx.Err()
			}
		}
	}
	return r.ResourceManager.OpenStream(p, dir)
}
