package reach

import (
	"fmt"
	"slices"
	"time"

	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"gridnode/grid"
)

// Diagnosis is what is known of the ways between this node and others.
type Diagnosis struct {
	Status
	Listen []multiaddr.Multiaddr // what it listens on
	Told   int                   // peers that it was told to join through
	Peers  []Contact             // that are connected
}

// Contact is a connected peer.
type Contact struct {
	Site    grid.SiteID
	Addr    string
	Kind    Kind
	Relay   grid.SiteID // empty unless KindRelayed
	Punched bool
	Latency time.Duration
	Member  bool
	Clock   bool          // it has said what its clock says
	Offset  time.Duration // by which that is ahead of this node's
	Stuck   bool          // small packets pass, and large ones do not
	Err     error         // why it has not said
}

// Problem is something that does not work, and what to do about it.
type Problem struct {
	Severe bool // others cannot reach this node, or it reaches nobody
	What   string
	Do     string
}

// offsetMax is by how much clocks may differ until that is worth a word: certificates, quotes and
// deadlines say instants.
const offsetMax = 5 * time.Second

// Loopback reports whether the node listens for nobody but this machine.
func (d *Diagnosis) Loopback() bool {
	return !slices.ContainsFunc(d.Listen, func(a multiaddr.Multiaddr) bool {
		return !Relayed(a) && !manet.IsIPLoopback(a)
	})
}

// Problems returns what does not work, worst first. None is severe if others can reach this
// node.
func (d *Diagnosis) Problems() (all []Problem) {
	all = append(d.unconnected(), d.unreachable()...)
	all = append(all, d.partly()...)
	all = append(all, d.troubles()...)
	slices.SortStableFunc(all, func(a, b Problem) int {
		switch {
		case a.Severe == b.Severe:
			return 0
		case a.Severe:
			return -1
		}
		return 1
	})
	return all
}

// unconnected is about a node without peers.
func (d *Diagnosis) unconnected() []Problem {
	switch {
	case slices.ContainsFunc(d.Peers, func(p Contact) bool { return p.Member }):
		return nil
	case len(d.Peers) > 0:
		return []Problem{{true, "no peer that is connected is of this federation",
			"compare 'gridnode federation show' here and there, and the setting federation"}}
	case d.Told == 0:
		return []Problem{{true, "nobody is connected, and this node was not told whom to join",
			"set network.join to an address that 'gridnode peers --self' prints at another site, or have others join this one"}}
	}
	return []Problem{{true, "nobody is connected",
		"see the log for why the addresses in network.join do not answer: does a firewall here keep this node from connecting out?"}}
}

// unreachable is about a node that nobody can connect to.
func (d *Diagnosis) unreachable() []Problem {
	switch {
	case d.Loopback():
		return []Problem{{false, "this node listens for this machine only",
			fmt.Sprintf("to be reached from others, set network.listen to 0.0.0.0:%s and restart", d.port())}}
	case len(d.Refused) > 0:
		return []Problem{{len(d.Refused) == len(d.Announced), fmt.Sprintf("others cannot connect to the announced address %s", d.Refused[0]),
			"let the router and the firewall forward that port, UDP and TCP, to this machine; or take the address out of network.announce"}}
	case d.Reachability == Unknown:
		return []Problem{{false, "nobody has tried yet whether others can connect to this node",
			"wait a minute: it takes two members with other addresses"}}
	case d.Reachability != Private || len(d.Relays) > 0:
		return nil
	}
	why := "others cannot connect to this node: a firewall keeps them out"
	if d.NAT {
		why = "others cannot connect to this node: it is behind a NAT"
	}
	forward := fmt.Sprintf("forward port %s of the router, UDP and TCP, to this machine and set network.announce to the router's address", d.port())
	if d.Relay == RelayOff {
		return []Problem{{true, why + ", and network.relay is off", "set network.relay to use; or " + forward}}
	}
	return []Problem{{true, why + ", and no member offers a relay", "have a member that can be reached set network.relay to offer; or " + forward}}
}

// partly is about a node that is reached, but not in every way.
func (d *Diagnosis) partly() (all []Problem) {
	if d.Reachability == Public && len(d.Announced) == 0 {
		for _, a := range d.Unreachable {
			all = append(all, Problem{false, fmt.Sprintf("others cannot connect to %s", a), "let it through the firewall, or do not listen there"})
		}
	}
	if d.Reachability != Private {
		return all
	}
	if len(d.Relays) == 1 && d.Relay != RelayOff {
		all = append(all, Problem{false, "one relay knows this node: if it goes, others cannot connect until another is found",
			"have another member that can be reached set network.relay to offer"})
	}
	if !QUIC(d.Listen) {
		all = append(all, Problem{false, "this node does not listen with QUIC, and NATs let nothing else through",
			fmt.Sprintf("set network.listen to 0.0.0.0:%s, which is QUIC and TCP", d.port())})
	} else if d.InVain > 0 && d.Punched == 0 {
		all = append(all, Problem{false, fmt.Sprintf("%d attempts to connect directly through the NATs failed: one of them gives every connection a port of its own, or lets no UDP through", d.InVain),
			fmt.Sprintf("nothing has to be done, but a relay is slower: forward port %s of the router and set network.announce", d.port())})
	}
	return all
}

// troubles is about single peers.
func (d *Diagnosis) troubles() (all []Problem) {
	var ahead []time.Duration
	for _, p := range d.Peers {
		if p.Clock && p.Offset.Abs() > offsetMax {
			ahead = append(ahead, p.Offset)
		}
		if p.Stuck {
			all = append(all, Problem{false, fmt.Sprintf("large packets to and from %s are lost", p.Site),
				"lower the MTU of this machine's interface, to 1280 for a start: something between does not say what it lets through"})
		}
	}
	asked := 0
	for _, p := range d.Peers {
		if p.Clock {
			asked++
		}
	}
	switch slices.Sort(ahead); {
	case len(ahead) == 0:
	case 2*len(ahead) > asked && asked > 1:
		all = append(all, Problem{false, fmt.Sprintf("the clock of this site is off by %v", -ahead[len(ahead)/2].Round(time.Second)),
			"run an NTP client, and restart the daemon if the machine's clock is right by now: it goes by that of its start"})
	default:
		all = append(all, Problem{false, fmt.Sprintf("the clocks of %d of %d peers are off, by up to %v", len(ahead), asked, max(ahead[len(ahead)-1].Abs(), ahead[0].Abs()).Round(time.Second)),
			"one of the two sites is wrong: run an NTP client on both, and restart the daemon of which the clock was set since"})
	}
	return all
}

// port returns that of the first address listened on.
func (d *Diagnosis) port() string {
	for _, a := range d.Listen {
		for _, code := range []int{multiaddr.P_UDP, multiaddr.P_TCP} {
			if port, err := a.ValueForProtocol(code); err == nil && !Relayed(a) {
				return port
			}
		}
	}
	return "7531"
}
