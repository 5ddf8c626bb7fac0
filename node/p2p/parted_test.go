package p2p

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gridnode/grid"
	"gridnode/node/p2p/patience"
)

// partings returns from whom a node says that it has parted.
func partings(inputs []grid.Input) (sites []grid.SiteID) {
	for _, in := range inputs {
		if p, ok := in.(*grid.Parted); ok {
			sites = append(sites, p.Site)
		}
	}
	return sites
}

// TestParted: it is noticed at once that a peer has closed, within half a minute that its machine is
// silent, and at the order that there is no connection; of peers that nobody attends to nothing is said.
func TestParted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stuck atomic.Bool
		memory := &Memory{Latency: func() time.Duration {
			if stuck.Load() {
				return time.Hour
			}
			return time.Millisecond
		}}
		nodes := fleet(t, memory, 4)
		defer closeAll(nodes)
		a, gone, silent, other := nodes[0], nodes[1], nodes[2], nodes[3]
		want := func(what string, sites ...grid.SiteID) {
			t.Helper()
			if got := partings(a.inputs()); !slices.Equal(got, sites) {
				t.Errorf("%s: parted from %v, want %v", what, got, sites)
			}
		}
		Attend(a.Network, []grid.SiteID{"no peer ID", gone.Self(), silent.Self()})
		time.Sleep(2 * time.Minute)
		want("at rest")
		gone.Close()
		other.Close()
		time.Sleep(time.Second)
		want("one has closed", gone.Self())
		Attend(a.Network, []grid.SiteID{silent.Self(), other.Self()})
		want("one is not there", gone.Self(), other.Self())
		time.Sleep(time.Minute)
		stuck.Store(true)
		time.Sleep((patience.Silence + patience.Answer).Duration())
		stuck.Store(false)
		want("one is silent", gone.Self(), other.Self(), silent.Self())
	})
}

// TestAttendedConnectionsAreKept: connections with those a node of a fleet attends to are not
// shed, and are once it does so no more.
func TestAttendedConnectionsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{}, 40)
		defer closeAll(nodes)
		first := nodes[0]
		var sites []grid.SiteID
		for _, n := range nodes[1:] {
			first.Send(n.Self(), &note{1, "hello"}, 0)
			sites = append(sites, n.Self())
		}
		time.Sleep(time.Second)
		Attend(first.Network, sites)
		for _, n := range nodes[1:] { // else it may be they who shed
			Attend(n.Network, []grid.SiteID{first.Self()})
		}
		time.Sleep(4 * time.Minute)
		if parted := partings(first.inputs()); len(parted) > 0 {
			t.Errorf("parted from %d peers", len(parted))
		}
		Attend(first.Network, nil)
		time.Sleep(4 * time.Minute)
		if peers := len(first.host.Network().Peers()); peers > shedMost {
			t.Errorf("%d peers are kept, more than %d", peers, shedMost)
		}
	})
}
