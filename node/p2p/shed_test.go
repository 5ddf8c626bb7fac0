package p2p

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"gridnode/grid"
)

// TestIdleConnectionsAreShed: nodes of a fleet come to rest with few connections, none is ended
// whose stream is in use, and who was shed is reached again.
func TestIdleConnectionsAreShed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{}, 40)
		defer closeAll(nodes)
		const line = "/gridnode/test-line/1.0.0"
		for _, n := range nodes {
			n.Handle(line, func(_ grid.SiteID, s network.Stream) error {
				_, err := io.Copy(io.Discard, s)
				return err
			})
		}
		first := nodes[0]
		var open []network.Stream
		for _, n := range nodes[1:] {
			s, err := first.Open(t.Context(), n.Self(), line)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Write([]byte{1}); err != nil { // the peer learns of the stream
				t.Fatal(err)
			}
			open = append(open, s)
		}
		time.Sleep(4 * time.Minute)
		for i, n := range nodes[1:] {
			if peers := len(n.host.Network().Peers()); peers > shedMost {
				t.Errorf("node %d has %d peers at rest, more than %d", i+1, peers, shedMost)
			}
			n.used.mu.Lock()
			uses := len(n.used.at)
			n.used.mu.Unlock()
			if uses > shedMost {
				t.Errorf("node %d remembers when it used %d peers, more than it has", i+1, uses)
			}
		}
		for i, s := range open {
			if s.Conn().IsClosed() {
				t.Errorf("the connection to node %d was ended while a stream was open", i+1)
			}
			_ = s.Close()
		}
		time.Sleep(4 * time.Minute)
		if peers := len(first.host.Network().Peers()); peers > shedMost {
			t.Errorf("%d peers after the streams were closed, more than %d", peers, shedMost)
		}
		for _, n := range nodes[1:] {
			first.Send(n.Self(), &note{1, "again"}, 0)
		}
		time.Sleep(time.Second)
		for i, n := range nodes[1:] {
			if got := texts(n.inputs()); len(got) != 1 || got[0] != "again" {
				t.Errorf("node %d got %q", i+1, got)
			}
		}
	})
}
