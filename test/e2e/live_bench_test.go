package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"gridnode/node/api"
)

// BenchmarkAPI hands jobs over that do nothing through the local API, from one process: many at
// once, and one at a time, from the request to the answer that the job is over.
func BenchmarkAPI(b *testing.B) {
	sites := federation(b, []string{"first", "second"}, map[string][]string{
		"first":  {"--processors", "16", "--foreign", "allow"},
		"second": {"--processors", "16", "--foreign", "allow"},
	})
	client := api.NewClient(sites[0].home)
	defer client.HTTP().CloseIdleConnections()
	run := func(b *testing.B, spec api.JobSpec, n int) {
		reply, err := client.SubmitAndWait(b.Context(), slices.Repeat([]api.JobSpec{spec}, n), func([]string) {})
		if err != nil {
			b.Fatal(err)
		}
		for i := range reply.Jobs {
			if reply.Jobs[i].State != "done" {
				b.Fatalf("%+v is not done", reply.Jobs[i])
			}
		}
	}
	for _, bench := range []struct {
		name string
		spec api.JobSpec
	}{
		{"here", api.JobSpec{Policy: "local"}},
		{"elsewhere", api.JobSpec{Site: "second"}},
		{"both", api.JobSpec{Policy: "fastest"}},
	} {
		bench.spec.Args = []string{"/bin/true"}
		b.Run("burst/"+bench.name, func(b *testing.B) {
			const jobs = 500
			spent := spentBy(b, sites...)
			for b.Loop() {
				run(b, bench.spec, jobs)
			}
			all := float64(jobs * b.N)
			b.ReportMetric(all/b.Elapsed().Seconds(), "jobs/s")
			b.ReportMetric((spentBy(b, sites...)-spent).Seconds()*1e6/all, "daemons-µs/job")
		})
		if bench.name == "both" {
			continue
		}
		b.Run("one/"+bench.name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				start := time.Now()
				run(b, bench.spec, 1)
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(milliseconds(took[len(took)/2]), "p50-ms")
			b.ReportMetric(milliseconds(took[len(took)*99/100]), "p99-ms")
		})
	}
}

// BenchmarkShells submits by 200 command lines in four shells.
func BenchmarkShells(b *testing.B) {
	const shells, each = 4, 50
	s := newSite(b, "alone", "--processors", "16").start()
	for b.Loop() {
		var wg sync.WaitGroup
		for range shells {
			wg.Go(func() {
				for range each {
					if r := s.run("submit", "-q", "--", "/bin/true"); r.code != 0 {
						b.Errorf("submit: %v", r)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	b.ReportMetric(shells*each*float64(b.N)/b.Elapsed().Seconds(), "submits/s")
}

// spentBy returns the processor time of daemons, as the kernel counts it by thread.
func spentBy(b *testing.B, sites ...*site) (spent time.Duration) {
	for _, s := range sites {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", s.daemon.Process.Pid))
		if err != nil || len(threads) == 0 {
			b.Fatalf("no threads of %s: %v", s.home, err)
		}
		for _, path := range threads {
			var ns int64
			if text, err := os.ReadFile(path); err == nil { // it may have ended
				fmt.Sscan(string(text), &ns)
			}
			spent += time.Duration(ns)
		}
	}
	return spent
}
