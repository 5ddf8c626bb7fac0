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
