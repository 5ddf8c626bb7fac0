package bank_test

import (
	"fmt"

	"gridnode/grid"
	"gridnode/market/bank"
)

// sites is a driver that hands every message over at once. A real one stores the
// records of a step before it sends anything.
type sites map[grid.SiteID]*bank.Desk

// step gives an input to the desk of a site.
func (s sites) step(at grid.SiteID, now grid.Time, in grid.Input) {
	var out grid.Outbox
	s[at].Step(now, in, &out)
	s.carry(at, now, &out)
}

// carry sees to what a desk has ordered.
func (s sites) carry(at grid.SiteID, now grid.Time, out *grid.Outbox) {
	for i := 0; i < len(out.Locals); i++ {
		switch in := out.Locals[i].(type) {
		case *grid.Delivery: // a site that banks with itself
			s[at].Step(now, in, out)
		case *bank.Written:
			fmt.Println("the cheque is there: the job leaves")
		case *bank.Declined:
			fmt.Println("no cheque:", in.Reason)
		}
	}
	for _, m := range out.Sends {
		s.step(m.To, now, &grid.Delivery{From: at, Message: m.Message})
	}
}

func ExampleDesk() {
	all := make(sites)
	for _, site := range []grid.SiteID{"bank", "home", "worker"} {
		all[site] = bank.NewDesk(bank.Config{Self: site, Bank: "bank", Offer: site == "bank"}, 1)
	}
	all.step("bank", 0, &bank.Grant{ID: grid.JobID{Lo: 1}, To: "home", Amount: 10 * grid.Credit})

	// worker guarantees a job for at most four credits; home draws a cheque over them.
	task, now := grid.TaskID{Job: grid.JobID{Lo: 2}, Epoch: 1}, grid.Hour
	var out grid.Outbox
	all["home"].Draw(now, task, "worker", 4*grid.Credit, grid.Hour, &out)
	all.carry("home", now, &out)

	// worker keeps it as long as the job runs.
	out.Reset()
	cheque := all["home"].Cheque(task)
	charge := &bank.Charge{Bank: "bank", Payer: "home", Task: task, Cost: 4 * grid.Credit, Until: 2 * grid.Hour}
	fmt.Println("good:", all["worker"].Good(now, cheque, charge))
	all["worker"].Take(cheque, &out)

	// The job has cost three: both sign, and worker presents the cheque.
	claim := all["worker"].Claim("home", task, 3*grid.Credit)
	agreed := all["home"].Agree(task, "worker", all["home"].Due(task, "worker", claim, 3*grid.Credit), &out)
	out.Reset()
	all["worker"].Agreed(now, "home", task, 3*grid.Credit, agreed, &out)
	all.carry("worker", now, &out)

	books := all["bank"].Ledger()
	for _, site := range books.Sites() {
		b, _ := books.Balance(site)
		fmt.Println(site, b.Settled)
	}
	// Output:
	// the cheque is there: the job leaves
	// good: true
	// (issuer) -10
	// home 7
	// worker 3
}
