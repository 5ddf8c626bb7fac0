package liar

import (
	"fmt"

	"gridnode/grid"
	"gridnode/market"
	"gridnode/market/bank"
	"gridnode/node/site"
)

// Meter has the site of a job ask for all that was agreed, after it has run for a second (C-4): that
// is what its home pays for.
func (t *Twin) Meter(v *site.View) error {
	task, a := grid.TaskID{Job: v.Job.ID, Epoch: v.Epoch}, &v.Award
	m := &market.JobCompletion{Task: task, Run: grid.Second, Cost: a.Cost}
	if a.Bank != "" {
		m.Claim = &bank.Receipt{Bank: a.Bank, Payer: t.ID, Payee: a.Site, Task: task, Amount: a.Cost, Signer: a.Site}
	}
	for _, e := range t.step(&grid.Delivery{From: a.Site, Message: m}).Events {
		most := grid.CostProcessorTime.Cost(a.Price, v.Job.Processors, grid.Second) + 1
		if e.Kind == grid.JobFinished && e.Job.ID == v.Job.ID && e.Result.Cost > most {
			return fmt.Errorf("%s asks %v for job %s, which has run for a second, and gets %v: that costs %v at most", a.Site, a.Cost, v.Job.ID, e.Result.Cost, most)
		}
	}
	return nil
}
