package lease

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/internal/lrms"
)

// alone returns the matchmaker of a site a, and its book.
func alone(t *testing.T, processors int64, cfg MatchConfig, loads Loads) (*Matchmaker, *Book) {
	t.Helper()
	b := newBook(t, "a", processors)
	m, err := NewMatchmaker(cfg, b.cluster, b, loads, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	return m, b
}

func jobOf(n uint64, processors int64) lrms.Request {
	return lrms.Request{ID: grid.TaskID{Job: grid.JobID{Lo: n}, Epoch: 1}, Processors: processors, Estimate: grid.Hour}
}

// TestWhatIsNotThere: orders about leases and jobs that a site does not have, or not on that side, or
// not in that state, change nothing.
func TestWhatIsNotThere(t *testing.T) {
	const now = grid.Hour
	b, l := lent(t)
	other, _ := borrowed(t, DefaultTerm, DefaultTerm)
	m, err := NewMatchmaker(MatchConfig{Threshold: 1000, Links: []Link{{"b", Sibling}}}, other.cluster, other, nil, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	var out grid.Outbox
	asked, err := other.Request(now, "z", Want{Processors: 1, Span: grid.Hour}, &out)
	if err != nil {
		t.Fatal(err)
	}
	out.Reset()
	for name, do := range map[string]func(b *Book, id ID) error{
		"claim":   func(b *Book, id ID) error { return b.Claim(now, id, &out) },
		"leave":   func(b *Book, id ID) error { return b.Leave(now, id, &out) },
		"refuse":  func(b *Book, id ID) error { return b.Refuse(now, id, Busy, 0, &out) },
		"grant":   func(b *Book, id ID) error { return b.Grant(now, id, Terms{}, &out) },
		"vacated": func(b *Book, id ID) error { return b.Vacated(now, id, &out) },
		"renew":   func(b *Book, id ID) error { return b.Renew(now, id, grid.Hour, &out) },
	} {
		for _, tt := range []struct {
			b  *Book
			id ID
		}{{b, ID{"a", 99}}, {b, l.ID}, {other, asked}} {
			before := state(tt.b)
			if err := do(tt.b, tt.id); !errors.Is(err, ErrUnknown) || state(tt.b) != before || len(out.Effects)+len(out.Locals) > 0 {
				t.Errorf("%s lease %v: %v, %d effects, and %d for the owner", name, tt.id, err, len(out.Effects), len(out.Locals))
				out.Reset()
			}
		}
	}
	for _, tt := range []struct {
		id    ID
		epoch uint64
	}{{ID{"a", 99}, l.Epoch}, {l.ID, l.Epoch + 1}, {l.ID, l.Epoch}} {
		if got, longest, ok := b.Fee(tt.id, tt.epoch); ok || got != (Lease{}) || longest != 0 {
			t.Errorf("lease %v of epoch %d costs something: %+v", tt.id, tt.epoch, got)
		}
	}
	id := grid.TaskID{Job: grid.JobID{Lo: 9}, Epoch: 1}
	if held, there := m.Cancel(now, id, &out); held != 0 || there || m.Ended(now, id, &out) || m.Runs(id) || m.Barred(id) != nil {
		t.Error("there is a job that nobody has submitted")
	}
	_, wants := m.For(asked.Number)
	_, runs := m.RunsOn(asked.Number)
	if wants || runs || m.Has(asked.Number) {
		t.Error("a lease that a user has asked for is a job's")
	}
	w := Work{Request: jobOf(9, 2), Unit: 1}
	if err := m.ResumeSpread(now, w, 1, []ID{asked}); !errors.Is(err, ErrUnknown) {
		t.Errorf("a job goes on with a lease that is not granted: %v", err)
	}
	if err := m.Resume(now, w.Request, asked); !errors.Is(err, ErrUnknown) {
		t.Errorf("a job goes on on a lease that is not granted: %v", err)
	}
	if len(out.Effects)+len(out.Locals) > 0 || len(m.demands)+len(m.asking) > 0 {
		t.Errorf("%d effects, %d for the owner, %d requests", len(out.Effects), len(out.Locals), len(m.demands))
	}
}

// TestJobsGoOnAfterARestart: on a lease, and on several with own processors; and their leases are
// released with them.
func TestJobsGoOnAfterARestart(t *testing.T) {
	for _, own := range []int64{-1, 0, 2} { // -1: it is not spread
		b, id := borrowed(t, DefaultTerm, DefaultTerm)
		now := grid.Hour
		m, err := NewMatchmaker(MatchConfig{}, b.cluster, b, nil, rand.New(rand.NewPCG(1, 1)))
		if err != nil {
			t.Fatal(err)
		}
		l, _ := b.Get(id)
		idle, r := b.cluster.Idle(now), jobOf(9, l.Processors+max(own, 0))
		if own < 0 {
			err = m.Resume(now, r, id)
		} else {
			err = m.ResumeSpread(now, Work{Request: r, Unit: 1}, own, []ID{id})
		}
		if err != nil {
			t.Fatalf("%d own: %v", own, err)
		}
		if got := idle - b.cluster.Idle(now); got != max(own, 0) {
			t.Errorf("%d own: %d of them are taken", own, got)
		}
		job, runs := m.RunsOn(id.Number)
		for_, wants := m.For(id.Number)
		if job != r.ID || !runs || for_ != r.ID || !wants || !m.Has(id.Number) || !m.Runs(r.ID) {
			t.Errorf("%d own: lease %d is of job %v (%t), and runs %v (%t)", own, id.Number, for_, wants, job, runs)
		}
		if err := AuditRequests(m); err != nil {
			t.Errorf("%d own: %v", own, err)
		}
		var out grid.Outbox
		if held, there := m.Cancel(now, r.ID, &out); there || held != 0 {
			t.Errorf("%d own: what runs is cancelled as if it waited", own)
		}
		if !m.Ended(now, r.ID, &out) || len(out.Sends) != 1 || out.Sends[0].To != l.Lender {
			t.Errorf("%d own: at its end %v is sent", own, out.Sends)
		}
		if b.cluster.Idle(now) != idle || len(m.demands)+len(m.asking) > 0 || m.Has(id.Number) {
			t.Errorf("%d own: %d requests are left, and %d of %d processors are idle", own, len(m.demands), b.cluster.Idle(now), idle)
		}
	}
}

// TestRequestsHaveTheirOwnNames: the first round of a job's first execution is called as the job; each
// further one is another request, which sites that have seen the job's before take.
func TestRequestsHaveTheirOwnNames(t *testing.T) {
	job := grid.JobID{Hi: 1, Lo: 2}
	if got := roundOf(grid.TaskID{Job: job, Epoch: 1}, 0); got != job {
		t.Errorf("the first request of job %v is %v", job, got)
	}
	known := make(map[grid.JobID]bool)
	for epoch := range uint32(50) {
		for round := range int32(50) {
			known[roundOf(grid.TaskID{Job: job, Epoch: 1 + epoch}, round)] = true
		}
	}
	if len(known) != 50*50 {
		t.Errorf("2500 requests have %d names", len(known))
	}
}

// TestGossipedRoom: who orders by gossip asks only who has said to have room enough, neighbour or not,
// less what it was asked for since, the tightest fit first; and nobody who asks itself.
func TestGossipedRoom(t *testing.T) {
	const now = grid.Hour
	spare := map[grid.SiteID]int64{"b": 4, "c": 9, "d": 3, "e": 6}
	report := uint64(7)
	m, _ := alone(t, 1, MatchConfig{Ordering: OrderGossip, Links: []Link{{"c", Sibling}, {"x", Child}}, Members: []grid.SiteID{"b", "d", "e"}, Threshold: 1000},
		func(site grid.SiteID) (int64, uint64, bool) { n, ok := spare[site]; return n, report, ok })
	asked := func(now grid.Time, d *demand) (list []grid.SiteID) {
		for _, t := range m.targetsOf(now, d, 4) {
			list = append(list, t.Site)
		}
		return list
	}
	own := &demand{ttl: 1, latest: grid.Never}
	place := func() { m.hearsay.place(now, "e", 2); m.hearsay.place(now, "e", 1) }
	for _, tt := range []struct {
		name  string
		first func()
		now   grid.Time
		d     *demand
		want  string
	}{
		{"own", nil, now, own, "b e c"},
		{"of a site below", nil, now, &demand{from: ID{"b", 1}, sink: "e", relation: Child, ttl: 1, latest: grid.Never}, "c"},
		{"tried", nil, now, &demand{tried: []grid.SiteID{"b", "c"}, ttl: 1, latest: grid.Never}, "e"},
		{"one was asked", place, now, own, "b c"},
		{"a minute later", nil, now + placedSpan, own, "b c"},
		{"more than that", nil, now + placedSpan + 1, own, "b e c"},
		{"it reports anew", func() { report++ }, now, own, "b e c"},
		{"asked again", func() { m.hearsay.place(now, "e", 1) }, now, own, "b e c"},
		{"and again", func() { m.hearsay.place(now+placedSpan, "e", 2) }, now + placedSpan, own, "b c"},
		{"long after", func() { m.hearsay.place(now+3*placedSpan, "e", 1) }, now + 3*placedSpan, own, "b e c"},
	} {
		if tt.first != nil {
			tt.first()
		}
		var want []grid.SiteID
		for _, s := range strings.Fields(tt.want) {
			want = append(want, grid.SiteID(s))
		}
		if got := asked(tt.now, tt.d); !slices.Equal(got, want) {
			t.Errorf("%s: %v are asked, want %v", tt.name, got, want)
		}
	}
	if nobody, _ := alone(t, 1, MatchConfig{Ordering: OrderGossip, Threshold: 1000}, nil); nobody.Delegates() || !m.Delegates() {
		t.Error("whether there is somebody to ask is not known")
	}
	for _, tt := range []struct {
		cfg  MatchConfig
		want bool
	}{
		{MatchConfig{Threshold: 1000, Links: []Link{{"b", Sibling}}}, true},
		{MatchConfig{Links: []Link{{"b", Sibling}}}, false},
		{MatchConfig{Threshold: 1000, Members: []grid.SiteID{"b"}}, false},
		{MatchConfig{Threshold: 1000}, false},
	} {
		if m, _ := alone(t, 1, tt.cfg, nil); m.Delegates() != tt.want {
			t.Errorf("%+v delegates: %t", tt.cfg, m.Delegates())
		}
	}
}

// TestRefusedJobWaitsUntilItIsAskedFor: a job that nobody has room for is delegated anew after the
// pause of the configuration; whoever orders by gossip looks at the next cycle. Where rounds are
// bounded it keeps its place in the queue after the last.
func TestRefusedJobWaitsUntilItIsAskedFor(t *testing.T) {
	for _, tt := range []struct {
		name     string
		ordering Ordering
		rounds   int32
		again    []grid.Time // after the first time
	}{
		{"neighbours", OrderMostFree, 0, []grid.Time{10 * grid.Minute, 20 * grid.Minute}},
		{"gossip", OrderGossip, 0, []grid.Time{grid.Minute, 2 * grid.Minute, 3 * grid.Minute}},
		{"two rounds", OrderMostFree, 2, []grid.Time{10 * grid.Minute}},
	} {
		m, b := alone(t, 2, MatchConfig{Ordering: tt.ordering, Rounds: tt.rounds, Links: []Link{{"b", Sibling}}, Threshold: 1000, DelegationCycle: grid.Minute, Retry: 10 * grid.Minute},
			func(grid.SiteID) (int64, uint64, bool) { return 9, 1, true })
		m.hearsay.loads = func(grid.SiteID) (int64, uint64, bool) { return 9, 1, true }
		first := grid.Never
		var again []grid.Time
		var out grid.Outbox
		for _, r := range []lrms.Request{jobOf(1, 2), jobOf(2, 2)} {
			if err := m.Submit(0, Work{Request: r}, &out); err != nil {
				t.Fatal(err)
			}
			m.Dispatch(0, nil, &out)
		}
		for now := grid.Time(0); now < 25*grid.Minute; now += grid.Second {
			out.Reset()
			b.Step(now, grid.Tick{}, &out)
			m.Step(now, grid.Tick{}, &out)
			for i := 0; i < len(out.Sends); i++ {
				ask, is := out.Sends[i].Message.(*Request)
				if !is {
					continue
				}
				if first == grid.Never {
					first = now
				} else {
					again = append(again, now-first)
				}
				b.Step(now, &grid.Delivery{From: "b", Message: &Refuse{Number: ask.Number, Reason: Denied}}, &out)
				for _, in := range out.Locals {
					m.Step(now, in, &out)
				}
				out.Locals = nil
				m.hearsay.placed = make(map[grid.SiteID]placed) // it reports anew
			}
			m.Dispatch(now, nil, &out)
			if err := AuditRequests(m); err != nil {
				t.Fatalf("%s: after %v: %v", tt.name, now, err)
			}
		}
		if len(again) > len(tt.again) && tt.ordering == OrderGossip {
			again = again[:len(tt.again)]
		}
		if !slices.Equal(again, tt.again) {
			t.Errorf("%s: it is asked for again after %v, want %v", tt.name, again, tt.again)
		}
		if queued := b.cluster.Demand(); (queued == 2) != (tt.rounds > 0) {
			t.Errorf("%s: the queue wants %d processors", tt.name, queued)
		}
	}
}

// TestRefusalsAreBelieved: who has said that it has no room is not asked for as much again for a while; for
// other reasons it may be.
func TestRefusalsAreBelieved(t *testing.T) {
	for reason, want := range map[Reason]bool{Busy: true, Exhausted: true, TooWide: true, Denied: false, Full: false} {
		m, b := alone(t, 2, MatchConfig{Links: []Link{{"b", Sibling}}, Threshold: 1000, Retry: 10 * grid.Minute}, nil)
		var out grid.Outbox
		for _, r := range []lrms.Request{jobOf(1, 2), jobOf(2, 2)} {
			if err := m.Submit(0, Work{Request: r}, &out); err != nil {
				t.Fatal(err)
			}
			m.Dispatch(0, nil, &out)
		}
		asked := false
		for now := grid.Time(0); now < 5*grid.Minute && !asked; now += grid.Second {
			out.Reset()
			b.Step(now, grid.Tick{}, &out)
			m.Step(now, grid.Tick{}, &out)
			for _, send := range slices.Clone(out.Sends) {
				ask, is := send.Message.(*Request)
				if !is {
					continue
				}
				asked = true
				b.Step(now, &grid.Delivery{From: "b", Message: &Refuse{Number: ask.Number, Reason: reason}}, &out)
				for _, in := range out.Locals {
					m.Step(now, in, &out)
				}
				out.Locals = nil
				r, believed := m.hearsay.believed(now, "b")
				if believed != want || want && (r.processors != 2 || r.reason != reason || r.until != now+10*grid.Minute) {
					t.Errorf("%v: believed %v, %+v", reason, believed, r)
				}
			}
		}
		if !asked {
			t.Error("nobody is asked")
		}
	}
}

// TestDelegationsAreCounted, of a chain of two leases.
func TestDelegationsAreCounted(t *testing.T) {
	x := newScript()
	x.t = t
	x.run("site name=a processors=2 fcfs threshold=1000 links=p:parent")
	x.run("site name=p processors=0 fcfs links=a:child+b:child")
	x.run("site name=b processors=3 fcfs links=p:parent")
	for job := range 4 {
		x.run("submit site=a job=%d processors=2 for=1h", job+1)
	}
	x.run("advance for=2m")
	x.run("cancel site=a job=2")
	x.run("end site=a job=2")
	x.run("advance for=1m")
	count := map[grid.SiteID]Delegations{
		"a": {Asked: 7, Refused: 5, Brought: 2, Hops: 4}, // three after a minute, two after another, two once there is room
		"p": {Asked: 7, Refused: 5, Passed: 2, Rejected: 5},
		"b": {Served: 2, Rejected: 5},
	}
	for _, id := range slices.Sorted(maps.Keys(count)) {
		if got := x.sites[id].match.Delegations; got != count[id] {
			t.Errorf("%s has counted %+v, want %+v", id, got, count[id])
		}
	}
}

// TestWhatDelegationsCost: the time for which processors of a lease were held for a job that is
// cancelled, from the claim on, times the processors.
func TestWhatDelegationsCost(t *testing.T) {
	for _, s := range []State{Requested, Held, Claiming, Active, Ending} {
		var d Delegations
		d.account(grid.Hour, &Lease{State: s, Processors: 3, Since: grid.Hour - grid.Minute})
		want := grid.Time(0)
		if s == Claiming || s == Active {
			want = 3 * grid.Minute
		}
		if d.CancelledTime != want {
			t.Errorf("a lease that is %v counts for %v, want %v", s, d.CancelledTime, want)
		}
	}
	var d Delegations
	for range 3 {
		d.account(grid.SpanMax, &Lease{State: Active, Processors: ProcessorsMax, Since: -grid.SpanMax})
	}
	if d.CancelledTime <= 0 {
		t.Errorf("long ones count for %v", d.CancelledTime)
	}
}

// TestWordsOfPolicies are what they are parsed from.
func TestWordsOfPolicies(t *testing.T) {
	for s := SelectFCFS; s <= SelectWidest; s++ {
		if got, err := ParseSelection(s.String()); err != nil || got != s {
			t.Errorf("%q is parsed as %d, %v", s, got, err)
		}
	}
	for o := OrderNeighbours; o <= OrderGossip; o++ {
		if got, err := ParseOrdering(o.String()); err != nil || got != o {
			t.Errorf("%q is parsed as %d, %v", o, got, err)
		}
	}
	for p := DMM; p <= XSTRD; p++ {
		if got, err := ParsePolicy(p.String()); err != nil || got != p {
			t.Errorf("%q is parsed as %d, %v", p, got, err)
		}
	}
	for r := Sibling; r <= Parent; r++ {
		if got, err := ParseRelation(r.String()); err != nil || got != r {
			t.Errorf("%q is parsed as %d, %v", r, got, err)
		}
	}
	if _, err := ParseSelection("x"); err == nil {
		t.Error("x is a selection")
	}
	busy, back := Barred{Reason: Busy}, Barred{Reason: Accepted}
	if busy.String() != Busy.String() || back.String() == Accepted.String() {
		t.Errorf("%q and %q", busy, back)
	}
}

// TestLacks: what a job lacks besides idle processors, in whole units.
func TestLacks(t *testing.T) {
	for _, tt := range []struct{ processors, unit, idle, want int64 }{
		{8, 1, 3, 5}, {8, 1, 0, 8}, {8, 1, -2, 8}, {8, 1, 8, 0}, {8, 1, 99, 0}, {8, 2, 5, 4}, {8, 4, 7, 4}, {8, 8, 7, 8}, {8, 0, 3, 5},
	} {
		c := Candidate{Processors: tt.processors, Unit: tt.unit}
		if got := c.Lacks(tt.idle); got != tt.want {
			t.Errorf("of %d, by %d, with %d idle %d are lacking, want %d", tt.processors, tt.unit, tt.idle, got, tt.want)
		}
	}
}

// TestWishesThatMakeNoSense are passed over: of a policy of one's own for more or fewer processors than
// a job has, for parts of a unit, and beyond what is idle.
func TestWishesThatMakeNoSense(t *testing.T) {
	for _, tt := range []struct {
		lacks, idle int64
		ttl         int32
		seeks       bool
	}{{2, 4, 1, true}, {4, 0, 1, true}, {0, 4, 1, false}, {-2, 4, 1, false}, {6, 4, 1, false}, {1, 4, 1, false}, {2, 1, 1, false}, {2, 4, grid.NoTTL, false}} {
		m, b := alone(t, 4, MatchConfig{Links: []Link{{"b", Sibling}}, Policy: SSTRD}, nil)
		m.delegateBy = nil
		if err := b.cluster.Lend(0, lrms.Request{ID: grid.TaskID{Job: grid.JobID{Hi: 1}}, Processors: max(4-tt.idle, 1), Estimate: grid.Hour}); err != nil && tt.idle < 4 {
			t.Fatal(err)
		}
		if tt.idle == 4 {
			b.cluster.Ended(0, grid.TaskID{Job: grid.JobID{Hi: 1}})
		}
		var out grid.Outbox
		r := jobOf(1, 4)
		if err := m.Submit(0, Work{Request: r, Unit: 2, TTL: tt.ttl}, &out); err != nil {
			t.Fatal(err)
		}
		m.seek(0, m.demands[r.ID], tt.lacks, &out)
		if seeks := len(out.Sends) == 1; seeks != tt.seeks || tt.seeks && out.Sends[0].Message.(*Request).Processors != tt.lacks {
			t.Errorf("%d are to be leased with %d idle, ttl %d: %d messages", tt.lacks, tt.idle, tt.ttl, len(out.Sends))
		}
		if err := AuditRequests(m); err != nil {
			t.Error(err)
		}
	}
}

// TestNobodyToAsk: a job for which nobody can be asked waits for the next cycle; one with a deadline
// is told to be without a lease, and why.
func TestNobodyToAsk(t *testing.T) {
	m, _ := alone(t, 1, MatchConfig{Threshold: 1000, Links: []Link{{"b", Sibling}}}, nil)
	m.SetLinks(nil)
	var out grid.Outbox
	waits, hurries := jobOf(1, 2), jobOf(2, 2)
	if err := m.SubmitWide(0, Work{Request: waits}, &out); err != nil {
		t.Fatal(err)
	}
	for now := grid.Time(0); now <= 2*grid.Minute; now += grid.Minute {
		m.Step(now, grid.Tick{}, &out)
		if d := m.demands[waits.ID]; d.retry != 0 && d.retry != now+grid.Minute || now > 0 && d.retry == 0 || !d.aside {
			t.Errorf("at %v it is to be delegated at %v, and is aside: %t", now, d.retry, d.aside)
		}
		if err := AuditRequests(m); err != nil {
			t.Error(err)
		}
	}
	if err := m.SubmitWide(0, Work{Request: hurries, By: 3 * grid.Hour}, &out); err != nil {
		t.Fatal(err)
	}
	if len(out.Locals) != 1 || len(out.Sends) > 0 {
		t.Fatalf("%d for the owner, %d messages", len(out.Locals), len(out.Sends))
	}
	if u := out.Locals[0].(*Unmet); u.Task != hurries.ID || u.Reason != "there is nobody to be asked" {
		t.Errorf("%+v", u)
	}
	var away []uint64
	for _, r := range []lrms.Request{jobOf(7, 3), jobOf(5, 3)} {
		if err := m.SubmitWide(0, Work{Request: r}, &out); err != nil {
			t.Fatal(err)
		}
	}
	m.SetLinks([]Link{{"b", Sibling}})
	m.delegate(3*grid.Minute, m.demands[jobOf(7, 3).ID], &out)
	m.Away(func(r lrms.Request) bool { away = append(away, r.ID.Job.Lo); return true })
	if !slices.Equal(away, []uint64{1, 7, 5}) {
		t.Errorf("jobs %v are away, in the order of submission", away)
	}
	if got := m.Dispatch(3*grid.Minute, []lrms.Request{waits}, &out); len(got) != 1 {
		t.Errorf("%d jobs started before, and are %d now", 1, len(got))
	}
}

// TestRefusalSaysWhatIsLent: at most, of all and to this borrower; and no more is free.
func TestRefusalSaysWhatIsLent(t *testing.T) {
	for _, tt := range []struct {
		most, lends int64
		why         Reason
		free, says  int64
	}{{0, 0, Busy, 8, 0}, {0, 0, TooWide, 8, 8}, {5, 0, Busy, 5, 5}, {5, 0, Denied, 5, 0}, {0, 3, Denied, 3, 3}, {5, 3, Busy, 3, 3}, {5, 7, Busy, 5, 5}} {
		b := newBook(t, "b", 8)
		b.cfg.LendMost = tt.most
		var out grid.Outbox
		b.Step(grid.Hour, &grid.Delivery{From: "a", Message: &Request{Number: 5, Processors: 3, Span: grid.Hour, Subject: grid.JobID{Lo: 1}, Sink: "a"}}, &out)
		if err := b.Refuse(grid.Hour, ID{"a", 5}, tt.why, tt.lends, &out); err != nil {
			t.Fatal(err)
		}
		if m := out.Sends[0].Message.(*Refuse); m.Free != tt.free || m.Lends != tt.says || m.Reason != tt.why || len(b.Leases()) > 0 {
			t.Errorf("%+v: %+v", tt, m)
		}
	}
}

// TestAuditsSee what each of them is for.
func TestAuditsSee(t *testing.T) {
	for name, spoil := range map[string]func(m *Matchmaker, d, aside *demand){
		"a lease that is gone":       func(m *Matchmaker, d, _ *demand) { delete(m.book.entries, ID{"a", d.out}) },
		"a lent one":                 func(m *Matchmaker, d, _ *demand) { m.book.entries[ID{"a", d.out}].Lent = true },
		"a job that is gone":         func(m *Matchmaker, d, _ *demand) { delete(m.demands, d.ID) },
		"a lease it has forgotten":   func(m *Matchmaker, d, _ *demand) { d.out, d.away = 0, false },
		"an answer to nobody":        func(m *Matchmaker, d, _ *demand) { clear(m.asking) },
		"a part of a round":          func(m *Matchmaker, d, _ *demand) { d.round = &round{parts: []uint64{77}} },
		"processors that are held":   func(m *Matchmaker, d, _ *demand) { d.round = &round{held: taskHeld(77)} },
		"one aside that is gone":     func(m *Matchmaker, _, a *demand) { delete(m.demands, a.ID) },
		"one aside that is not":      func(m *Matchmaker, _, a *demand) { a.aside = false },
		"one that is to come back":   func(m *Matchmaker, _, a *demand) { m.aside, m.asideSum = nil, 0 },
		"a sum":                      func(m *Matchmaker, _, a *demand) { m.asideSum++ },
		"the order":                  func(m *Matchmaker, _, a *demand) { m.aside = append(m.aside, a) },
		"one that is in no queue":    func(m *Matchmaker, _, a *demand) { m.takeUp(a) },
		"one that the queue has not": func(m *Matchmaker, _, a *demand) { m.takeUp(a); a.away = false },
		"one for nobody":             func(m *Matchmaker, d, _ *demand) { d.from = ID{"b", 77} },
	} {
		m, _ := alone(t, 2, MatchConfig{Links: []Link{{"b", Sibling}}, Threshold: 1000}, nil)
		var out grid.Outbox
		asks, waits := jobOf(2, 2), jobOf(3, 9)
		for _, r := range []lrms.Request{jobOf(1, 2), asks} {
			if err := m.Submit(0, Work{Request: r}, &out); err != nil {
				t.Fatal(err)
			}
			m.Dispatch(0, nil, &out)
		}
		if m.Step(grid.Minute, grid.Tick{}, &out); m.demands[asks.ID].out == 0 {
			t.Fatal("nobody is asked")
		}
		if err := m.Submit(grid.Minute, Work{Request: waits}, &out); err != nil {
			t.Fatal(err)
		}
		if err := AuditRequests(m); err != nil {
			t.Fatal(err)
		}
		if spoil(m, m.demands[asks.ID], m.demands[waits.ID]); AuditRequests(m) == nil {
			t.Errorf("%s is not seen", name)
		}
	}
}

// TestWhatABorrowerPays at most: what it says itself, else what its site pays, if it pays at all.
func TestWhatABorrowerPays(t *testing.T) {
	site := func() grid.Price { return 7 }
	for _, tt := range []struct {
		cfg          Config
		wanted, most grid.Price
	}{
		{Config{}, 0, 0}, {Config{}, 5, 5}, {Config{Bank: "k"}, 0, 0}, {Config{Most: site}, 0, 0}, {Config{Bank: "k", Most: site}, 0, 7}, {Config{Bank: "k", Most: site}, 5, 5},
	} {
		if got := tt.cfg.most(tt.wanted); got != tt.most {
			t.Errorf("bank %q, wanted %v: at most %v, want %v", tt.cfg.Bank, tt.wanted, got, tt.most)
		}
	}
}

// TestWhatARoundFindsOut: when somebody will have processors for a job in time, and what users are told.
func TestWhatARoundFindsOut(t *testing.T) {
	const now = grid.Hour
	for _, tt := range []struct {
		in    Refused
		ready grid.Time
		said  string
	}{
		{Refused{Reason: Unreachable}, now, "unreachable"}, {Refused{Reason: Silent}, now, "no answer"}, {Refused{Reason: Full}, now, "too many"},
		{Refused{Reason: Busy}, grid.Never, "too few"}, {Refused{Reason: Busy, Ready: grid.Minute}, now + grid.Minute, "ready in 1m"},
		{Refused{Reason: Busy, Ready: grid.Minute, Span: grid.Minute}, grid.Never, "lends for 1m0s at most"},
		{Refused{Reason: Busy, Ready: grid.Minute, Span: grid.Hour}, now + grid.Minute, "ready in 1m"},
	} {
		o := outlook{ready: grid.Never}
		tt.in.Lender = "b"
		if o.heard(now, &tt.in, grid.Hour); o.ready != tt.ready || len(o.said) != 1 || !strings.Contains(o.said[0], tt.said) {
			t.Errorf("%v, ready in %v, for %v: %v, %q; want %v, %q", tt.in.Reason, tt.in.Ready, tt.in.Span, o.ready, o.said, tt.ready, tt.said)
		}
		for range 2 * saidMax {
			o.heard(now, &tt.in, grid.Hour)
		}
		if len(o.said) != saidMax {
			t.Errorf("%d words are kept for the user, want %d", len(o.said), saidMax)
		}
	}
}

// TestLenderWithdraws: a lender that lets a request go without an answer has refused it.
func TestLenderWithdraws(t *testing.T) {
	b := newBook(t, "a", 1)
	var out grid.Outbox
	id, err := b.Request(grid.Hour, "b", Want{Processors: 1, Span: grid.Hour}, &out)
	if err != nil {
		t.Fatal(err)
	}
	b.Step(grid.Hour, &grid.Delivery{From: "b", Message: &Released{Number: id.Number, Cause: Unknown}}, &out)
	if len(out.Locals) != 1 || len(b.Leases()) > 0 {
		t.Fatalf("the owner hears %v, and %d leases are left", out.Locals, len(b.Leases()))
	}
	if r, is := out.Locals[0].(*Refused); !is || r.Reason != Withdrawn || r.ID != id {
		t.Errorf("the owner hears %+v", out.Locals[0])
	}
}

// TestSituation: what policies know of a site counts jobs that have given way.
func TestSituation(t *testing.T) {
	m, _ := alone(t, 4, MatchConfig{Links: []Link{{"b", Sibling}}, Threshold: 1000}, nil)
	var out grid.Outbox
	for n, processors := range []int64{3, 2, 4} {
		if err := m.Submit(0, Work{Request: jobOf(uint64(n+1), processors)}, &out); err != nil {
			t.Fatal(err)
		}
	}
	m.Dispatch(0, nil, &out)
	d := m.demands[jobOf(3, 4).ID]
	m.giveWay(0, d)
	m.setAside(d)
	if got, want := m.situation(0), (Situation{Now: 0, Processors: 4, Idle: 1, Wanted: 6}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestDeadlineIsKept: by a job that starts in time on a lease that lasts as long as it may take.
func TestDeadlineIsKept(t *testing.T) {
	for _, tt := range []struct {
		latest, now, span grid.Time
		want              bool
	}{
		{grid.Never, grid.Day, 1, true}, {grid.Hour, grid.Hour, grid.Minute, true}, {grid.Hour, grid.Hour + 1, grid.Minute, false},
		{grid.Hour, 0, grid.Minute - 1, false},
	} {
		d := &demand{latest: tt.latest}
		d.Estimate = grid.Minute
		if got := d.kept(tt.now, tt.span); got != tt.want {
			t.Errorf("to begin by %v, at %v for %v: %t, want %t", tt.latest, tt.now, tt.span, got, tt.want)
		}
	}
}
