package leasing

import (
	"context"
	"testing"

	"gridnode/internal/lrms"
	"gridnode/testnet/measure"
	"gridnode/testnet/workload"
)

// BenchmarkReplayCTC is the whole log of CTC SP2 (77 199 jobs) through the cores of
// a site with EASY: from the gzip file, and with the jobs in memory.
func BenchmarkReplayCTC(b *testing.B) {
	cfg := Default()
	cfg.Traces, cfg.Processors = []string{traces(b, "CTC-SP2-1996-3.1-cln.swf.gz")}, []int64{430}
	const jobs = 77199
	report := func(b *testing.B, r *measure.Result) {
		b.Helper()
		if r.Total.AWRT.String() != "52937.96" {
			b.Fatalf("AWRT %v", r.Total.AWRT)
		}
		b.ReportMetric(float64(jobs)*float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		b.ReportMetric(float64(r.Events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
	}
	b.Run("parsing", func(b *testing.B) {
		var r *measure.Result
		b.ReportAllocs()
		for range b.N {
			var err error
			if r, err = Run(context.Background(), cfg); err != nil {
				b.Fatal(err)
			}
		}
		report(b, r)
	})
	b.Run("memory", func(b *testing.B) {
		w, err := openLogs(&cfg)
		if err != nil {
			b.Fatal(err)
		}
		defer w.close()
		var all workload.Jobs
		for {
			var j workload.Job
			ok, err := w.sources[0].Next(&j)
			if err != nil {
				b.Fatal(err)
			}
			if !ok {
				break
			}
			all = append(all, j)
		}
		var r *measure.Result
		b.ReportAllocs()
		b.ResetTimer()
		for range b.N {
			again := all
			w.sources[0] = &again
			if r, err = w.replayAlone(context.Background(), &cfg, lrms.EASY); err != nil {
				b.Fatal(err)
			}
		}
		report(b, r)
	})
}
