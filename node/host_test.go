package node

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"go.uber.org/goleak"

	"gridnode/grid"
	"gridnode/node/logging"
	"gridnode/node/p2p"
	"gridnode/node/sandbox"
	"gridnode/node/site"
	"gridnode/node/store"
)

// timers is an executor whose tasks take their job's RunTime and do nothing.
type timers struct {
	mu      sync.Mutex
	ended   func(*grid.TaskEnded)
	started []grid.TaskID
	acked   []grid.TaskID
	running map[grid.TaskID]*time.Timer

	// What Recover returns.
	adopted []site.Adopted
	missed  []grid.TaskEnded
}

func (x *timers) Recover() ([]site.Adopted, []grid.TaskEnded, error) { return x.adopted, x.missed, nil }

func (x *timers) Start(task grid.Task) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.started = append(x.started, task.ID)
	began := grid.Time(time.Now().UnixMicro())
	if x.running == nil {
		x.running = make(map[grid.TaskID]*time.Timer)
	}
	x.running[task.ID] = time.AfterFunc(task.Job.RunTime.Duration(), func() {
		x.ended(&grid.TaskEnded{ID: task.ID, Result: grid.Result{Start: began, End: began + task.Job.RunTime}})
	})
}

func (x *timers) Renew(grid.TaskID, grid.Time) {} // no task has a lease

func (x *timers) Kill(task grid.Task) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if t := x.running[task.ID]; t != nil && t.Stop() {
		go x.ended(&grid.TaskEnded{ID: task.ID, Result: grid.Result{ExitCode: 137, Reason: task.Cause}})
	}
}

func (x *timers) Acknowledge(ended []grid.TaskID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.acked = append(x.acked, ended...)
}

func (x *timers) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, t := range x.running {
		t.Stop()
	}
	return nil
}

func (x *timers) list(which *[]grid.TaskID) []grid.TaskID {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(*which)
}

func testKey(seed byte) crypto.PrivKey {
	k, _, err := crypto.GenerateEd25519Key(mathrand.NewChaCha8(sha256.Sum256([]byte{seed})))
	if err != nil {
		panic(err)
	}
	return k
}

func hostConfig(seed byte, home string, memory *p2p.Memory, exec *timers) HostConfig {
	name := fmt.Sprint("site-", seed)
	return HostConfig{
		Member: ours(testKey(seed), name),
		Home:   home, Key: testKey(seed), Federation: "test", Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Memory: memory,
		Version: "test", Profile: p2p.ProfileFleet, Seed: uint64(seed) + 1, Store: store.Options{SpaceMin: -1},
		Site: site.Config{
			Name: name, Resources: grid.Resources{Processors: 4}, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000},
			Price: grid.Credit, Foreign: true,
		},
		Sandbox:  sandbox.Config{Walls: sandbox.None}, // jobs of tests read and write beside them
		Executor: func(ended func(*grid.TaskEnded)) (Executor, error) { exec.ended = ended; return exec, nil },
	}
}

func startHost(t *testing.T, cfg HostConfig) *Host {
	t.Helper()
	h, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func closeHost(t *testing.T, h *Host) {
	t.Helper()
	if err := h.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func testJob(h *Host, n uint64, runTime grid.Time) *grid.Job {
	return &grid.Job{
		ID: grid.JobID{Hi: n, Lo: 1}, Home: h.ID(), User: "me", Resources: grid.Resources{Processors: 1}, Tasks: 1,
		Submit: h.Now(), Estimate: max(2*runTime, 1), Work: grid.WorkOf(2*runTime, 0, grid.Rating{Speed: 1000, Bandwidth: 1000}),
		Deadline: grid.Never, Budget: grid.NoBudget, RunTime: runTime,
	}
}

func submitTo(h *Host, job *grid.Job) (*site.Submitted, error) {
	answer, err := h.Ask(context.Background(), func(token uint64) grid.Input { return &site.Submit{Token: token, Job: job} })
	if err != nil {
		return nil, err
	}
	return answer.(*site.Submitted), answer.(*site.Submitted).Err
}

// awaitState waits until a job has reached a state.
func awaitState(t *testing.T, h *Host, id grid.JobID, want site.State) site.View {
	t.Helper()
	sub := h.Subscribe()
	defer sub.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for {
		v, err := h.view(ctx, id)
		if err == nil && v.State == want {
			return v
		}
		if _, err := sub.Next(ctx); err != nil {
			t.Fatalf("job is %v, want %v: %v", v.State, want, err)
		}
	}
}

func TestSubmittedJobRunsAndIsRemembered(t *testing.T) {
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		exec := &timers{}
		h := startHost(t, hostConfig(1, home, &p2p.Memory{}, exec))
		job := testJob(h, 1, 20*grid.Second)
		began := time.Now()
		if s, err := submitTo(h, job); err != nil || s.Known {
			t.Fatalf("submit: %+v, %v", s, err)
		}
		if s, err := submitTo(h, job); err != nil || !s.Known {
			t.Errorf("the same job again: %+v, %v", s, err)
		}
		awaitState(t, h, job.ID, site.Done)
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("the job took %v, want 20s", took)
		}
		if acked := exec.list(&exec.acked); !slices.Equal(acked, []grid.TaskID{{Job: job.ID, Epoch: 1}}) {
			t.Errorf("acknowledged %v", acked)
		}
		closeHost(t, h)
		h = startHost(t, hostConfig(1, home, &p2p.Memory{}, &timers{}))
		defer closeHost(t, h)
		if v, err := h.view(t.Context(), job.ID); err != nil || v.State != site.Done {
			t.Errorf("after a restart: %v, %v, want it done", v.State, err)
		}
	})
}

func TestRestartTakesUpWhatRunsAndWhatEnded(t *testing.T) {
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		exec := &timers{}
		h := startHost(t, hostConfig(1, home, &p2p.Memory{}, exec))
		var jobs []*grid.Job
		for i := range uint64(3) {
			jobs = append(jobs, testJob(h, i+1, grid.Hour))
			if _, err := submitTo(h, jobs[i]); err != nil {
				t.Fatal(err)
			}
		}
		closeHost(t, h)

		// One runs on, one ended meanwhile, of one nothing is known.
		now := grid.Time(time.Now().UnixMicro())
		exec = &timers{
			adopted: []site.Adopted{{ID: grid.TaskID{Job: jobs[0].ID, Epoch: 1}, Start: now - grid.Minute}},
			missed: []grid.TaskEnded{{
				ID:     grid.TaskID{Job: jobs[1].ID, Epoch: 1},
				Result: grid.Result{Start: now - grid.Minute, End: now - grid.Second, ExitCode: 3},
			}},
		}
		h = startHost(t, hostConfig(1, home, &p2p.Memory{}, exec))
		defer closeHost(t, h)
		for i, want := range []site.State{site.Running, site.Failed, site.Running} {
			if v, err := h.view(t.Context(), jobs[i].ID); err != nil || v.State != want {
				t.Errorf("job %d is %v (%v), want %v", i, v.State, err, want)
			}
		}
		if got := exec.list(&exec.started); !slices.Equal(got, []grid.TaskID{{Job: jobs[2].ID, Epoch: 1}}) {
			t.Errorf("started %v, want the third job only", got)
		}
		if got := exec.list(&exec.acked); !slices.Equal(got, []grid.TaskID{{Job: jobs[1].ID, Epoch: 1}}) {
			t.Errorf("acknowledged %v, want the second job only", got)
		}
	})
}

// The store fails: what the turn ordered must not happen, and the node stops.
func TestNothingLeavesBeforeItIsDurable(t *testing.T) {
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		exec := &timers{}
		h := startHost(t, hostConfig(1, home, &p2p.Memory{}, exec))
		if err := h.Do(t.Context(), func(*site.Site) { h.loop.store.Close() }); err != nil {
			t.Fatal(err)
		}
		_, err := submitTo(h, testJob(h, 1, grid.Second))
		if !errors.Is(err, ErrStopped) {
			t.Errorf("submit: %v, want ErrStopped", err)
		}
		<-h.Done()
		if err := h.Err(); !errors.Is(err, errStore) {
			t.Errorf("the node stopped with %v", err)
		}
		if got := exec.list(&exec.started); len(got) != 0 {
			t.Errorf("started %v although it was not durable", got)
		}
		if err := h.Do(t.Context(), func(*site.Site) {}); !errors.Is(err, ErrStopped) {
			t.Errorf("Do after the stop: %v", err)
		}
		h.Close()
	})
}

// What a turn says before it has anything to save does not wait for what is saved after it.
func TestAnswersDoNotWaitForWhatUsersAsk(t *testing.T) {
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := startHost(t, hostConfig(1, home, &p2p.Memory{}, &timers{}))
		first, second := make(chan error, 1), make(chan error, 1)
		err := h.Do(t.Context(), func(*site.Site) {
			h.loop.store.Close() // nothing of a turn that saves leaves
			go func() {
				_, err := h.Ask(t.Context(), func(token uint64) grid.Input { return &site.Cancel{Token: token, Job: grid.JobID{Lo: 9}} })
				first <- err
			}()
			time.Sleep(time.Second) // and then it waits for the loop
			go func() {
				_, err := submitTo(h, testJob(h, 1, grid.Second))
				second <- err
			}()
			time.Sleep(time.Second)
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := <-first; err != nil {
			t.Errorf("who asked for what saves nothing is told %v", err)
		}
		if err := <-second; !errors.Is(err, ErrStopped) {
			t.Errorf("submit: %v, want ErrStopped", err)
		}
		<-h.Done()
		h.Close()
	})
}

// Whoever reads what a site is free to do now has moved it to this instant: the turn goes on from there.
func TestLookMovesTheTurnOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startHost(t, hostConfig(1, "", &p2p.Memory{}, &timers{}))
		defer closeHost(t, h)
		submitted := make(chan error, 1)
		err := h.Do(t.Context(), func(s *site.Site) {
			go func() {
				_, err := submitTo(h, testJob(h, 1, grid.Second))
				submitted <- err
			}()
			time.Sleep(turnTime / 2) // and then that waits for the same turn
			s.Idle(h.Now())
		})
		if err := errors.Join(err, <-submitted); err != nil {
			t.Fatal(err)
		}
	})
}

func TestDefectOfACoreStopsTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startHost(t, hostConfig(1, "", &p2p.Memory{}, &timers{}))
		_, err := h.Ask(t.Context(), func(uint64) grid.Input { return "no input at all" })
		if !errors.Is(err, ErrStopped) {
			t.Errorf("got %v, want ErrStopped", err)
		}
		<-h.Done()
		if err := h.Err(); err == nil || !strings.Contains(err.Error(), "defect") || !strings.Contains(err.Error(), "site.go") {
			t.Errorf("the node stopped with %v, want a report of the defect with its place", err)
		}
	})
}

func TestSecondDaemonOnOneHome(t *testing.T) {
	home := t.TempDir()
	first := startHost(t, hostConfig(1, home, nil, &timers{}))
	defer closeHost(t, first)
	_, err := Start(t.Context(), hostConfig(1, home, nil, &timers{}))
	if !errors.Is(err, store.ErrLocked) {
		t.Errorf("got %v, want store.ErrLocked", err)
	}
}

func TestStartWithoutLeaks(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	cfg := hostConfig(1, t.TempDir(), nil, &timers{})
	h := startHost(t, cfg)
	taken := strings.Split(h.Addrs()[0], "/p2p/")[0]
	other := hostConfig(2, t.TempDir(), nil, &timers{})
	other.Listen = []string{taken}
	if _, err := Start(t.Context(), other); !errors.Is(err, p2p.ErrListen) {
		t.Errorf("port in use: %v, want p2p.ErrListen", err)
	}
	closeHost(t, h)
	closeHost(t, h) // a second time changes nothing
}

func TestFullInbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startHost(t, hostConfig(1, "", &p2p.Memory{}, &timers{}))
		defer closeHost(t, h)
		blocked, release := make(chan struct{}), make(chan struct{})
		go h.Do(t.Context(), func(*site.Site) { close(blocked); <-release })
		<-blocked
		for i := 0; h.inbox.ask("", &look{at: func(*site.Site) {}, done: make(chan struct{})}); i++ {
			if i > laneMax {
				t.Fatalf("%d inputs wait, at most %d may", i, laneMax)
			}
		}
		if err := h.Do(t.Context(), func(*site.Site) {}); !errors.Is(err, ErrBusy) {
			t.Errorf("Do: %v, want ErrBusy", err)
		}
		if _, err := submitTo(h, testJob(h, 1, 1)); !errors.Is(err, ErrBusy) {
			t.Errorf("Ask: %v, want ErrBusy", err)
		}
		close(release)
		synctest.Wait()
		if _, err := submitTo(h, testJob(h, 1, 1)); err != nil {
			t.Errorf("with room again: %v", err)
		}
	})
}

func TestSubscriberThatLagsIsTold(t *testing.T) {
	h := &Host{}
	slow, quick := h.Subscribe(), h.Subscribe()
	for i := range eventsMax + 10 {
		h.subscribed.tell([]grid.Event{{Epoch: uint32(i)}})
		if i%1000 == 0 {
			if _, err := quick.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if events, err := slow.Next(t.Context()); !errors.Is(err, ErrLagged) {
		t.Errorf("the slow one got %d events and %v, want ErrLagged", len(events), err)
	}
	rest, err := quick.Next(t.Context())
	if err != nil || rest[len(rest)-1].Epoch != eventsMax+9 {
		t.Errorf("the quick one got %d events and %v", len(rest), err)
	}
	h.subscribed.tell([]grid.Event{{Epoch: 7}})
	h.subscribed.close()
	if last, err := quick.Next(t.Context()); err != nil || len(last) != 1 {
		t.Errorf("got %v and %v, want what was told before the stop", last, err)
	}
	if _, err := quick.Next(t.Context()); !errors.Is(err, ErrStopped) {
		t.Errorf("got %v, want ErrStopped", err)
	}
	if _, err := h.Subscribe().Next(t.Context()); !errors.Is(err, ErrStopped) {
		t.Errorf("subscribed after the stop: %v, want ErrStopped", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&Host{}).Subscribe().Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestClockNeverGoesBack(t *testing.T) {
	c := clock{time.Now()}
	last := c.now()
	for range 10_000 {
		now := c.now()
		if now < last {
			t.Fatalf("%d after %d", now, last)
		}
		last = now
	}
	if wall := grid.Time(time.Now().UnixMicro()); last > wall || wall-last > grid.Second {
		t.Errorf("the clock says %d, the wall %d", last, wall)
	}
}

// TestFullDiskTakesNoJobs: where little room is left, a job is refused for that reason.
func TestFullDiskTakesNoJobs(t *testing.T) {
	cfg := realConfig(t, 1, &p2p.Memory{})
	cfg.Store.SpaceMin = 1 << 60
	h := realHost(t, cfg)
	_, err := submitTo(h, scriptJob(h, 1, "true"))
	var space *store.SpaceError
	if !errors.Is(err, site.ErrSpace) || errors.Is(err, site.ErrFull) || !errors.As(err, &space) {
		t.Errorf("got %v, want ErrSpace with a store.SpaceError", err)
	}
}

// TestHostLogsQuietly: what peers cause a host to log is bounded.
func TestHostLogsQuietly(t *testing.T) {
	var b bytes.Buffer
	cfg := realConfig(t, 1, &p2p.Memory{})
	cfg.Logger = slog.New(slog.NewTextHandler(&b, nil))
	h := realHost(t, cfg)
	for range 1000 {
		h.log.Warn("a peer does it again")
	}
	if n := strings.Count(b.String(), "does it again"); n != logging.Burst {
		t.Errorf("%d lines, want %d", n, logging.Burst)
	}
}
