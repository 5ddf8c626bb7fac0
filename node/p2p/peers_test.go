package p2p

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestLatencyOfWhoHasLeftIsForgotten: what is remembered of peers is bounded by those that are connected.
func TestLatencyOfWhoHasLeftIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{}, 3)
		defer closeAll(nodes)
		n := nodes[0]
		measured := func() int {
			n.pings.mu.Lock()
			defer n.pings.mu.Unlock()
			return len(n.pings.at)
		}
		if got := len(n.Peers(t.Context())); got != 2 || measured() != 2 {
			t.Fatalf("%d peers, %d measured; want 2", got, measured())
		}
		nodes[2].Close()
		time.Sleep(time.Second)
		if got := measured(); got != 1 {
			t.Errorf("when one has left %d measurements are remembered", got)
		}
	})
}
