package coalloc

import (
	"cmp"
	"container/heap"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/lease"
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
		n.home = NewHome(n.id, n.cluster, n.book, 0)
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
	if n.coord != nil {
		if err := Audit(w.now, n.coord, n.home, n.book); err != nil {
			w.t.Errorf("%s at %v: %v", n.id, w.now, err)
		}
	}
}

// look is the directory: who is there, and what is idle, often a little old. While there
// are faults it sometimes misses a site, and what is known of the ways comes later.
func (w *world) look(n *node) {
	v := n.coord.View()
	if w.faulty && w.rng.IntN(20) == 0 {
		missing := grid.SiteID(rune('a' + w.rng.IntN(simLenders)))
		n.coord.Keep(func(id grid.SiteID) bool { return id != missing })
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
