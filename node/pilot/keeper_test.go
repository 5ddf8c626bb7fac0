package pilot

import (
	"slices"
	"strings"
	"testing"

	"gridnode/grid"
)

// keeperWith returns the pilots of b, with lease 1 of a on so many processors, and what is
// told when orders come in session 1.
func keeperWith(t *testing.T, processors int64) func(o Order) []Report {
	t.Helper()
	k, out := NewKeeper("b"), &Outbox{}
	k.Step(0, &Keep{Key: 1, Borrower: "a", Processors: processors}, out)
	k.Step(0, &Up{Key: 1}, out)
	return func(o Order) (told []Report) {
		o.Tasks = 1
		out.Reset()
		k.Step(0, &Ordered{From: "a", Session: 1, Order: &o}, out)
		for _, e := range out.Effects {
			if tell, is := e.(Tell); is {
				told = append(told, tell.Report)
			}
		}
		return told
	}
}

func taskOf(n uint64, processors int64) *grid.Task {
	id := grid.TaskID{Job: grid.JobID{Hi: 1, Lo: n}, Epoch: 1}
	return &grid.Task{ID: id, Job: &grid.Job{ID: id.Job, Home: "a", Resources: grid.Resources{Processors: processors}}, Limit: grid.Hour}
}

// TestUnacknowledgedEndsAreBounded: a borrower that acknowledges nothing does not grow the
// lender for ever, and what was there before goes on.
func TestUnacknowledgedEndsAreBounded(t *testing.T) {
	order := keeperWith(t, 1)
	for n := range uint64(TasksMax) {
		if told := order(Order{Kind: OrderKill, Key: 1, ID: taskOf(n+1, 1).ID}); len(told) != 1 || told[0].Kind != ReportEnded {
			t.Fatalf("task %d: %+v", n, told)
		}
	}
	more := taskOf(TasksMax+1, 1)
	for _, o := range []Order{{Kind: OrderRun, Key: 1, ID: more.ID, Task: more}, {Kind: OrderKill, Key: 1, ID: more.ID}} {
		if told := order(o); len(told) != 1 || told[0].Kind != ReportRefused || !strings.Contains(told[0].Reason, "not acknowledged") {
			t.Errorf("order of kind %d: %+v, want a refusal", o.Kind, told)
		}
	}
	if told := order(Order{Kind: OrderAcknowledge, Key: 1, ID: taskOf(1, 1).ID}); len(told) != 1 || told[0].Kind != ReportForgotten {
		t.Errorf("acknowledgement: %+v", told)
	}
	if told := order(Order{Kind: OrderRun, Key: 1, ID: more.ID, Task: more}); len(told) != 1 || told[0].Kind != ReportBegun {
		t.Errorf("after an acknowledgement: %+v, want it to begin", told)
	}
}

// TestWaitingOrdersAreBounded: so are orders to a pilot that is not there yet.
func TestWaitingOrdersAreBounded(t *testing.T) {
	k, out := NewKeeper("b"), &Outbox{}
	k.Step(0, &Keep{Key: 1, Borrower: "a", Processors: 1}, out)
	for n := range uint64(TasksMax + 1) {
		out.Reset()
		k.Step(0, &Ordered{From: "a", Session: 1, Order: &Order{Kind: OrderKill, Key: 1, ID: taskOf(n+1, 1).ID, Tasks: 1}}, out)
		if refused := len(out.Effects) > 0; refused != (n == TasksMax) {
			t.Fatalf("order %d: %+v", n, out.Effects)
		}
	}
}

// TestSquadForAnotherSite: a squad that is to run elsewhere is not taken.
func TestSquadForAnotherSite(t *testing.T) {
	order := keeperWith(t, 4)
	task := taskOf(1, 1)
	g := &grid.Gang{Task: task.ID, Each: 1, Parts: []grid.GangPart{{Site: "c", Processors: 1}, {Site: "b", Processors: 1}}}
	for number, want := range []string{"is to run at c", ""} {
		squad := *task
		squad.ID, squad.Squad = grid.SquadTask(task.ID, number), &grid.Squad{Gang: g, Part: number}
		told := order(Order{Kind: OrderPrepare, Key: 1, ID: squad.ID, Task: &squad})
		if refused := len(told) == 1 && strings.Contains(told[0].Reason, want); refused != (want != "") {
			t.Errorf("component %d: %+v, want %q", number, told, want)
		}
	}
}

// TestOrderBehindTheEndOfItsSession: an order that arrives when its session is over
// changes nothing; its borrower gives it again.
func TestOrderBehindTheEndOfItsSession(t *testing.T) {
	k, out := NewKeeper("b"), &Outbox{}
	k.Step(0, &Keep{Key: 1, Borrower: "a", Processors: 1}, out)
	k.Step(0, &Up{Key: 1}, out)
	task := taskOf(1, 1)
	order := &Order{Kind: OrderRun, Key: 1, ID: task.ID, Task: task, Tasks: 1}
	k.Step(0, &Ordered{From: "a", Session: 5, Order: &Order{Kind: OrderAcknowledge, Key: 1, ID: task.ID}}, out)
	k.Step(0, &Closed{From: "a", Session: 5}, out)
	out.Reset()
	if k.Step(0, &Ordered{From: "a", Session: 5, Order: order}, out); len(out.Effects) > 0 {
		t.Errorf("in a session that is over: %+v", out.Effects)
	}
	if k.Step(0, &Ordered{From: "a", Session: 6, Order: order}, out); len(out.Effects) == 0 {
		t.Error("in a new session nothing happens")
	}
}

// TestWaitingOrdersOfAnOlderSession: orders to a pilot that is not there yet are those of their session:
// if the borrower has come back in another one it gives them again, and nobody hears of the old ones.
func TestWaitingOrdersOfAnOlderSession(t *testing.T) {
	for name, tt := range map[string]struct {
		then  []grid.Input
		heard int // of what is told when the pilot is there, or gone
	}{
		"it is there":                  {[]grid.Input{&Up{Key: 1}}, 1},
		"the session is over":          {[]grid.Input{&Closed{From: "a", Session: 1}, &Up{Key: 1}}, 0},
		"another session is over":      {[]grid.Input{&Closed{From: "a", Session: 7}, &Up{Key: 1}}, 1},
		"it is released":               {[]grid.Input{&Release{Key: 1}}, 1},
		"released after the session":   {[]grid.Input{&Closed{From: "a", Session: 1}, &Release{Key: 1}}, 0},
		"another one is released":      {[]grid.Input{&Release{Key: 2}, &Up{Key: 1}}, 1},
		"the borrower is in a new one": {[]grid.Input{&Ordered{From: "a", Session: 2, Order: &Order{Kind: OrderKill, Key: 9, ID: taskOf(9, 1).ID, Tasks: 1}}, &Up{Key: 1}}, 0},
		"released in a new one":        {[]grid.Input{&Ordered{From: "a", Session: 2, Order: &Order{Kind: OrderKill, Key: 9, ID: taskOf(9, 1).ID, Tasks: 1}}, &Release{Key: 1}}, 0},
	} {
		k, out := NewKeeper("b"), &Outbox{}
		k.Step(0, &Keep{Key: 1, Borrower: "a", Processors: 1}, out)
		task := taskOf(1, 1)
		k.Step(0, &Ordered{From: "a", Session: 1, Order: &Order{Kind: OrderRun, Key: 1, ID: task.ID, Task: task, Tasks: 1}}, out)
		out.Reset()
		for _, in := range tt.then {
			k.Step(0, in, out)
		}
		told, launched := 0, 0
		for _, e := range out.Effects {
			switch e := e.(type) {
			case Tell:
				if e.Report.ID == task.ID {
					told++
				}
			case Launch:
				launched++
			}
		}
		if told != tt.heard || launched > told {
			t.Errorf("%s: %d reports, and it was launched %d times; want %d: %+v", name, told, launched, tt.heard, out.Effects)
		}
	}
}

// TestWhatIsToldOfTasksThatAreOver: a borrower hears once in each session that a task has begun, if
// it had, and each time that it asks how it ended. A task of which the lender knows nothing but its
// end has run.
func TestWhatIsToldOfTasksThatAreOver(t *testing.T) {
	task := taskOf(1, 1)
	order := func(session uint64, kind OrderKind) *Ordered {
		return &Ordered{From: "a", Session: session, Order: &Order{Kind: kind, Key: 1, ID: task.ID, Task: task, Tasks: 1}}
	}
	over := &Over{Key: 1, ID: task.ID, End: End{ExitCode: 3}}
	unstarted := &Unstarted{Key: 1, ID: task.ID, Why: "no such program"}
	for _, tt := range []struct {
		name string
		done []grid.Input
		told []ReportKind
		exit int32
	}{
		{"it runs", []grid.Input{order(1, OrderRun)}, []ReportKind{ReportBegun}, 0},
		{"it has ended", []grid.Input{order(1, OrderRun), over}, []ReportKind{ReportBegun, ReportEnded}, 3},
		{"told twice", []grid.Input{order(1, OrderRun), over, over}, []ReportKind{ReportBegun, ReportEnded}, 3},
		{"in its session", []grid.Input{order(1, OrderRun), over, order(1, OrderRun)}, []ReportKind{ReportBegun, ReportEnded, ReportEnded}, 3},
		{"in the next one", []grid.Input{order(1, OrderRun), over, order(2, OrderRun)}, []ReportKind{ReportBegun, ReportEnded, ReportBegun, ReportEnded}, 3},
		{"it never ran", []grid.Input{order(1, OrderKill), order(2, OrderRun)}, []ReportKind{ReportEnded, ReportEnded}, ExitCancelled},
		{"after a restart", []grid.Input{over, order(2, OrderRun)}, []ReportKind{ReportBegun, ReportEnded}, 3},
		{"it cannot be started", []grid.Input{order(1, OrderRun), unstarted}, []ReportKind{ReportBegun, ReportEnded}, ExitNoStart},
		{"one that is over cannot", []grid.Input{order(1, OrderRun), over, unstarted}, []ReportKind{ReportBegun, ReportEnded}, 3},
		{"nobody knows which one cannot", []grid.Input{unstarted, order(1, OrderRun)}, []ReportKind{ReportBegun}, 0},
	} {
		c, out := New(Config{Self: "b"}), &Outbox{}
		c.Step(0, &Keep{Key: 1, Borrower: "a", Processors: 1}, out)
		c.Step(0, &Up{Key: 1}, out)
		if number, open := c.Session("a"); number != 0 || open {
			t.Errorf("before the first there is session %d, open %v", number, open)
		}
		last, exit := uint64(0), int32(0)
		for _, in := range tt.done {
			if o, is := in.(*Ordered); is {
				last = o.Session
			}
			c.Step(0, in, out)
		}
		var told []ReportKind
		for _, e := range effects[Tell](out) {
			told = append(told, e.Report.Kind)
			exit = e.Report.End.ExitCode
		}
		if !slices.Equal(told, tt.told) || exit != tt.exit {
			t.Errorf("%s: told %v, exit code %d; want %v and %d", tt.name, told, exit, tt.told, tt.exit)
		}
		for _, closed := range []bool{false, true} {
			if number, open := c.Session("a"); number != last || open == closed {
				t.Errorf("%s: session %d is open: %v, closed %v", tt.name, number, open, closed)
			}
			c.Step(0, &Closed{From: "a", Session: last}, out)
		}
	}
}

// TestOwnerDoesNotPermit: what the owner's rules do not allow is refused, and says why.
func TestOwnerDoesNotPermit(t *testing.T) {
	var asked []grid.SiteID
	c := New(Config{Self: "b", Permits: func(_ grid.Time, from grid.SiteID, job *grid.Job) string {
		asked = append(asked, from)
		if job.ID.Lo == 1 {
			return "not now"
		}
		return ""
	}})
	out := &Outbox{}
	c.Step(0, &Keep{Key: 1, Borrower: "a", Processors: 2}, out)
	c.Step(0, &Up{Key: 1}, out)
	for n, want := range []string{"not now", ""} {
		task := taskOf(uint64(n+1), 1)
		out.Reset()
		c.Step(0, &Ordered{From: "a", Session: 1, Order: &Order{Kind: OrderRun, Key: 1, ID: task.ID, Task: task, Tasks: 1}}, out)
		refused := ""
		for _, e := range out.Effects {
			if tell, is := e.(Tell); is && tell.Report.Kind == ReportRefused {
				refused = tell.Report.Reason
			}
		}
		if refused != want || len(out.Locals) > 0 {
			t.Errorf("task %d is refused with %q, want %q", n+1, refused, want)
		}
	}
	if len(asked) != 2 || asked[0] != "a" {
		t.Errorf("the owner was asked about %v", asked)
	}
}

// TestSquadEndsTogether: if one task of a squad fails the others are ended, and the squad is over with the last.
func TestSquadEndsTogether(t *testing.T) {
	for _, tt := range []struct {
		exit  int32
		stops int // after the first of two has ended
	}{{0, 0}, {3, 1}} {
		k, out := NewKeeper("b"), &Outbox{}
		k.Step(0, &Keep{Key: 1, Borrower: "a", Processors: 2}, out)
		k.Step(0, &Up{Key: 1}, out)
		task := taskOf(1, 2)
		task.Job.Tasks = 2
		k.Step(0, &Ordered{From: "a", Session: 1, Order: &Order{Kind: OrderRun, Key: 1, ID: task.ID, Task: task, Tasks: 2}}, out)
		out.Reset()
		k.Step(0, &Over{Key: 1, ID: task.ID, Number: 0, End: End{ExitCode: tt.exit}}, out)
		stops, told := 0, 0
		for _, e := range out.Effects {
			switch e.(type) {
			case Stop:
				stops++
			case Tell:
				told++
			}
		}
		if stops != tt.stops || told != 0 {
			t.Errorf("exit code %d of one: %d are ended and %d told; want %d and none: %+v", tt.exit, stops, told, tt.stops, out.Effects)
		}
		out.Reset()
		k.Step(0, &Over{Key: 1, ID: task.ID, Number: 1}, out)
		if end := effects[Tell](out); len(end) != 1 || end[0].Report.Kind != ReportEnded || end[0].Report.End.ExitCode != tt.exit {
			t.Errorf("exit code %d: told %+v, want the end of the squad", tt.exit, end)
		}
	}
}

// TestAcknowledgedBeforeItsEnd: a task that runs is not forgotten, whatever its borrower says that it knows of.
func TestAcknowledgedBeforeItsEnd(t *testing.T) {
	order := keeperWith(t, 1)
	task := taskOf(1, 1)
	order(Order{Kind: OrderRun, Key: 1, ID: task.ID, Task: task})
	order(Order{Kind: OrderAcknowledge, Key: 1, ID: task.ID})
	if told := order(Order{Kind: OrderRun, Key: 1, ID: taskOf(2, 1).ID, Task: taskOf(2, 1)}); len(told) != 1 || told[0].Kind != ReportRefused {
		t.Errorf("on the processor of a task that runs: %+v", told)
	}
	if told := order(Order{Kind: OrderKill, Key: 1, ID: task.ID}); len(told) > 0 {
		t.Errorf("of a task that is to end: %+v, want nothing before it has", told)
	}
}

// TestOldSessionIsNotObeyed: an order of the session before the newest starts nothing.
func TestOldSessionIsNotObeyed(t *testing.T) {
	k, out := NewKeeper("b"), &Outbox{}
	k.Step(0, &Keep{Key: 1, Borrower: "a", Processors: 2}, out)
	k.Step(0, &Up{Key: 1}, out)
	for n, session := range []uint64{7, 6} {
		task := taskOf(uint64(n+1), 1)
		out.Reset()
		k.Step(0, &Ordered{From: "a", Session: session, Order: &Order{Kind: OrderRun, Key: 1, ID: task.ID, Task: task, Tasks: 1}}, out)
		if launched := len(effects[Launch](out)) > 0; launched != (n == 0) {
			t.Errorf("an order of session %d, after 7: started %t", session, launched)
		}
	}
}

// TestPreparedUntilTheLeaseEnds: a task is prepared for as long as its lease lasts by now.
func TestPreparedUntilTheLeaseEnds(t *testing.T) {
	k, out := NewKeeper("b"), &Outbox{}
	for _, until := range []grid.Time{grid.Minute, grid.Hour} {
		k.Step(0, &Keep{Key: 1, Borrower: "a", Processors: 1, Until: until}, out)
	}
	k.Step(0, &Up{Key: 1}, out)
	task := taskOf(1, 1)
	task.Squad = &grid.Squad{Gang: &grid.Gang{Task: task.ID, Parts: []grid.GangPart{{Site: "b", Processors: 1}}}}
	k.Step(0, &Ordered{From: "a", Session: 1, Order: &Order{Kind: OrderPrepare, Key: 1, ID: task.ID, Task: task, Tasks: 1}}, out)
	if p := effects[Prepare](out); len(p) != 1 || p[0].Until != grid.Hour {
		t.Errorf("%+v, want it prepared until 1 h", p)
	}
}

// TestInputsAreBroughtUntilTheLeaseEnds: what a squad reads is brought until the lease ends as it was
// said last.
func TestInputsAreBroughtUntilTheLeaseEnds(t *testing.T) {
	k, out := NewKeeper("b"), &Outbox{}
	for _, until := range []grid.Time{grid.Hour, 2 * grid.Hour, grid.Minute} {
		k.Step(0, &Keep{Key: 1, Borrower: "a", Processors: 4, Until: until}, out)
		k.Step(0, &Up{Key: 1}, out)
		squad := taskOf(uint64(until), 1)
		gang := &grid.Gang{Task: taskOf(9, 1).ID, Each: 1, Parts: []grid.GangPart{{Site: "b", Processors: 1}}}
		squad.ID, squad.Squad = grid.SquadTask(squad.ID, 0), &grid.Squad{Gang: gang}
		out.Reset()
		k.Step(0, &Ordered{From: "a", Session: 1, Order: &Order{Kind: OrderPrepare, Key: 1, ID: squad.ID, Task: squad, Tasks: 1}}, out)
		if orders := effects[Prepare](out); len(orders) != 1 || orders[0].Until != until {
			t.Errorf("%+v, want one until %v", orders, until)
		}
	}
}
