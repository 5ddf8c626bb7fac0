package site

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"gridnode/grid"
	"gridnode/internal/corpus"
	"gridnode/internal/lrms"
	"gridnode/market"
	"gridnode/node/quota"
)

// bench drives one Site by hand: the test is its driver.
type bench struct {
	t       *testing.T
	cfg     Config
	site    *Site
	now     grid.Time
	out     grid.Outbox
	records map[string][]byte
	started []grid.Task
	killed  []grid.Task
	events  []grid.Event
	sends   []grid.Send
	answers map[uint64]any
	lookups int // in the DHT
}

func newBench(t *testing.T, spoil func(*Config)) *bench {
	cfg := Config{
		ID: "here", Name: "here", Resources: grid.Resources{Processors: 4}, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000},
		Price: grid.Credit, Parts: Jobs, Discipline: lrms.EASY, Users: &quota.Config{},
		Limits: Limits{Jobs: 10, PerUser: 5, Finished: 3, Retention: grid.Hour},
	}
	if spoil != nil {
		spoil(&cfg)
	}
	b := &bench{t: t, cfg: cfg, now: 1000 * grid.Second, records: map[string][]byte{}, answers: map[uint64]any{}}
	b.boot()
	return b
}

func (b *bench) boot() {
	site, err := New(b.cfg, 1)
	if err != nil {
		b.t.Fatal(err)
	}
	b.site = site
}

// step gives inputs and then a Tick, and carries out the effects.
func (b *bench) step(inputs ...grid.Input) {
	for _, in := range inputs {
		b.site.Step(b.now, in, &b.out)
		b.carryOut()
	}
	b.site.Step(b.now, grid.Tick{}, &b.out)
	for range 10 { // agents may have told the site something in the Tick
		if b.site.NextTimer() > b.now {
			break
		}
		b.site.Step(b.now, grid.Tick{}, &b.out)
	}
	b.carryOut()
	if err := errors.Join(Audit(b.now, b.site), saved(b.site, b.records)); err != nil {
		b.t.Error(err)
	}
}

func (b *bench) carryOut() {
	b.t.Helper()
	if left := b.out.Locals; len(left) > 0 {
		b.t.Errorf("the site leaves %d inputs for itself in the outbox, first %T", len(left), left[0])
	}
	for _, e := range b.out.Effects {
		switch e.Kind {
		case grid.EffectSave:
			b.records[b.out.Records[e.Index].RecordKey()] = b.out.Records[e.Index].AppendRecord(nil)
		case grid.EffectDelete:
			delete(b.records, b.out.Records[e.Index].RecordKey())
		case grid.EffectStart:
			b.started = append(b.started, b.out.Tasks[e.Index])
		case grid.EffectSend:
			b.sends = append(b.sends, b.out.Sends[e.Index])
		case grid.EffectClosest:
			b.lookups++
		case grid.EffectKill:
			b.killed = append(b.killed, b.out.Tasks[e.Index])
		case grid.EffectTell:
			b.events = append(b.events, b.out.Events[e.Index])
		case grid.EffectAnswer:
			b.answers[b.out.Answers[e.Index].Token] = b.out.Answers[e.Index].Value
		}
	}
	b.out.Reset()
}

// crash forgets everything but the records and starts again; the inputs are what
// the shim has to say, given before the first Tick.
func (b *bench) crash(shim ...grid.Input) {
	b.t.Helper()
	b.boot()
	b.started = nil
	if err := b.site.Recover(b.now, maps.All(b.records), &b.out); err != nil {
		b.t.Fatal(err)
	}
	b.step(shim...)
}

func (b *bench) job(n uint64, processors int64) *grid.Job {
	estimate := 100 * grid.Second
	return &grid.Job{
		ID: grid.JobID{Lo: n}, Home: "here", User: "ann", Resources: grid.Resources{Processors: processors}, Tasks: 1,
		Submit: b.now, Estimate: estimate, Work: grid.WorkOf(estimate, 0, b.cfg.Rating), Deadline: grid.Never, Budget: grid.NoBudget,
	}
}

func (b *bench) want(n uint64, state State) View {
	b.t.Helper()
	v, ok := b.site.Job(grid.JobID{Lo: n})
	if !ok || v.State != state {
		b.t.Fatalf("job %d is %v (known %v), want %v", n, v.State, ok, state)
	}
	return v
}

func (b *bench) ended(task grid.Task, code int32) *grid.TaskEnded {
	return &grid.TaskEnded{ID: task.ID, Result: grid.Result{Start: b.now - 10*grid.Second, End: b.now, ExitCode: code}}
}

func TestJobRunsHereAndEnds(t *testing.T) {
	b := newBench(t, nil)
	b.step(&Submit{Token: 1, Job: b.job(1, 3)}, &Submit{Token: 2, Job: b.job(2, 2)})
	if a := b.answers[1].(*Submitted); a.Err != nil || a.Known {
		t.Fatalf("answer %+v", a)
	}
	b.want(1, Running)
	b.want(2, Queued)
	if len(b.started) != 1 || b.started[0].Limit != 100*grid.Second {
		t.Fatalf("started %+v", b.started)
	}
	b.now += 10 * grid.Second
	b.step(b.ended(b.started[0], 0))
	v := b.want(1, Done)
	if want := grid.CostProcessorTime.Cost(grid.Credit, 3, 10*grid.Second); v.Result.Cost != want {
		t.Errorf("cost %v, want %v for 10 s on 3 processors", v.Result.Cost, want)
	}
	b.want(2, Running)
	b.now += grid.Second
	b.step(b.ended(b.started[1], 7))
	if v := b.want(2, Failed); v.Result.ExitCode != 7 {
		t.Errorf("exit code %d", v.Result.ExitCode)
	}
	b.step(b.ended(b.started[1], 0)) // told twice
	b.want(2, Failed)
}

func TestSubmitIsIdempotent(t *testing.T) {
	b := newBench(t, nil)
	b.step(&Submit{Token: 1, Job: b.job(1, 1)})
	b.step(&Submit{Token: 2, Job: b.job(1, 1)})
	if a := b.answers[2].(*Submitted); !a.Known || a.Err != nil {
		t.Errorf("the same job again: %+v", a)
	}
	b.step(&Submit{Token: 3, Job: b.job(1, 2)})
	if a := b.answers[3].(*Submitted); !errors.Is(a.Err, ErrOtherJob) {
		t.Errorf("another job under the same ID: %+v", a)
	}
	if len(b.started) != 1 {
		t.Errorf("started %d times", len(b.started))
	}
}

// However many users take what they can get, there is room for another one.
func TestRoomForAnotherUser(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Limits.Jobs, c.Limits.PerUser = 100, 99 })
	submit := func(n uint64, user string) error {
		j := b.job(n, 1)
		j.User = user
		b.step(&Submit{Token: n, Job: j})
		return b.answers[n].(*Submitted).Err
	}
	n := uint64(1)
	for _, user := range []string{"ann", "bob", "cyd", "dan"} {
		had := n
		for err := error(nil); err == nil && n-had < 100; n++ {
			if err = submit(n, user); err != nil && !errors.Is(err, ErrFull) {
				t.Fatal(err)
			}
		}
		if n == had+100 {
			t.Errorf("%s has all of it", user)
		}
	}
	if err := submit(n, "eve"); err != nil {
		t.Errorf("after %d jobs of others: %v", n, err)
	}
}

func TestSubmitRefusals(t *testing.T) {
	b := newBench(t, nil)
	bad := b.job(9, 1)
	bad.Estimate = -1
	b.step(&Submit{Token: 1, Job: bad})
	if a := b.answers[1].(*Submitted); !errors.Is(a.Err, ErrInvalid) {
		t.Errorf("negative estimate: %v", a.Err)
	}
	b.step(&Submit{Token: 2, Job: b.job(8, 5)})
	if v := b.want(8, Refused); v.Reason == "" {
		t.Error("refused without a reason")
	}
	for n := range uint64(5) {
		b.step(&Submit{Token: 10 + n, Job: b.job(10+n, 1)})
	}
	b.step(&Submit{Token: 20, Job: b.job(20, 1)})
	if a := b.answers[20].(*Submitted); !errors.Is(a.Err, ErrFull) {
		t.Errorf("sixth live job of one user: %v", a.Err)
	}
	for n := range uint64(5) {
		j := b.job(30+n, 1)
		j.User = "bob"
		b.step(&Submit{Token: 30 + n, Job: j})
	}
	j := b.job(40, 1)
	j.User = "cyd"
	b.step(&Submit{Token: 40, Job: j})
	if a := b.answers[40].(*Submitted); !errors.Is(a.Err, ErrFull) {
		t.Errorf("eleventh live job: %v", a.Err)
	}
	if _, known := b.site.Job(grid.JobID{Lo: 40}); known || len(b.records) != 11 {
		t.Errorf("a refused submission left something behind: %d records", len(b.records))
	}
}

func TestCancel(t *testing.T) {
	b := newBench(t, nil)
	b.step(&Submit{Job: b.job(1, 4)}, &Submit{Job: b.job(2, 1)})
	b.step(&Cancel{Token: 1, Job: grid.JobID{Lo: 2}, Cause: "enough"}, &Cancel{Token: 2, Job: grid.JobID{Lo: 1}, Cause: "enough"}, &Cancel{Token: 3, Job: grid.JobID{Lo: 77}})
	b.want(2, CancelledByUser)
	b.want(1, Cancelling)
	if a := b.answers[2].(*Cancelled); a.State != Cancelling || a.Err != nil {
		t.Errorf("answer %+v", a)
	}
	if a := b.answers[3].(*Cancelled); !errors.Is(a.Err, ErrUnknownJob) {
		t.Errorf("unknown job: %+v", a)
	}
	if len(b.killed) != 1 || b.killed[0].ID != b.started[0].ID {
		t.Fatalf("killed %+v", b.killed)
	}
	b.step(b.ended(b.started[0], 143))
	if v := b.want(1, CancelledByUser); v.Reason != "enough" {
		t.Errorf("reason %q", v.Reason)
	}
	b.step(&Submit{Job: b.job(3, 4)})
	b.want(3, Running) // the processors are back
}

func TestCrashKeepsEveryJob(t *testing.T) {
	b := newBench(t, nil)
	b.step(&Submit{Job: b.job(1, 2)}, &Submit{Job: b.job(2, 2)}, &Submit{Job: b.job(3, 2)}, &Submit{Job: b.job(4, 1)})
	running := b.started
	b.now += 10 * grid.Second
	// The shim still runs job 1; job 2 ended while the daemon was away.
	b.crash(&Adopted{ID: running[0].ID, Start: b.now - 10*grid.Second}, b.ended(running[1], 0))
	b.want(1, Running)
	b.want(2, Done)
	b.want(3, Running)
	b.want(4, Queued)
	if len(b.started) != 1 || b.started[0].Job.ID.Lo != 3 || b.started[0].ID.Epoch != 1 {
		t.Fatalf("started after the crash: %+v", b.started)
	}
	b.step(b.ended(running[0], 0))
	b.want(1, Done)
	b.want(4, Running)
}

func TestCancelSurvivesACrash(t *testing.T) {
	b := newBench(t, nil)
	b.step(&Submit{Job: b.job(1, 4)}, &Submit{Job: b.job(2, 4)})
	task := b.started[0]
	b.step(&Cancel{Job: grid.JobID{Lo: 1}, Cause: "enough"})
	b.killed = nil
	b.crash(&Adopted{ID: task.ID, Start: b.now})
	if len(b.killed) != 1 {
		t.Fatalf("killed %+v", b.killed)
	}
	b.step(b.ended(task, 143))
	b.want(1, CancelledByUser)
	b.want(2, Running)
}

func TestVanishedExecutionsRunAgainButNotForEver(t *testing.T) {
	b := newBench(t, nil)
	b.step(&Submit{Job: b.job(1, 4)})
	for n := range uint32(lossesMax) {
		task := b.started[len(b.started)-1]
		if task.ID.Epoch != n+1 {
			t.Fatalf("execution %d has epoch %d", n+1, task.ID.Epoch)
		}
		b.want(1, Running)
		b.now += grid.Minute
		b.step(&grid.TaskEnded{ID: task.ID, Lost: true})
	}
	if v := b.want(1, Failed); v.Reason == "" {
		t.Error("failed without a reason")
	}
	// An older epoch's end changes nothing.
	b.step(b.ended(b.started[0], 0))
	b.want(1, Failed)
}

// TestDeathWithACancelledJob: a machine that has died with a job that was being cancelled has died
// without the others, whose losses later are not their fault.
func TestDeathWithACancelledJob(t *testing.T) {
	b := newBench(t, nil)
	b.step(&Submit{Job: b.job(1, 4)})
	b.step(&Cancel{Job: grid.JobID{Lo: 1}})
	b.want(1, Cancelling)
	b.step(&grid.TaskEnded{ID: b.started[0].ID, Lost: true})
	b.want(1, CancelledByUser)
	b.step(&Submit{Job: b.job(2, 4)})
	for range lossesMax {
		b.now += grid.Minute
		b.step(&grid.TaskEnded{ID: b.started[len(b.started)-1].ID, Lost: true})
	}
	b.want(2, Running)
}

func TestUnknownTasksAreKilled(t *testing.T) {
	b := newBench(t, nil)
	b.crash(&Adopted{ID: grid.TaskID{Job: grid.JobID{Lo: 5}, Epoch: 1}})
	if len(b.killed) != 1 {
		t.Fatalf("killed %+v", b.killed)
	}
}

func TestEndedJobsAreForgotten(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Users = nil })
	for n := range uint64(5) {
		b.step(&Submit{Job: b.job(n+1, 4)})
		b.now += grid.Minute
		b.step(b.ended(b.started[n], 0))
	}
	if len(b.records) != 3 {
		t.Errorf("%d records, the limit is 3", len(b.records))
	}
	b.want(5, Done)
	b.now += grid.Hour
	if due := b.site.NextTimer(); due > b.now {
		t.Errorf("next timer %v after %v", due, b.now)
	}
	b.step()
	if len(b.records) != 0 {
		t.Errorf("%d records after the retention", len(b.records))
	}
}

func TestNothingIsKeptWithoutRetention(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Limits.Retention, c.Users = 0, nil })
	b.step(&Submit{Job: b.job(1, 4)}, &Submit{Job: b.job(2, 5)})
	b.step(b.ended(b.started[0], 0))
	if len(b.records) != 0 || len(b.site.jobs.byID) != 0 || len(b.site.jobs.live) != 0 || len(b.site.jobs.users) != 0 {
		t.Errorf("left behind: %d records, %d jobs, %d live, users %v", len(b.records), len(b.site.jobs.byID), len(b.site.jobs.live), b.site.jobs.users)
	}
}

func TestRecoverNamesTheBadRecord(t *testing.T) {
	b := newBench(t, nil)
	b.step(&Submit{Job: b.job(1, 4)})
	for key, good := range b.records {
		for _, bad := range [][]byte{{0xff}, nil, good[:len(good)/2]} {
			b.boot()
			err := b.site.Recover(b.now, maps.All(map[string][]byte{key: bad}), &b.out)
			if err == nil {
				t.Errorf("record %x was accepted", bad)
			}
		}
	}
}

func FuzzDecodeEntry(f *testing.F) {
	b := newBench(&testing.T{}, nil)
	b.step(&Submit{Job: b.job(1, 4)})
	for _, r := range b.records {
		f.Add(r)
	}
	corpus.Fuzz(f, func(t *testing.T, record []byte) {
		e, err := decodeEntry(record)
		if err != nil {
			return
		}
		again, err := decodeEntry(e.AppendRecord(nil))
		if err != nil {
			t.Fatalf("encoded again, the record does not decode: %v", err)
		}
		a, b := e.view(), again.view()
		a.Job, b.Job = nil, nil
		if fmt.Sprintf("%+v", a) != fmt.Sprintf("%+v", b) {
			t.Fatalf("%+v became %+v", a, b)
		}
	})
}

func TestPriceChangesAreQuotedAtOnce(t *testing.T) {
	b := newBench(t, func(c *Config) {
		c.Parts = Everything
		c.Directory.Federation = "test"
	})
	b.step()
	b.step(&SetPrice{Token: 1, Price: 5 * grid.Credit})
	if got := b.answers[1].(*PriceSet); got.Before != grid.Credit || got.Price != 5*grid.Credit || got.Err != nil {
		t.Errorf("price set: %+v", got)
	}
	for i, price := range []grid.Price{-1, 0, grid.CreditsMax + 1} {
		b.step(&SetPrice{Token: uint64(i + 2), Price: price})
		if got := b.answers[uint64(i+2)].(*PriceSet); got.Err == nil || got.Price != 5*grid.Credit {
			t.Errorf("price set to %d: %+v", price, got)
		}
	}
	if got := b.site.Offer().Price; got != 5*grid.Credit {
		t.Errorf("quoted price %v", got)
	}
}

// TestPriceThatFollowsDemandIsQuoted: the price that the agent arrives at is what the
// site quotes and charges.
// TestWaitsAreQuoted: a busy site says when it is free, and says so anew when that changes.
func TestWaitsAreQuoted(t *testing.T) {
	b := newBench(t, together)
	b.step()
	for n, want := range []grid.Time{0, 100 * grid.Second, 200 * grid.Second} {
		if n > 0 {
			b.step(&Submit{Job: b.job(uint64(n), 4)})
		}
		if wait := b.site.Offer().Wait; wait != want {
			t.Errorf("with %d jobs it quotes a wait of %v, want %v", n, wait, want)
		}
	}
}

func TestPriceThatFollowsDemandIsQuoted(t *testing.T) {
	b := newBench(t, func(c *Config) {
		c.Parts = Everything
		c.Market.Pricing, c.Market.Demand.Step = market.PricingDemand, 100
		c.Directory.Federation = "test"
	})
	b.step()
	for until := b.now + 10*grid.Minute; b.now < until; {
		b.now = min(max(b.site.NextTimer(), b.now), until)
		b.step()
	}
	if got := b.site.Offer().Price; got != 900_000 || b.site.Price() != got {
		t.Errorf("an idle site quotes %v and charges %v after an interval, want a tenth less than 1", got, b.site.Price())
	}
}

// TestEndOfWhatWaits: an execution ends that the site, whose store is an older copy, does not know to
// have begun. Its job is over, and does not start from the queue.
func TestEndOfWhatWaits(t *testing.T) {
	b := newBench(t, nil)
	b.step(&Submit{Job: b.job(1, 4)}, &Submit{Job: b.job(2, 4)})
	waits := grid.TaskID{Job: grid.JobID{Lo: 2}, Epoch: 1}
	b.step(&grid.TaskEnded{ID: waits, Result: grid.Result{Start: b.now - grid.Second, End: b.now}})
	b.want(2, Done)
	b.step(b.ended(b.started[0], 0))
	if len(b.started) != 1 || b.site.Idle(b.now) != 4 {
		t.Errorf("started %d times, %d processors are idle", len(b.started), b.site.Idle(b.now))
	}
}

// TestGPUsAfterACrash: what ended while the daemon was away gives its GPUs back, and what runs on keeps
// its own.
func TestGPUsAfterACrash(t *testing.T) {
	b := newBench(t, func(c *Config) { c.GPUs = gpusOf(2) })
	submit := func(n uint64) {
		j := b.job(n, 1)
		j.GPUs.Count = 1
		b.step(&Submit{Job: j})
	}
	submit(1)
	submit(2)
	running := b.started
	if len(running) != 2 {
		t.Fatalf("%d jobs run", len(running))
	}
	b.now += 10 * grid.Second
	b.crash(b.ended(running[0], 0), &Adopted{ID: running[1].ID, Start: b.now - 10*grid.Second})
	b.want(1, Done)
	b.want(2, Running)
	if free := b.site.GPUs(b.now); len(free) != 1 || free[0].Count != 2 || free[0].Free != 1 {
		t.Errorf("GPUs are %+v, want one of two free", free)
	}
	submit(3)
	submit(4)
	b.want(3, Running)
	b.want(4, Queued)
	if got := b.started[0].GPUs; len(got) != 1 || got[0] != running[0].GPUs[0] {
		t.Errorf("job 3 has %v, want %v", got, running[0].GPUs)
	}
	b.step(b.ended(running[1], 0))
	b.want(4, Running)
}
