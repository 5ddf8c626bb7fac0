package testnet

import (
	"context"
	"fmt"
	"testing"

	"gridnode/internal/grid"
	"gridnode/internal/lrms"
	"gridnode/internal/workload"
)

// relaySite passes every message on to the next site and sets its timer anew each
// time: the least a core can do.
type relaySite struct {
	next    grid.SiteID
	message grid.Message
	timer   grid.Time
}

func (s *relaySite) NextTimer() grid.Time { return s.timer }

func (s *relaySite) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	switch in.(type) {
	case grid.Tick:
		if s.timer <= now {
			s.timer = now + grid.Minute
		}
	case *grid.Delivery:
		s.timer = now + grid.Minute
		out.Send(s.next, s.message)
	case *toySend:
		out.Send(s.next, s.message)
	}
}

// BenchmarkEngine is the bare engine: one event is one message delivered and sent
// on, Tick and timer included. Ten messages per site are under way.
func BenchmarkEngine(b *testing.B) {
	for _, sites := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("sites=%d", sites), func(b *testing.B) {
			n, err := New(Config{Seed: 1, Link: Link{LatencyMin: 10 * grid.Millisecond, LatencyMax: 200 * grid.Millisecond}})
			if err != nil {
				b.Fatal(err)
			}
			for i := range sites {
				s := &relaySite{next: grid.SiteID(fmt.Sprint("s", (i*7919+1)%sites)), message: &toyMessage{toyPing, i}, timer: grid.Never}
				if _, err := n.Add(Member{ID: grid.SiteID(fmt.Sprint("s", i)), New: func(int) (Site, error) { return s, nil }}); err != nil {
					b.Fatal(err)
				}
				for j := range 10 {
					n.Inject(grid.Time(j)*grid.Millisecond, i, &toySend{})
				}
			}
			// Run until memory has reached its size.
			if err := n.Run(context.Background(), 5*grid.Second, nil); err != nil {
				b.Fatal(err)
			}
			end := n.Events() + int64(b.N)
			b.ReportAllocs()
			b.ResetTimer()
			if err := n.Run(context.Background(), grid.Never, func() bool { return n.Events() >= end }); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// BenchmarkReplayCTC is the whole log of CTC SP2 (77 199 jobs) through the cores of
// a site with EASY: from the gzip file, and with the jobs in memory.
func BenchmarkReplayCTC(b *testing.B) {
	cfg := DefaultLeasing()
	cfg.Traces, cfg.Processors = []string{traces(b, "CTC-SP2-1996-3.1-cln.swf.gz")}, []int64{430}
	const jobs = 77199
	report := func(b *testing.B, r *Result) {
		b.Helper()
		if r.Total.AWRT.String() != "52937.96" {
			b.Fatalf("AWRT %v", r.Total.AWRT)
		}
		b.ReportMetric(float64(jobs)*float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		b.ReportMetric(float64(r.Events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
	}
	b.Run("parsing", func(b *testing.B) {
		var r *Result
		b.ReportAllocs()
		for range b.N {
			var err error
			if r, err = RunLeasing(context.Background(), cfg); err != nil {
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
		var r *Result
		b.ReportAllocs()
		b.ResetTimer()
		for range b.N {
			again := all
			w.sources[0] = &again
			if r, err = w.replay(context.Background(), &cfg, lrms.EASY); err != nil {
				b.Fatal(err)
			}
		}
		report(b, r)
	})
}
