package p2p

import (
	"context"
	"errors"
	"fmt"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"

	"gridnode/node/reach"
)

// Call opens one stream to a peer, of which it tries one address after the other, and
// has talk use it. It needs no Network: it is for who is not in one yet.
func Call(ctx context.Context, key crypto.PrivKey, addresses []string, id string, talk func(network.Stream) error) error {
	n := newNetwork(Config{Key: key, Agent: "gridnode"})
	defer n.cancel()
	var err error
	if n.reach, err = reach.New(reach.Config{}, nil); err != nil {
		return err
	}
	h, err := n.newHost(&doorkeeper{n: n}, true)
	if err != nil {
		return fmt.Errorf("start libp2p: %w", err)
	}
	defer h.Close()
	n.host = h
	var errs []error
	for _, text := range addresses {
		info, err := reach.Peer(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("address %q: %w", text, err))
			continue
		}
		once, cancel := context.WithTimeout(ctx, 2*dialTimeMax)
		err = h.Connect(once, info)
		var s network.Stream
		if err == nil {
			s, err = h.NewStream(once, info.ID, protocol.ID(id))
		}
		if err == nil {
			if deadline, ok := once.Deadline(); ok {
				_ = s.SetDeadline(deadline)
			}
			err = talk(s)
			end(s, err)
		}
		cancel()
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", text, err))
	}
	return errors.Join(errs...)
}
