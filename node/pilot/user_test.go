package pilot

import (
	"testing"

	"gridnode/grid"
)

// TestNoSessionNumberTwice: a borrower whose clock was set back begins behind what its lender has
// seen, once; a number that was used before would have the lender answer in the other session.
func TestNoSessionNumberTwice(t *testing.T) {
	u, out := NewUser(), &Outbox{}
	connects := func() (number uint64) {
		t.Helper()
		for _, e := range out.Effects {
			if c, ok := e.(Connect); ok && number < c.Session {
				number = c.Session
			}
		}
		if number == 0 {
			t.Fatalf("no new session: %+v", out.Effects)
		}
		out.Effects = out.Effects[:0]
		return number
	}
	task := taskOf(1, 1)
	task.Pilot = grid.Pilot{Site: "b", Key: 1}
	now := grid.Second
	u.Step(now, &Start{Task: *task}, out)
	last := connects()
	const seen = 1 << 40
	for round := range 3 {
		u.Step(now, &Connected{Site: "b", Session: last}, out)
		if round == 0 {
			u.Step(now, &Reported{Site: "b", Session: last, Report: &Report{Kind: ReportSuperseded, Session: seen}}, out)
		}
		u.Step(now, &Disconnected{Site: "b", Session: last}, out)
		now = u.NextTimer()
		u.Step(now, grid.Tick{}, out)
		number := connects()
		if number <= last || number <= seen {
			t.Errorf("session %d follows %d, the lender has seen %d", number, last, uint64(seen))
		}
		last = number
	}
}
