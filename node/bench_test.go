package node

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridnode/grid"
	"gridnode/node/p2p"
	"gridnode/node/shim"
	"gridnode/node/site"
	"gridnode/node/store"
	"gridnode/node/tracing"
)

// benchHost starts a host with store and processes for a benchmark.
func benchHost(b *testing.B, seed byte, processors int64, join []string) *Host {
	b.Helper()
	return benchTraced(b, seed, processors, join, tracing.Config{})
}

// benchTraced does so with jobs traced.
func benchTraced(b *testing.B, seed byte, processors int64, join []string, trace tracing.Config) *Host {
	b.Helper()
	home := b.TempDir()
	h, err := Start(b.Context(), HostConfig{
		Trace:  trace,
		Member: ours(testKey(seed), fmt.Sprint("site-", seed)),
		Home:   home, Key: testKey(seed), Federation: "bench", Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Join: join,
		Version: "bench", Profile: p2p.ProfileNode, Store: store.Options{SpaceMin: -1},
		Shim: shim.Options{Command: []string{"/proc/self/exe"}, Env: []string{"GRIDNODE_NODE_TEST_SHIM=" + home}},
		Site: site.Config{
			Name: fmt.Sprint("site-", seed), Resources: grid.Resources{Processors: processors}, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000},
			Price: grid.Price(seed) * grid.Credit, Foreign: true,
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	pid := shimOf(h)
	b.Cleanup(func() {
		if err := h.Close(); err != nil {
			b.Error(err)
		}
		syscall.Kill(pid, syscall.SIGTERM)
		until(b, "the shim ends", func() bool { return syscall.Kill(pid, 0) != nil || zombie(pid) })
	})
	return h
}

// trueJob runs /bin/true.
func trueJob(h *Host, n uint64) *grid.Job {
	job := testJob(h, n, 30*grid.Second)
	job.RunTime = 0
	job.Command = &grid.Command{Args: []string{"/bin/true"}}
	return job
}

// finished counts ends of jobs of a host until it has n.
func finished(b *testing.B, events *Subscription, n int) {
	for n > 0 {
		list, err := events.Next(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		for i := range list {
			switch list[i].Kind {
			case grid.JobFinished:
				n--
			case grid.JobRefused:
				b.Fatalf("job refused: %s", list[i].Text)
			}
		}
	}
}

// BenchmarkTrue measures one job at a time from submission to its recorded result.
func BenchmarkTrue(b *testing.B) {
	b.Run("here", func(b *testing.B) {
		h := benchHost(b, 1, 16, nil)
		oneByOne(b, h, func(*grid.Job) {})
	})
	b.Run("elsewhere", func(b *testing.B) {
		cheap := benchHost(b, 1, 16, nil)
		h := benchHost(b, 2, 2, cheap.Addrs())
		awaitQuotes(b, h, 2)
		oneByOne(b, h, func(j *grid.Job) { j.Goal = grid.GoalCost })
	})
}

func oneByOne(b *testing.B, h *Host, change func(*grid.Job)) {
	events := h.Subscribe()
	defer events.Close()
	n := uint64(0)
	for b.Loop() {
		n++
		job := trueJob(h, n)
		change(job)
		if _, err := submitTo(h, job); err != nil {
			b.Fatal(err)
		}
		finished(b, events, 1)
	}
}

// BenchmarkBurst submits many jobs at once, as an array is; the time is that of one.
func BenchmarkBurst(b *testing.B) {
	b.Run("here", func(b *testing.B) {
		h := benchHost(b, 1, 16, nil)
		burst(b, h, func(*grid.Job) {})
	})
	b.Run("elsewhere", func(b *testing.B) {
		cheap := benchHost(b, 1, 16, nil)
		h := benchHost(b, 2, 2, cheap.Addrs())
		awaitQuotes(b, h, 2)
		burst(b, h, func(j *grid.Job) { j.Goal = grid.GoalCost })
		b.ReportMetric(float64(cheap.loop.steps.Load())/float64(b.N), "steps/op")
	})
}

// BenchmarkTrace submits many jobs at once that another site runs, traced at both and not. What
// tracing costs is the difference of the processor time of this process, in which the sites are
// but not what runs the jobs, nor the collector on loopback that the spans are sent to.
func BenchmarkTrace(b *testing.B) {
	for _, name := range []string{"off", "on"} {
		b.Run(name, func(b *testing.B) {
			trace := func() (c tracing.Config) { return c }
			if name == "on" {
				endpoint := collectorProcess(b)
				trace = func() tracing.Config {
					exporter, err := tracing.Open(b.Context(), "", endpoint)
					if err != nil {
						b.Fatal(err)
					}
					return tracing.Config{Exporter: exporter, Share: 1000}
				}
			}
			cheap := benchTraced(b, 1, 16, nil, trace())
			h := benchTraced(b, 2, 2, cheap.Addrs(), trace())
			awaitQuotes(b, h, 2)
			before := processorTime()
			burst(b, h, func(j *grid.Job) { j.Goal = grid.GoalCost })
			b.ReportMetric(float64((processorTime()-before).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}

// collectorVariable has this program be a collector.
const collectorVariable = "GRIDNODE_NODE_TEST_COLLECTOR"

// collectorProcess starts a process that takes whatever is sent to it, and returns its address.
func collectorProcess(b *testing.B) string {
	b.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), collectorVariable+"=yes")
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return "http://" + strings.TrimSpace(address)
}

// collect is that process. It ends with its input.
func collect() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })}
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); server.Close() }()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// processorTime returns what this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func burst(b *testing.B, h *Host, change func(*grid.Job)) {
	events := h.Subscribe()
	defer events.Close()
	failed := make(chan error, 1)
	b.ResetTimer()
	for i := range b.N {
		job := trueJob(h, uint64(i+1))
		change(job)
		go func() {
			for {
				_, err := submitTo(h, job)
				if err == ErrBusy {
					runtime.Gosched()
					continue
				}
				if err != nil {
					failed <- err
				}
				return
			}
		}()
	}
	finished(b, events, b.N)
	select {
	case err := <-failed:
		b.Fatal(err)
	default:
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkKept measures what is left of jobs that are over while they are kept: memory, and
// files of those that wrote nothing.
func BenchmarkKept(b *testing.B) {
	const jobs = 2000
	h := benchHost(b, 1, 16, nil)
	events := h.Subscribe()
	defer events.Close()
	n := uint64(0)
	run := func(jobs int) {
		for range jobs {
			n++
			if _, err := submitTo(h, trueJob(h, n)); err != nil {
				b.Fatal(err)
			}
			if n%32 == 0 {
				finished(b, events, 32)
			}
		}
	}
	held := func() (bytes uint64, files int) {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		entries, err := os.ReadDir(filepath.Join(h.cfg.Home, "tasks"))
		if err != nil {
			b.Fatal(err)
		}
		return m.HeapAlloc, len(entries)
	}
	run(320)
	for b.Loop() {
		bytes, files := held()
		run(jobs / 32 * 32)
		bytesAfter, filesAfter := held()
		all := float64(jobs / 32 * 32)
		b.ReportMetric(float64(int64(bytesAfter-bytes))/all, "held-B/job")
		b.ReportMetric(float64(filesAfter-files)/all, "files/job")
	}
}
