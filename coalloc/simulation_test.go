package coalloc

import (
	"cmp"
	"container/heap"
	"flag"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/lease"
)

var (
	seedFirst = flag.Uint64("seed", 0, "first seed of the simulations")
	seedCount = flag.Uint64("seeds", 12, "seeds per simulation")
)

// world is a handful of sites that lend and some co-allocators that compete for them,
// over a network that loses, repeats, reorders and falls apart.
type world struct {
	t      *testing.T
	rng    *rand.Rand
	now    grid.Time
	queue  flights
	serial int
	nodes  map[grid.SiteID]*node
	order  []grid.SiteID
	jobs   []*simJob
	faulty bool
	island map[grid.SiteID]bool // cut off from the others
	sent   map[grid.Kind]int
}

// node is one site: a lender, or a co-allocator, with what it has saved.
type node struct {
	id      grid.SiteID
	life    int
	up      bool
	cluster *lrms.Cluster
	size    int64
	book    *lease.Book
	places  bool         // it is a co-allocator; else it only lends
	coord   *Coordinator // of a co-allocator
	home    *Home        // in front of its book: it may have processors, too
	saved   map[string][]byte
	out     grid.Outbox
}

// simJob is what the owner of a job has saved about it.
type simJob struct {
	task    grid.TaskID
	request *Request
	home    grid.SiteID
	run     grid.Time
	started grid.Time // of the present epoch; 0: it has not
	starts  int
	done    bool
	reject  bool
}

type flight struct {
	at       grid.Time
	serial   int
	to, from grid.SiteID
	message  grid.Message
	do       func()
}

type flights []flight

func (f flights) Len() int { return len(f) }
func (f flights) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(f[i].at, f[j].at), cmp.Compare(f[i].serial, f[j].serial)) < 0
}
func (f flights) Swap(i, j int) { f[i], f[j] = f[j], f[i] }
func (f *flights) Push(x any)   { *f = append(*f, x.(flight)) }
func (f *flights) Pop() any {
	last := (*f)[len(*f)-1]
	*f = (*f)[:len(*f)-1]
	return last
}

func (w *world) push(f flight) {
	w.serial++
	f.serial = w.serial
	heap.Push(&w.queue, f)
}

func (w *world) after(span grid.Time, do func()) { w.push(flight{at: w.now + span, do: do}) }

const simLenders = 5

func newWorld(t *testing.T, seed uint64, coordinators int) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 77)), nodes: map[grid.SiteID]*node{}, island: map[grid.SiteID]bool{}, sent: map[grid.Kind]int{}}
	w.now = grid.Hour // numbers of leases follow the clock
	for i := range simLenders {
		w.add(&node{id: grid.SiteID(rune('a' + i)), size: 8 + w.rng.Int64N(9)})
	}
	for i := range coordinators {
		n := &node{id: grid.SiteID(fmt.Sprint("home", i)), places: true}
		if seed%2 == 1 { // components may run at home
			n.size = 2 + w.rng.Int64N(8)
		}
		w.add(n)
	}
	return w
}

func (w *world) add(n *node) {
	n.saved = map[string][]byte{}
	w.nodes[n.id] = n
	w.order = append(w.order, n.id)
	w.boot(n)
}

// boot starts a site from what it has saved.
func (w *world) boot(n *node) {
	n.life++
	n.up = true
	n.cluster, _ = lrms.New(lrms.Config{Processors: n.size})
	var err error
	if n.book, err = lease.New(lease.Config{Site: n.id, Retry: grid.Second, Term: grid.Minute}, n.cluster); err != nil {
		w.t.Fatal(err)
	}
	records := sorted(n.saved)
	if n.places {
		sites := []Site{{ID: n.id, Processors: n.size, Free: n.size}}
		for i := range simLenders {
			lender := w.nodes[grid.SiteID(rune('a'+i))]
			sites = append(sites, Site{ID: lender.id, Processors: lender.size, Free: lender.size})
		}
		n.home = NewHome(n.id, n.cluster, n.book)
		policy := []Policy{PolicyFCM, PolicyAdaptive, PolicyCA, PolicyCF}[n.life%4]
		cfg := CoordinatorConfig{Queue: QueueConfig{Policy: policy, Interval: 5 * grid.Second, Patience: 10 * grid.Minute}, Hold: 20 * grid.Second}
		if n.coord, err = NewCoordinator(cfg, NewView(sites, nil), n.home, rand.New(rand.NewPCG(w.rng.Uint64(), 1))); err != nil {
			w.t.Fatal(err)
		}
		if err = n.coord.Recover(records, &n.out); err != nil {
			w.t.Fatal(err)
		}
		if err = n.home.Recover(w.now, records, &n.out); err != nil {
			w.t.Fatal(err)
		}
		for _, l := range n.home.Leases() { // what is left of attempts that were given up
			if !n.coord.Has(l.ID) {
				_ = n.home.Release(w.now, l.ID, &n.out) // it is there
				n.home.Vacated(w.now, l.Subject, &n.out)
			}
		}
	}
	if err := n.book.Recover(w.now, records, &n.out); err != nil {
		w.t.Fatal(err)
	}
	w.carry(n)
	for _, j := range w.jobs {
		if j.home == n.id && !j.done && !j.reject && !n.coord.Knows(j.task.Job) {
			j.started = 0 // no decision is left of it: it does not run
			w.submit(j)
		}
	}
	w.arm(n)
}

func sorted(saved map[string][]byte) iter.Seq2[string, []byte] {
	copied := maps.Clone(saved)
	return func(yield func(string, []byte) bool) {
		for _, key := range slices.Sorted(maps.Keys(copied)) {
			if !yield(key, copied[key]) {
				return
			}
		}
	}
}

// step feeds one input to a site's cores.
func (w *world) step(n *node, in grid.Input) {
	if !n.up {
		return
	}
	switch in.(type) {
	case *grid.Delivery, *grid.Undelivered:
		n.book.Step(w.now, in, &n.out)
	case grid.Tick:
		n.book.Step(w.now, in, &n.out)
		if n.coord != nil {
			n.home.Tick(w.now, &n.out)
			w.look(n)
			n.coord.Step(w.now, in, &n.out)
		}
	default:
		n.coord.Step(w.now, in, &n.out)
	}
	w.carry(n)
	w.arm(n)
}

// look is the directory: who is there, and what is idle, often a little old. While there
// are faults it sometimes misses a site, and what is known of the ways comes later.
func (w *world) look(n *node) {
	v := n.coord.View()
	if w.faulty && w.rng.IntN(20) == 0 {
		missing := grid.SiteID(rune('a' + w.rng.IntN(simLenders)))
		v.Keep(func(id grid.SiteID) bool { return id != missing })
	} else if v.Network == nil || len(v.Sites) <= simLenders {
		for i := range simLenders {
			lender := w.nodes[grid.SiteID(rune('a'+i))]
			if v.Index(lender.id) < 0 {
				v.Put(Site{ID: lender.id, Processors: lender.size, Free: lender.size})
			}
		}
		if !w.faulty || w.rng.IntN(2) == 0 {
			v.SetNetwork(ring(len(v.Sites)))
		}
	}
	for i, s := range v.Sites {
		if lender := w.nodes[s.ID]; lender.up && w.rng.IntN(3) > 0 {
			v.SetFree(i, lender.cluster.State(w.now).Free)
		}
	}
}

// ring is a network of sites that are the further the more of them lie between them.
func ring(n int) *Matrix {
	m := NewMatrix(n)
	for a := range n {
		for b := range a + 1 {
			if err := m.Set(a, b, 30+grid.Time(min(a-b, n-a+b))*200, 0); err != nil {
				panic(err)
			}
		}
	}
	return m
}

// carry feeds locals on until none is left, then makes what was saved durable and
// sends the messages.
func (w *world) carry(n *node) {
	for len(n.out.Locals) > 0 {
		locals := slices.Clone(n.out.Locals)
		n.out.Locals = n.out.Locals[:0]
		for _, in := range locals {
			w.local(n, in)
		}
	}
	torn := w.faulty && len(n.out.Records) > 0 && w.rng.IntN(300) == 0
	for _, e := range n.out.Effects {
		switch e.Kind {
		case grid.EffectSave:
			r := n.out.Records[e.Index]
			n.saved[r.RecordKey()] = r.AppendRecord(nil)
		case grid.EffectDelete:
			delete(n.saved, n.out.Records[e.Index].RecordKey())
		}
	}
	for _, e := range n.out.Effects {
		if e.Kind == grid.EffectSend && !torn {
			s := n.out.Sends[e.Index]
			if _, claim := s.Message.(*lease.Claim); claim && n.coord != nil {
				w.checkDecided(n, s.Message.(*lease.Claim))
			}
			w.send(n.id, s.To, s.Message)
		}
	}
	n.out.Reset()
	if torn { // the machine died between the disk and the network
		w.crash(n)
	}
}

// checkDecided: no claim leaves before the decision is durable, but one that is
// taken back in the same step, as another hold has just run out.
func (w *world) checkDecided(n *node, m *lease.Claim) {
	for _, s := range n.out.Sends {
		if r, ok := s.Message.(*lease.Release); ok && r.Number == m.Number {
			return
		}
	}
	for key, value := range n.saved {
		if strings.HasPrefix(key, RecordPrefix) {
			if a, err := decodeDecision(value); err == nil && a.find(lease.ID{Borrower: n.id, Number: m.Number}) >= 0 {
				return
			}
		}
	}
	w.t.Fatalf("%s claims lease %d and has saved no decision", n.id, m.Number)
}

func (w *world) local(n *node, in grid.Input) {
	switch in := in.(type) {
	case *lease.Asked:
		if n.cluster.State(w.now).Free < in.Processors || n.book.Grant(w.now, in.ID, lease.Terms{}, &n.out) != nil {
			if err := n.book.Refuse(w.now, in.ID, lease.Busy, &n.out); err != nil {
				w.t.Fatal(err)
			}
		}
	case *lease.Activated:
	case *Rejected:
		j := w.job(in.Task.Job)
		if len(n.coord.View().Sites) <= simLenders { // for want of a site that was missed
			w.after(10*grid.Second, func() { w.submit(j) })
			break
		}
		j.reject = true
	case *Start:
		w.start(n, in)
	case *Aborted:
		n.home.Vacated(w.now, in.Task.Job, &n.out)
	case *Broken:
		j := w.job(in.Task.Job)
		if j.done {
			w.t.Fatalf("job %d is broken after its end", j.task.Job.Lo)
		}
		j.task.Epoch++
		j.started = 0
		if in.Started { // what runs at home takes a while to end
			w.after(grid.Time(w.rng.Int64N(int64(10*grid.Second))), func() { w.vacate(j) })
		} else {
			n.home.Vacated(w.now, in.Task.Job, &n.out)
		}
		w.after(max(in.Gone-w.now, 0), func() { w.submit(j) })
	case *lease.Granted:
		if !Own(in.ID) || n.coord.Has(in.ID) {
			n.coord.Step(w.now, in, &n.out)
		}
	case *lease.Ended:
		if !in.Lent {
			n.coord.Step(w.now, in, &n.out)
		}
	default:
		if n.coord == nil {
			w.t.Fatalf("a lender is told %T", in)
		}
		n.coord.Step(w.now, in, &n.out)
	}
}

// start checks the barrier: when a job starts, every part's lease is active at its
// site and saved there.
func (w *world) start(n *node, in *Start) {
	j := w.job(in.Task.Job)
	var sum int64
	for _, p := range in.Parts {
		sum += p.Processors
		lender := w.nodes[p.Site]
		if lender == n {
			at := slices.IndexFunc(n.home.Leases(), func(l lease.Lease) bool { return l.ID == p.Lease })
			if at < 0 || n.home.Leases()[at].State != lease.Active || n.home.Leases()[at].Processors != p.Processors {
				w.t.Fatalf("job %d starts, but its part at home is not claimed: %v", j.task.Job.Lo, n.home.Leases())
			}
			continue
		}
		if _, saved := lender.saved[lease.RecordPrefix+string(p.Lease.Borrower)+"/"+strconv.FormatUint(p.Lease.Number, 10)]; !saved && !in.Again {
			w.t.Fatalf("job %d starts, but its part at %s would not survive a crash there", j.task.Job.Lo, p.Site)
		}
		if lender.up && !in.Again {
			l, ok := lender.book.Get(p.Lease)
			if !ok || l.State != lease.Active || l.Processors != p.Processors {
				w.t.Fatalf("job %d starts, but its part at %s is %v (%v)", j.task.Job.Lo, p.Site, l.State, ok)
			}
		}
	}
	switch {
	case sum != j.request.Processors:
		w.t.Fatalf("job %d starts on %d of %d processors", j.task.Job.Lo, sum, j.request.Processors)
	case j.done || in.Task.Epoch > j.task.Epoch:
		w.t.Fatalf("job %d, done %v, starts with epoch %d of %d", j.task.Job.Lo, j.done, in.Task.Epoch, j.task.Epoch)
	case in.Task.Epoch < j.task.Epoch:
		w.t.Fatalf("job %d starts with the old epoch %d", j.task.Job.Lo, in.Task.Epoch)
	case !in.Again && j.started != 0:
		w.t.Fatalf("job %d starts a second time in epoch %d", j.task.Job.Lo, in.Task.Epoch)
	}
	if j.started == 0 {
		j.started = w.now
		j.starts++
		task := in.Task
		w.after(j.run, func() { w.finish(j, task) })
	}
}

// finish ends a job's tasks. If its home is down, it learns of that later.
func (w *world) finish(j *simJob, task grid.TaskID) {
	n := w.nodes[j.home]
	switch {
	case j.task != task || j.started == 0 || j.done: // it was broken meanwhile
	case !n.up:
		w.after(5*grid.Second, func() { w.finish(j, task) })
	default:
		j.done = true
		w.step(n, &Finish{task.Job})
		w.vacate(j)
	}
}

// vacate says that nothing of a job runs at home any more.
func (w *world) vacate(j *simJob) {
	if n := w.nodes[j.home]; n.up {
		n.home.Vacated(w.now, j.task.Job, &n.out)
		w.carry(n)
		w.arm(n)
	}
}

func (w *world) job(id grid.JobID) *simJob { return w.jobs[id.Lo-1] }

func (w *world) submit(j *simJob) {
	n := w.nodes[j.home]
	if n.up && !j.done && !n.coord.Knows(j.task.Job) { // else boot does it
		w.look(n)
		w.step(n, &Submit{Task: j.task, Request: j.request, Estimate: 2 * j.run})
	}
}

// send puts a message on its way, or does not.
func (w *world) send(from, to grid.SiteID, m grid.Message) {
	w.sent[m.MessageKind()]++
	latency := func() grid.Time { return 5*grid.Millisecond + grid.Time(w.rng.Int64N(int64(45*grid.Millisecond))) }
	if !w.faulty {
		w.push(flight{at: w.now + latency(), from: from, to: to, message: m})
		return
	}
	for w.rng.IntN(100) >= 8 { // lost, once, or several times
		at := w.now + latency()
		if w.rng.IntN(10) == 0 {
			at += grid.Time(w.rng.Int64N(int64(20 * grid.Second))) // far out of order
		}
		w.push(flight{at: at, from: from, to: to, message: m})
		if w.rng.IntN(100) >= 10 {
			return
		}
	}
}

// arm makes sure of a Tick when a site wants one.
func (w *world) arm(n *node) {
	if !n.up {
		return
	}
	at := n.book.NextTimer()
	at = min(at, timerOf(n))
	if at == grid.Never {
		return
	}
	life := n.life
	w.push(flight{at: max(at, w.now+1), do: func() {
		if n.up && n.life == life && min(n.book.NextTimer(), timerOf(n)) <= w.now {
			w.step(n, grid.Tick{})
		}
	}})
}

func timerOf(n *node) grid.Time {
	if n.coord == nil {
		return grid.Never
	}
	return min(n.coord.NextTimer(), n.home.NextTimer())
}

func (w *world) crash(n *node) {
	n.up = false
	n.out.Reset()
	w.after(grid.Time(1+w.rng.Int64N(90))*grid.Second, func() { w.boot(n) })
}

// run lets time pass until an instant, or until stop.
func (w *world) run(until grid.Time, stop func() bool) {
	for len(w.queue) > 0 && w.queue[0].at <= until && (stop == nil || !stop()) {
		f := heap.Pop(&w.queue).(flight)
		w.now = max(w.now, f.at)
		switch {
		case f.do != nil:
			f.do()
		case w.island[f.from] == w.island[f.to]:
			w.step(w.nodes[f.to], &grid.Delivery{From: f.from, Message: f.message})
		}
		w.check()
	}
	if stop == nil || !stop() {
		w.now = max(w.now, until)
	}
}

// check: no site lends more than it has.
func (w *world) check() {
	for _, id := range w.order {
		n := w.nodes[id]
		if n.up && n.size > 0 {
			if s := n.cluster.State(w.now); s.Free+s.Held+s.Busy != n.size {
				w.t.Fatalf("%s: %+v", id, s)
			}
		}
	}
}

// submitAll makes n jobs that could be placed, at random instants within span.
func (w *world) submitAll(n int, span grid.Time) {
	var homes []grid.SiteID
	for _, id := range w.order {
		if w.nodes[id].places {
			homes = append(homes, id)
		}
	}
	for range n {
		r := &Request{Processors: 2 + w.rng.Int64N(24), CCR: CCRUnknown}
		switch w.rng.IntN(4) {
		case 0:
			r.ComponentsMin, r.ComponentsMax = 2, 4
		case 1:
			r.Splits = []Split{{{Processors: r.Processors - 1}, {Processors: 1}}, {{Processors: r.Processors / 2}, {Processors: r.Processors - r.Processors/2}}}
		case 2:
			r.Splits = []Split{{{4, "a"}, {4, "b"}, {4, "c"}}}
			r.Processors = 12
		}
		j := &simJob{task: grid.TaskID{Job: grid.JobID{Hi: 9, Lo: uint64(len(w.jobs) + 1)}, Epoch: 1}, request: r, home: homes[w.rng.IntN(len(homes))], run: 20*grid.Second + grid.Time(w.rng.Int64N(int64(3*grid.Minute)))}
		w.jobs = append(w.jobs, j)
		w.after(grid.Time(w.rng.Int64N(int64(span))), func() { w.submit(j) })
	}
}

// settled reports whether every job is done, or was refused as impossible.
func (w *world) settled() bool {
	return !slices.ContainsFunc(w.jobs, func(j *simJob) bool { return !j.done && !j.reject })
}

// heal ends all faults and waits until everything is done: every job that can be placed
// runs, and nothing is left behind anywhere.
func (w *world) heal() {
	w.faulty = false
	clear(w.island)
	begun := w.now
	w.run(begun+6*grid.Hour, w.settled)
	for _, j := range w.jobs {
		if !j.done && !j.reject {
			w.t.Fatalf("six hours after healing job %d of %s, epoch %d, has not been done: started %v, known there %v", j.task.Job.Lo, j.home, j.task.Epoch, j.started, w.nodes[j.home].coord.Knows(j.task.Job))
		}
		if j.reject && j.request.Placeable(w.nodes[w.order[simLenders]].coord.View()) == nil {
			w.t.Fatalf("job %d is refused although it can be placed", j.task.Job.Lo)
		}
	}
	w.run(w.now+10*grid.Minute, nil)
	for _, id := range w.order {
		n := w.nodes[id]
		if leases := n.book.Leases(); len(leases) != 0 || n.cluster.State(w.now).Free != n.size {
			w.t.Fatalf("%s has %v left, %d of %d processors are free", id, leases, n.cluster.State(w.now).Free, n.size)
		}
		if n.coord != nil && (n.coord.Claiming() != 0 || n.coord.Queue().Len() != 0 || len(n.coord.byLease) != 0 || len(n.home.Leases()) != 0) {
			w.t.Fatalf("%s has %d jobs and %v left", id, n.coord.Claiming(), n.home.Leases())
		}
		if len(n.saved) != 0 {
			w.t.Fatalf("%s keeps %v", id, slices.Sorted(maps.Keys(n.saved)))
		}
	}
}

// simulate runs one simulation per seed; a failure names its seed.
func simulate(t *testing.T, coordinators int, run func(w *world)) {
	for seed := *seedFirst; seed < *seedFirst+*seedCount; seed++ {
		done := false
		func() {
			defer func() {
				if !done {
					t.Logf("replay with: go test ./coalloc -run '^%s$' -seed %d -seeds 1", t.Name(), seed)
				}
			}()
			run(newWorld(t, seed, coordinators))
			done = true
		}()
	}
}

// Two and ten co-allocators that want the same sites: all of their jobs run.
func TestCompetitorsMakeProgress(t *testing.T) {
	for _, coordinators := range []int{2, 10} {
		t.Run(fmt.Sprint(coordinators), func(t *testing.T) {
			simulate(t, coordinators, func(w *world) {
				w.submitAll(40, 10*grid.Second)
				w.heal()
			})
		})
	}
}

// Loss, repetition, reordering, partitions and crashes of co-allocators and sites: no
// job starts in part, nothing is left behind, and once all is well every job runs.
func TestAllOrNothingUnderFaults(t *testing.T) {
	for _, coordinators := range []int{2, 10} {
		t.Run(fmt.Sprint(coordinators), func(t *testing.T) {
			simulate(t, coordinators, func(w *world) {
				w.faulty = true
				const span = 20 * grid.Minute
				w.submitAll(30, span)
				for range 6 {
					n := w.nodes[w.order[w.rng.IntN(len(w.order))]]
					w.after(grid.Time(w.rng.Int64N(int64(span))), func() {
						if n.up {
							w.crash(n)
						}
					})
				}
				for range 2 {
					begin := grid.Time(w.rng.Int64N(int64(span)))
					w.after(begin, func() {
						clear(w.island)
						for _, id := range w.order {
							w.island[id] = w.rng.IntN(2) == 0
						}
					})
					w.after(begin+grid.Time(w.rng.Int64N(int64(3*grid.Minute))), func() { clear(w.island) })
				}
				w.run(w.now+span, nil)
				w.heal()
			})
		})
	}
}

// TestMessages: placing a job takes two messages for each chosen site, claiming it two
// more, and giving it back two.
func TestMessages(t *testing.T) {
	w := newWorld(t, 1, 1)
	for i := range simLenders {
		w.nodes[grid.SiteID(rune('a'+i))].size = 10
	}
	for _, id := range w.order {
		w.nodes[id].up = false
		w.boot(w.nodes[id])
	}
	w.jobs = append(w.jobs, &simJob{task: grid.TaskID{Job: grid.JobID{Hi: 9, Lo: 1}, Epoch: 1}, request: &Request{Processors: 40}, home: "home0", run: 10 * grid.Second})
	w.submit(w.jobs[0])
	w.heal()
	total := 0
	for _, n := range w.sent {
		total += n
	}
	if want := 4 * (2 + 2 + 2); total != want {
		t.Errorf("%d messages for a job on 4 sites, want %d: %v", total, want, w.sent)
	}
}

// asker is a book that only notes who is asked.
type asker struct {
	asked []string
	holds []grid.Time
}

func (a *asker) Request(_ grid.Time, lender grid.SiteID, w lease.Want, _ *grid.Outbox) (lease.ID, error) {
	a.asked = append(a.asked, fmt.Sprint(lender, ":", w.Processors))
	a.holds = append(a.holds, w.Hold)
	return lease.ID{Borrower: "x", Number: uint64(len(a.asked))}, nil
}
func (a *asker) Claim(grid.Time, lease.ID, *grid.Outbox) error   { return nil }
func (a *asker) Release(grid.Time, lease.ID, *grid.Outbox) error { return nil }
func (a *asker) Gone(lease.ID) grid.Time                         { return 0 }

// TestOrderAfterRefusal: the first attempt asks all sites at once, later ones ask one
// after the other by name, whatever the policy's order. A refusal's news counts.
func TestOrderAfterRefusal(t *testing.T) {
	book := &asker{}
	v := viewOf(nil, 4, 9, 7)
	c, err := NewCoordinator(CoordinatorConfig{Queue: QueueConfig{Policy: PolicyFCM}}, v, book, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	var out grid.Outbox
	told := func(in grid.Input) { c.Step(0, in, &out) }
	told(&Submit{Task: grid.TaskID{Job: jobID(1), Epoch: 1}, Request: &Request{Processors: 18}, Estimate: grid.Minute})
	if got := strings.Join(book.asked, " "); got != "a:2 b:9 c:7" {
		t.Fatalf("asked %s, want all", got)
	}
	told(&lease.Granted{Lease: lease.Lease{ID: lease.ID{Borrower: "x", Number: 1}}})
	told(&lease.Refused{Lease: lease.Lease{ID: lease.ID{Borrower: "x", Number: 2}}, Reason: lease.Busy, Free: 8})
	if v.Sites[0].Free != 4 || v.Sites[1].Free != 8 || v.Sites[2].Free != 7 || c.Claiming() != 0 {
		t.Errorf("after the refusal %+v are idle", v.Sites)
	}
	book.asked = nil
	c.Step(grid.Minute, grid.Tick{}, &out)
	for number := uint64(1); number <= 3; number++ {
		want := []string{"a:3", "a:3 b:8", "a:3 b:8 c:7"}[number-1]
		if got := strings.Join(book.asked, " "); got != want {
			t.Fatalf("asked %s, want %s", got, want)
		}
		told(&lease.Granted{Lease: lease.Lease{ID: lease.ID{Borrower: "x", Number: number}}})
	}
	if len(out.Records) != 1 {
		t.Errorf("%d decisions are saved once all hold", len(out.Records))
	}
	told(&Submit{Task: grid.TaskID{Job: jobID(2), Epoch: 1}, Request: &Request{Processors: 301}, Estimate: grid.Minute})
	told(&Submit{Task: grid.TaskID{Job: jobID(1), Epoch: 1}, Request: &Request{Processors: 1}, Estimate: grid.Minute})
	var errs []string
	for _, in := range out.Locals {
		if r, ok := in.(*Rejected); ok {
			errs = append(errs, r.Err.Error())
		}
	}
	if len(errs) != 2 || !strings.Contains(errs[0], "301 processors") || !strings.Contains(errs[1], "in the placement queue already") {
		t.Errorf("refused with %q", errs)
	}
}

// TestHoldsLastUntilTheLastIsAsked: sites that are far away are asked one after the other,
// for longer than one hold lasts. What the first hold is still there when the last does.
func TestHoldsLastUntilTheLastIsAsked(t *testing.T) {
	const sites, roundTrip = 60, 400 * grid.Millisecond
	free := make([]int64, sites)
	for i := range free {
		free[i] = 1
	}
	book := &asker{}
	c, err := NewCoordinator(CoordinatorConfig{Queue: QueueConfig{Policy: PolicyFCM}, Hold: 6 * grid.Second}, viewOf(nil, free...), book, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	var out grid.Outbox
	number := func(n int) lease.Lease { return lease.Lease{ID: lease.ID{Borrower: "x", Number: uint64(n)}} }
	c.Step(0, &Submit{Task: grid.TaskID{Job: jobID(1), Epoch: 1}, Request: &Request{Processors: sites}, Estimate: grid.Minute}, &out)
	c.Step(0, &lease.Refused{Lease: number(1), Reason: lease.Busy, Free: 1}, &out)
	const begin = grid.Minute
	c.Step(begin, grid.Tick{}, &out)
	first := len(book.asked)
	for n := range sites {
		now := begin + grid.Time(n+1)*roundTrip
		for i, hold := range book.holds[first-1:] {
			if ends := begin + grid.Time(i)*roundTrip + hold; ends < now {
				t.Fatalf("the hold of site %d ends at %v, at %v the answer of site %d comes", i+1, ends, now, n+1)
			}
		}
		c.Step(now, &lease.Granted{Lease: number(first + n)}, &out)
	}
	if len(book.asked) != 2*sites || len(out.Records) != 1 {
		t.Errorf("%d sites were asked, %d decisions saved", len(book.asked), len(out.Records))
	}
}

// FuzzDecodeDecision: what is read back is what was saved, or an error.
func FuzzDecodeDecision(f *testing.F) {
	a := &attempt{task: grid.TaskID{Job: jobID(7), Epoch: 3}, phase: phaseStarted, parts: []partState{
		{Claimed: Claimed{Component: 1, Site: "a", Processors: 8, Lease: lease.ID{Borrower: "h", Number: 99}}},
	}}
	f.Add((*decision)(a).AppendRecord(nil))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := decodeDecision(b)
		if err != nil {
			return
		}
		again, err := decodeDecision((*decision)(a).AppendRecord(nil))
		if err != nil || again.task != a.task || again.phase != a.phase || !slices.Equal(again.parts, a.parts) {
			t.Fatalf("%+v became %+v, %v", a, again, err)
		}
	})
}
