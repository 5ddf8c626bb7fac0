package site

import (
	"strings"
	"testing"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/market"
	"gridnode/market/bank"
)

// payer is a home that banks with "bank" and knows a site "there" that takes its jobs.
type payer struct{ *bench }

func newPayer(t *testing.T) payer {
	return payer{newBench(t, func(c *Config) {
		c.Parts = Everything
		c.Directory = directory.Config{Federation: "test"}
		c.Bank.Bank = "bank"
	})}
}

// sent returns the newest message of a type to a site, and forgets all of them.
func sent[M grid.Message](p payer, to grid.SiteID) (found M, ok bool) {
	rest := p.sends[:0]
	for _, s := range p.sends {
		if m, is := s.Message.(M); is && s.To == to {
			found, ok = m, true
			continue
		}
		rest = append(rest, s)
	}
	p.bench.sends = rest
	return found, ok
}

// submit submits a job for "there", which guarantees it for 3 credits, and returns
// the draw that this causes; ok is false if it causes none.
func (p payer) submit(n uint64) (draw *bank.Draw, ok bool) {
	p.t.Helper()
	j := p.job(n, 1)
	j.Site, j.Goal = "there", grid.GoalCost
	p.step(&Submit{Token: n, Job: j})
	return p.grant()
}

// grant lets "there" guarantee the job that asks for it.
func (p payer) grant() (draw *bank.Draw, ok bool) {
	p.t.Helper()
	m, asked := sent[*market.Negotiate](p, "there")
	if !asked {
		p.t.Fatal("the site was not asked")
	}
	if m.Bank != "bank" {
		p.t.Errorf("the site is asked to be paid by %q", m.Bank)
	}
	p.step(&grid.Delivery{From: "there", Message: &market.Reply{
		Task: m.Task, Request: m.Request, Hold: uint64(p.now), HoldSpan: 10 * grid.Second,
		Price: 3600 * grid.Credit, Cost: 3 * grid.Credit, Start: 0, Finish: 100 * grid.Second,
	}})
	return sent[*bank.Draw](p, "bank")
}

func cheque(d *bank.Draw) *bank.Cheque {
	return &bank.Cheque{Bank: "bank", Payer: "here", Payee: d.Payee, Task: d.Task, Ceiling: d.Ceiling, Expires: grid.Day}
}

func TestJobLeavesWithItsCheque(t *testing.T) {
	p := newPayer(t)
	draw, ok := p.submit(1)
	if !ok || draw.Payee != "there" || draw.Ceiling != 3*grid.Credit || draw.Lifetime < bank.Grace {
		t.Fatalf("draw %+v", draw)
	}
	if _, left := sent[*market.JobSubmission](p, "there"); left {
		t.Fatal("the job has left before it was paid for")
	}
	p.want(1, Placing)
	p.step(&grid.Delivery{From: "bank", Message: &bank.Drawn{Task: draw.Task, Cheque: cheque(draw)}})
	s, left := sent[*market.JobSubmission](p, "there")
	if !left || s.Cheque == nil || s.Cheque.Ceiling != 3*grid.Credit {
		t.Fatalf("submission %+v", s)
	}
	p.want(1, Awarded)
	p.crash() // the cheque is there still
	p.now += 3 * grid.Second
	p.step()
	if s, left = sent[*market.JobSubmission](p, "there"); !left || s.Cheque == nil {
		t.Fatalf("after a restart: %+v", s)
	}
	claim := &bank.Receipt{Bank: "bank", Payer: "here", Payee: "there", Task: draw.Task, Amount: 2 * grid.Credit, Signer: "there"}
	for range 2 { // told twice, agreed twice to the same
		p.step(&grid.Delivery{From: "there", Message: &market.JobCompletion{Task: draw.Task, Run: 2 * grid.Second, Cost: 5 * grid.Credit, Claim: claim}})
		k, ok := sent[*market.Acknowledge](p, "there")
		if !ok || k.Agreement == nil || k.Agreement.Amount != 2*grid.Credit || k.Agreement.Signer != "here" {
			t.Fatalf("acknowledgement %+v", k)
		}
	}
	if v := p.want(1, Done); v.Result.Cost != 2*grid.Credit {
		t.Errorf("it has cost %v", v.Result.Cost)
	}
	p.step(&grid.Delivery{From: "bank", Message: &bank.Settled{Task: draw.Task, Paid: 2 * grid.Credit}})
	for key := range p.records {
		if strings.HasPrefix(key, bank.RecordPrefix) {
			t.Errorf("record %s is left", key)
		}
	}
}

// Without the executing site's receipt there is no price to agree to.
func TestUnsignedCompletionCostsNothing(t *testing.T) {
	p := newPayer(t)
	draw, _ := p.submit(1)
	p.step(&grid.Delivery{From: "bank", Message: &bank.Drawn{Task: draw.Task, Cheque: cheque(draw)}})
	p.step(&grid.Delivery{From: "there", Message: &market.JobCompletion{Task: draw.Task, Run: grid.Second, Cost: grid.Credit}})
	if v := p.want(1, Done); v.Result.Cost != 0 {
		t.Errorf("it has cost %v", v.Result.Cost)
	}
}

func TestNoFundsRefusesTheJob(t *testing.T) {
	p := newPayer(t)
	draw, _ := p.submit(1)
	p.step(&grid.Delivery{From: "bank", Message: &bank.Drawn{Task: draw.Task, Refusal: bank.NoFunds, Settled: grid.Credit, Committed: 2 * grid.Credit}})
	v := p.want(1, Refused)
	for _, text := range []string{"insufficient funds", "balance 3 credits", "2 are held", "3 needed"} {
		if !strings.Contains(v.Reason, text) {
			t.Errorf("reason %q does not say %q", v.Reason, text)
		}
	}
	if _, released := sent[*market.Cancel](p, "there"); !released {
		t.Error("the guarantee was not given back")
	}
	if again, ok := sent[*bank.Draw](p, "bank"); !ok || !again.Withdrawn {
		t.Errorf("a late copy of the draw may be honoured: %+v", again)
	}
}

// A job waits for a silent bank, and goes when it is back; a deadline ends the wait,
// and so does its user.
func TestJobWaitsForSilentBank(t *testing.T) {
	p := newPayer(t)
	first, _ := p.submit(1)
	late := p.job(2, 1)
	late.Site, late.Goal, late.Deadline = "there", grid.GoalCost, p.now+grid.Hour
	p.step(&Submit{Token: 2, Job: late})
	if _, ok := p.grant(); !ok {
		t.Fatal("no draw for the second job")
	}
	if _, ok := p.submit(3); !ok {
		t.Fatal("no draw for the third job")
	}
	p.now += 6 * grid.Second
	p.step()
	for n := range uint64(3) {
		if v := p.want(n+1, Placing); !strings.Contains(v.Reason, "does not answer") {
			t.Errorf("job %d: reason %q", n+1, v.Reason)
		}
	}
	p.sends = nil
	if d, ok := p.submit(4); ok && d.Task.Job == (grid.JobID{Lo: 4}) {
		t.Error("a silent bank is asked for another cheque")
	}
	p.want(4, Placing)
	p.step(&Cancel{Token: 9, Job: grid.JobID{Lo: 3}, Cause: "enough"})
	p.want(3, CancelledByUser)
	p.now = late.Deadline
	p.step()
	p.want(2, Refused)
	p.want(1, Placing)
	p.sends = nil
	p.step(&grid.Delivery{From: "bank", Message: &bank.Drawn{Task: first.Task, Refusal: bank.Closed}})
	asked := map[grid.JobID]bool{}
	for _, s := range p.sends {
		if m, ok := s.Message.(*market.Negotiate); ok {
			asked[m.Task.Job] = true
		}
	}
	if len(asked) != 2 || !asked[grid.JobID{Lo: 1}] || !asked[grid.JobID{Lo: 4}] {
		t.Errorf("placed anew: %v", asked)
	}
}

// A crash while a job waits for its cheque: it never left, so it is placed anew, and
// the cheque that may have been written is not used.
func TestCrashBeforeTheCheque(t *testing.T) {
	p := newPayer(t)
	draw, _ := p.submit(1)
	p.sends = nil
	p.crash()
	p.now += 3 * grid.Second
	p.step()
	if s, left := sent[*market.JobSubmission](p, "there"); left {
		t.Fatalf("it has left: %+v", s)
	}
	if again, ok := sent[*bank.Draw](p, "bank"); !ok || !again.Withdrawn || again.Task != draw.Task {
		t.Errorf("draw %+v", again)
	}
	next, ok := p.grant()
	if !ok || next.Task.Epoch != draw.Task.Epoch+1 {
		t.Fatalf("next draw %+v", next)
	}
	// The first one was written after all: the payee is asked to give it back.
	p.step(&grid.Delivery{From: "bank", Message: &bank.Drawn{Task: draw.Task, Cheque: cheque(draw)}})
	if r, ok := sent[*bank.Return](p, "there"); !ok || r.Cheque.Task != draw.Task {
		t.Errorf("return %+v", r)
	}
	p.want(1, Placing)
}

// A user who cancels while the cheque is awaited.
func TestCancelBeforeTheCheque(t *testing.T) {
	p := newPayer(t)
	draw, _ := p.submit(1)
	p.step(&Cancel{Token: 5, Job: grid.JobID{Lo: 1}, Cause: "enough"})
	p.want(1, CancelledByUser)
	p.step(&grid.Delivery{From: "bank", Message: &bank.Drawn{Task: draw.Task, Cheque: cheque(draw)}})
	if _, left := sent[*market.JobSubmission](p, "there"); left {
		t.Error("a cancelled job has left")
	}
	if r, ok := sent[*bank.Return](p, "there"); !ok || r.Cheque.Task != draw.Task {
		t.Errorf("return %+v", r)
	}
}

// A site that wants to be paid refuses whom nobody pays for.
// TestRestartWithoutTheCheque: a job whose cheque is not there after a restart never left. It is
// placed anew, or not at all if it was being ended.
func TestRestartWithoutTheCheque(t *testing.T) {
	for before, after := range map[State]State{Placing: Placing, Awarded: Placing, Cancelling: CancelledByUser} {
		t.Run(before.String(), func(t *testing.T) {
			p := newPayer(t)
			p.submit(1)
			e := p.site.jobs.byID[grid.JobID{Lo: 1}]
			e.state = before
			p.records[e.RecordKey()] = e.AppendRecord(nil)
			p.crash()
			p.want(1, after)
		})
	}
}

func TestUnpaidJobsAreRefused(t *testing.T) {
	b := newBench(t, func(c *Config) {
		c.Parts, c.Foreign = Everything, true
		c.Directory = directory.Config{Federation: "test"}
		c.Bank.Accept = []grid.SiteID{"bank"}
	})
	p := payer{b}
	for i, tt := range []struct {
		bank grid.SiteID
		want market.Refusal
	}{{"", market.Unpaid}, {"other", market.Unpaid}, {"bank", market.Granted}} {
		task := grid.TaskID{Job: grid.JobID{Lo: uint64(i + 1)}, Epoch: 1}
		p.step(&grid.Delivery{From: "home", Message: &market.Negotiate{
			Task: task, Request: uint64(i + 1), Validity: grid.Minute, Processors: 1,
			Work: grid.WorkOf(grid.Hour, 0, b.cfg.Rating), Deadline: grid.Never, CostMax: grid.CreditsMax, Bank: tt.bank,
		}})
		reply, ok := sent[*market.Reply](p, "home")
		if !ok || reply.Refusal != tt.want {
			t.Fatalf("paid by %q: %+v, want %v", tt.bank, reply, tt.want)
		}
		if tt.want != market.Granted {
			continue
		}
		job := &grid.Job{
			ID: task.Job, Home: "home", Resources: grid.Resources{Processors: 1}, Tasks: 1,
			Estimate: grid.Hour, Work: grid.WorkOf(grid.Hour, 0, b.cfg.Rating), Deadline: grid.Never, Budget: grid.NoBudget,
		}
		submission := &market.JobSubmission{Job: job, Epoch: 1, Hold: reply.Hold, Price: reply.Price, Cost: reply.Cost, Deadline: grid.Never}
		p.step(&grid.Delivery{From: "home", Message: submission})
		if k, ok := sent[*market.Acknowledge](p, "home"); !ok || !k.Unknown {
			t.Errorf("a job without its cheque is taken: %+v", k)
		}
	}
}
