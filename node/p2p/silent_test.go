package p2p

import (
	"slices"
	"testing"
	"testing/synctest"

	"gridnode/grid"
)

// TestSilent: who has gone is silent, who is there, and this node, is not.
func TestSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{}, 3)
		defer closeAll(nodes)
		a, b, c := nodes[0], nodes[1], nodes[2]
		synctest.Wait() // each has told its addresses
		sites := []grid.SiteID{b.Self(), a.Self(), c.Self(), "none"}
		if silent := Silent(t.Context(), a.Network, sites); len(silent) != 0 {
			t.Errorf("%v are silent, but all are there", silent)
		}
		b.Close()
		synctest.Wait() // the others have noticed
		if silent := Silent(t.Context(), a.Network, sites); !slices.Equal(silent, []grid.SiteID{b.Self()}) {
			t.Errorf("%v are silent, want %v", silent, b.Self())
		}
		if err := a.host.Network().ClosePeer(c.host.ID()); err != nil {
			t.Fatal(err)
		}
		if silent := Silent(t.Context(), a.Network, sites[1:]); len(silent) != 0 {
			t.Errorf("%v are silent, but can be reached", silent)
		}
	})
}
