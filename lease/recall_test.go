package lease

import (
	"errors"
	"math/rand/v2"
	"testing"

	"gridnode/grid"
	"gridnode/internal/lrms"
)

// trio is a full site a of one processor and two siblings that lend.
type trio struct {
	t      *testing.T
	now    grid.Time
	books  map[grid.SiteID]*Book
	match  map[grid.SiteID]*Matchmaker
	locals map[grid.SiteID][]grid.Input // of a: Brought, Recalled, Vacate
}

var trioSites = []grid.SiteID{"a", "b", "c"}

func newTrio(t *testing.T, seed uint64) *trio {
	x := &trio{t: t, now: grid.Hour, books: map[grid.SiteID]*Book{}, match: map[grid.SiteID]*Matchmaker{}, locals: map[grid.SiteID][]grid.Input{}}
	for i, site := range trioSites {
		b := newBook(t, site, []int64{1, 4, 4}[i])
		var links []Link
		for _, other := range trioSites {
			if other != site {
				links = append(links, Link{other, Sibling})
			}
		}
		m, err := NewMatchmaker(MatchConfig{Links: links, Lend: i > 0, Threshold: 1000}, b.cluster, b, nil, rand.New(rand.NewPCG(seed, uint64(i))))
		if err != nil {
			t.Fatal(err)
		}
		x.books[site], x.match[site] = b, m
	}
	return x
}

// act has a site do something, and everybody what follows at the same instant.
func (x *trio) act(site grid.SiteID, do func(out *grid.Outbox)) {
	type mail struct {
		from grid.SiteID
		grid.Send
	}
	var flight []mail
	step := func(site grid.SiteID, do func(out *grid.Outbox)) {
		var out grid.Outbox
		do(&out)
		for i := 0; i < len(out.Locals); i++ {
			switch in := out.Locals[i].(type) {
			case *Brought, *Lost:
			default:
				x.match[site].Step(x.now, in, &out)
			}
			x.locals[site] = append(x.locals[site], out.Locals[i])
		}
		for _, s := range out.Sends {
			flight = append(flight, mail{site, s})
		}
	}
	step(site, do)
	for len(flight) > 0 {
		m := flight[0]
		flight = flight[1:]
		step(m.To, func(out *grid.Outbox) {
			x.books[m.To].Step(x.now, &grid.Delivery{From: m.from, Message: m.Message}, out)
		})
	}
}

// pass lets time pass, with a look at every site each second.
func (x *trio) pass(span grid.Time) {
	for until := x.now + span; x.now < until; {
		x.now += grid.Second
		for _, site := range trioSites {
			x.act(site, func(out *grid.Outbox) {
				x.books[site].Step(x.now, grid.Tick{}, out)
				x.match[site].Step(x.now, grid.Tick{}, out)
				x.match[site].Dispatch(x.now, nil, out)
			})
		}
	}
}

// local returns the first input of a type that a site's owner got, and forgets all.
func local[T any](x *trio, site grid.SiteID) (found T, ok bool) {
	for _, in := range x.locals[site] {
		if found, ok = in.(T); ok {
			break
		}
	}
	x.locals[site] = nil
	return found, ok
}

// TestRecalledJobGoesElsewhere: a lender wants its processors back before the job is
// done. The job ends in good order before the lease does, and the other sibling is asked.
func TestRecalledJobGoesElsewhere(t *testing.T) {
	for seed := range uint64(8) { // the siblings are asked in random order
		recallOnce(t, seed)
	}
}

func recallOnce(t *testing.T, seed uint64) {
	x := newTrio(t, seed)
	task := func(epoch uint32) lrms.Request {
		return lrms.Request{ID: grid.TaskID{Job: grid.JobID{Lo: 1}, Epoch: epoch}, Processors: 3, Estimate: 2 * grid.Hour}
	}
	x.act("a", func(out *grid.Outbox) {
		if err := x.match["a"].Submit(x.now, Work{Request: task(1), Born: x.now}, out); err != nil {
			t.Fatal(err)
		}
	})
	x.pass(2 * grid.Minute)
	brought, ok := local[*Brought](x, "a")
	if !ok {
		t.Fatal("nothing was brought")
	}
	lender := brought.Lease.Lender
	x.act(lender, func(out *grid.Outbox) {
		if err := x.books[lender].Revoke(x.now, brought.Lease.ID, false, out); err != nil {
			t.Fatal(err)
		}
	})
	recalled, ok := local[*Recalled](x, "a")
	if !ok {
		t.Fatal("a was not told")
	}
	var vacate *Vacate
	for vacate == nil && x.now < recalled.End {
		x.pass(grid.Second)
		vacate, _ = local[*Vacate](x, "a")
	}
	if vacate == nil || x.now >= recalled.End || x.now < recalled.End-(recalled.End-recalled.Since)/2 {
		t.Fatalf("told to leave at %v, of a lease that ends at %v: %+v", x.now, recalled.End, vacate)
	}
	x.act("a", func(out *grid.Outbox) { // the owner has ended it
		if !x.match["a"].Ended(x.now, task(1).ID, out) {
			t.Error("the matchmaker does not know of the job")
		}
		if err := x.match["a"].Submit(x.now, Work{Request: task(2), Born: x.now}, out); err != nil {
			t.Fatal(err)
		}
	})
	if idle := x.books[lender].cluster.Idle(x.now); idle != 4 || len(x.books[lender].Leases()) != 0 {
		t.Errorf("%s has %d idle processors and leases %v, want all four back", lender, idle, x.books[lender].Leases())
	}
	x.pass(2 * grid.Minute)
	again, ok := local[*Brought](x, "a")
	if !ok || again.Lease.Lender == lender || again.Task != task(2).ID {
		t.Errorf("after %s had recalled its processors: %+v", lender, again)
	}
}

// TestRevokedAtOnce: the same without a word before.
func TestRevokedAtOnce(t *testing.T) {
	for seed := range uint64(8) {
		revokeOnce(t, seed)
	}
}

func revokeOnce(t *testing.T, seed uint64) {
	x := newTrio(t, seed)
	r := lrms.Request{ID: grid.TaskID{Job: grid.JobID{Lo: 1}, Epoch: 1}, Processors: 3, Estimate: 2 * grid.Hour}
	if err := x.match["a"].Submit(x.now, Work{Request: r, Born: x.now}, new(grid.Outbox)); err != nil {
		t.Fatal(err)
	}
	x.pass(2 * grid.Minute)
	brought, _ := local[*Brought](x, "a")
	lender := brought.Lease.Lender
	x.act(lender, func(out *grid.Outbox) {
		if err := x.books[lender].Revoke(x.now, brought.Lease.ID, true, out); err != nil {
			t.Fatal(err)
		}
	})
	lost, ok := local[*Lost](x, "a")
	if !ok || lost.Cause != Revoked || lost.Gone > x.now {
		t.Fatalf("%+v, want a loss that is certain now", lost)
	}
	r.ID.Epoch = 2
	if err := x.match["a"].Submit(x.now, Work{Request: r, Born: x.now}, new(grid.Outbox)); err != nil {
		t.Fatal(err)
	}
	x.pass(2 * grid.Minute)
	if again, ok := local[*Brought](x, "a"); !ok || again.Lease.Lender == lender {
		t.Errorf("after %s had revoked the lease: %+v", lender, again)
	}
}

// TestWideJobsWait: wherever nothing is delegated, for their owner to start them.
func TestWideJobsWait(t *testing.T) {
	b := newBook(t, "a", 2)
	m, err := NewMatchmaker(MatchConfig{}, b.cluster, b, nil, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	var out grid.Outbox
	r := func(n int64) lrms.Request {
		return lrms.Request{ID: grid.TaskID{Job: grid.JobID{Lo: uint64(n)}, Epoch: 1}, Processors: n, Estimate: grid.Hour}
	}
	if err := m.Submit(0, Work{Request: r(3)}, &out); !errors.Is(err, lrms.ErrTooWide) {
		t.Errorf("submit a wide job: %v", err)
	}
	for _, n := range []int64{5, 3, 1} {
		if err := m.SubmitWide(0, Work{Request: r(n)}, &out); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.SubmitWide(0, Work{Request: r(5)}, &out); !errors.Is(err, lrms.ErrKnown) {
		t.Errorf("submit it twice: %v", err)
	}
	var widths []int64
	for w := range m.Away {
		widths = append(widths, w.Processors)
	}
	if len(widths) != 2 || widths[0] != 5 || widths[1] != 3 {
		t.Errorf("away: %v, want 5 and 3", widths)
	}
	if started := m.Dispatch(0, nil, &out); len(started) != 1 || started[0].Processors != 1 {
		t.Errorf("%v start on own processors", started)
	}
	if _, there := m.Cancel(0, r(5).ID, &out); !there || b.cluster.Borrow(0, r(5)) != nil || !b.cluster.Ended(0, r(5).ID) {
		t.Error("the wide job cannot be started on a lease")
	}
	if m.Delegates() {
		t.Error("it says that it delegates")
	}
}
