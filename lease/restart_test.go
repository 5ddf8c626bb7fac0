package lease

import (
	"testing"

	"gridnode/internal/grid"
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

// TestForgottenInboundLease: a site that lends on and has lost, in a crash, the lease by
// which the processors came cannot say when they have gone back. Its borrower goes by
// what it was told before.
func TestForgottenInboundLease(t *testing.T) {
	c := newBook(t, "c", 4)
	var out grid.Outbox
	now := grid.Hour
	id, err := c.Request(now, "b", Want{Processors: 2, Span: grid.Hour, Subject: grid.JobID{Lo: 1}}, &out)
	if err != nil {
		t.Fatal(err)
	}
	hear := func(m grid.Message) {
		out.Reset()
		c.Step(now, &grid.Delivery{From: "b", Message: m}, &out)
	}
	hear(&Grant{Number: id.Number, Epoch: 7, Stamp: now, Hold: grid.Minute, Span: grid.Hour, Source: "a", Key: 1, Hops: 2, Gone: 20 * grid.Minute})
	if err := c.Claim(now, id, &out); err != nil {
		t.Fatal(err)
	}
	hear(&Renewed{Number: id.Number, Epoch: 7, Sequence: 1, Stamp: now + 1, Term: 5 * grid.Minute, Limit: grid.Hour, Gone: 20 * grid.Minute})
	surely := now + c.cfg.longer(20*grid.Minute)

	now += 3 * grid.Minute
	b := newBook(t, "b", 4)
	var crashed grid.Outbox
	b.recoverLent(now, &entry{Lease: Lease{ID: id, Lent: true, Processors: 2, State: Active, Epoch: 7, Via: 9}}, &crashed)
	told, ok := crashed.Sends[0].Message.(*Released)
	if !ok || told.Cause != Broken || told.Gone == 0 {
		t.Fatalf("the site that lent on tells its borrower %+v", crashed.Sends)
	}
	hear(told)
	if len(out.Locals) != 1 {
		t.Fatalf("the borrower's owner is told %+v", out.Locals)
	}
	if ended, ok := out.Locals[0].(*Ended); !ok || ended.Gone != surely {
		t.Errorf("the borrower's owner is told %+v, want that the processors are back at %v", out.Locals[0], surely)
	}
}
