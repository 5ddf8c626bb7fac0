package lrms

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
	"gridnode/internal/lrms/gpu"
)

func gpuCluster(t interface{ Fatal(...any) }, d Discipline, processors int64, gpus int) *Cluster {
	var devices []gpu.Device
	for i := range gpus {
		devices = append(devices, gpu.Device{Name: fmt.Sprint("g", i), Type: "a100"})
	}
	pool, err := gpu.New(devices)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{Processors: processors, Discipline: d, GPUs: pool, Hold: 10})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func gpuRequest(n int, processors int64, estimate grid.Time, gpus int64) Request {
	r := Request{ID: grid.TaskID{Job: grid.JobID{Lo: uint64(n)}, Epoch: 1}, Processors: processors, Estimate: estimate}
	if gpus > 0 {
		r.GPUs = grid.GPUs{Type: "a100", Count: gpus}
	}
	return r
}

func started(c *Cluster, now grid.Time) (list []uint64) {
	for _, r := range c.Schedule(now, nil) {
		list = append(list, r.ID.Job.Lo)
	}
	return list
}

// TestProcessorsAndGPUsTogether: a promise is of both for the same time, it waits for either,
// and goes early once both are there.
func TestProcessorsAndGPUsTogether(t *testing.T) {
	c := gpuCluster(t, EASY, 8, 2)
	expect := func(now grid.Time, want ...uint64) {
		t.Helper()
		if got := started(c, now); !slices.Equal(got, want) {
			t.Errorf("at %d %v started, want %v", int64(now), got, want)
		}
	}
	if err := c.Submit(0, gpuRequest(1, 1, 100, 2)); err != nil {
		t.Fatal(err)
	}
	if err := c.Submit(0, gpuRequest(2, 6, 300, 0)); err != nil {
		t.Fatal(err)
	}
	expect(0, 1, 2)
	for n, tt := range []struct {
		processors, gpus int64
		estimate, by     grid.Time
		want             grid.Time // start; 0: too late, and finish says how late
		finish           grid.Time
	}{
		{1, 1, 100, grid.Never, 100, 0},  // waits for a GPU
		{8, 1, 100, grid.Never, 300, 0},  // for processors, and has a GPU then
		{1, 2, 50, grid.Never, 200, 0},   // for two GPUs, before the one that is wide
		{1, 2, 100, grid.Never, 400, 0},  // for both behind it
		{1, 1, 100, 150, 0, 200},         // it has processors, and a GPU only later
		{1, 1, 100, grid.Never, 100, 0},  // beside the first one
		{1, 3, 100, grid.Never, 0, 0},    // never
		{1, 0, 100, grid.Never, 0, 0},    // needs none: fills the gap
		{2, 0, 150, grid.Never, 0, 0},    // does not fit: a processor is promised from 100 on
		{1, 1, 1000, grid.Never, 500, 0}, // long, so behind all
	} {
		start, err := c.Admit(0, gpuRequest(10+n, tt.processors, tt.estimate, tt.gpus), tt.by)
		late, _ := errors.AsType[TooLate](err)
		switch {
		case tt.gpus > 2:
			if !errors.Is(err, ErrTooWide) {
				t.Errorf("%d: %v", n, err)
			}
		case tt.finish > 0:
			if late.Finish != tt.finish {
				t.Errorf("%d: %v, want %v", n, err, tt.finish)
			}
		case n == 8:
			if start == 0 || err != nil {
				t.Errorf("%d: %v, %v", n, start, err)
			}
		case err != nil || start != tt.want:
			t.Errorf("%d starts at %d, %v, want %d", n, int64(start), err, int64(tt.want))
		}
	}
	expect(0, 17)
	c.Ended(20, gpuRequest(1, 0, 0, 0).ID) // early: two of those that wait for a GPU go
	expect(20, 10)
	if names := c.gpus.Of(gpuRequest(10, 0, 0, 0).ID); len(names) != 1 {
		t.Errorf("it has GPUs %v", names)
	}
	c.Ended(30, gpuRequest(17, 0, 0, 0).ID)
	expect(30, 15)
	if got := c.Stock(30)[0].Free; got != 0 {
		t.Errorf("%d GPUs are free", got)
	}
	if !c.Cancel(30, gpuRequest(11, 0, 0, 0).ID) || c.gpus.Of(gpuRequest(11, 0, 0, 0).ID) != nil {
		t.Error("who is cancelled keeps its GPU")
	}
}

// TestTheLineForGPUs: jobs that were only submitted go in their order, however many they are.
func TestTheLineForGPUs(t *testing.T) {
	c := gpuCluster(t, FCFS, 4, 1)
	const jobs = gpu.PromisesMax + 40
	for n := range jobs {
		if err := c.Submit(0, gpuRequest(n+1, 1, 100, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if s := c.State(0); s.Queued != jobs || s.Demand != jobs {
		t.Errorf("%+v", s)
	}
	if got := started(c, 0); !slices.Equal(got, []uint64{1}) {
		t.Fatalf("%v started", got)
	}
	if got := started(c, 0); got != nil {
		t.Fatalf("%v started, too", got)
	}
	if _, err := c.Reserve(0, gpuRequest(9999, 1, 100, 1), grid.Never); !errors.Is(err, ErrQueueFull) {
		t.Errorf("one more promise: %v", err)
	}
	last := gpuRequest(jobs, 0, 0, 0).ID
	if o, waits := c.Outlook(last); !waits || o.Promised || o.Before == 0 || o.Start != grid.Never {
		t.Errorf("the last one: %+v, %v", o, waits)
	}
	if !c.Cancel(0, last) || c.Cancel(0, last) {
		t.Error("who waits in the line cannot be cancelled, or twice")
	}
	now := grid.Time(0)
	for n := 2; n < jobs; n++ {
		now += 50
		c.Ended(now, gpuRequest(n-1, 0, 0, 0).ID)
		if got := started(c, now); !slices.Equal(got, []uint64{uint64(n)}) {
			t.Fatalf("%v started, want %d", got, n)
		}
	}
	c.Ended(now+1, gpuRequest(jobs-1, 0, 0, 0).ID)
	if s := c.State(now + 1); s.Queued != 0 || s.Demand != 0 || s.Busy != 0 || c.Stock(now + 1)[0].Free != 1 {
		t.Errorf("in the end %+v", s)
	}
}

// TestGPUPromisesAreKept: whatever comes, a committed promise starts at its time, as long as
// nobody runs past its estimate, and never without its GPUs; and nobody has those of another.
func TestGPUPromisesAreKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := gpuCluster(t, rapid.SampledFrom([]Discipline{FCFS, EASY}).Draw(t, "discipline"), 4, 3)
		now := grid.Time(0)
		promised := make(map[int]grid.Time) // committed, by the start
		running := make(map[int]grid.Time)  // by the end
		held := make(map[int]grid.Time)     // not committed, by the start
		made := make(map[int]grid.Time)     // when those were
		pass := func() {
			for _, r := range c.Schedule(now, nil) {
				n := int(r.ID.Job.Lo)
				if start, is := promised[n]; is && now > start {
					t.Fatalf("%d starts at %d, and was promised %d", n, now, start)
				}
				if got := int64(len(c.gpus.Of(r.ID))); got != r.GPUs.Count {
					t.Fatalf("%d starts with %d GPUs of %d", n, got, r.GPUs.Count)
				}
				delete(promised, n)
				running[n] = now + r.Estimate
			}
		}
		next := 0
		draw := func(t *rapid.T) Request {
			next++
			return gpuRequest(next, rapid.Int64Range(1, 4).Draw(t, "processors"), grid.Time(rapid.Int64Range(1, 50).Draw(t, "estimate")), rapid.Int64Range(0, 3).Draw(t, "gpus"))
		}
		t.Repeat(map[string]func(*rapid.T){
			"submit": func(t *rapid.T) {
				if err := c.Submit(now, draw(t)); err != nil {
					t.Fatal(err)
				}
				pass()
			},
			"admit": func(t *rapid.T) {
				r := draw(t)
				if start, err := c.Admit(now, r, grid.Never); err != nil {
					t.Fatal(err)
				} else {
					promised[int(r.ID.Job.Lo)] = start
				}
				pass()
			},
			"reserve": func(t *rapid.T) {
				r := draw(t)
				if start, err := c.Reserve(now, r, now+200); err == nil {
					held[int(r.ID.Job.Lo)], made[int(r.ID.Job.Lo)] = start, now
				}
				pass()
			},
			"commit": func(t *rapid.T) {
				for i, n := range slices.Sorted(maps.Keys(held)) {
					if id := gpuRequest(n, 0, 0, 0).ID; i > 0 {
						c.Cancel(now, id)
					} else if err := c.Commit(now, id); err != nil {
						t.Fatal(err)
					} else {
						promised[n] = max(held[n], now)
					}
				}
				clear(held)
				pass()
			},
			"end": func(t *rapid.T) {
				for _, n := range slices.Sorted(maps.Keys(running)) {
					c.Ended(now, gpuRequest(n, 0, 0, 0).ID)
					delete(running, n)
					break
				}
				pass()
			},
			"wait": func(t *rapid.T) {
				for range rapid.IntRange(1, 30).Draw(t, "time") {
					now++
					for _, n := range slices.Sorted(maps.Keys(held)) {
						if made[n]+c.cfg.Hold <= now {
							c.Cancel(now, gpuRequest(n, 0, 0, 0).ID)
							delete(held, n)
						}
					}
					for _, n := range slices.Sorted(maps.Keys(running)) {
						if running[n] == now {
							c.Ended(now, gpuRequest(n, 0, 0, 0).ID)
							delete(running, n)
						}
					}
					pass()
				}
			},
			"": func(t *rapid.T) {
				used := int64(0)
				for n := range running {
					used += int64(len(c.gpus.Of(gpuRequest(n, 0, 0, 0).ID)))
				}
				if used > 3 {
					t.Fatalf("%d of 3 GPUs are in use", used)
				}
			},
		})
	})
}
