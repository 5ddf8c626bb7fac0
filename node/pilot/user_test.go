package pilot

import (
	"slices"
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

// effects returns those of one type, in order, and empties the outbox.
func effects[E Effect](out *Outbox) (found []E) {
	for _, e := range out.Effects {
		if is, ok := e.(E); ok {
			found = append(found, is)
		}
	}
	out.Reset()
	return found
}

// borrowerOf returns a user who has started a task at each of these sites, and the sessions that
// it begins for them.
func borrowerOf(now grid.Time, sites ...grid.SiteID) (*User, *Outbox, []Connect) {
	u, out := NewUser(), &Outbox{}
	for n, site := range sites {
		task := taskOf(uint64(n+1), 1)
		task.Pilot = grid.Pilot{Site: site, Key: 1}
		u.Step(now, &Start{Task: *task}, out)
	}
	return u, out, effects[Connect](out)
}

// TestPausesBetweenSessions: who cannot be reached is tried again after pauses that grow, up to a
// bound; after a session that lasted they begin anew. Words of another session change nothing, and
// sites that are due at the same time are tried at that time.
func TestPausesBetweenSessions(t *testing.T) {
	now := grid.Second
	u, out, begun := borrowerOf(now, "b", "c")
	pause := PauseMin
	for range 10 {
		for _, c := range begun {
			u.Step(now, &Connected{Site: c.Site, Session: c.Session - 1}, out)
			if sent := effects[Send](out); len(sent) > 0 {
				t.Fatalf("by a session that is over it is connected: %+v", sent)
			}
			u.Step(now, &Disconnected{Site: c.Site, Session: c.Session - 1}, out)
			if next := u.NextTimer(); next <= now {
				t.Fatalf("by the end of another session it is due at %v", next)
			}
			u.Step(now, &Disconnected{Site: c.Site, Session: c.Session}, out)
		}
		if next := u.NextTimer(); next != now+pause {
			t.Fatalf("it is tried again after %v, want %v", next-now, pause)
		}
		pause, now = min(2*pause, PauseMax), now+pause
		u.Step(now, grid.Tick{}, out)
		if begun = effects[Connect](out); len(begun) != 2 {
			t.Fatalf("sessions begin with %+v", begun)
		}
	}
	if pause != PauseMax {
		t.Errorf("the pause has grown to %v", pause)
	}
	for _, lasts := range []grid.Time{PauseMax, PauseMax + 1} {
		want := PauseMin
		if lasts == PauseMax {
			want = PauseMax
		}
		for _, c := range begun {
			u.Step(now, &Connected{Site: c.Site, Session: c.Session}, out)
		}
		if sent := effects[Send](out); len(sent) != 2 {
			t.Errorf("connected, it sends %+v", sent)
		}
		now += lasts
		for _, c := range begun {
			u.Step(now, &Disconnected{Site: c.Site, Session: c.Session}, out)
		}
		if next := u.NextTimer(); next != now+want {
			t.Errorf("after a session of %v it is tried again after %v, want %v", lasts, next-now, want)
		}
		now = u.NextTimer()
		u.Step(now, grid.Tick{}, out)
		begun = effects[Connect](out)
	}
}

// TestRefusedTasksAreAskedForAgain: each after its own pause, also if another one is refused later.
func TestRefusedTasksAreAskedForAgain(t *testing.T) {
	now := grid.Second
	u, out, begun := borrowerOf(now, "b", "b")
	u.Step(now, &Connected{Site: "b", Session: begun[0].Session}, out)
	sent := effects[Send](out)
	if len(sent) != 2 {
		t.Fatalf("sent %+v", sent)
	}
	const between = RefusedPause / 2
	for n, s := range sent {
		u.Step(now+between*grid.Time(n), &Reported{Site: "b", Session: s.Session, Report: &Report{Kind: ReportRefused, ID: s.Order.ID}}, out)
	}
	for n, s := range sent {
		at := now + between*grid.Time(n) + RefusedPause
		if next := u.NextTimer(); next != at {
			t.Errorf("due after %v, want %v", next-now, at-now)
		}
		u.Step(at, grid.Tick{}, out)
		if again := effects[Send](out); len(again) != 1 || again[0].Order.ID != s.Order.ID {
			t.Errorf("asked for again: %+v", again)
		}
	}
}

// TestWhatHasBegunIsReady: a squad that had begun before a restart is not waited for.
func TestWhatHasBegunIsReady(t *testing.T) {
	for _, begun := range []bool{false, true} {
		u, out := NewUser(), &Outbox{}
		task := taskOf(1, 1)
		task.Pilot = grid.Pilot{Site: "b", Key: 1}
		u.Step(0, &Hold{Task: *task, Begun: begun}, out)
		if ready := len(out.Locals) == 1; ready != begun {
			t.Errorf("begun %v: it says %+v", begun, out.Locals)
		}
	}
}

// gangOf returns the home of a gang with a part of its own and one elsewhere.
func gangOf(sites ...grid.SiteID) (*Gangs, *Outbox, *grid.Task) {
	task := taskOf(1, int64(len(sites)))
	task.Gang = &grid.Gang{Task: task.ID, Each: 1}
	for _, site := range sites {
		part := grid.GangPart{Site: site, Processors: 1}
		if site != "a" {
			part.Pilot = grid.Pilot{Site: site, Key: 1}
		}
		task.Gang.Parts = append(task.Gang.Parts, part)
	}
	return NewGangs(Config{Self: "a"}), &Outbox{}, task
}

// TestGangBegins: with what was gathered for its tasks, and nothing is waited for any more.
func TestGangBegins(t *testing.T) {
	x, out, task := gangOf("a", "a")
	x.Step(0, &Start{Task: *task}, out)
	x.Step(0, &SquadEnded{ID: grid.SquadTask(task.ID, 7)}, out) // there is none
	x.Step(0, &SquadEnded{ID: taskOf(9, 1).ID}, out)
	out.Reset()
	x.Step(grid.Second, &Gathered{Gang: task.ID, Addresses: []string{"here:1"}, Inputs: []string{"genome"}}, out)
	started := effects[StartOwn](out)
	for _, s := range started {
		if squad := s.Task.Squad; !slices.Equal(squad.Addresses, []string{"here:1"}) || !slices.Equal(squad.Inputs, []string{"genome"}) {
			t.Errorf("started with %+v", squad)
		}
	}
	if next := x.NextTimer(); len(started) != 2 || next != grid.Never {
		t.Errorf("%d squads start, and %v is waited for", len(started), next)
	}
}

// TestFoundGangIsForgotten: of a gang of an earlier run, all squads that were found.
func TestFoundGangIsForgotten(t *testing.T) {
	x, out, task := gangOf("a", "a", "a")
	own := []grid.TaskID{grid.SquadTask(task.ID, 1), grid.SquadTask(task.ID, 2)}
	for _, id := range own {
		x.Step(0, &Found{ID: id, Tasks: 1}, out)
	}
	x.Step(0, &Kill{Task: *task}, out)
	for _, id := range own {
		x.Step(0, &SquadEnded{ID: id, End: End{ExitCode: ExitCancelled}}, out)
	}
	x.Step(0, &Collected{Gang: task.ID}, out)
	out.Reset()
	x.Step(0, &Acknowledge{IDs: []grid.TaskID{task.ID}}, out)
	if done := effects[AcknowledgeOwn](out); len(done) != 1 || !slices.Equal(done[0].IDs, own) {
		t.Errorf("acknowledged %+v, want %v", done, own)
	}
}

// TestGangIsNotToBlameForWhoDoesNotAnswer: a component that is not ready in time makes a job fail that was to
// start. One that had begun before the daemon was restarted is lost, and may be started again.
func TestGangIsNotToBlameForWhoDoesNotAnswer(t *testing.T) {
	for _, before := range []string{"", "its own part", "nothing here"} {
		again := before != ""
		x, out, task := gangOf("a", "b")
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
		if !yes || ended.Ended.Lost != again || !again && ended.Ended.Result.Start != ReadyMax {
			t.Errorf("begun before: %q; at the end %+v", before, out.Effects[len(out.Effects)-1])
		}
	}
}

// TestKillOfATaskThatIsNotThere: its end is told at once, as nobody else will.
func TestKillOfATaskThatIsNotThere(t *testing.T) {
	u, out := NewUser(), &Outbox{}
	task := taskOf(1, 1)
	u.kill(grid.Second, task, out)
	ended := effects[Ended](out)
	if len(ended) != 1 || ended[0].Ended.ID != task.ID || !ended[0].Ended.Lost {
		t.Errorf("told %+v, want once that %v is lost", ended, task.ID)
	}
}

// TestReportOfAnOlderSession: what is told in a session that is over changes nothing.
func TestReportOfAnOlderSession(t *testing.T) {
	u, out, connects := borrowerOf(grid.Second, "b")
	id := u.links["b"].inTurn()[0].task.ID
	session := connects[0].Session
	u.Step(grid.Second, &Connected{Site: "b", Session: session}, out)
	out.Reset()
	u.Step(grid.Second, &Reported{Site: "b", Session: session - 1, Report: &Report{Kind: ReportEnded, ID: id}}, out)
	if u.tasks[id].over || len(out.Effects) > 0 {
		t.Errorf("a report of an older session has ended the task: %t, %+v", u.tasks[id].over, out.Effects)
	}
}

// TestKilledWhileItBegins: a task that is to be ended, and of which its site says meanwhile that it
// had begun before a restart, is told so once in a session.
func TestKilledWhileItBegins(t *testing.T) {
	u, out := NewUser(), &Outbox{}
	squad := taskOf(1, 1)
	squad.ID, squad.Pilot = grid.SquadTask(squad.ID, 0), grid.Pilot{Site: "b", Key: 1}
	u.Step(grid.Second, &Hold{Task: *squad}, out)
	session := effects[Connect](out)[0].Session
	u.Step(grid.Second, &Connected{Site: "b", Session: session}, out)
	u.Step(grid.Second, &Kill{Task: grid.Task{ID: squad.ID}}, out)
	u.Step(grid.Second, &Reported{Site: "b", Session: session, Report: &Report{Kind: ReportBegun, ID: squad.ID}}, out)
	if err := u.audit(grid.Second); err != nil {
		t.Error(err)
	}
	u.speak(grid.Second, u.tasks[squad.ID], out)
	var kinds []OrderKind
	for _, s := range effects[Send](out) {
		kinds = append(kinds, s.Order.Kind)
	}
	if want := []OrderKind{OrderPrepare, OrderKill}; !slices.Equal(kinds, want) {
		t.Errorf("orders %v, want %v", kinds, want)
	}
}
