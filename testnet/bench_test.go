package testnet

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/market"
	"gridnode/testnet/draw"
	"gridnode/testnet/workload"
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
	for _, sites := range []int{10, 100, 1000, 10_000} {
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
			begin := n.Events()
			end := begin + int64(b.N)
			b.ReportAllocs()
			b.ResetTimer()
			busy := processorTime()
			if err := n.Run(context.Background(), grid.Never, func() bool { return n.Events() >= end }); err != nil {
				b.Fatal(err)
			}
			reportEvents(b, n.Events()-begin, processorTime()-busy)
		})
	}
}

// processorTime returns what this process has used of the processors so far. On a
// busy machine it says more than the time on the wall.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// reportEvents reports how fast events were, by the wall and by processor time.
func reportEvents(b *testing.B, events int64, busy time.Duration) {
	b.Helper()
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(busy.Nanoseconds())/float64(events), "cpu-ns/event")
}

// BenchmarkScale is a federation of that many sites, directory, Kademlia, gossip and
// market: one event is anything that happens in a quarter of an hour after the sites
// have found each other.
func BenchmarkScale(b *testing.B) {
	for _, sites := range []int{10, 100, 1000, 10_000} {
		b.Run(fmt.Sprintf("sites=%d", sites), func(b *testing.B) {
			if testing.Short() && sites > 1000 {
				b.Skip("takes a minute")
			}
			var events int64
			var busy time.Duration
			for range b.N {
				b.StopTimer()
				r, m, err := startScale(context.Background(), &ScaleConfig{Seed: 1, Sites: sites, Span: grid.Hour / 4, Placement: "coordinated", OFT: 50})
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				before := processorTime()
				if err := r.Run(context.Background(), m.begin+grid.Hour/4, nil); err != nil {
					b.Fatal(err)
				}
				busy += processorTime() - before
				events += r.Events() - m.events
			}
			reportEvents(b, events, busy)
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
			if r, err = w.replayAlone(context.Background(), &cfg, lrms.EASY); err != nil {
				b.Fatal(err)
			}
		}
		report(b, r)
	})
}

// BenchmarkFederation is the economy of the eight sites of table 1 over two days,
// directory, Kademlia and all, with generated jobs in memory.
func BenchmarkFederation(b *testing.B) {
	w, err := newTable1Workload(8, nil, workload.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for _, placement := range []market.Placement{market.PlacementPaper, market.PlacementCoordinated} {
		b.Run(placement.String(), func(b *testing.B) {
			cfg := DefaultFederation()
			var events int64
			b.ReportAllocs()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			busy := processorTime()
			for range b.N {
				r, err := cfg.trade(context.Background(), placement, w)
				if err != nil {
					b.Fatal(err)
				}
				events += r.Events
			}
			busy = processorTime() - busy
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(w.jobs)*float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
			b.ReportMetric(float64(busy.Nanoseconds())/float64(b.N)/float64(w.jobs), "cpu-ns/job")
			reportEvents(b, events, busy)
			b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(events), "allocs/event")
			b.ReportMetric(float64(events)/float64(b.N)/float64(w.jobs), "events/job")
		})
	}
}

// BenchmarkQueue takes the first event out and puts one in, with so many waiting.
func BenchmarkQueue(b *testing.B) {
	for _, waiting := range []int{100, 100_000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			var h eventQueue
			pcg := draw.PCG(1, "", draw.ForLinks)
			for range waiting {
				h.push(grid.Time(draw.Uniform(pcg, 1e6)), classOther, event{})
			}
			b.ReportAllocs()
			for b.Loop() {
				at := h.next()
				h.push(at+grid.Time(draw.Uniform(pcg, 1e6)), classOther, h.pop())
			}
		})
	}
}
