package chaos

import (
	"context"
	"flag"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
	"gridnode/lease"
	"gridnode/testnet"
	"gridnode/testnet/draw"

	"google.golang.org/protobuf/proto"
)

var (
	leaseSeeds = flag.Int("lease-seeds", 4, "seeds of TestLeasesUnderFaults, each one simulated day")
	leaseSeed  = flag.Uint64("lease-seed", 0, "the only seed that TestLeasesUnderFaults runs; 0: the first -lease-seeds")
)

// leaseSite is as little as a node does around a book and a matchmaker: jobs with
// durable records, started on own processors or on what is brought.
type leaseSite struct {
	net     *leaseNet
	id      grid.SiteID
	cluster *lrms.Cluster
	book    *lease.Book
	match   *lease.Matchmaker
	jobs    map[grid.JobID]*leaseJob
	lost    map[grid.JobID]*leaseJob // of them
	fresh   bool                     // no Tick since the restart
	started []lrms.Request
	view    leaseView
}

// leaseView is what the checks look at of a site. It is taken anew after each step of
// the site: between them nothing of it changes but the time.
type leaseView struct {
	stale  bool
	leases []lease.Lease
	totals lease.Totals
	own    int64 // processors of jobs that run on own ones
}

// look brings the view up to date.
func (s *leaseSite) look() *leaseView {
	if s.view.stale {
		s.view = leaseView{leases: s.book.Leases(), totals: s.book.Totals()}
		for _, j := range s.jobs {
			if j.state == leaseRunning && j.lease == 0 {
				s.view.own += j.job.Processors
			}
		}
	}
	return &s.view
}

// leaseJob is a job and its record.
type leaseJob struct {
	job   *grid.Job
	epoch uint32
	state leaseJobState
	lease uint64    // running: number of the lease it runs on; 0 for own processors
	again grid.Time // lost: when it may be submitted anew
	alive bool      // running: its execution is known to exist
}

type leaseJobState uint32

const (
	leaseWaiting leaseJobState = iota
	leaseRunning
	leaseLost
	leaseDone
)

// leaseVacated is why an execution ends that must leave processors which are recalled.
const leaseVacated = "recalled"

func (j *leaseJob) RecordKey() string { return "job/" + j.job.ID.String() }

func (j *leaseJob) AppendRecord(dst []byte) []byte {
	b, err := proto.MarshalOptions{}.MarshalAppend(dst, &wirepb.JobRecord{
		Job: wire.JobProto(j.job), Epoch: j.epoch, State: uint32(j.state), Award: &wirepb.Award{Hold: j.lease, Until: int64(j.again)},
	})
	if err != nil {
		panic(err)
	}
	return b
}

func (j *leaseJob) task() grid.TaskID { return grid.TaskID{Job: j.job.ID, Epoch: j.epoch} }

func (j *leaseJob) request() lrms.Request {
	return lrms.Request{ID: j.task(), Processors: j.job.Processors, Estimate: j.job.Estimate}
}

type leaseSubmit struct {
	token uint64
	job   *grid.Job
}

type leaseAdopted struct {
	id    grid.TaskID
	start grid.Time
}

// leasePoke makes a site revoke one of the leases it has granted.
type leasePoke struct{ which uint64 }

func (s *leaseSite) NextTimer() grid.Time {
	at := min(s.book.NextTimer(), s.match.NextTimer())
	for _, j := range s.lost {
		at = min(at, j.again)
	}
	return at
}

func (s *leaseSite) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	s.view.stale = true
	switch in := in.(type) {
	case *leaseSubmit:
		if s.jobs[in.job.ID] == nil {
			j := &leaseJob{job: in.job, epoch: 1}
			s.jobs[in.job.ID] = j
			s.submit(now, j, out)
			out.Save(j)
		}
		out.Answer(in.token, in.job.ID)
	case *leaseAdopted:
		s.adopt(now, in, out)
	case *grid.TaskEnded:
		s.ended(now, in, out)
	case *leasePoke:
		var lent []lease.Lease
		for _, l := range s.book.Leases() {
			if l.Lent && l.State != lease.Requested {
				lent = append(lent, l)
			}
		}
		if len(lent) > 0 {
			if err := s.book.Revoke(now, lent[in.which%uint64(len(lent))].ID, false, out); err != nil {
				panic(err)
			}
		}
	case *grid.Delivery, *grid.Undelivered:
		s.book.Step(now, in, out)
	case grid.Tick:
		s.tick(now, out)
	}
	s.locals(now, out)
}

func (s *leaseSite) submit(now grid.Time, j *leaseJob, out *grid.Outbox) {
	j.state, j.lease, j.alive = leaseWaiting, 0, false
	delete(s.lost, j.job.ID)
	if err := s.match.Submit(now, lease.Work{Request: j.request(), Born: now}, out); err != nil {
		panic(err)
	}
}

// sorted returns jobs in order of their IDs.
func sorted(jobs map[grid.JobID]*leaseJob) (list []*leaseJob) {
	for _, j := range jobs {
		list = append(list, j)
	}
	slices.SortFunc(list, func(a, b *leaseJob) int { return a.job.ID.Compare(b.job.ID) })
	return list
}

func (s *leaseSite) tick(now grid.Time, out *grid.Outbox) {
	s.book.Step(now, grid.Tick{}, out)
	s.locals(now, out)
	if s.fresh {
		for _, j := range sorted(s.jobs) {
			if j.state == leaseRunning && !j.alive { // saved, and never begun
				s.end(now, j, out)
				s.lose(now, j, now, out)
			}
		}
		s.fresh = false
	}
	for _, j := range sorted(s.lost) {
		if j.again <= now {
			j.epoch++
			s.submit(now, j, out)
			out.Save(j)
		}
	}
	s.match.Step(now, grid.Tick{}, out)
	s.started = s.match.Dispatch(now, s.started[:0], out)
	for _, r := range s.started {
		s.start(s.jobs[r.ID.Job], 0, out)
	}
}

func (s *leaseSite) start(j *leaseJob, number uint64, out *grid.Outbox) {
	j.state, j.lease, j.alive = leaseRunning, number, true
	out.Save(j)
	out.Start(grid.Task{ID: j.task(), Job: j.job})
}

// end takes a running job off its processors.
func (s *leaseSite) end(now grid.Time, j *leaseJob, out *grid.Outbox) {
	if !s.match.Ended(now, j.task(), out) {
		s.cluster.Ended(now, j.task())
	}
}

// lose makes a job wait until it may be submitted anew.
func (s *leaseSite) lose(now grid.Time, j *leaseJob, gone grid.Time, out *grid.Outbox) {
	j.state, j.again, j.lease, j.alive = leaseLost, gone, 0, false
	s.lost[j.job.ID] = j
	out.Save(j)
}

func (s *leaseSite) adopt(now grid.Time, in *leaseAdopted, out *grid.Outbox) {
	j := s.jobs[in.id.Job]
	if j == nil || j.epoch != in.id.Epoch || j.state != leaseRunning {
		out.Kill(grid.Task{ID: in.id, Job: s.net.jobs[in.id.Job], Cause: "not wanted any more"})
		return
	}
	j.alive = true
}

func (s *leaseSite) ended(now grid.Time, in *grid.TaskEnded, out *grid.Outbox) {
	j := s.jobs[in.ID.Job]
	if j == nil || j.epoch != in.ID.Epoch || j.state != leaseRunning {
		return
	}
	s.end(now, j, out)
	if in.Result.Reason == leaseVacated {
		s.net.vacated++
	}
	if in.Lost || in.Result.Reason == leaseVacated {
		s.lose(now, j, now, out)
		return
	}
	j.state, j.lease = leaseDone, 0
	out.Save(j)
	out.Tell(grid.Event{Kind: grid.JobFinished, Job: j.job, Epoch: j.epoch, Site: s.id})
}

func (s *leaseSite) locals(now grid.Time, out *grid.Outbox) {
	for i := 0; i < len(out.Locals); i++ {
		switch in := out.Locals[i].(type) {
		case *lease.Brought:
			s.start(s.jobs[in.Task.Job], in.Lease.Number, out)
			s.net.brought++
			s.net.chains = max(s.net.chains, in.Lease.Hops)
		case *lease.Vacate:
			s.match.Step(now, in, out)
			for _, j := range sorted(s.jobs) {
				if j.state == leaseRunning && j.lease == in.Number {
					out.Kill(grid.Task{ID: j.task(), Job: j.job, Cause: leaseVacated})
				}
			}
		case *lease.Lost:
			j := s.jobs[in.Task.Job]
			out.Kill(grid.Task{ID: j.task(), Job: j.job, Cause: in.Cause.String()})
			s.lose(now, j, in.Gone, out)
			s.net.lost++
		default:
			s.match.Step(now, in, out)
		}
	}
	clear(out.Locals)
	out.Locals = out.Locals[:0]
}

func (s *leaseSite) Recover(now grid.Time, records iter.Seq2[string, []byte], out *grid.Outbox) error {
	s.view.stale = true
	for key, value := range records {
		if !strings.HasPrefix(key, "job/") {
			continue
		}
		var p wirepb.JobRecord
		if err := proto.Unmarshal(value, &p); err != nil {
			return err
		}
		job, err := wire.JobFromProto(p.Job)
		if err != nil {
			return err
		}
		j := &leaseJob{job: s.net.jobs[job.ID], epoch: p.Epoch, state: leaseJobState(p.State), lease: p.Award.Hold, again: grid.Time(p.Award.Until)}
		s.jobs[job.ID] = j
		if j.state == leaseLost {
			s.lost[job.ID] = j
		}
		if j.state == leaseRunning && j.lease == 0 {
			if err := s.cluster.Adopt(now, j.request(), now); err != nil {
				return err
			}
		}
	}
	if err := s.book.Recover(now, records, out); err != nil {
		return err
	}
	// What the book says of its leases comes before the jobs that are to use them.
	locals := slices.Clone(out.Locals)
	out.Locals = out.Locals[:0]
	used := map[uint64]bool{}
	for _, j := range sorted(s.jobs) {
		if j.state == leaseRunning && j.lease != 0 {
			used[j.lease] = s.match.Resume(now, j.request(), lease.ID{Borrower: s.id, Number: j.lease}) == nil
		}
	}
	for _, in := range locals {
		switch in := in.(type) {
		case *lease.Claimed:
			if !used[in.Number] { // the job's record had not been saved with it
				if err := s.book.Release(now, in.ID, out); err != nil {
					return err
				}
			}
		case *lease.Ended:
			for _, j := range sorted(s.jobs) {
				if !in.Lent && j.state == leaseRunning && j.lease == in.Number {
					out.Kill(grid.Task{ID: j.task(), Job: j.job, Cause: in.Cause.String()})
					s.lose(now, j, in.Gone, out)
				}
			}
		}
	}
	for _, j := range sorted(s.jobs) {
		if j.state == leaseRunning && j.lease != 0 && !used[j.lease] {
			out.Kill(grid.Task{ID: j.task(), Job: j.job, Cause: "its lease is gone"})
			s.lose(now, j, now, out)
		}
		if j.state == leaseWaiting {
			s.submit(now, j, out)
		}
	}
	s.fresh = true
	s.locals(now, out)
	return nil
}

// leaseNet is a hierarchy of sites and what is watched.
type leaseNet struct {
	n        *testnet.Network
	jobs     map[grid.JobID]*grid.Job
	alive    map[grid.JobID]int
	done     map[grid.JobID]int
	capacity []int64
	brought  int
	lost     int
	vacated  int
	chains   int32
	checks   int64
	err      error
}

// leaseParents is the hierarchy: 0 is the root, 1 and 2 are below it, 3 and 4 below 1, 5 and 6 below 2.
var leaseParents = []int{-1, 0, 0, 1, 1, 2, 2}
var leaseProcessors = []int64{0, 0, 3, 2, 6, 1, 8}

func leaseID(site int) grid.SiteID { return grid.SiteID(fmt.Sprintf("s%d", site)) }

func leaseLinks(site int) (links []lease.Link) {
	for other, parent := range leaseParents {
		switch {
		case other == site:
		case parent == site:
			links = append(links, lease.Link{Site: leaseID(other), Relation: lease.Child})
		case leaseParents[site] == other:
			links = append(links, lease.Link{Site: leaseID(other), Relation: lease.Parent})
		case leaseParents[site] == parent:
			links = append(links, lease.Link{Site: leaseID(other), Relation: lease.Sibling})
		}
	}
	return links
}

type leaseFeed struct {
	jobs  []*grid.Job
	sites []int
}

func (f *leaseFeed) Next() (*grid.Job, int, error) {
	if len(f.jobs) == 0 {
		return nil, 0, io.EOF
	}
	job, site := f.jobs[0], f.sites[0]
	f.jobs, f.sites = f.jobs[1:], f.sites[1:]
	return job, site, nil
}

func newLeaseNet(seed uint64) (*leaseNet, error) {
	w := &leaseNet{jobs: map[grid.JobID]*grid.Job{}, alive: map[grid.JobID]int{}, done: map[grid.JobID]int{}, capacity: leaseProcessors}
	faults, err := parseList("faults", "loss,duplicate,reorder,drift,daemon,torn,machine,partition", intensities)
	if err != nil {
		return nil, err
	}
	n, err := testnet.New(testnet.Config{
		Seed: seed, Durable: true, Link: chaosLink(faults), Check: w.check,
		Inputs: testnet.Inputs{
			Submit:  func(_ grid.Input, token uint64, job *grid.Job) grid.Input { return &leaseSubmit{token, job} },
			Adopted: func(id grid.TaskID, start grid.Time) grid.Input { return &leaseAdopted{id, start} },
		},
	})
	if err != nil {
		return nil, err
	}
	w.n = n
	clock := chaosClock(seed, 200)
	for site := range leaseParents {
		id := leaseID(site)
		_, err := n.Add(testnet.Member{ID: id, Clock: clock(id), New: func(incarnation int) (testnet.Site, error) {
			s := &leaseSite{net: w, id: id, jobs: map[grid.JobID]*leaseJob{}, lost: map[grid.JobID]*leaseJob{}, view: leaseView{stale: true}}
			var err error
			if s.cluster, err = lrms.New(lrms.Config{Processors: leaseProcessors[site]}); err != nil {
				return nil, err
			}
			if s.book, err = lease.New(lease.Config{Site: id}, s.cluster); err != nil {
				return nil, err
			}
			cycle := grid.Minute * grid.Time(seed%2)
			s.match, err = lease.NewMatchmaker(lease.MatchConfig{
				Links: leaseLinks(site), Lend: true, Threshold: 1000, MatchCycle: cycle, Ordering: lease.Ordering(seed % 3),
			}, s.cluster, s.book, nil, rand.New(draw.PCG(seed+uint64(incarnation)<<32, id, draw.ForSite)))
			return s, err
		}})
		if err != nil {
			return nil, err
		}
	}
	n.Observe(testnet.Observer{
		Start: func(_ grid.Time, x *testnet.Execution) {
			if w.alive[x.Job.ID]++; w.alive[x.Job.ID] > 1 {
				w.violated("job %s has two executions alive", x.Job.ID)
			}
			if w.done[x.Job.ID] > 0 {
				w.violated("job %s starts again after its end", x.Job.ID)
			}
		},
		End: func(_ grid.Time, x *testnet.Execution) { w.alive[x.Job.ID]-- },
		Event: func(_ grid.Time, _ int, e *grid.Event) {
			if w.done[e.Job.ID]++; w.done[e.Job.ID] > 1 {
				w.violated("job %s finished twice", e.Job.ID)
			}
		},
	})
	if err := scheduleChaos(n, seed, faults, grid.Day); err != nil {
		return nil, err
	}
	w.feed(seed)
	return w, nil
}

// feed submits a day of jobs, most of them at small sites, and pokes.
func (w *leaseNet) feed(seed uint64) {
	rng := rand.New(draw.PCG(seed, "jobs", draw.ForJobs))
	f := &leaseFeed{}
	at := grid.Time(0)
	for i := 0; ; i++ {
		at += grid.Time(rng.ExpFloat64() * float64(12*grid.Minute))
		if at > grid.Day {
			break
		}
		site := []int{1, 2, 3, 3, 3, 4, 5, 5, 5, 6}[rng.IntN(10)]
		run := grid.Minute + grid.Time(rng.Int64N(int64(80*grid.Minute)))
		job := &grid.Job{
			ID: grid.JobID{Hi: seed, Lo: uint64(i) + 1}, Home: leaseID(site), Resources: grid.Resources{Processors: 1 + rng.Int64N(4)},
			Tasks: 1, Submit: at, Estimate: run + run/8, RunTime: run, Deadline: grid.Never, Budget: grid.NoBudget,
		}
		w.jobs[job.ID] = job
		f.jobs, f.sites = append(f.jobs, job), append(f.sites, site)
	}
	for range 6 {
		w.n.Inject(grid.Time(rng.Int64N(int64(grid.Day))), rng.IntN(w.n.Len()), &leasePoke{rng.Uint64()})
	}
	w.n.Feed(f)
}

func (w *leaseNet) violated(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// check is what holds at every step (P-1, P-2, P-4).
func (w *leaseNet) check(now grid.Time) error {
	w.checks++
	for i := range w.n.Len() {
		s, up := w.n.Core(i).(*leaseSite)
		if !up || s == nil {
			continue
		}
		clock := w.n.Clock(i)
		v := s.look()
		var lent int64
		for i := range v.leases {
			l := &v.leases[i]
			switch {
			case l.State == lease.Requested || l.State == lease.Ending:
			case l.Lent && l.Via == 0:
				lent += l.Processors
			case l.Lent:
				if slices.ContainsFunc(v.leases[:i], func(o lease.Lease) bool {
					return o.Lent && o.Via == l.Via && o.State != lease.Requested && o.State != lease.Ending
				}) {
					w.violated("%s lends lease %d on twice", s.id, l.Via)
				}
			case l.State == lease.Active:
				w.covered(now, s.id, clock, l)
			}
			// In true time: a fast clock leaves out instants, and others may act first in
			// the one in which it passes the end. And in the site's: a slow clock shows the
			// end for several instants, in any of which the site may come back with it.
			if l.End != 0 && clock.True(l.End) < now && l.End < clock.Local(now) && l.State != lease.Ending {
				w.violated("%s keeps %v beyond its end", s.id, *l)
			}
		}
		if v.totals.Held+v.totals.Lent != lent {
			w.violated("%s counts %+v as lent, its leases add up to %d", s.id, v.totals, lent)
		}
		if idle := s.cluster.Idle(clock.Local(now)); idle+v.own+lent != w.capacity[i] {
			w.violated("%s has %d processors: %d idle, %d running, %d lent", s.id, w.capacity[i], idle, v.own, lent)
		}
	}
	return w.err
}

// covered checks that what a borrower believes to have, its lender has granted, and
// for longer in true time.
func (w *leaseNet) covered(now grid.Time, borrower grid.SiteID, clock testnet.Clock, l *lease.Lease) {
	at, _ := w.n.Index(l.Lender)
	lender, up := w.n.Core(at).(*leaseSite)
	if !up || lender == nil || clock.True(l.End) <= now {
		return
	}
	other, ok := lender.book.Get(l.ID)
	if !ok || other.Epoch != l.Epoch || other.State != lease.Active || other.Processors != l.Processors {
		w.violated("%s believes to have %+v, %s has %+v", borrower, *l, l.Lender, other)
		return
	}
	if mine, theirs := clock.True(l.End), w.n.Clock(at).True(other.End); mine >= theirs {
		w.violated("%s holds lease %d until %v, %s lends it until %v", borrower, l.Number, mine, l.Lender, theirs)
	}
}

// leaseTally is what a run has seen.
type leaseTally struct {
	finished, brought, lost, vacated int
	checks                           int64
}

// runLeases simulates the day of a seed, heals, and waits until everything is done.
func runLeases(ctx context.Context, seed uint64) (leaseTally, error) {
	w, err := newLeaseNet(seed)
	if err != nil {
		return leaseTally{}, err
	}
	err = w.n.Run(ctx, grid.Day+7*grid.Day, func() bool { return w.n.Now() > grid.Day+2*grid.Hour && len(w.done) == len(w.jobs) })
	if err == nil {
		err = w.n.Run(ctx, w.n.Now()+grid.Hour, nil)
	}
	if err == nil && len(w.done) != len(w.jobs) {
		err = fmt.Errorf("%d of %d jobs finished", len(w.done), len(w.jobs))
	}
	for i := range w.n.Len() {
		s, up := w.n.Core(i).(*leaseSite)
		if !up {
			continue // down at the instant of a violation
		}
		if left := s.book.Leases(); err == nil && (len(left) > 0 || s.cluster.Idle(w.n.Clock(i).Local(w.n.Now())) != w.capacity[i]) {
			err = fmt.Errorf("%s still has %v", s.id, left)
		}
	}
	return leaseTally{len(w.done), w.brought, w.lost, w.vacated, w.checks}, err
}

// TestLeasesUnderFaults: no processor in two leases, none lost, no lease past its end,
// every job finishes exactly once after healing. Seeds run on all cores.
func TestLeasesUnderFaults(t *testing.T) {
	if testing.Short() {
		*leaseSeeds = min(*leaseSeeds, 2)
	}
	first, last := uint64(1), uint64(*leaseSeeds)
	if *leaseSeed > 0 {
		first, last = *leaseSeed, *leaseSeed
	}
	var lock sync.Mutex
	var total leaseTally
	var group sync.WaitGroup
	next := first
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for !t.Failed() {
				lock.Lock()
				seed := next
				next++
				lock.Unlock()
				if seed > last {
					return
				}
				tally, err := runLeases(t.Context(), seed)
				if err != nil {
					t.Errorf("seed %d: %v\nto see it again: go test ./testnet -run TestLeasesUnderFaults -lease-seed %d", seed, err, seed)
				}
				lock.Lock()
				total.finished += tally.finished
				total.brought += tally.brought
				total.lost += tally.lost
				total.vacated += tally.vacated
				total.checks += tally.checks
				lock.Unlock()
			}
		})
	}
	group.Wait()
	t.Logf("seeds %d to %d: %d jobs, %d times on brought processors, %d times lost, %d times recalled before, %d checks", first, last, total.finished, total.brought, total.lost, total.vacated, total.checks)
	if !t.Failed() && last > first && (total.brought == 0 || total.lost == 0 || total.vacated == 0) {
		t.Errorf("brought %d, lost %d, recalled %d: the faults tested nothing", total.brought, total.lost, total.vacated)
	}
}
