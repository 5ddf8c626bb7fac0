package market

import (
	"fmt"
	"testing"

	"gridnode/grid"
)

// TestPreviewSaysWhetherItIsCertain checks that a preview vouches for as much as all
// pages of the directory together.
func TestPreviewSaysWhetherItIsCertain(t *testing.T) {
	for _, tt := range []struct {
		unsure int // which page is not certain
		deaf   bool
	}{{0, false}, {1, false}, {2, false}, {0, true}} {
		n := alike(t, 1, previewPage+3) // two pages
		n.unsure, n.deaf = tt.unsure, tt.deaf
		home := n.sites["home0"]
		home.step(&Preview{Token: 1, Job: n.job(1, "home0", 1, grid.Hour, grid.GoalCost)})
		for range 2 * failuresMax { // a failed query is repeated
			n.now += grid.Minute
			home.step(grid.Tick{})
		}
		if r := home.previewed; r == nil || r.Certain != (tt.unsure == 0 && !tt.deaf) || !tt.deaf && len(r.Verdicts) != previewPage+4 {
			t.Errorf("%+v: %+v", tt, r)
		}
	}
}

// TestSitesOfBefore: one that knows nothing of probes holds processors for a preview, and gets
// them back at once; one that knows nothing of GPUs promises processors alone, and does not
// get the job.
func TestSitesOfBefore(t *testing.T) {
	n := newNetwork(t)
	n.silent = true
	n.gpus["b"] = 2
	for name, price := range map[grid.SiteID]grid.Price{"a": 9, "b": 1} {
		n.add(Config{
			Offer: Offer{
				Site: name, Resources: grid.Resources{Processors: 4}, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000}, Price: price * grid.Credit, Foreign: true,
			},
		}, 0)
	}
	home := n.sites["a"]
	job := n.job(1, "a", 4, grid.Hour, grid.GoalCost)
	home.step(&Preview{Token: 1, Job: job})
	n.flight[0].message.(*Negotiate).Probe = false // which it does not read
	n.deliver(0)
	reply := n.flight[0].message.(*Reply)
	if reply.Hold == 0 || n.sites["b"].cluster.State(n.now).Reserved != 1 {
		t.Fatalf("it answers %+v", reply)
	}
	n.deliver(0)
	if r := home.previewed; r == nil || r.Verdicts[0].Site != "b" || r.Verdicts[0].Outcome != OutcomeChosen {
		t.Errorf("the preview says %+v", r)
	}
	n.deliverAll()
	if held := n.sites["b"].cluster.State(n.now).Reserved; held != 0 || len(home.agent.broker.probes) != 0 {
		t.Errorf("%d guarantees are held, %d questions open", held, len(home.agent.broker.probes))
	}

	job = n.job(2, "a", 1, grid.Hour, grid.GoalCost)
	job.GPUs = grid.GPUs{Count: 2}
	n.place(job)
	n.flight[0].message.(*Negotiate).GPUs = grid.GPUs{}
	n.deliverAll()
	if state := home.jobs[job.ID].state; state != "refused" || n.sites["b"].cluster.State(n.now).Reserved != 0 {
		t.Errorf("without its GPUs the job is %s", state)
	}
}

// TestGPUsCost: a job pays for its GPUs as each site says, at home, too; its budget and the order
// of sites reckon with it. A site of before, whose quote says nothing of it, gives them away.
func TestGPUsCost(t *testing.T) {
	n := newNetwork(t)
	n.silent = true
	offer := func(name grid.SiteID, price grid.Price, weight int64) {
		n.gpus[name] = 2
		n.add(Config{
			Offer: Offer{
				Site: name, Resources: grid.Resources{Processors: 4}, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000}, Price: price * grid.Credit, Foreign: true, GPUWeight: weight,
			},
		}, 0)
	}
	offer("a", 4, 2) // home
	offer("b", 1, 8)
	offer("c", 3, 0)
	job := n.job(1, "a", 2, grid.Hour, grid.GoalCost)
	job.GPUs, job.Budget = grid.GPUs{Count: 1}, 100*grid.Credit
	home := n.sites["a"]
	costs := func(job *grid.Job) (text string) {
		home.step(&Preview{Token: 1, Job: job})
		n.deliverAll()
		for _, v := range home.previewed.Verdicts {
			text += fmt.Sprintf("%s %v at %v %v; ", v.Site, v.Cost, v.Price, v.Outcome)
		}
		return text
	}
	// 2 × 3; 2 + 8 at 1; 2 + 2 at 4.
	if got, want := costs(job), "c 6 at 3 chosen; b 10 at 5 candidate; a 16 at 8 candidate; "; got != want {
		t.Errorf("it costs %s, want %s", got, want)
	}
	job = n.job(2, "a", 2, grid.Hour, grid.GoalCost)
	job.GPUs, job.Budget = grid.GPUs{Count: 1}, 9*grid.Credit
	if got, want := costs(job), "c 6 at 3 chosen; b 10 at 5 too-dear; a 16 at 8 too-dear; "; got != want {
		t.Errorf("with a budget of 9: %s, want %s", got, want)
	}
	for _, tt := range []struct {
		site  grid.SiteID
		price grid.Price
		cost  grid.Credits
	}{{"a", 8, 16}, {"b", 5, 10}, {"c", 3, 6}} {
		job = n.job(uint64(tt.price), "a", 2, grid.Hour, grid.GoalCost)
		job.GPUs, job.Budget, job.Site = grid.GPUs{Count: 1}, 100*grid.Credit, tt.site
		n.place(job)
		n.deliverAll()
		if award := home.jobs[job.ID].award; award.Site != tt.site || award.Price != tt.price*grid.Credit || award.Cost != tt.cost*grid.Credit {
			t.Errorf("%s: awarded %+v", tt.site, award)
		}
	}
}
