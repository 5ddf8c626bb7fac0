package market

import (
	"testing"

	"gridnode/grid"
	"gridnode/market/bank"
)

// TestNamedSiteThatIsBusy may take the job yet, which one with a rule against it does not; nor
// does a job wait for a busy site that it does not name.
func TestNamedSiteThatIsBusy(t *testing.T) {
	for _, tt := range []struct {
		name    string
		site    grid.SiteID
		refusal Refusal
		want    bool
	}{{"named, busy", "b", Busy, true}, {"named, by its rules", "b", ByRule, false}, {"not named, busy", "", Busy, false}} {
		n := newNetwork(t)
		n.silent = true
		a := n.add(Config{Offer: Offer{Site: "a", Rating: grid.Rating{Speed: 1, Bandwidth: 1}}}, 0)
		n.add(Config{Offer: Offer{Site: "b", Resources: grid.Resources{Processors: 10}, Rating: grid.Rating{Speed: 1, Bandwidth: 1}, Foreign: true}}, 0)
		job := n.job(1, "a", 1, grid.Hour, grid.GoalCost)
		job.Site, job.Budget = tt.site, grid.NoBudget
		n.place(job)
		asked := n.refuseAll(a, tt.refusal, grid.Second, func() {})
		if asked == 0 || a.refused == nil || a.refused.Later != tt.want {
			t.Errorf("%s: asked %d times, refused as %+v", tt.name, asked, a.refused)
		}
	}
}

// TestTurnsOfABusySite: a site that is busy is asked once more at growing pauses, and more often by one
// that pays with cheques, as holds last longer where they are drawn first.
func TestTurnsOfABusySite(t *testing.T) {
	for _, tt := range []struct {
		desk *bank.Desk
		want int
	}{{nil, 1 + roundsMax}, {bank.NewDesk(bank.Config{Self: "a"}, 1), 1 + roundsMax}, {bank.NewDesk(bank.Config{Self: "a", Bank: "bank"}, 1), 1 + roundsPaid}} {
		n := newNetwork(t)
		n.silent = true
		a := n.add(Config{Offer: Offer{Site: "a", Rating: grid.Rating{Speed: 1, Bandwidth: 1}}}, 0)
		a.agent.UseBank(tt.desk)
		n.add(Config{Offer: Offer{Site: "b", Resources: grid.Resources{Processors: 10}, Rating: grid.Rating{Speed: 1, Bandwidth: 1}, Foreign: true}}, 0)
		job := n.job(1, "a", 1, grid.Hour, grid.GoalCost)
		job.Budget = grid.NoBudget
		n.place(job)
		var turns []grid.Time
		asked := n.refuseAll(a, Busy, 10*grid.Millisecond, func() { turns = append(turns, n.now) })
		for i := 2; i < len(turns); i++ {
			if pause, before := turns[i]-turns[i-1], turns[i-1]-turns[i-2]; pause < before {
				t.Errorf("asked for the %dth time after %v, want no earlier than after %v", i+1, pause, before)
			}
		}
		if asked != tt.want {
			t.Errorf("asked %d times, want %d", asked, tt.want)
		}
	}
}

// refuseAll has whoever a site asks refuse, as long as its job is not refused and for an hour at most, and
// returns how often it has asked.
func (n *network) refuseAll(a *site, refusal Refusal, step grid.Time, asks func()) (asked int) {
	for n.now < testEpoch+grid.Hour && a.refused == nil {
		for len(n.flight) > 0 {
			m := n.flight[0]
			n.flight = n.flight[1:]
			if ask, ok := m.message.(*Negotiate); ok {
				asked++
				asks()
				a.step(&grid.Delivery{From: m.to, Message: &Reply{Request: ask.Request, Task: ask.Task, Refusal: refusal}})
			}
		}
		n.advance(step, false)
	}
	return asked
}
