package p2p

import (
	"errors"
	"net"
	"runtime"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/node/p2p/allowance"
)

// Warden keeps peers to their allowances, and out while they are banned. Its methods may be
// called concurrently.
type Warden struct {
	n      *Network
	lines  *allowance.Lines
	meters *allowance.Meters // of peers
	doors  *allowance.Meters // of addresses
	bans   *allowance.Bans
	checks chan struct{} // holds a token for each frame that is being decoded
}

func newWarden(n *Network) *Warden {
	return &Warden{
		n: n, lines: &allowance.Table, meters: allowance.NewMeters(&allowance.Table), doors: allowance.NewMeters(&allowance.Table),
		bans: allowance.NewBans(), checks: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)),
	}
}

// errBanned says that a peer has gone on above its allowance.
var errBanned = errors.New("the peer is banned")

// spend draws from the allowance of a connection's peer, and waits until what it has sent may
// be looked at. The error says that it may not be.
func (w *Warden) spend(c network.Conn, class allowance.Class, tokens float64, bytes int) error {
	wait, err := w.draw(c, class, tokens, bytes)
	if err == nil && wait > 0 && !w.n.sleep(wait) {
		return w.n.ctx.Err()
	}
	return err
}

// draw does so without waiting.
func (w *Warden) draw(c network.Conn, class allowance.Class, tokens float64, bytes int) (time.Duration, error) {
	v := w.meters.Draw(time.Now(), c.RemotePeer().String(), class, tokens, bytes)
	if v.Wait > 0 {
		w.n.stats.throttled.Add(1)
	}
	if v.Ban != "" {
		w.ban(c.RemotePeer(), c.RemoteMultiaddr(), v.Ban)
		return 0, errBanned
	}
	return v.Wait, nil
}

// fault counts something that no honest peer sends, or hardly ever.
func (w *Warden) fault(c network.Conn) {
	_, _ = w.draw(c, allowance.Faults, 1, 0) // what it sent is thrown away
}

// timedOut reports whether something failed as its time was over.
func timedOut(err error) bool {
	var failure net.Error
	return errors.As(err, &failure) && failure.Timeout()
}

// slow counts that a peer kept this node waiting until the time for it was over.
func (w *Warden) slow(c network.Conn) {
	if why := w.meters.Slow(time.Now(), c.RemotePeer().String()); why != "" {
		w.ban(c.RemotePeer(), c.RemoteMultiaddr(), why)
	}
}

// ban ends the connections of a peer, and refuses others for a while.
func (w *Warden) ban(p peer.ID, addr multiaddr.Multiaddr, why string) {
	address := addressOf(addr)
	if w.n.cfg.Profile == ProfileFleet {
		address = "" // that of all
	}
	ban, also := w.bans.Peer(time.Now(), p.String(), address, why)
	w.n.stats.banned.Add(1)
	w.n.log.Warn("a peer was banned", "peer", p, "addr", addr, "until", ban.Until, "times", ban.Times, "why", why)
	go func() { _ = w.n.host.Network().ClosePeer(p) }() // not in a callback of libp2p's
	if also != "" {
		w.banAddress(allowance.Ban{Address: also, Until: ban.Until, Why: "several of its peers were banned"})
	}
}

// banAddress ends the connections of an address that are young: who was there before the
// flood may be somebody else.
func (w *Warden) banAddress(ban allowance.Ban) {
	w.n.stats.banned.Add(1)
	w.n.log.Warn("an address was banned", "addr", ban.Address, "until", ban.Until, "times", ban.Times, "why", ban.Why)
	go func() {
		for _, c := range w.n.host.Network().Conns() {
			if c.Stat().Direction == network.DirInbound && time.Since(c.Stat().Opened) < youngMax && addressOf(c.RemoteMultiaddr()) == ban.Address {
				_ = c.Close()
			}
		}
	}()
}

// Bans returns the bans under way, ordered by end.
func (w *Warden) Bans() []allowance.Ban { return w.bans.List(time.Now()) }

// Unban lifts the ban of a peer or of an address, and reports whether there was one.
func (w *Warden) Unban(what string) bool { return w.bans.Lift(what) }

// Usage returns what a peer has asked for lately.
func (w *Warden) Usage(site grid.SiteID) allowance.Usage { return w.meters.Usage(string(site)) }

// decode decodes a frame and verifies what is signed in it. Half of the processors do that
// at a time, and peers come to it in turn: one frame of each waits for them, in the order
// in which they came.
func (w *Warden) decode(p *wire.Protocol, src *source, from grid.SiteID, frame []byte) (grid.Message, uint64, error) {
	src.decode.Lock()
	defer src.decode.Unlock()
	select {
	case w.checks <- struct{}{}:
	case <-w.n.ctx.Done():
		return nil, 0, w.n.ctx.Err()
	}
	defer func() { <-w.checks }()
	return p.DecodeTraced(from, frame)
}
