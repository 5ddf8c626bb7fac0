package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkSubmitWait measures, for `true`, from the start of the command
// `gridnode submit --wait` to its end: the command line included, on an idle site.
func BenchmarkSubmitWait(b *testing.B) {
	sites := federation(b, []string{"here", "there"}, map[string][]string{"there": {"--foreign", "allow"}})
	for _, bench := range []struct{ name, flags string }{
		{"here", "--policy local"},
		{"elsewhere", "--site there"},
		{"market", "--policy cheapest --deadline 1h"},
	} {
		args := append([]string{"submit", "-q", "-W"}, strings.Fields(bench.flags)...)
		args = append(args, "--", "true")
		b.Run(bench.name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				start := time.Now()
				sites[0].ok(args...)
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(milliseconds(took[len(took)/2]), "p50-ms")
			b.ReportMetric(milliseconds(took[len(took)*99/100]), "p99-ms")
		})
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// BenchmarkVersion measures the start of the program itself.
func BenchmarkVersion(b *testing.B) {
	s := newSite(b, "idle")
	for b.Loop() {
		s.ok("version")
	}
}

// BenchmarkTwoSites hands 200 jobs `true` over at a site with 2 processors beside
// one with 16, and waits until the last result is recorded.
func BenchmarkTwoSites(b *testing.B) {
	sites := federation(b, []string{"small", "large"}, map[string][]string{
		"small": {"--processors", "2", "--foreign", "allow"},
		"large": {"--processors", "16", "--foreign", "allow"},
	})
	burst(b, sites[0], 200, "--policy", "fastest", "--", "true")
}

// BenchmarkBurst hands 2000 jobs over at once: submitted, durable, run, result
// recorded.
func BenchmarkBurst(b *testing.B) {
	b.Run("alone", func(b *testing.B) {
		burst(b, newSite(b, "alone", "--processors", "16").start(), 2000, "--", "/bin/true")
	})
	b.Run("two-sites", func(b *testing.B) {
		sites := federation(b, []string{"first", "second"}, map[string][]string{
			"first":  {"--processors", "16", "--foreign", "allow"},
			"second": {"--processors", "16", "--foreign", "allow"},
		})
		burst(b, sites[0], 2000, "--policy", "fastest", "--", "/bin/true")
	})
}

// burst submits n jobs as one array and reports jobs per second from the start of
// the command to its end, and how many ran at each site.
func burst(b *testing.B, at *site, n int, args ...string) {
	command := append([]string{"submit", "-q", "-W", "-J", "burst", "-a", fmt.Sprintf("0-%d", n-1)}, args...)
	for b.Loop() {
		at.ok(command...)
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	var jobs []job
	at.json(&jobs, "status", "--all", "-n", "burst")
	counts := make(map[string]int)
	for _, j := range jobs {
		if j.State != "done" {
			b.Fatalf("%+v is not done", j)
		}
		counts[j.SiteName]++
	}
	if len(jobs) != n*b.N {
		b.Fatalf("%d jobs are recorded, want %d", len(jobs), n*b.N)
	}
	for name, count := range counts {
		b.ReportMetric(float64(count)/float64(b.N), "at-"+name)
	}
}
