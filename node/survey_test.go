package node

import (
	"testing"
	"testing/synctest"
	"time"

	"gridnode/coalloc"
	"gridnode/grid"
	"gridnode/node/site"
)

// TestSitesLearnTheLatenciesBetweenThem: pings of real hosts and gossip of real
// pubsub bring every site what the others measure.
func TestSitesLearnTheLatenciesBetweenThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := hosts(t, 3, false)
		var ids []grid.SiteID
		for _, h := range list {
			defer closeHost(t, h)
			ids = append(ids, h.ID())
		}
		time.Sleep(3 * time.Minute) // a first report, a few rounds, and reports of what they found
		for at, h := range list {
			err := h.Do(t.Context(), func(s *site.Site) {
				e := s.Network(h.Now(), append(ids, "nobody"))
				for a := range ids {
					for b := range ids {
						want := coalloc.LatencyReported
						switch {
						case a == b:
							want = coalloc.LatencyDeclared
						case a == at || b == at:
							want = coalloc.LatencyMeasured
						}
						latency, source := e.Between(a, b)
						if source != want || a != b && latency != 1 { // nothing takes time in the bubble: the least there is
							t.Errorf("host %d: from %d to %d it is %v, %v; want 1µs, %v", at, a, b, latency, source, want)
						}
					}
				}
				if latency, source := e.Between(at, len(ids)); source != coalloc.LatencyUnknown || latency != coalloc.LatencyMax {
					t.Errorf("host %d: to nobody it is %v, %v", at, latency, source)
				}
				if bandwidth := e.Bandwidth(0, 1); bandwidth != 1000*125_000 {
					t.Errorf("host %d: %d bytes a second between sites of 1000 Mb/s", at, bandwidth)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}
