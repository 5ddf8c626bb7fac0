package p2p

import (
	"net/netip"
	"time"

	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"gridnode/node/p2p/allowance"
)

// doorkeeper refuses connections of peers that were expelled or are banned, and those
// above the allowance of a peer or an address. libp2p wants it before there is a host.
type doorkeeper struct {
	n    *Network
	gate *gate // nil: nobody is expelled
}

func (d *doorkeeper) bars(p peer.ID) bool {
	return d.gate != nil && d.gate.isBanned(p) || d.n.Warden.bans.Bars(time.Now(), p.String())
}

// InterceptPeerDial implements connmgr.ConnectionGater.
func (d *doorkeeper) InterceptPeerDial(p peer.ID) bool { return !d.bars(p) }

// InterceptAddrDial implements connmgr.ConnectionGater.
func (d *doorkeeper) InterceptAddrDial(peer.ID, multiaddr.Multiaddr) bool { return true }

// InterceptAccept implements connmgr.ConnectionGater. It comes before the handshake,
// which costs more than anything else that a stranger can ask for.
func (d *doorkeeper) InterceptAccept(c network.ConnMultiaddrs) bool {
	address := addressOf(c.RemoteMultiaddr())
	if address == "" || d.n.cfg.Profile == ProfileFleet {
		return true // all of a fleet have one address
	}
	now := time.Now()
	if d.n.Warden.bans.BarsAddress(now, address) {
		return false
	}
	v := d.n.Warden.doors.Draw(now, address, allowance.Address, 1, 0)
	if v.Ban != "" {
		d.n.Warden.banAddress(d.n.Warden.bans.Address(now, address, v.Ban))
	}
	if v.Wait > 0 {
		d.n.stats.refused.Add(1)
	}
	return v.Wait == 0
}

// InterceptSecured implements connmgr.ConnectionGater.
func (d *doorkeeper) InterceptSecured(dir network.Direction, p peer.ID, c network.ConnMultiaddrs) bool {
	if d.bars(p) {
		return false
	}
	if dir != network.DirInbound || d.n.host == nil {
		return true
	}
	v := d.n.Warden.meters.Draw(time.Now(), p.String(), allowance.Conns, 1, 0)
	if v.Ban != "" {
		d.n.Warden.ban(p, c.RemoteMultiaddr(), v.Ban)
	}
	many := len(d.n.host.Network().ConnsToPeer(p)) >= connsMax
	if many || v.Wait > 0 {
		d.n.stats.refused.Add(1)
	}
	return !many && v.Wait == 0
}

// InterceptUpgraded implements connmgr.ConnectionGater.
func (d *doorkeeper) InterceptUpgraded(network.Conn) (bool, control.DisconnectReason) { return true, 0 }

// addressOf returns what addresses are allowanceed and banned by: one of IPv4, or the 64 bits
// of IPv6 that one customer has; empty if it is neither, or of a relay.
func addressOf(addr multiaddr.Multiaddr) string {
	if _, err := addr.ValueForProtocol(multiaddr.P_CIRCUIT); err == nil {
		return "" // the address is a relay's
	}
	ip, err := manet.ToIP(addr)
	if err != nil {
		return ""
	}
	a, ok := netip.AddrFromSlice(ip)
	if !ok {
		return ""
	}
	if a = a.Unmap(); a.Is4() {
		return a.String()
	}
	prefix, err := a.Prefix(64)
	if err != nil {
		return ""
	}
	return prefix.String()
}
