package federation

import (
	"context"
	"runtime"
	"testing"

	"gridnode/market"
	"gridnode/testnet/simtest"
	"gridnode/testnet/workload"
)

// BenchmarkFederation is the economy of the eight sites of table 1 over two days,
// directory, Kademlia and all, with generated jobs in memory.
func BenchmarkFederation(b *testing.B) {
	w, err := NewTable1(8, nil, workload.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for _, placement := range []market.Placement{market.PlacementPaper, market.PlacementCoordinated} {
		b.Run(placement.String(), func(b *testing.B) {
			cfg := Default()
			var events int64
			b.ReportAllocs()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			busy := simtest.ProcessorTime()
			for range b.N {
				r, err := cfg.trade(context.Background(), placement, w)
				if err != nil {
					b.Fatal(err)
				}
				events += r.Events
			}
			busy = simtest.ProcessorTime() - busy
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(w.Jobs)*float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
			b.ReportMetric(float64(busy.Nanoseconds())/float64(b.N)/float64(w.Jobs), "cpu-ns/job")
			simtest.ReportEvents(b, events, busy)
			b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(events), "allocs/event")
			b.ReportMetric(float64(events)/float64(b.N)/float64(w.Jobs), "events/job")
		})
	}
}
