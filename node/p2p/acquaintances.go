package p2p

import (
	"bufio"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/libp2p/go-libp2p/core/peer"

	"gridnode/internal/atomicfile"
	"gridnode/node/reach"
)

// acquaintances are the members that this node has had in its table, the latest first, in a
// file that outlives it. One that is not there any more is kept as long as there is room: a
// node that was cut off had few others when it stopped, and they may be gone for good.
type acquaintances struct {
	path string // empty: nothing is written

	mu    sync.Mutex
	peers []peer.AddrInfo
}

// acquainted reads whom a node knew when it ran last.
func acquainted(path string) *acquaintances {
	return &acquaintances{path: path, peers: readRemembered(path)}
}

// all returns them.
func (a *acquaintances) all() []peer.AddrInfo {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.peers)
}

// missed returns some of those that are not connected, drawn.
func (a *acquaintances) missed(connected func(peer.ID) bool, most int) []peer.AddrInfo {
	missed := slices.DeleteFunc(a.all(), func(p peer.AddrInfo) bool { return connected(p.ID) })
	rand.Shuffle(len(missed), func(i, j int) { missed[i], missed[j] = missed[j], missed[i] })
	return missed[:min(most, len(missed))]
}

// meet puts peers before the others, and writes all down.
func (a *acquaintances) meet(peers []peer.AddrInfo) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	known := slices.Clone(peers)
	for _, p := range a.peers {
		if !slices.ContainsFunc(peers, func(q peer.AddrInfo) bool { return p.ID == q.ID }) {
			known = append(known, p)
		}
	}
	a.peers = known[:min(len(known), rememberedMax)]
	if a.path == "" {
		return nil
	}
	var content strings.Builder
	for i := range a.peers {
		addrs, err := peer.AddrInfoToP2pAddrs(&a.peers[i])
		if err != nil {
			continue
		}
		for _, line := range text(addrs) {
			content.WriteString(line + "\n")
		}
	}
	return atomicfile.Write(a.path, []byte(content.String()), 0o600)
}

// keepRemembering writes new peers down soon after they connected, so that a crash
// forgets few. A node that others join, and that joins nobody, finds them again by
// nothing else.
func (n *Network) keepRemembering() {
	for {
		select {
		case <-n.met:
		case <-n.ctx.Done():
			return
		}
		if !n.sleep(rememberPause) {
			return
		}
		n.remember()
	}
}

// remember writes the addresses of the members in the table for the next start. Failing
// costs only a slower start, so it is only logged.
func (n *Network) remember() {
	var peers []peer.AddrInfo
	known := n.router.RoutingTable().ListPeers()
	for _, id := range known[:min(len(known), rememberedMax)] {
		info := peer.AddrInfo{ID: id, Addrs: n.host.Peerstore().Addrs(id)}
		reach.Order(info.Addrs)
		if info.Addrs = info.Addrs[:min(len(info.Addrs), rememberedAddrs)]; len(info.Addrs) > 0 {
			peers = append(peers, info)
		}
	}
	if len(peers) == 0 {
		return
	}
	if err := n.known.meet(peers); err != nil {
		n.log.Warn("cannot remember the peers", "error", err)
	}
}

// readRemembered returns the peers of the last run; lines that are no addresses
// are skipped.
func readRemembered(path string) []peer.AddrInfo {
	if path == "" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	var peers []peer.AddrInfo
	for lines := bufio.NewScanner(f); lines.Scan() && len(peers) < rememberedMax*rememberedAddrs; {
		if info, err := reach.Peer(lines.Text()); err == nil {
			peers = append(peers, info)
		}
	}
	return mergeInfos(peers)
}
