package scale

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gridnode/grid"
	"gridnode/testnet/simtest"
)

// BenchmarkScale is a federation of that many sites, directory, Kademlia, gossip and
// market: one event is anything that happens in a quarter of an hour after the sites
// have found each other. More workers than one are worth it if events/s is higher.
func BenchmarkScale(b *testing.B) {
	for _, c := range []struct{ sites, workers int }{{10, 1}, {100, 1}, {1000, 1}, {1000, 2}, {10_000, 1}, {10_000, 2}} {
		sites := c.sites
		b.Run(fmt.Sprintf("sites=%d/workers=%d", sites, c.workers), func(b *testing.B) {
			if testing.Short() && sites > 1000 {
				b.Skip("takes a minute")
			}
			var events int64
			var busy time.Duration
			for range b.N {
				b.StopTimer()
				r, m, err := startScale(context.Background(), &Config{Seed: 1, Sites: sites, Workers: c.workers, Span: grid.Hour / 4, Placement: "coordinated", OFT: 50})
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				before := simtest.ProcessorTime()
				if err := r.Run(context.Background(), m.begin+grid.Hour/4, nil); err != nil {
					b.Fatal(err)
				}
				busy += simtest.ProcessorTime() - before
				events += r.Events() - m.events
			}
			simtest.ReportEvents(b, events, busy)
		})
	}
}
