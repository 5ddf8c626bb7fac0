package packing

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"gridnode/coalloc/muscle"
	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/lrms/titan"
	"gridnode/market"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/scenario"
	"gridnode/testnet/simtest"
)

var headSeeds = flag.Int("head-seeds", 8, "seeds of the tests of heads, each a batch of 40 jobs over three members")

// headNet is a head without processors, site 0, and members that consent to it: the
// sites of production in virtual time.
type headNet struct {
	*testnet.Network
	*testnet.Checker
	jobs   headJobs
	ended  map[grid.JobID]grid.Event
	errs   map[grid.JobID]error // of submissions that were not taken
	missed int                  // deadlines
}

// headJobs are submitted at the head.
type headJobs []*grid.Job

func (j *headJobs) Next() (*grid.Job, int, error) {
	if len(*j) == 0 {
		return nil, 0, io.EOF
	}
	job := (*j)[0]
	*j = (*j)[1:]
	return job, 0, nil
}

var headMembers = []struct {
	processors, speed int64
	weights           titan.Weights
}{{20, 1000, titan.Weights{OverDeadline: 12, Makespan: 3, Idle: 1}}, {16, 1200, titan.DefaultWeights}, {12, 1400, titan.Weights{}}}

// newHeadNet builds the network. change may alter what a site is told.
func newHeadNet(t *testing.T, seed uint64, link testnet.Link, heads muscle.HeadConfig, change func(site int, cfg *site.Config)) *headNet {
	t.Helper()
	h := &headNet{ended: map[grid.JobID]grid.Event{}, errs: map[grid.JobID]error{}}
	n, err := testnet.New(testnet.Config{
		Seed: seed, Inputs: scenario.Inputs(), Durable: true, Link: link,
		Check: func(now grid.Time) error { return h.Violation(now) },
	})
	if err != nil {
		t.Fatal(err)
	}
	h.Network = n
	names := []string{"m1", "m2", "m3"}
	var processors []int64
	for i := range 1 + len(names) {
		cfg := site.Config{
			ID: "head", Name: "head", Rating: grid.Rating{Speed: 1000, Bandwidth: 1000}, Price: grid.Credit,
			Limits: site.Limits{Jobs: scenario.JobsMax, PerUser: scenario.JobsMax, Finished: scenario.JobsMax, Retention: grid.Day},
			Heads:  site.HeadsConfig{Members: names, HeadConfig: heads},
		}
		if i > 0 {
			m := headMembers[i-1]
			cfg.ID, cfg.Name, cfg.Head, cfg.Heads = grid.SiteID(names[i-1]), names[i-1], "head", site.HeadsConfig{}
			cfg.Processors, cfg.Speed, cfg.Weights = m.processors, m.speed, m.weights
		}
		if change != nil {
			change(i, &cfg)
		}
		processors = append(processors, cfg.Processors)
		cfg.Directory = directory.Config{Federation: "virtual", Topic: "load"}
		at, err := n.Add(testnet.Member{ID: cfg.ID, Rating: cfg.Rating, New: func(incarnation int) (testnet.Site, error) {
			return site.New(cfg, draw.PCG(seed+uint64(incarnation)<<32, cfg.ID, draw.ForSite).Uint64())
		}})
		if err != nil {
			t.Fatal(err)
		}
		n.Subscribe("load", at)
	}
	h.Checker = testnet.Check(n, processors, scenario.Submission)
	n.Observe(testnet.Observer{
		Event: func(_ grid.Time, site int, e *grid.Event) {
			switch e.Kind {
			case grid.JobFinished, grid.JobRefused, grid.JobCancelled:
				h.ended[e.Job.ID] = *e
				if e.Result.End > e.Job.Deadline {
					h.missed++
				}
			}
		},
		Answer: func(_ grid.Time, _ int, a grid.Answer) {
			if id, submission, err := scenario.Submission(a.Value); submission && err != nil {
				h.errs[id] = err
			}
		},
	})
	return h
}

// submit draws jobs as section 5 of the paper does: run times of a bounded Pareto
// distribution, 1 to 10 processors, and deadlines of up to twice the run time, which
// count from when the jobs are submitted, within a few seconds.
func (h *headNet) submit(seed uint64, jobs int) {
	rng := rand.New(rand.NewPCG(seed, 77))
	rating := grid.Rating{Speed: 1000, Bandwidth: 1000}
	at := grid.Minute
	for i := range jobs {
		at += grid.Time(rng.IntN(100)) * grid.Millisecond
		span := grid.Time(5/(1-rng.Float64()*(1-5.0/100))) * grid.Second
		job := &grid.Job{
			ID: grid.JobID{Hi: seed, Lo: uint64(i + 1)}, Home: "head", Submit: at, Tasks: 1 + rng.Int64N(10),
			Estimate: span, RunTime: span, Work: grid.WorkOf(span, 0, rating), Budget: grid.NoBudget,
			Deadline: at + 10*grid.Second + span + grid.Time(rng.Int64N(2*int64(span))),
		}
		job.Processors = job.Tasks
		h.jobs = append(h.jobs, job)
	}
	h.Feed(&h.jobs)
}

// run runs until so many jobs have ended, and checks that every one is done.
func (h *headNet) run(t *testing.T, jobs int) {
	t.Helper()
	if err := h.Run(context.Background(), 10*grid.Hour, func() bool { return len(h.ended) == jobs }); err != nil {
		t.Fatal(err)
	}
	if err := h.Run(context.Background(), h.Now()+grid.Hour, nil); err != nil {
		t.Fatal(err)
	}
	if err := h.AtRest(); err != nil {
		t.Fatal(err)
	}
	if len(h.ended) != jobs {
		t.Errorf("%d of %d jobs have ended", len(h.ended), jobs)
	}
	for id, e := range h.ended {
		if e.Kind != grid.JobFinished || e.Result.ExitCode != 0 {
			t.Errorf("job %v: %v, %+v %s", id, e.Kind, e.Result, e.Text)
		}
	}
}

var headWindow = 5 * grid.Second

// TestHeadMissesFewerDeadlines runs the same 40 jobs with deadlines through a head and
// three members by each policy. The sums over all seeds are compared: the policies
// that look at deadlines against those that do not.
func TestHeadMissesFewerDeadlines(t *testing.T) {
	simtest.Alone(t)
	missed := map[muscle.Policy]int{}
	seeds := 8 * *headSeeds // in a few batches chance does as much as the policy
	for seed := range uint64(seeds) {
		for p := range muscle.PolicyNames {
			policy := muscle.Policy(p)
			h := newHeadNet(t, seed, testnet.Link{LatencyMin: 5 * grid.Millisecond, LatencyMax: 50 * grid.Millisecond}, muscle.HeadConfig{Window: headWindow, Policy: policy}, nil)
			h.submit(seed, 40)
			h.run(t, 40)
			missed[policy] += h.missed
		}
	}
	text := ""
	for p, name := range muscle.PolicyNames {
		text += fmt.Sprintf(" %s %d", name, missed[muscle.Policy(p)])
	}
	t.Logf("deadlines missed of %d:%s", 40*seeds, text)
	if missed[muscle.PolicyUrgent] >= missed[muscle.PolicyDLL] || missed[muscle.PolicyUrgent] >= missed[muscle.PolicyWRAND] {
		t.Errorf("by urgent not fewer deadlines are missed than by dll and wrand")
	}
}

// TestHeadLosesNothing: whatever happens to members and head in the middle of a batch,
// every job is done once.
func TestHeadLosesNothing(t *testing.T) {
	faulty := testnet.Link{LatencyMin: 5 * grid.Millisecond, LatencyMax: 200 * grid.Millisecond, Loss: 20_000, Duplicate: 20_000, Reorder: 20_000, ReorderMax: grid.Second}
	slow := testnet.Link{LatencyMin: 100 * grid.Millisecond, LatencyMax: 400 * grid.Millisecond}
	often := func(site int) (faults []testnet.Fault) {
		for at := grid.Minute; at < grid.Minute+12*grid.Second; at += 1300 * grid.Millisecond {
			faults = append(faults, testnet.Fault{Kind: testnet.FaultTorn, At: at, For: 100 * grid.Millisecond, Sites: []int{site}})
		}
		return faults
	}
	middle := grid.Minute + 9*grid.Second // jobs wait, are being given away, and run
	for _, tt := range []struct {
		name   string
		faults []testnet.Fault
		link   testnet.Link
		change func(site int, cfg *site.Config)
	}{
		{"a member's machine is gone for good", []testnet.Fault{{Kind: testnet.FaultMachine, At: middle, For: grid.Never, Sites: []int{2}}}, testnet.Link{}, nil},
		{"a member's daemon restarts", []testnet.Fault{{Kind: testnet.FaultDaemon, At: middle, For: 3 * grid.Second, Sites: []int{1}}}, testnet.Link{}, nil},
		{"a member is cut off", []testnet.Fault{{Kind: testnet.FaultPartition, At: middle, For: 2 * grid.Minute, Sites: []int{3}}}, testnet.Link{}, nil},
		{"the head restarts within the window", []testnet.Fault{{Kind: testnet.FaultDaemon, At: grid.Minute + 2*grid.Second, For: grid.Second, Sites: []int{0}}}, testnet.Link{}, nil},
		{"the head dies again and again while it gives jobs away", often(0), slow, nil},
		{"a member dies again and again while it is given jobs", often(2), slow, nil},
		{"messages are lost, doubled and reordered", nil, faulty, nil},
		{"everything", []testnet.Fault{
			{Kind: testnet.FaultDaemon, At: middle, For: 20 * grid.Second, Sites: []int{0}},
			{Kind: testnet.FaultMachine, At: middle + grid.Second, For: grid.Minute, Sites: []int{1}},
			{Kind: testnet.FaultTorn, At: middle + grid.Minute, For: grid.Second, Sites: []int{2}},
		}, faulty, nil},
		{"a member refuses all for lack of memory", nil, testnet.Link{}, func(site int, cfg *site.Config) {
			if site == 1 {
				cfg.Memory = 1
			}
		}},
		{"a member consents to somebody else", nil, testnet.Link{}, func(site int, cfg *site.Config) {
			if site == 1 {
				cfg.Head = "m2"
			}
		}},
		{"a member has no room for more", nil, testnet.Link{}, func(site int, cfg *site.Config) {
			if site == 1 {
				cfg.Limits.Jobs = 3
			}
		}},
		{"the head has processors of its own", nil, testnet.Link{}, func(site int, cfg *site.Config) {
			if site == 0 {
				cfg.Processors = 10
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for seed := range uint64(max(*headSeeds/4, 1)) {
				h := newHeadNet(t, seed, tt.link, muscle.HeadConfig{Window: headWindow, Policy: muscle.PolicyUrgent, Batch: 25}, tt.change)
				h.submit(seed, 60)
				if tt.name == "a member refuses all for lack of memory" {
					for _, j := range h.jobs {
						j.Memory = 1000
					}
				}
				for _, f := range tt.faults {
					if err := h.Schedule(f); err != nil {
						t.Fatal(err)
					}
				}
				h.run(t, 60)
			}
		})
	}
}

// TestHeadRefusesWhatIsTooWide: a job that is wider than every cluster is not taken
// once all are known, and ends, with the reason, when that turns out later; one that is
// wider than those that are there waits.
func TestHeadRefusesWhatIsTooWide(t *testing.T) {
	h := newHeadNet(t, 1, testnet.Link{}, muscle.HeadConfig{Window: headWindow}, func(site int, cfg *site.Config) { cfg.Memory = 1 })
	h.submit(1, 5)
	for i, processors := range []int64{21, 18, 1, 21, 20} {
		h.jobs[i].Processors, h.jobs[i].Tasks = processors, processors
	}
	h.jobs[2].Memory = 2
	for _, j := range h.jobs[3:] {
		j.Submit += 10 * grid.Minute
		j.Deadline += 10 * grid.Minute
	}
	// The head is started again while m1, the widest, is down: it knows nothing of it.
	for _, f := range []testnet.Fault{
		{Kind: testnet.FaultDaemon, At: grid.Second, For: 5 * grid.Minute, Sites: []int{1}},
		{Kind: testnet.FaultDaemon, At: 2 * grid.Second, For: grid.Second, Sites: []int{0}},
	} {
		if err := h.Schedule(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Run(context.Background(), grid.Hour, nil); err != nil {
		t.Fatal(err)
	}
	id := func(n uint64) grid.JobID { return grid.JobID{Hi: 1, Lo: n} }
	if e := h.ended[id(1)]; e.Kind != grid.JobRefused || e.Result.End > 0 || e.Text != "needs 21 processors, and no cluster that this site heads has as many" {
		t.Errorf("too wide: %v %q", e.Kind, e.Text)
	}
	if e := h.ended[id(2)]; e.Kind != grid.JobFinished || e.Site != "m1" || e.Result.End < 5*grid.Minute {
		t.Errorf("wider than the members that were there: %v at %s, ended at %v", e.Kind, e.Site, e.Result.End)
	}
	if e := h.ended[id(3)]; e.Kind != grid.JobRefused || !strings.HasPrefix(e.Text, "no cluster that this site heads has room for it; ") {
		t.Errorf("too little memory everywhere: %v %q", e.Kind, e.Text)
	}
	if err := h.errs[id(4)]; !errors.Is(err, site.ErrTooWide) || !strings.Contains(err.Error(), "needs 21 processors, the widest cluster that this site heads has 20") {
		t.Errorf("too wide, and all members are known: error %v", err)
	}
	if e := h.ended[id(5)]; e.Kind != grid.JobFinished || e.Site != "m1" || len(h.errs) != 1 {
		t.Errorf("as wide as the widest: %v at %s; %d jobs were not taken", e.Kind, e.Site, len(h.errs))
	}
}

// TestHeadPreview: a preview says what the packing would do with the job, with those
// that wait, and changes nothing.
func TestHeadPreview(t *testing.T) {
	job := func(processors int64) *grid.Job {
		j := &grid.Job{
			ID: grid.JobID{Hi: 9, Lo: uint64(processors)}, Home: "head", Tasks: processors, Budget: grid.NoBudget,
			Estimate: grid.Minute, Deadline: grid.Minute + 10*grid.Second, Work: grid.WorkOf(grid.Minute, 0, grid.Rating{Speed: 1000, Bandwidth: 1000}),
		}
		j.Processors = processors
		return j
	}
	run := func(previews bool, faults ...testnet.Fault) (*headNet, []*market.PreviewResult) {
		h := newHeadNet(t, 1, testnet.Link{}, muscle.HeadConfig{Window: headWindow, Policy: muscle.PolicyUrgent}, nil)
		h.submit(1, 20)
		var results []*market.PreviewResult
		h.Observe(testnet.Observer{Answer: func(_ grid.Time, _ int, a grid.Answer) {
			if r, ok := a.Value.(*market.PreviewResult); ok {
				results = append(results, r)
			}
		}})
		for i, processors := range []int64{8, 18, 21} {
			if previews {
				h.Inject(grid.Minute+4*grid.Second, 0, &site.Preview{Token: uint64(1000 + i), Job: job(processors)})
			}
		}
		for _, f := range faults {
			if err := h.Schedule(f); err != nil {
				t.Fatal(err)
			}
		}
		h.run(t, 20)
		return h, results
	}
	without, _ := run(false)
	with, results := run(true)
	if len(results) != 3 {
		t.Fatalf("%d answers", len(results))
	}
	for i, r := range results[:2] {
		if r.Err != nil || !r.Certain || r.Waits || len(r.Verdicts) != 3 {
			t.Errorf("preview %d: %+v", i, r)
			continue
		}
		v := &r.Verdicts[0]
		for _, words := range []string{"window 1, 21 jobs over 3 clusters by urgent", "planned to start in", "after its deadline"} {
			if v.Outcome != market.OutcomeChosen || !strings.Contains(v.Detail, words) {
				t.Errorf("preview %d does not say %q: %v %q", i, words, v.Outcome, v.Detail)
			}
		}
		if v.Cost <= 0 || v.Finish < grid.Minute+4*grid.Second || i == 1 && v.Site != "m1" {
			t.Errorf("preview %d: %+v", i, v)
		}
	}
	if !errors.Is(results[2].Err, site.ErrTooWide) {
		t.Errorf("21 processors: error %v", results[2].Err)
	}
	for id, e := range without.ended {
		if got := with.ended[id]; got.Site != e.Site || got.Result.End != e.Result.End {
			t.Errorf("job %v ended at %s at %v, without previews at %s at %v", id, got.Site, got.Result.End, e.Site, e.Result.End)
		}
	}
	// Members that are not heard of any more may come back: the job would wait for m1.
	_, results = run(true, testnet.Fault{Kind: testnet.FaultDaemon, At: grid.Second, For: 5 * grid.Minute, Sites: []int{1}})
	if r := results[1]; !r.Waits || r.Err != nil || r.Verdicts[0].Outcome == market.OutcomeChosen {
		t.Errorf("18 processors while the widest is away: %+v", r)
	}
}

// TestHeadCancel: a job that is cancelled within the window is given to nobody.
func TestHeadCancel(t *testing.T) {
	h := newHeadNet(t, 1, testnet.Link{}, muscle.HeadConfig{Window: headWindow}, nil)
	h.submit(1, 3)
	id := grid.JobID{Hi: 1, Lo: 2}
	h.Inject(grid.Minute+3*grid.Second, 0, &site.Cancel{Job: id, Cause: "test"})
	if err := h.Run(context.Background(), grid.Minute+4*grid.Second, nil); err != nil {
		t.Fatal(err)
	}
	v, _ := h.Core(0).(*site.Site).Job(grid.JobID{Hi: 1, Lo: 3})
	if !v.Waits || !strings.Contains(v.Reason, "one of 2 jobs so far") {
		t.Errorf("another job that waits: %+v", v)
	}
	if err := h.Run(context.Background(), grid.Hour, nil); err != nil {
		t.Fatal(errors.Join(err, h.AtRest()))
	}
	if h.ended[id].Kind != grid.JobCancelled || h.ended[id].Result.ExitCode == 0 || len(h.ended) != 3 {
		t.Errorf("cancelled: %+v, of %d jobs", h.ended[id], len(h.ended))
	}
}

// TestHeadSameSeedSameTrace: a run follows from its seed.
func TestHeadSameSeedSameTrace(t *testing.T) {
	trace := func(seed uint64) uint64 {
		h := newHeadNet(t, seed, testnet.Link{LatencyMin: grid.Millisecond, LatencyMax: 50 * grid.Millisecond, Loss: 10_000}, muscle.HeadConfig{Window: headWindow}, nil)
		h.submit(7, 40)
		h.run(t, 40)
		return h.TraceHash()
	}
	if a, b := trace(1), trace(1); a != b {
		t.Errorf("one seed gave traces %x and %x", a, b)
	}
	if trace(1) == trace(2) {
		t.Error("two seeds gave the same trace")
	}
}
