package p2p

import (
	"testing"
	"testing/synctest"

	"gridnode/grid"
)

// TestProbesTooMany: those above the bound are answered at once, and take no place of later ones.
func TestProbesTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{}, 2)
		defer closeAll(nodes)
		n := nodes[0]
		nobody := grid.SiteID("12D3KooWEkiMu4jpwh9n1wvUtsbcdnQjhvEYUQM3o6xy85S8d4kp")
		for round := 1; round <= 2; round++ {
			for range 2 * probesMax {
				n.Probe(nobody)
			}
			n.await(func(in []grid.Input) bool { return len(in) == round*(2*probesMax+1)-1 })
			synctest.Wait()
			n.Probe(nodes[1].Self())
			got := n.await(func(in []grid.Input) bool { return len(in) == round*(2*probesMax+1) })
			if p := got[len(got)-1].(*grid.Probed); p.To != nodes[1].Self() || p.RoundTrip < 0 {
				t.Errorf("round %d: %+v, want a round trip to the peer", round, p)
			}
		}
	})
}
