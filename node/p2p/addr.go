package p2p

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
)

func text(addrs []multiaddr.Multiaddr) []string {
	out := make([]string, len(addrs))
	for i, a := range addrs {
		out[i] = a.String()
	}
	return out
}

// mergeInfos returns one entry per peer, with all its addresses.
func mergeInfos(infos []peer.AddrInfo) (merged []peer.AddrInfo) {
	for _, info := range infos {
		i := slices.IndexFunc(merged, func(m peer.AddrInfo) bool { return m.ID == info.ID })
		if i < 0 {
			merged = append(merged, info)
			continue
		}
		merged[i].Addrs = multiaddr.Unique(append(merged[i].Addrs, info.Addrs...))
	}
	return merged
}

// listenCause shortens libp2p's report of a failed listen to what the user can act on.
func listenCause(err error) error {
	var op *net.OpError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return errors.New("the port is in use: stop the other program or choose another port")
	case errors.As(err, &op):
		return op.Err
	}
	return err
}

// watchAddrs tells whoever wants to know of other addresses than before.
func (n *Network) watchAddrs() error {
	if n.cfg.Moved == nil {
		return nil
	}
	changes, err := n.host.EventBus().Subscribe(new(event.EvtLocalAddressesUpdated))
	if err != nil {
		return fmt.Errorf("watch addresses: %w", err)
	}
	sorted := func() []string {
		addrs := n.Addrs()
		slices.Sort(addrs)
		return addrs
	}
	told := sorted()
	n.wg.Go(func() {
		defer changes.Close()
		for {
			select {
			case <-changes.Out():
				if addrs := sorted(); !slices.Equal(addrs, told) {
					told = addrs
					n.cfg.Moved(n.Addrs())
				}
			case <-n.ctx.Done():
				return
			}
		}
	})
	return nil
}
