package market

import (
	"testing"

	"gridnode/grid"
	"gridnode/market/bank"
)

// TestAudit: a count that is wrong, and what is kept for a job that is not here, is found.
func TestAudit(t *testing.T) {
	task := grid.TaskID{Job: grid.JobID{Lo: 7}, Epoch: 1}
	for _, tt := range []struct {
		name  string
		spoil func(a *Agent)
		wrong bool
	}{
		{"nothing", func(*Agent) {}, false},
		{"a guest too many", func(a *Agent) { a.provider.admission.tenants.enter("x", 1, 2, 0) }, true},
		{"a job that is not counted", func(a *Agent) { a.provider.jobs[task.Job] = &remote{home: "x", task: task, width: 1} }, true},
		{"a job that is over", func(a *Agent) { a.provider.jobs[task.Job] = &remote{home: "x", task: task, width: 1, over: true} }, false},
		{"a guarantee that its site is not held to", func(a *Agent) {
			a.provider.admission.holds[task.Job] = &hold{home: "x", task: task, processors: 1}
			a.provider.admission.tenants.enter("x", 1, 1, 0)
			a.office.memory.at("x")
		}, true},
		{"processors of a site that is not proven", func(a *Agent) { a.provider.admission.unproven++ }, true},
		{"a negotiation that nobody waits for", func(a *Agent) { a.office.memory.at("x").underWay++ }, true},
		{"processors that are asked for no more", func(a *Agent) { a.office.memory.Asking("x", 4, grid.Hour) }, true},
		{"a lease without its job", func(a *Agent) { a.provider.held.Enter(0, "x", task, grid.Hour, grid.Hour) }, true},
		{"a cheque without its job", func(a *Agent) {
			a.office.desk.Take(&bank.Cheque{Payer: "x", Task: task, Expires: grid.Day}, new(grid.Outbox))
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNetwork(t)
			s := n.add(Config{Offer: Offer{Site: "self", Resources: grid.Resources{Processors: 4}, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000}, Price: grid.Credit}}, 0)
			s.agent.UseBank(bank.NewDesk(bank.Config{Self: "self", Bank: "bank"}, 1))
			tt.spoil(s.agent)
			if err := s.agent.Audit(); (err != nil) != tt.wrong {
				t.Errorf("%v", err)
			}
		})
	}
}

// lodging returns a site of which a may have guarantees, and how a asks for one of an execution of
// a job, and takes it up with a cheque. Both return what is sent.
func lodging(t *testing.T) (b *Agent, ask func(request uint64, epoch uint32) []grid.Send, submit func(r *Reply) []grid.Send) {
	t.Helper()
	n := newNetwork(t)
	node := n.add(Config{
		Offer: Offer{Site: "b", Resources: grid.Resources{Processors: 8}, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000}, Price: 100 * grid.Credit, Foreign: true},
	}, 0)
	node.agent.UseBank(bank.NewDesk(bank.Config{Self: "b"}, 1))
	job := &grid.Job{
		ID: jobID(1), Home: "a", Resources: grid.Resources{Processors: 2}, Tasks: 1, Work: grid.Work{Instructions: 3_600_000_000_000}, Deadline: grid.Never, Budget: grid.NoBudget,
	}
	say := func(m grid.Message) []grid.Send {
		var out grid.Outbox
		node.agent.Step(node.clock(), &grid.Delivery{From: "a", Message: m}, &out)
		return out.Sends
	}
	ask = func(request uint64, epoch uint32) []grid.Send {
		return say(&Negotiate{
			Task: grid.TaskID{Job: job.ID, Epoch: epoch}, Request: request, Validity: grid.SpanMax, Processors: 2,
			Work: job.Away().Work, Deadline: grid.Never, CostMax: grid.CreditsMax, Lease: grid.Minute, Bank: "bank",
		})
	}
	submit = func(r *Reply) []grid.Send {
		cheque := &bank.Cheque{Bank: "bank", Payer: "a", Payee: "b", Task: r.Task, Ceiling: r.Cost, Expires: 100 * grid.Day}
		return say(&JobSubmission{Job: job, Epoch: r.Task.Epoch, Hold: r.Hold, Price: r.Price, Cost: r.Cost, Deadline: grid.Never, Cheque: cheque})
	}
	return node.agent, ask, submit
}

// replyOf returns the guarantee that is sent, alone.
func replyOf(t *testing.T, sent []grid.Send) *Reply {
	t.Helper()
	if len(sent) != 1 {
		t.Fatalf("%+v is sent, want a guarantee", sent)
	}
	r, ok := sent[0].Message.(*Reply)
	if !ok || r.Hold == 0 {
		t.Fatalf("%+v is sent, want a guarantee", sent[0].Message)
	}
	return r
}

// TestLateCopyTakesNoGuarantee: a copy of an earlier request that comes late does not take the
// place of the guarantee that its home has asked for since.
func TestLateCopyTakesNoGuarantee(t *testing.T) {
	_, ask, submit := lodging(t)
	replyOf(t, ask(1, 1))
	newer := replyOf(t, ask(2, 1))
	if sent := ask(1, 1); len(sent) != 0 {
		t.Errorf("the late copy is answered with %+v", sent[0].Message)
	}
	sent := submit(newer)
	if ack, ok := sent[0].Message.(*Acknowledge); !ok || ack.Unknown {
		t.Errorf("the job that comes for the newer guarantee is answered with %+v", sent[0].Message)
	}
}

// TestGuaranteeOfWhichHomeHeardStands: of two copies of an answer one is enough; a guarantee of which
// no answer arrived does not stand.
func TestGuaranteeOfWhichHomeHeardStands(t *testing.T) {
	for lost, unknown := range []bool{false, false, true} {
		b, ask, submit := lodging(t)
		r := replyOf(t, ask(1, 1))
		copied := replyOf(t, ask(1, 1))
		for _, m := range []*Reply{copied, r}[:lost] {
			b.Step(testEpoch, &grid.Undelivered{To: "a", Message: m}, new(grid.Outbox))
		}
		if ack, ok := submit(r)[0].Message.(*Acknowledge); !ok || ack.Unknown != unknown {
			t.Errorf("%d of two answers did not arrive: the job is answered with %+v, want unknown: %v", lost, ack, unknown)
		}
	}
}

// TestReplacedExecutionIsNotKept: once a home has placed a job here anew, nothing is kept of the
// execution before.
func TestReplacedExecutionIsNotKept(t *testing.T) {
	b, ask, submit := lodging(t)
	for epoch := range uint32(3) {
		submit(replyOf(t, ask(uint64(epoch)+1, epoch+1)))
		if err := b.Audit(); err != nil {
			t.Errorf("epoch %d: %v", epoch+1, err)
		}
	}
}

// TestTenants: what a site has here is what came less what went, and one that has nothing left is no tenant.
func TestTenants(t *testing.T) {
	all := make(tenants)
	for _, c := range []struct {
		sign, processors, gpus int64
		want                   Tenant
	}{
		{1, 3, 1, Tenant{1, 3, 1}}, {1, 4, 0, Tenant{2, 7, 1}}, {-1, 3, 1, Tenant{1, 4, 0}}, {-1, 4, 0, Tenant{}}, {1, 5, 2, Tenant{1, 5, 2}},
	} {
		all.enter("a", c.sign, c.processors, c.gpus)
		if got, there := all["a"]; got != c.want || there != (c.want != Tenant{}) {
			t.Errorf("after %+v it has %+v, a tenant: %t", c, got, there)
		}
	}
}
