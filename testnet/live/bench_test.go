package live

import (
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// BenchmarkFleet starts many nodes in one process, by the transport that connects them, and
// measures what they are when each sees the quotes of all.
func BenchmarkFleet(b *testing.B) {
	for _, transport := range []string{"memory", "tcp"} {
		for _, n := range []int{50, 200} {
			b.Run(transport+"/nodes="+strconv.Itoa(n), func(b *testing.B) {
				for b.Loop() {
					fleet(b, transport, n, 0)
				}
			})
		}
	}
}

// BenchmarkFleetAtRest leaves many nodes alone until they have ended the connections that they
// do not need, and measures what they are then, and what they use of processors.
func BenchmarkFleetAtRest(b *testing.B) {
	for _, n := range []int{50, 200} {
		b.Run("nodes="+strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				fleet(b, "memory", n, 150*time.Second)
			}
		})
	}
}

// fleet measures n nodes, once they see the quotes of all and rest has passed.
func fleet(b *testing.B, transport string, n int, rest time.Duration) {
	cfg := Default()
	cfg.Nodes, cfg.Transport = n, transport
	before := memory()
	goroutines := runtime.NumGoroutine()
	begun, spent := time.Now(), cpuTime(b)
	l, err := Up(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	per := 1 / float64(n)
	b.ReportMetric(time.Since(begun).Seconds(), "settled-s")
	b.ReportMetric((cpuTime(b)-spent).Seconds()*1000*per, "cpu-ms/node")
	if rest > 0 {
		<-time.After(rest) // what the passing of time costs is what is measured
		const span = 40 * time.Second
		spent := cpuTime(b)
		<-time.After(span)
		b.ReportMetric((cpuTime(b)-spent).Seconds()/span.Seconds()*100*per, "%cpu/node")
	}
	b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)*per, "goroutines/node")
	b.ReportMetric((memory()-before)*per, "MiB/node")
	peers := 0 // last: it measures their latencies
	for _, h := range l.Hosts() {
		peers += len(h.Peers(b.Context()))
	}
	b.ReportMetric(float64(peers)*per, "peers/node")
}

// cpuTime returns what this process has used of processors.
func cpuTime(tb testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// memory returns what lies in memory after a collection, in MiB: heap and stacks.
func memory() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc+m.StackInuse) / (1 << 20)
}
