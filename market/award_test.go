package market

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/market/keepalive"
)

// TestHomeOutlivesExecution: when home may run a job again, the executing site has ended it, also
// if both clocks are a thousandth off, one each way, and it took half of EndGrace to die.
func TestHomeOutlivesExecution(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := grid.Time(rapid.Int64Range(0, int64(10*grid.Day)).Draw(t, "start"))
		limit := grid.Time(rapid.Int64Range(1, int64(100*grid.Day)).Draw(t, "limit"))
		slow, fast := 1-0.001, 1+0.001
		there := float64(untilThere(start, limit)) / slow // true time, as its clock is slow
		home := float64(untilHome(0, start, limit)) / fast
		if dead := there + float64(EndGrace/2); home < dead {
			t.Fatalf("home runs it again %v before it is dead", grid.Time(dead-home))
		}
	})
}

// TestBelatedLosses: what a site has lost of an execution on which home counts no more, home hears all the
// same, and the site is acknowledged.
func TestBelatedLosses(t *testing.T) {
	n := newNetwork(t)
	home := n.add(Config{Offer: Offer{Site: "a", Resources: grid.Resources{Processors: 1}, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000}}}, 0)
	for losses := range uint32(2) {
		var out grid.Outbox
		task := grid.TaskID{Job: grid.JobID{Lo: 1}, Epoch: 3}
		home.agent.Step(home.clock(), &grid.Delivery{From: "b", Message: &JobCompletion{Task: task, Abandoned: true, Losses: losses}}, &out)
		if len(out.Sends) != 1 || out.Sends[0].To != "b" || out.Sends[0].Message.MessageKind() != (&Acknowledge{}).MessageKind() {
			t.Errorf("losses %d: %+v is sent, want an acknowledgement", losses, out.Sends)
		}
		if losses == 0 {
			if len(out.Locals) != 0 {
				t.Errorf("without a loss home is told %+v", out.Locals[0])
			}
		} else if told, ok := out.Locals[0].(*Belated); !ok || *told != (Belated{task, "b", losses}) {
			t.Errorf("home is told %+v", out.Locals[0])
		}
	}
}

// elsewhere returns site a, whose job has an execution of an epoch at b.
func elsewhere(t *testing.T, epoch uint32) (home *Agent, job grid.JobID) {
	t.Helper()
	node := newNetwork(t).add(Config{Offer: Offer{Site: "a", Resources: grid.Resources{Processors: 1}, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000}}}, 0)
	j := &grid.Job{ID: grid.JobID{Lo: 1}, Home: "a", Resources: grid.Resources{Processors: 1}, Tasks: 1, Estimate: grid.Hour, Deadline: grid.Never}
	node.agent.Step(0, &Resume{Job: j, Award: Award{Site: "b", Epoch: epoch, Hold: 7, Lease: grid.Minute, Until: grid.Day}}, new(grid.Outbox))
	return node.agent, j.ID
}

// TestCancelledWhileItsSiteWasAway: a site that asks for the lease of an execution to be renewed which
// home has cancelled is asked to end it each time, though it asks more often than home would.
func TestCancelledWhileItsSiteWasAway(t *testing.T) {
	home, job := elsewhere(t, 1)
	var out grid.Outbox
	home.Step(0, &Stop{Job: job, Cause: "enough"}, &out)
	for i := range 20 {
		out.Reset()
		now := grid.Time(i+1) * grid.Second / 2
		home.Step(now, &grid.Delivery{From: "b", Message: &keepalive.Renew{Held: []keepalive.Held{{Task: grid.TaskID{Job: job, Epoch: 1}, Begun: true}}}}, &out)
		if len(out.Sends) != 2 || out.Sends[0].Message.MessageKind() != (&Cancel{}).MessageKind() || out.Sends[0].To != "b" {
			t.Fatalf("renewal %d: %+v is sent, want a cancellation before the answer", i, out.Sends)
		}
	}
}

// TestOldExecutionIsNotRenewed: a site that has an execution whose job home has placed there anew is
// told that nobody wants that one, and may let only the new one go on.
func TestOldExecutionIsNotRenewed(t *testing.T) {
	home, job := elsewhere(t, 2)
	var out grid.Outbox
	old, newer := grid.TaskID{Job: job, Epoch: 1}, grid.TaskID{Job: job, Epoch: 2}
	home.Step(grid.Second, &grid.Delivery{From: "b", Message: &keepalive.Renew{Held: []keepalive.Held{{Task: old, Begun: true}, {Task: newer, Begun: true}}}}, &out)
	answer, ok := out.Sends[0].Message.(*keepalive.Renewed)
	if !ok || !slices.Equal(answer.Renewed, []grid.TaskID{newer}) || !slices.Equal(answer.Unwanted, []grid.TaskID{old}) {
		t.Errorf("the answer is %+v, want %v renewed and %v unwanted", out.Sends[0].Message, newer, old)
	}
}

// TestResumedMayHaveArrived: after a restart nobody knows how many copies of a submission were sent, so that
// one which does not arrive says nothing.
func TestResumedMayHaveArrived(t *testing.T) {
	home, _ := elsewhere(t, 1)
	var out grid.Outbox
	home.Step(resumeSpread, grid.Tick{}, &out)
	if len(out.Sends) != 1 {
		t.Fatalf("%+v is sent, want the submission once more", out.Sends)
	}
	home.Step(resumeSpread, &grid.Undelivered{To: "b", Message: out.Sends[0].Message}, &out)
	if len(out.Locals) != 0 {
		t.Errorf("home is told %+v, want nothing", out.Locals[0])
	}
}

// TestEachCopyWasLost: a job is certainly nowhere if no copy of its submission has arrived.
func TestEachCopyWasLost(t *testing.T) {
	home, job := elsewhere(t, 1)
	w := home.broker.away
	m := w.jobs[job]
	m.certain, m.copies = true, 3
	s := &JobSubmission{Job: m.job, Epoch: 1}
	var out grid.Outbox
	for copies := range m.copies {
		if len(out.Locals) != 0 {
			t.Fatalf("after %d of %d copies home is told %+v", copies, m.copies, out.Locals[0])
		}
		w.unsubmitted(0, "b", s, &out)
	}
	if len(out.Locals) != 1 {
		t.Errorf("all copies are lost, and home is told %+v", out.Locals)
	}
}

// TestCancelledBeforeItIsPaid: a site whose guarantee is not used, as there is no cheque yet, is told to let it go.
func TestCancelledBeforeItIsPaid(t *testing.T) {
	home, job := elsewhere(t, 1)
	home.broker.away.jobs[job].phase = paying
	var out grid.Outbox
	home.Step(0, &Stop{Job: job, Cause: "enough"}, &out)
	if len(out.Sends) != 1 || out.Sends[0].To != "b" {
		t.Fatalf("%+v is sent, want a cancellation to b", out.Sends)
	}
	if c, ok := out.Sends[0].Message.(*Cancel); !ok || c.Hold != 7 || c.Task != (grid.TaskID{Job: job, Epoch: 1}) {
		t.Errorf("%+v is sent, want a cancellation of guarantee 7", out.Sends[0].Message)
	}
	if len(out.Locals) != 1 {
		t.Errorf("home is told %+v, want that nothing is there", out.Locals)
	}
}

// TestCastOutBeforeItIsPaid: a job does not go to a site that is a member no longer when its cheque is there. One
// that has gone is waited for.
func TestCastOutBeforeItIsPaid(t *testing.T) {
	for of, want := range map[phase]int{paying: 1, submitting: 0, running: 0} {
		home, job := elsewhere(t, 1)
		home.broker.away.jobs[job].phase = of
		var out grid.Outbox
		home.CastOut(0, "c", &out)
		if len(out.Locals) != 0 {
			t.Errorf("phase %v: another site is cast out, and home is told %+v", of, out.Locals)
		}
		home.CastOut(0, "b", &out)
		if len(out.Locals) != want || len(home.broker.away.jobs) != 1-want {
			t.Errorf("phase %v: home is told %+v, and has %d jobs away, want %d words", of, out.Locals, len(home.broker.away.jobs), want)
		}
	}
}

// TestAcknowledgedIsOver: a result is sent until its home has it, and then no more.
func TestAcknowledgedIsOver(t *testing.T) {
	b := newNetwork(t).add(Config{Offer: Offer{Site: "b", Resources: grid.Resources{Processors: 1}, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000}}}, 0).agent
	job := &grid.Job{ID: grid.JobID{Lo: 1}, Home: "a", Resources: grid.Resources{Processors: 1}, Tasks: 1, Estimate: grid.Hour, Deadline: grid.Never}
	task := grid.TaskID{Job: job.ID, Epoch: 1}
	calm := b.NextTimer()
	var out grid.Outbox
	b.Step(grid.Second, &Restore{Job: job, Award: Award{Site: "b", Epoch: 1, Hold: 7}, Over: true}, &out)
	b.Step(grid.Second, &Ended{Task: task}, &out)
	for range 3 {
		if len(out.Sends) != 1 {
			t.Fatalf("%+v is sent, want the result", out.Sends)
		}
		out.Reset()
		b.Step(b.NextTimer(), grid.Tick{}, &out)
	}
	out.Reset()
	b.Step(grid.Hour, &grid.Delivery{From: "a", Message: &Acknowledge{Task: task, Of: wire.MarketJobCompletion}}, &out)
	if next := b.NextTimer(); next != calm || len(out.Locals) != 1 {
		t.Errorf("home has it; the next timer is at %v, want %v, and this site is told %+v", next, calm, out.Locals)
	}
}
