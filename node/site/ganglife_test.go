package site

import (
	"maps"
	"strings"
	"testing"

	"gridnode/coalloc"
	"gridnode/directory"
	"gridnode/grid"
	"gridnode/lease"
)

// TestClaimFailsElsewhere: a job whose claim was decided, and then failed at another
// site before it started, waits again, and this site has its processors back.
func TestClaimFailsElsewhere(t *testing.T) {
	b := newBench(t, func(c *Config) {
		c.Parts = Everything
		c.Directory = directory.Config{Federation: "test"}
	})
	j := b.job(1, 5)
	j.Tasks, j.Coallocate = 5, &grid.Coallocation{Components: "4@here,1@there", CCR: -1}
	b.step(&Submit{Token: 1, Job: j})
	co := b.site.gangs
	b.step(&directory.Found{ID: co.scout.query, End: true, Quotes: []directory.Quote{
		{Site: "there", Name: "there", Resources: grid.Resources{Processors: 4}, Rating: b.cfg.Rating, Price: grid.Credit, Free: 4, Widest: 4, Issued: b.now},
	}})
	asked := uint64(0)
	for _, s := range b.sends {
		if m, is := s.Message.(*lease.Request); is {
			asked = m.Number
		}
	}
	if held := co.home.Leases(); asked == 0 || len(held) != 1 || held[0].State != lease.Held {
		t.Fatalf("asked for lease %d, held at home: %+v", asked, held)
	}
	// The hold ends there in the instant in which it is to be claimed.
	b.step(&lease.Granted{Lease: lease.Lease{ID: lease.ID{Borrower: "here", Number: asked}}})
	if held := co.home.Leases(); len(held) != 0 {
		t.Errorf("held at home, with nothing that will ever end: %+v", held)
	}
	if v, _ := b.site.Job(j.ID); v.State != Queued || b.site.Offer().Free != 4 {
		t.Errorf("%v (%s), %d processors are free; want it queued, and all 4", v.State, v.Reason, b.site.Offer().Free)
	}
}

// coallocated returns a site that runs a job of two components, both of them here.
func coallocated(t *testing.T) (*bench, *grid.Job) {
	t.Helper()
	b := newBench(t, func(c *Config) {
		c.Parts = Everything
		c.Directory = directory.Config{Federation: "test"}
	})
	j := b.job(1, 4)
	j.Tasks, j.Coallocate = 4, &grid.Coallocation{Components: "2@here,2@here", CCR: -1}
	b.step(&Submit{Token: 1, Job: j})
	b.step(&directory.Found{ID: b.site.gangs.scout.query, End: true})
	return b, j
}

// TestResumedJobBeganBefore: a restart of the daemon does not make a co-allocated job
// shorter, nor cheaper.
func TestResumedJobBeganBefore(t *testing.T) {
	b, _ := coallocated(t)
	began := b.now
	if v := b.want(1, Running); v.Start != began || len(b.started) != 1 || b.started[0].Gang == nil {
		t.Fatalf("%+v, started %v", v, b.started)
	}
	task := b.started[0].ID
	b.now += grid.Minute
	b.crash(&Adopted{ID: grid.SquadTask(task, 0), Start: began})
	if v := b.want(1, Running); v.Start != began || len(b.started) != 1 || b.started[0].ID != task {
		t.Fatalf("after a restart it began at %v, want %v; started %v", v.Start, began, b.started)
	}
	b.now += grid.Minute
	b.step(&grid.TaskEnded{ID: task, Result: grid.Result{Start: b.now - grid.Minute, End: b.now}})
	v := b.want(1, Done)
	if cost := b.cfg.Cost.Cost(b.cfg.Price, 4, 100*grid.Second); v.Start != began || v.Result.Cost != cost {
		t.Errorf("it began at %v and costs %v; want %v, and %v for the time it asked for", v.Start, v.Result.Cost, began, cost)
	}
}

// TestStrandedJobOutlivesItsClock: an execution that may be alive for some minutes more may be so, after
// a restart, for as long, however far the clock was set meanwhile; and no longer.
func TestStrandedJobOutlivesItsClock(t *testing.T) {
	for _, by := range []grid.Time{5 * grid.Hour, -5 * grid.Hour} {
		b := newBench(t, func(c *Config) {
			c.Parts = Everything
			c.Directory = directory.Config{Federation: "test"}
		})
		b.now += 10 * grid.Hour
		j := b.job(1, 4)
		j.Tasks, j.Coallocate = 4, &grid.Coallocation{Components: "2@here,2@here", CCR: -1}
		b.step(&Submit{Token: 1, Job: j})
		b.step(&directory.Found{ID: b.site.gangs.scout.query, End: true})
		task := b.started[0].ID
		b.site.gangs.broken(b.now, &coalloc.Broken{Task: task, Site: "there", Cause: lease.Crashed, Gone: b.now + 10*grid.Minute}, &b.out)
		b.carryOut()
		maps.DeleteFunc(b.records, func(key string, _ []byte) bool { return strings.HasPrefix(key, "coalloc") }) // who says so has forgotten it
		b.now += by
		b.crash()
		for range 99 { // 9:54 min
			b.now += 6 * grid.Second
			b.step(grid.Tick{})
			if v, _ := b.site.Job(j.ID); v.Epoch != task.Epoch {
				t.Fatalf("set by %v: it is placed again, as epoch %d, while its execution may be alive", by, v.Epoch)
			}
		}
		b.now += 10 * grid.Second
		b.step(grid.Tick{})
		if v, _ := b.site.Job(j.ID); v.Epoch == task.Epoch {
			t.Errorf("set by %v: it is %v, and not placed again once its execution is certainly dead", by, v.State)
		}
	}
}

// TestUnknownSiteIsLookedForSometimes: a job that names a site which no scan finds is
// refused after some scans, neither the first nor for ever.
func TestUnknownSiteIsLookedForSometimes(t *testing.T) {
	b := newBench(t, func(c *Config) {
		c.Parts = Everything
		c.Directory = directory.Config{Federation: "test"}
	})
	j := b.job(1, 2)
	j.Tasks, j.Coallocate = 2, &grid.Coallocation{Components: "1@here,1@stranger", CCR: -1}
	b.step(&Submit{Token: 1, Job: j})
	looks, seen := 0, b.site.gangs.scout.query-1
	for range 100 {
		if q := b.site.gangs.scout.query; q != seen {
			seen = q
			looks++
			b.step(&directory.Found{ID: q, End: true})
		}
		if v, _ := b.site.Job(j.ID); v.State == Refused {
			break
		}
		b.now += 10 * grid.Second
		b.step(grid.Tick{})
	}
	if v := b.want(1, Refused); looks < 2 || looks > 1+looksMax || !strings.Contains(v.Reason, "stranger") {
		t.Errorf("looked %d times, then refused because %s; want 2 to %d looks", looks, v.Reason, 1+looksMax)
	}
}

// Every state, terminal or not, has a name of its own.
func TestStatesHaveNames(t *testing.T) {
	for state := Placing; state <= Refused; state++ {
		if got, err := ParseState(state.String()); err != nil || got != state {
			t.Errorf("state %d is called %q, which is read as %v (%v)", state, state, got, err)
		}
	}
	if got, err := ParseState(""); err == nil {
		t.Errorf("no name is read as %v", got)
	}
}

// TestRefusalIsContradicted: a site that has refused is looked at again once something newer says
// otherwise: that it is there, or lends. One that lends, but not to this site, stays closed. Until
// then who asks why learns when it is asked again.
func TestRefusalIsContradicted(t *testing.T) {
	quote := func(issued grid.Time) directory.Quote {
		return directory.Quote{Site: "there", Name: "there", Resources: grid.Resources{Processors: 4}, Rating: grid.Rating{Speed: 1, Bandwidth: 1}, Free: 4, Widest: 4, Issued: issued}
	}
	for _, tt := range []struct {
		name    string
		reason  lease.Reason
		before  int64 // to spare, by the report of before the refusal; -1: there was none
		quote   bool  // a newer one comes
		spare   int64 // by a newer report; -1: there is none
		reopens bool
	}{
		{"silent", lease.Silent, -1, false, -1, false},
		{"silent, a new quote", lease.Silent, -1, true, -1, true},
		{"unreachable, a new report", lease.Unreachable, 0, false, 0, true},
		{"lends nothing, a new quote", lease.Denied, 0, true, -1, false},
		{"lends nothing, and still nothing", lease.Denied, 0, false, 0, false},
		{"began to lend", lease.Denied, 0, false, 4, true},
		{"lends to others", lease.Denied, 4, false, 3, false},
		{"takes no cheque of ours", lease.Unpaid, 0, true, 4, false},
		{"is too dear", lease.Dear, 0, true, 4, false},
		{"its rules are against it", lease.ByRule, 0, true, 4, false},
	} {
		b := newBench(t, func(c *Config) {
			c.Parts = Everything
			c.Directory = directory.Config{Federation: "test", Siblings: func() []grid.SiteID { return []grid.SiteID{"there"} }}
		})
		sequence := uint64(0)
		report := func(spare int64) {
			if spare >= 0 {
				sequence++
				b.step(&grid.Delivery{From: "there", Message: &directory.LoadReport{
					Load: directory.Load{Site: "there", Free: 4, Widest: 4, Spare: spare, Sequence: sequence, Issued: b.now},
				}})
			}
		}
		sc := b.site.gangs.scout
		sc.scan(b.now, &b.out)
		b.step(&directory.Found{ID: sc.query, End: true, Quotes: []directory.Quote{quote(b.now)}})
		report(tt.before)
		sc.close(b.now, &lease.Refused{Lease: lease.Lease{Lender: "there"}, Reason: tt.reason})
		var detail string
		for _, v := range b.site.gangs.verdicts(b.now, b.job(1, 1), nil) {
			if v.Site == "there" {
				detail = v.Detail
			}
		}
		if detail != tt.reason.String() {
			t.Errorf("%s: %q", tt.name, detail)
		}
		b.now += grid.Second
		report(tt.spare)
		if tt.quote {
			sc.scan(b.now, &b.out)
			b.step(&directory.Found{ID: sc.query, End: true, Quotes: []directory.Quote{quote(b.now)}})
		}
		sc.refresh(b.now)
		if open := sc.sites["there"].closed <= b.now; open != tt.reopens {
			t.Errorf("%s: open: %v", tt.name, open)
		}
	}
}

// TestSiteLendsLessThanItHas: a component for which a site never lends enough is asked for once
// and not for ever; its job says why it waits, the next one is refused, one that may run elsewhere
// does, and after hours the site is asked again.
func TestSiteLendsLessThanItHas(t *testing.T) {
	b := newBench(t, func(c *Config) {
		c.Parts = Everything
		c.Directory = directory.Config{Federation: "test"}
	})
	sc := &b.site.gangs.scout
	asked := make(map[grid.SiteID][]int64) // widths
	look := func() {
		if sc.query != 0 {
			var quotes []directory.Quote
			for _, id := range []grid.SiteID{"there", "wide"} {
				quotes = append(quotes, directory.Quote{Site: id, Name: string(id), Resources: grid.Resources{Processors: 16},
					Rating: b.cfg.Rating, Price: grid.Credit, Free: 16, Widest: 16, Issued: b.now})
			}
			b.step(&directory.Found{ID: sc.query, End: true, Certain: true, Quotes: quotes})
		}
		sends := b.sends
		b.sends = nil
		for _, s := range sends {
			if m, is := s.Message.(*lease.Request); is {
				asked[s.To] = append(asked[s.To], m.Processors)
				if s.To == "there" {
					b.step(&grid.Delivery{From: s.To, Message: &lease.Refuse{Number: m.Number, Reason: lease.TooWide, Free: 4, Lends: 4}})
				}
			}
		}
	}
	divided := func(n int64, components string) *grid.Job {
		j := b.job(uint64(n), 8)
		j.Tasks, j.Coallocate = 8, &grid.Coallocation{Components: components, CCR: -1}
		b.step(&Submit{Token: uint64(n), Job: j})
		look()
		return j
	}
	first := divided(1, "8@there")
	wait := func(span grid.Time) {
		for end := b.now + span; b.now < end; {
			b.now += 10 * grid.Second
			b.step(grid.Tick{})
			look()
		}
	}
	wait(grid.Hour)
	if len(asked["there"]) != 1 {
		t.Errorf("it was asked for %v processors", asked["there"])
	}
	v, _ := b.site.Job(first.ID)
	if v.State != Queued || !strings.Contains(v.Reason, "there lends at most 4 processors, the components there need 8") {
		t.Errorf("%v: %s", v.State, v.Reason)
	}
	if detail := b.site.gangs.verdicts(b.now, first, nil)[1].Detail; !strings.Contains(detail, "lends 4 at most") {
		t.Errorf("of the site is said %q", detail)
	}
	second := divided(2, "8@there")
	if v, _ := b.site.Job(second.ID); v.State != Refused || !strings.Contains(v.Reason, "lends at most 4") {
		t.Errorf("the next one is %v: %s", v.State, v.Reason)
	}
	third := divided(3, "8")
	wait(10 * grid.Second)
	if v, _ := b.site.Job(third.ID); len(asked["wide"]) == 0 || len(asked["there"]) != 1 {
		t.Errorf("one that may run anywhere was asked for at %v: %v, %s", asked, v.State, v.Reason)
	}
	wait(2 * grid.Hour)
	if n := len(asked["there"]); n != 2 {
		t.Errorf("after three hours it was asked %d times", n)
	}
}

// TestSiteLendsOneComponent: a site that lends enough for one component of a job, and not for two at
// a time, is asked for one the next time, as it says how many it lends.
func TestSiteLendsOneComponent(t *testing.T) {
	for _, why := range []lease.Reason{lease.Busy, lease.ByRule} {
		b := newBench(t, func(c *Config) {
			c.Parts = Everything
			c.Directory = directory.Config{Federation: "test"}
		})
		sc := &b.site.gangs.scout
		held := make(map[uint64]int64) // at "there", by number
		ends := make(map[grid.SiteID]int)
		for end := b.now + 10*grid.Minute; b.now < end; b.now += grid.Second {
			if b.now == end-10*grid.Minute {
				j := b.job(1, 16)
				j.Tasks, j.Coallocate = 16, &grid.Coallocation{Components: "8,8", CCR: -1}
				b.step(&Submit{Token: 1, Job: j})
			}
			if sc.query != 0 {
				var quotes []directory.Quote
				for i, id := range []grid.SiteID{"there", "other"} {
					n := int64(32 - 16*i)
					quotes = append(quotes, directory.Quote{Site: id, Name: string(id), Resources: grid.Resources{Processors: n},
						Rating: b.cfg.Rating, Price: grid.Credit, Free: n, Widest: n, Issued: b.now})
				}
				b.step(&directory.Found{ID: sc.query, End: true, Certain: true, Quotes: quotes})
			}
			sends := b.sends
			b.sends = nil
			for _, s := range sends {
				switch m := s.Message.(type) {
				case *lease.Request:
					if s.To == "there" && len(held) > 0 {
						b.step(&grid.Delivery{From: s.To, Message: &lease.Refuse{Number: m.Number, Reason: why, Free: 4, Lends: 12}})
						continue
					}
					if s.To == "there" {
						held[m.Number] = m.Processors
					}
					b.step(&grid.Delivery{From: s.To, Message: &lease.Grant{Number: m.Number, Epoch: m.Number, Stamp: b.now, Hold: grid.Minute, Span: m.Span, Source: s.To, Key: m.Number, Hops: 1}})
				case *lease.Release:
					delete(held, m.Number)
					b.step(&grid.Delivery{From: s.To, Message: &lease.Released{Number: m.Number, Epoch: m.Epoch}})
				case *lease.Claim:
					ends[s.To]++
				}
			}
			b.step(grid.Tick{})
		}
		if ends["there"] == 0 || ends["other"] == 0 {
			v, _ := b.site.Job(b.job(1, 16).ID)
			t.Errorf("%v: after ten minutes one component each was claimed of %v; the job is %v: %s", why, ends, v.State, v.Reason)
		}
	}
}

// TestWhatLivesKeepsItsProcessors: what a job has at home is given back once nothing of it is alive, although the
// coordinator has done with it before.
func TestWhatLivesKeepsItsProcessors(t *testing.T) {
	b, _ := coallocated(t)
	c, task := b.site.gangs, b.started[0].ID
	idle := func() int64 { return b.site.cluster.Idle(b.now) }
	had := idle()
	for _, l := range c.home.Leases() {
		if err := c.home.Release(b.now, l.ID, &b.out); err != nil {
			t.Fatal(err)
		}
	}
	alive := c.alive
	c.alive = nil
	if err := c.audit(b.now); err == nil || !strings.Contains(err.Error(), "nothing is alive") {
		t.Errorf("an audit says %v of processors that are kept for what is not alive", err)
	}
	c.alive = alive
	c.aborted(b.now, &coalloc.Aborted{Task: grid.TaskID{Job: task.Job, Epoch: task.Epoch + 1}}, &b.out)
	if got := idle(); got != had {
		t.Errorf("%d processors are idle while an execution is alive, %d before", got, had)
	}
	b.step(&grid.TaskEnded{ID: task, Lost: true})
	if got := idle(); got != had+4 {
		t.Errorf("%d processors are idle once it has ended, want %d", got, had+4)
	}
}
