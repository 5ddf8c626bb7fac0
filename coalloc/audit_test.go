package coalloc

import (
	"math/rand/v2"
	"testing"

	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/lease"
)

// claimed is a coordinator that has a job at home and at another site.
type claimed struct {
	t    *testing.T
	c    *Coordinator
	home *Home
	book *lease.Book
	a    *attempt
	now  grid.Time
	out  grid.Outbox
}

// newClaimed returns one that has asked both sites, of which home holds its part.
func newClaimed(t *testing.T) *claimed {
	t.Helper()
	x := &claimed{t: t, now: grid.Hour}
	cluster, err := lrms.New(lrms.Config{Processors: 5})
	x.must(err)
	x.book, err = lease.New(lease.Config{Site: "h"}, cluster)
	x.must(err)
	x.home = NewHome("h", cluster, x.book, 0)
	view := NewView([]Site{{ID: "h", Processors: 5, Free: 5}, {ID: "b", Processors: 4, Free: 4}}, nil)
	x.c, err = NewCoordinator(CoordinatorConfig{Queue: QueueConfig{Policy: PolicyFCM}}, view, x.home, rand.New(rand.NewPCG(1, 2)))
	x.must(err)
	for i := 1; i < 4; i++ { // two of them wait
		x.c.Step(x.now, &Submit{Task: grid.TaskID{Job: jobID(i), Epoch: 1}, Request: &Request{Processors: 8}, Estimate: grid.Minute}, &x.out)
		x.settle()
	}
	x.a = x.c.jobs[jobID(1)]
	return x
}

func (x *claimed) must(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}

// settle passes on what is told.
func (x *claimed) settle() {
	for len(x.out.Locals) > 0 {
		in := x.out.Locals[0]
		x.out.Locals = x.out.Locals[1:]
		switch in.(type) {
		case *lease.Granted, *lease.Claimed:
			x.c.Step(x.now, in, &x.out)
		}
	}
}

// hear has the other site say something.
func (x *claimed) hear(m grid.Message) {
	x.book.Step(x.now, &grid.Delivery{From: "b", Message: m}, &x.out)
	x.settle()
}

// begin goes on to an attempt that has started.
func (x *claimed) begin() {
	number := x.a.parts[0].Lease.Number
	x.hear(&lease.Grant{Number: number, Epoch: 7, Stamp: x.now, Hold: grid.Minute, Span: grid.Hour, Source: "b", Key: 7, Hops: 1, Gone: grid.Hour})
	x.hear(&lease.Renewed{Number: number, Epoch: 7, Sequence: 1, Stamp: x.now, Term: grid.Minute, Limit: grid.Hour, Gone: grid.Hour})
}

// TestAuditSees what is wrong with components that are asked for, held and claimed.
func TestAuditSees(t *testing.T) {
	audited := func(name string, x *claimed, spoil func(x *claimed)) {
		t.Helper()
		if err := Audit(x.now, x.c, x.home, x.book); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if spoil(x); Audit(x.now, x.c, x.home, x.book) == nil {
			t.Errorf("%s: it is not seen", name)
		}
	}
	atHome := func(x *claimed) *homeLease { return x.home.entries[x.a.parts[1].Lease] }
	for name, spoil := range map[string]func(x *claimed){
		"a lease of nobody":        func(x *claimed) { x.c.byLease[lease.ID{Borrower: "h", Number: 1}] = x.a },
		"one of another":           func(x *claimed) { x.c.byLease[x.a.parts[0].Lease] = nil },
		"one that is gone":         func(x *claimed) { x.a.parts[0].Lease.Number++ },
		"another site's":           func(x *claimed) { x.a.parts[0].Site = "c" },
		"one for another":          func(x *claimed) { x.a.task.Job = jobID(2) },
		"one that is wider":        func(x *claimed) { x.a.parts[0].Processors++ },
		"a part too few":           func(x *claimed) { x.a.waiting.Request = &Request{Processors: 9} },
		"one that is not granted":  func(x *claimed) { x.a.parts[0].confirmed = true },
		"one that is":              func(x *claimed) { x.a.parts[1].confirmed = false },
		"two that are decided":     func(x *claimed) { x.a.phase = phaseClaiming },
		"one asked after none":     func(x *claimed) { delete(x.c.byLease, x.a.parts[0].Lease); x.a.parts[0].Lease = lease.ID{} },
		"a site that is not asked": func(x *claimed) { delete(x.c.byLease, x.a.parts[1].Lease); x.a.parts[1].Lease = lease.ID{} },
		"one that waits as well":   func(x *claimed) { x.must(x.c.queue.Add(x.now, jobID(1), x.a.waiting.Request, 1)) },
		"more than may":            func(x *claimed) { x.c.queue.cfg.Max = 2 },
		"what counts as taken":     func(x *claimed) { x.c.reckoning.changed(x.now, "b", -1) },
		"a hold without a timer":   func(x *claimed) { x.home.alarms.Stop(&atHome(x).alarm) },
		"a hold with a late one":   func(x *claimed) { x.home.alarms.Set(&atHome(x).alarm, atHome(x).End+1) },
		"a hold beyond the plan":   func(x *claimed) { atHome(x).Span += grid.Hour },
		"processors":               func(x *claimed) { x.home.cluster.Ended(x.now, HomeTask(x.a.parts[1].Lease)) },
		"what is let go":           func(x *claimed) { atHome(x).State = lease.Ending },
		"idle processors":          func(x *claimed) { x.c.view.total++ },
		"the widest site":          func(x *claimed) { x.c.view.most++ },
		"what a placement left":    func(x *claimed) { x.c.view.left[0]++ },
		"a site's place":           func(x *claimed) { x.c.view.index["h"] = 1 },
		"a job nobody will place":  func(x *claimed) { x.c.queue.next = grid.Never },
		"one that is placed":       func(x *claimed) { x.c.queue.waiting[0].placed = true },
		"the order":                func(x *claimed) { x.c.queue.waiting[0].sequence = 99 },
		"one out for long":         func(x *claimed) { x.c.queue.waiting[0].After = x.now + grid.Hour },
		"one that is forgotten":    func(x *claimed) { delete(x.c.queue.index, jobID(2)) },
		"sites that are set aside": func(x *claimed) { x.c.queue.aside = append(x.c.queue.aside, aside{}) },
	} {
		audited(name, newClaimed(t), spoil)
	}
	for name, spoil := range map[string]func(x *claimed){
		"one that is lost":       func(x *claimed) { x.must(x.book.Release(x.now, x.a.parts[0].Lease, &x.out)) },
		"a claim that is let go": func(x *claimed) { x.must(x.home.Release(x.now, x.a.parts[1].Lease, &x.out)) },
		"a claim of nobody": func(x *claimed) {
			delete(x.c.jobs, x.a.task.Job)
			clear(x.c.byLease)
			clear(x.c.reckoning.sites)
		},
		"one beyond the plan":    func(x *claimed) { atHome(x).Limit += grid.Hour },
		"one that waits for all": func(x *claimed) { x.a.phase = phaseClaiming },
	} {
		x := newClaimed(t)
		if x.begin(); x.a.phase != phaseStarted {
			t.Fatalf("%s: the job is in phase %d", name, x.a.phase)
		}
		audited(name, x, spoil)
	}
}
