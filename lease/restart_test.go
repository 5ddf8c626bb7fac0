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
