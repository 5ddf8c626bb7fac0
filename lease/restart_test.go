package lease

import (
	"testing"

	"gridnode/grid"
)

// TestRestartsLendNoLonger: a lender that goes down again and again lends no longer than
// it has told its borrower, who counts on that to start anew what ran there.
func TestRestartsLendNoLonger(t *testing.T) {
	b, l := lent(t)
	var out grid.Outbox
	now := grid.Hour + grid.Minute
	b.Step(now, &grid.Delivery{From: "a", Message: &Renew{Number: l.Number, Epoch: l.Epoch, Sequence: 2, Stamp: grid.Hour}}, &out)
	told, ok := out.Sends[0].Message.(*Renewed)
	if !ok || len(out.Records) != 1 {
		t.Fatalf("the renewal is answered with %+v and saved %d times, want once", out.Sends, len(out.Records))
	}
	end := now + told.Term
	key, value := out.Records[0].RecordKey(), out.Records[0].AppendRecord(nil)
	for _, at := range []grid.Time{now + grid.Second, end - 2*grid.Second, end - grid.Second} {
		next := newBook(t, "b", 8)
		out.Reset()
		if err := next.Recover(at, func(yield func(string, []byte) bool) { yield(key, value) }, &out); err != nil {
			t.Fatal(err)
		}
		if again, there := next.Get(l.ID); !there || again.End != end {
			t.Errorf("after a restart at %v the lease ends at %v, want %v", at, again.End, end)
		}
		for _, r := range out.Records {
			value = r.AppendRecord(nil)
		}
		out.Reset()
		if next.Step(end, grid.Tick{}, &out); next.cluster.Idle(end) != 8 || len(next.Leases()) != 0 {
			t.Errorf("at its end %v is left", next.Leases())
		}
	}
}

// TestClockOfLenderSetBack: after a restart on a clock that was set back the lender does not know
// when what it lends ends. It is lent for no longer than a term, and no word prolongs it.
func TestClockOfLenderSetBack(t *testing.T) {
	granted := grid.Hour // when it was lent
	for _, tt := range []struct {
		name string
		at   grid.Time // of the restart
		via  bool      // lent on
		left grid.Time
		goes bool // it is renewed
	}{
		{"not set", granted + grid.Minute, false, 4 * grid.Minute, true},
		{"by 21 min", granted - 20*grid.Minute, false, DefaultTerm, false},
		{"by a second", granted - grid.Second, false, DefaultTerm, false},
		{"lent on", granted - 20*grid.Minute, true, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			old, l := lent(t)
			e := old.entries[l.ID]
			var out grid.Outbox
			next := newBook(t, "b", 8)
			records := []*entry{e}
			if tt.via {
				e.Via = 9
				records = append(records, &entry{Lease: Lease{
					ID: ID{"b", 9}, Lender: "c", Processors: 3, State: Active, Epoch: 1, End: 2 * grid.Hour, Limit: 2 * grid.Hour, Subject: l.Subject, Sink: "b",
				}})
			}
			if err := next.Recover(tt.at, func(yield func(string, []byte) bool) {
				for _, e := range records {
					yield((*record)(e).RecordKey(), (*record)(e).AppendRecord(nil))
				}
			}, &out); err != nil {
				t.Fatal(err)
			}
			again, there := next.Get(l.ID)
			if !there || again.End-tt.at != tt.left {
				t.Fatalf("after the restart %v are left, want %v", again.End-tt.at, tt.left)
			}
			if tt.via {
				return
			}
			if spare := Spare(next, l.ID); tt.goes && spare != DefaultTerm {
				t.Errorf("it could last %v longer, want what is between one term and two", spare)
			}
			now := tt.at + grid.Minute
			next.Step(now, &grid.Delivery{From: "a", Message: &Renew{Number: l.Number, Epoch: l.Epoch, Sequence: 2, Stamp: now + 1}}, &out)
			if after, _ := next.Get(l.ID); after.End != again.End {
				t.Errorf("a word that this clock has not come to moves its end by %v", after.End-again.End)
			}
			for _, stamp := range []grid.Time{granted, tt.at, now} {
				next.Step(now, &grid.Delivery{From: "a", Message: &Renew{Number: l.Number, Epoch: l.Epoch, Sequence: 2, Stamp: stamp}}, &out)
			}
			if after, _ := next.Get(l.ID); after.End > again.End != tt.goes {
				t.Errorf("renewals move its end by %v, want that they do: %t", after.End-again.End, tt.goes)
			}
		})
	}
}

// TestHoldsOfClockSetBack: what is held, and not claimed, ends with a restart on a clock that
// was set back.
func TestHoldsOfClockSetBack(t *testing.T) {
	now, id := grid.Hour, ID{"a", 5}
	ask := &Request{Number: 5, Processors: 3, Span: grid.Hour, Subject: grid.JobID{Lo: 1}, Sink: "a"}
	for name, at := range map[string]grid.Time{"goes on": now + grid.Second, "was set back": now - grid.Minute} {
		t.Run(name, func(t *testing.T) {
			b := newBook(t, "b", 8)
			var out grid.Outbox
			b.Step(now, &grid.Delivery{From: "a", Message: ask}, &out)
			if err := b.Grant(now, id, Terms{}, &out); err != nil {
				t.Fatal(err)
			}
			held, _ := b.Get(id)
			value := (*record)(b.entries[id]).AppendRecord(nil)
			b = newBook(t, "b", 8)
			if err := b.Recover(at, func(yield func(string, []byte) bool) { yield((*record)(&entry{Lease: held}).RecordKey(), value) }, &out); err != nil {
				t.Fatal(err)
			}
			b.Step(at+1, &grid.Delivery{From: "a", Message: &Claim{Number: 5, Epoch: held.Epoch, Sequence: 1, Stamp: now}}, &out)
			if l, there := b.Get(id); there != (at > now) {
				t.Errorf("after a claim: %+v, %t", l, there)
			}
		})
	}
}

// borrowed returns the book of c, at one hour, which has borrowed two processors of a
// for an hour, lent on by b under epoch 7; gone is as in Grant.
func borrowed(t *testing.T, term, gone grid.Time) (*Book, ID) {
	t.Helper()
	c := newBook(t, "c", 4)
	var out grid.Outbox
	now := grid.Hour
	id, err := c.Request(now, "b", Want{Processors: 2, Span: grid.Hour, Subject: grid.JobID{Lo: 1}}, &out)
	if err != nil {
		t.Fatal(err)
	}
	hear := func(m grid.Message) { c.Step(now, &grid.Delivery{From: "b", Message: m}, &out) }
	hear(&Grant{Number: id.Number, Epoch: 7, Stamp: now, Hold: grid.Minute, Span: grid.Hour, Source: "a", Key: 1, Hops: 2, Gone: gone})
	if err := c.Claim(now, id, &out); err != nil {
		t.Fatal(err)
	}
	hear(&Renewed{Number: id.Number, Epoch: 7, Sequence: 1, Stamp: now + 1, Term: term, Limit: grid.Hour, Gone: gone})
	if l, _ := c.Get(id); l.State != Active {
		t.Fatalf("%+v, want it active", l)
	}
	return c, id
}

// TestForgottenInboundLease: a site that lends on and has lost, in a crash, the lease by
// which the processors came cannot say when they have gone back. Its borrower goes by
// what it was told before.
func TestForgottenInboundLease(t *testing.T) {
	c, id := borrowed(t, 5*grid.Minute, 20*grid.Minute)
	now := grid.Hour
	surely := now + c.cfg.longer(20*grid.Minute)

	now += 3 * grid.Minute
	b := newBook(t, "b", 4)
	var crashed grid.Outbox
	b.recoverLent(now, &entry{Lease: Lease{ID: id, Lent: true, Processors: 2, State: Active, Epoch: 7, Via: 9}}, &crashed)
	told, ok := crashed.Sends[0].Message.(*Released)
	if !ok || told.Cause != Broken || told.Gone == 0 {
		t.Fatalf("the site that lent on tells its borrower %+v", crashed.Sends)
	}
	var out grid.Outbox
	c.Step(now, &grid.Delivery{From: "b", Message: told}, &out)
	if len(out.Locals) != 1 {
		t.Fatalf("the borrower's owner is told %+v", out.Locals)
	}
	if ended, ok := out.Locals[0].(*Ended); !ok || ended.Gone != surely {
		t.Errorf("the borrower's owner is told %+v, want that the processors are back at %v", out.Locals[0], surely)
	}
}

// TestRecallIsPassedOn: whoever was lent processors on is told that their owner wants them back.
func TestRecallIsPassedOn(t *testing.T) {
	c, in := borrowed(t, 5*grid.Minute, 20*grid.Minute)
	now := grid.Hour + grid.Second
	var out grid.Outbox
	hear := func(from grid.SiteID, m grid.Message) { c.Step(now, &grid.Delivery{From: from, Message: m}, &out) }
	id := ID{"d", 3}
	hear("d", &Request{Number: id.Number, Processors: 2, Span: grid.Hour, Patience: grid.Minute, Subject: grid.JobID{Lo: 2}, Sink: "d"})
	if err := c.Grant(now, id, Terms{Via: in}, &out); err != nil {
		t.Fatal(err)
	}
	l, _ := c.Get(id)
	hear("d", &Claim{Number: id.Number, Epoch: l.Epoch, Sequence: 1})
	out.Reset()
	hear("b", &Revoke{Number: in.Number, Epoch: 7})
	if len(out.Sends) != 1 || out.Sends[0].To != "d" {
		t.Fatalf("%+v is sent, want that d is told", out.Sends)
	}
	if m, ok := out.Sends[0].Message.(*Revoke); !ok || m.Number != id.Number || m.Epoch != l.Epoch {
		t.Errorf("d is told %+v, want that lease %d is recalled", out.Sends[0].Message, id.Number)
	}
}

// TestRecallIsRepeated: a borrower that has not heard that its lease is wanted back is
// told again when it renews, and gets no more time.
func TestRecallIsRepeated(t *testing.T) {
	b, l := lent(t)
	var out grid.Outbox
	now := grid.Hour + grid.Minute
	if err := b.Revoke(now, l.ID, false, &out); err != nil {
		t.Fatal(err)
	}
	end := l.End
	for sequence := uint64(2); sequence < 4; sequence++ {
		out.Reset()
		now += grid.Second
		b.Step(now, &grid.Delivery{From: "a", Message: &Renew{Number: l.Number, Epoch: l.Epoch, Sequence: sequence, Stamp: grid.Hour}}, &out)
		if m, is := out.Sends[len(out.Sends)-1].Message.(*Revoke); !is || m.Number != l.Number || m.Epoch != l.Epoch {
			t.Errorf("renewal %d is answered with %+v, want it to be recalled again", sequence, out.Sends)
		}
		if l, _ = b.Get(l.ID); l.End != end {
			t.Errorf("after renewal %d it ends at %v, want %v", sequence, l.End, end)
		}
	}
}

// TestRecallOutlivesARestart: a lender that goes down after it has wanted a lease back wants it back still.
func TestRecallOutlivesARestart(t *testing.T) {
	b, l := lent(t)
	var out grid.Outbox
	now := grid.Hour + grid.Minute
	if err := b.Revoke(now, l.ID, false, &out); err != nil {
		t.Fatal(err)
	}
	if len(out.Records) != 1 {
		t.Fatalf("that it is wanted back is saved %d times, want once", len(out.Records))
	}
	key, value := out.Records[0].RecordKey(), out.Records[0].AppendRecord(nil)
	stored := func(string) []byte { return value }
	if err := AuditRecord(b, l.ID, stored); err != nil {
		t.Error(err)
	}
	next := newBook(t, "b", 8)
	now += grid.Second
	if err := next.Recover(now, func(yield func(string, []byte) bool) { yield(key, value) }, &out); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	next.Step(now, &grid.Delivery{From: "a", Message: &Renew{Number: l.Number, Epoch: l.Epoch, Sequence: 2, Stamp: grid.Hour}}, &out)
	if m, is := out.Sends[len(out.Sends)-1].Message.(*Revoke); !is || m.Number != l.Number {
		t.Errorf("after a restart a renewal is answered with %+v, want it to be recalled again", out.Sends)
	}
	if again, _ := next.Get(l.ID); again.End != l.End {
		t.Errorf("after a restart and a renewal it ends at %v, want %v", again.End, l.End)
	}
	next.entries[l.ID].revoked = false
	if AuditRecord(next, l.ID, stored) == nil {
		t.Error("that it is wanted back is saved and not known, and the audit does not say so")
	}
	next.entries[l.ID].revoked, next.entries[l.ID].cause = true, Revoked
	if AuditRecord(next, l.ID, stored) == nil {
		t.Error("why it is over is not saved, and the audit does not say so")
	}
	if AuditRecord(next, l.ID, func(string) []byte { return nil }) == nil {
		t.Error("it is not saved, and the audit does not say so")
	}
	if unknown := (ID{"a", 6}); AuditRecord(next, unknown, stored) == nil || AuditRecord(next, unknown, func(string) []byte { return nil }) != nil {
		t.Error("the audit of a lease that there is not says otherwise whether it is saved")
	}
}

// TestLeavingOutlivesARestart: a borrower that is to leave a lease, because its lender
// has recalled it or its own site is giving it up, does not go on using it after a
// restart.
func TestLeavingOutlivesARestart(t *testing.T) {
	for name, leave := range map[string]func(b *Book, now grid.Time, id ID, out *grid.Outbox){
		"recalled": func(b *Book, now grid.Time, id ID, out *grid.Outbox) {
			b.Step(now, &grid.Delivery{From: "b", Message: &Revoke{Number: id.Number, Epoch: 7}}, out)
		},
		"given up": func(b *Book, now grid.Time, id ID, out *grid.Outbox) {
			if err := b.Leave(now, id, out); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, id := borrowed(t, 20*grid.Minute, grid.Hour)
			var out grid.Outbox
			now := grid.Hour
			leave(b, now, id, &out)
			saved := out.Records[len(out.Records)-1]
			key, value := saved.RecordKey(), saved.AppendRecord(nil)

			now += grid.Second
			b = newBook(t, "c", 4)
			out.Reset()
			if err := b.Recover(now, func(yield func(string, []byte) bool) { yield(key, value) }, &out); err != nil {
				t.Fatal(err)
			}
			if len(out.Locals) != 2 || len(out.Sends) != 0 {
				t.Fatalf("after the restart it says %v and sends %v, want Claimed and Recalled, and no renewal", out.Locals, out.Sends)
			}
			_, claimed := out.Locals[0].(*Claimed)
			recalled, is := out.Locals[1].(*Recalled)
			if !claimed || !is || recalled.ID != id {
				t.Fatalf("after the restart it says %v, want Claimed and Recalled", out.Locals)
			}
			out.Reset()
			if b.Step(vacateAt(now, recalled.End), grid.Tick{}, &out); len(out.Locals) != 1 {
				t.Fatalf("later it says %v, want Vacate", out.Locals)
			}
			if v, is := out.Locals[0].(*Vacate); !is || v.ID != id {
				t.Errorf("later it says %v, want Vacate", out.Locals)
			}
		})
	}
}

// TestClockOfBorrowerSetBack: after a restart on a clock that was set back a borrower whose lender is
// silent counts on nothing being left no later than that lender has said, counted from the restart.
func TestClockOfBorrowerSetBack(t *testing.T) {
	const gone = 20 * grid.Minute
	for _, back := range []grid.Time{0, grid.Minute, 50 * grid.Minute} {
		b, id := borrowed(t, 15*grid.Minute, gone)
		saved := (*record)(b.entries[id])
		now := grid.Hour - back
		b = newBook(t, "c", 4)
		var out grid.Outbox
		if err := b.Recover(now, func(yield func(string, []byte) bool) { yield(saved.RecordKey(), saved.AppendRecord(nil)) }, &out); err != nil {
			t.Fatal(err)
		}
		most := now + gone + gone/100
		if got := b.Gone(id); got < now+gone || got > most {
			t.Errorf("back by %v: its processors are free %v after the restart, want %v and some", back, got-now, gone)
		}
		if l, _ := b.Get(id); l.End > most {
			t.Errorf("back by %v: it lasts for %v, though after %v nothing is left of it", back, l.End-now, gone)
		}
	}
}

// TestNumbersOfRestarts: starts of a site that see the same instants, on a clock that stands still or
// is set back, give no number twice, neither at once nor later, so that nobody takes a request for one
// of before, or a lease.
func TestNumbersOfRestarts(t *testing.T) {
	given := make(map[uint64]uint64)
	for seed := range uint64(20) {
		var numbers Numbers
		numbers.Restart(seed * 0x9e3779b97f4a7c15)
		for _, now := range []grid.Time{3 * grid.Hour, 4 * grid.Hour} {
			for range 50 {
				n := numbers.Next(now)
				if before, twice := given[n]; twice {
					t.Fatalf("at %v number %d is given by the starts with seeds %d and %d", now, n, before, seed)
				}
				given[n] = seed
			}
		}
	}
}

// TestNumbersGoUp: within a start numbers rise, whatever the clock does, above those in use.
func TestNumbersGoUp(t *testing.T) {
	var numbers Numbers
	numbers.Used(7)
	last := uint64(7)
	for _, now := range []grid.Time{0, 5, grid.Hour, grid.Minute, grid.Hour, 2 * grid.Hour} {
		n := numbers.Next(now)
		if n <= last || n < uint64(now) {
			t.Errorf("at %v number %d comes after %d", now, n, last)
		}
		last = n
	}
}

// TestBookNumbersAnew: requests and grants of a book have numbers that another start from the same
// records does not give.
func TestBookNumbersAnew(t *testing.T) {
	requests, epochs := map[uint64]bool{}, map[uint64]bool{}
	for seed := range uint64(3) {
		b := newBook(t, "a", 4)
		b.cfg.Seed = seed * 0x9e3779b97f4a7c15
		var out grid.Outbox
		if err := b.Recover(3*grid.Hour, func(func(string, []byte) bool) {}, &out); err != nil {
			t.Fatal(err)
		}
		id, err := b.Request(4*grid.Hour, "b", Want{Processors: 1, Span: grid.Hour}, &out)
		if err != nil {
			t.Fatal(err)
		}
		requests[id.Number] = true
		b.Step(4*grid.Hour, &grid.Delivery{From: "c", Message: &Request{Number: 1, Processors: 1, Span: grid.Hour}}, &out)
		for _, l := range b.Leases() {
			if l.Lent {
				epochs[l.Epoch] = true
			}
		}
	}
	if len(requests) != 3 || len(epochs) != 3 {
		t.Errorf("3 starts give %d numbers and %d epochs", len(requests), len(epochs))
	}
}

// TestAnswerToWhatAnotherStartSent: a borrower that is restarted twice within a moment does not take
// the answer to what the first of these starts has sent for that to its own renewal: it would count on
// the processors for longer than they are lent.
func TestAnswerToWhatAnotherStartSent(t *testing.T) {
	before, id := borrowed(t, 5*grid.Minute, 20*grid.Minute)
	saved := (*record)(before.entries[id])
	again := func(now grid.Time, seed uint64) (*Book, *Renew) {
		b := newBook(t, "c", 4)
		b.cfg.Seed = seed
		var out grid.Outbox
		records := func(yield func(string, []byte) bool) { yield(saved.RecordKey(), saved.AppendRecord(nil)) }
		if err := b.Recover(now, records, &out); err != nil {
			t.Fatal(err)
		}
		for _, s := range out.Sends {
			if m, is := s.Message.(*Renew); is {
				return b, m
			}
		}
		t.Fatalf("after a restart it sends %+v, and does not renew", out.Sends)
		return nil, nil
	}
	now := grid.Hour + grid.Minute
	_, first := again(now, 0x9e3779b97f4a7c15)
	now += 10 * grid.Second
	b, second := again(now, 2*0x9e3779b97f4a7c15%(1<<63))
	was, _ := b.Get(id)
	var out grid.Outbox
	for _, m := range []*Renew{first, second} {
		b.Step(now+grid.Second, &grid.Delivery{From: "b", Message: &Renewed{
			Number: id.Number, Epoch: 7, Sequence: m.Sequence, Stamp: now, Term: 5 * grid.Minute, Limit: grid.Hour, Gone: grid.Hour,
		}}, &out)
		if l, _ := b.Get(id); (l.End > was.End) != (m == second) {
			t.Errorf("sequence %d, of its own %d: it counts on the processors until %v, before until %v", m.Sequence, second.Sequence, l.End, was.End)
		}
	}
}

// TestAnswerOfLongAgo: of the renewals that are under way only the newest are known by when they were sent;
// an answer to an older one prolongs nothing.
func TestAnswerOfLongAgo(t *testing.T) {
	b, id := borrowed(t, grid.Minute, grid.Hour)
	var out grid.Outbox
	e, now := b.entries[id], grid.Hour
	first := e.sequence + 1
	for range sequencesKept + 1 {
		now += grid.Second
		e.sendRenew(now, &out)
	}
	end := e.End
	b.Step(now, &grid.Delivery{From: "b", Message: &Renewed{Number: id.Number, Epoch: 7, Sequence: first, Stamp: now, Term: grid.Minute, Limit: grid.Hour, Gone: grid.Hour}}, &out)
	if e.End != end {
		t.Errorf("an answer to renewal %d of %d has the lease end at %v, which was to end at %v", first, e.sequence, e.End, end)
	}
}

// TestWhyADrainedLeaseEnded: whose processors are given back only when nothing runs there any more hears
// then why the lease was over.
func TestWhyADrainedLeaseEnded(t *testing.T) {
	b, l := lent(t)
	b.cfg.Drain = true
	var out grid.Outbox
	if err := b.Revoke(grid.Hour, l.ID, true, &out); err != nil {
		t.Fatal(err)
	}
	key, value := out.Records[0].RecordKey(), out.Records[0].AppendRecord(nil)
	again := newBook(t, "b", 8) // after a restart
	again.cfg.Drain = true
	if err := again.Recover(grid.Hour, func(yield func(string, []byte) bool) { yield(key, value) }, new(grid.Outbox)); err != nil {
		t.Fatal(err)
	}
	for _, b := range []*Book{b, again} {
		out.Reset()
		if err := b.Vacated(grid.Hour, l.ID, &out); err != nil {
			t.Fatal(err)
		}
		if r, ok := out.Sends[0].Message.(*Released); !ok || r.Cause != Revoked {
			t.Errorf("the borrower hears %+v, want that it was revoked", out.Sends[0].Message)
		}
	}
}
