package shim

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// cpu returns the clock ticks a process has used, and those of its collected children.
func cpu(t testing.TB, pid int) (own, children float64) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	number := func(i int) float64 {
		n, err := strconv.Atoi(string(fields[i]))
		if err != nil {
			t.Fatal(err)
		}
		return float64(n)
	}
	return number(11) + number(12), number(13) + number(14)
}

// Jobs of /bin/true through one shim, with a number of them in flight: started, run,
// ended, acknowledged; their outputs are made late, as those of a site's own are. Use
// -benchtime 2000x.
func BenchmarkTrue(b *testing.B) {
	for _, width := range []int{1, 2, 16, 256} {
		b.Run(fmt.Sprintf("inflight=%d", width), func(b *testing.B) {
			s := newTestShim(b)
			specs := make([]Spec, b.N)
			for i := range specs {
				specs[i] = s.late("")
				specs[i].Args, specs[i].Dir = []string{"/bin/true"}, filepath.Join(s.home, "jobs")
				if err := os.MkdirAll(specs[i].Dir, 0o700); err != nil { // as the daemon would
					b.Fatal(err)
				}
			}
			own, children := cpu(b, s.client.PID())
			b.ResetTimer()
			next := 0
			for ended := 0; ended < b.N; ended++ {
				for next < b.N && next-ended < width {
					if err := s.client.Start(specs[next]); err != nil {
						b.Fatal(err)
					}
					next++
				}
				e := s.event()
				if e.ExitCode != 0 {
					b.Fatalf("%+v", e)
				}
				if err := s.client.Ack(e.ID); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			nowOwn, nowChildren := cpu(b, s.client.PID())
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
			b.ReportMetric((nowOwn-own)*1e6/ticks/float64(b.N), "shim-µs/job")
			b.ReportMetric((nowChildren-children)*1e6/ticks/float64(b.N), "job-µs/job")
			b.ReportMetric(float64(residentKiB(b, s.client.PID())), "KiB")
		})
	}
}

// One shim started, connected to, and ended.
func BenchmarkConnect(b *testing.B) {
	for b.Loop() {
		s := newTestShim(b)
		s.stop()
	}
}
