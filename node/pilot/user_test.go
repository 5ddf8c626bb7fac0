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

// TestGangIsNotToBlameForWhoDoesNotAnswer: a component that is not ready in time makes a job fail that was to
// start. One that had begun before the daemon was restarted is lost, and may be started again.
func TestGangIsNotToBlameForWhoDoesNotAnswer(t *testing.T) {
	for _, before := range []string{"", "its own part", "nothing here"} {
		again := before != ""
		x, out := NewGangs(Config{Self: "a"}), &Outbox{}
		task := taskOf(1, 2)
		task.Gang = &grid.Gang{Task: task.ID, Each: 1, Parts: []grid.GangPart{
			{Site: "a", Processors: 1}, {Site: "b", Processors: 1, Pilot: grid.Pilot{Site: "b", Key: 1}},
		}}
		start := &Start{Task: *task}
		switch own := grid.SquadTask(task.ID, 0); before {
		case "its own part":
			x.Step(0, &Found{ID: own, Tasks: 1}, out)
			start.Begun = []grid.TaskID{own}
		case "nothing here": // that it had begun elsewhere was not heard any more
			start.Task.Again = true
		}
		x.Step(0, start, out)
		x.Step(0, &Gathered{Gang: task.ID}, out)
		x.Step(ReadyMax, grid.Tick{}, out)
		for part := range 2 {
			x.Step(ReadyMax, &SquadEnded{ID: grid.SquadTask(task.ID, part), End: End{ExitCode: ExitCancelled, Reason: becauseAnother}}, out)
		}
		x.Step(ReadyMax, &Collected{Gang: task.ID}, out)
		ended, yes := out.Effects[len(out.Effects)-1].(Ended)
		if !yes || ended.Ended.Lost != again {
			t.Errorf("begun before: %q; at the end %+v", before, out.Effects[len(out.Effects)-1])
		}
	}
}
