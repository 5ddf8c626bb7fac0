package resourcedelegation

import (
	"fmt"
	"strings"

	"gridnode/grid"
	"gridnode/testnet/reproduce"
)

// What leaves the first site of a set-up for the second, in processor-seconds, less what
// comes back, follows from its utilisation: its jobs' area is U · m · Cmax when it is
// alone, and that much less is done on its own processors as U has fallen. It follows
// from the second site's utilisation, too, and from the leased areas SA^λ: eq. 3 sums what
// the jobs of a site have had of the other's processors. The three have to be the same.

// netOfFirst returns the net area from the U of a set-up's first site.
func netOfFirst(setup int, u, makespan [2]float64) float64 { return -netInto(setup, 0, u, makespan) }

// netOfSecond returns it from the U of the second.
func netOfSecond(setup int, u, makespan [2]float64) float64 { return netInto(setup, 1, u, makespan) }

// netInto returns how much more a site's processors do than alone, as printed.
func netInto(setup, site int, u, makespan [2]float64) float64 {
	m := setups[setup][site]
	alone := float64(publishedSites.utilization[m] * publishedSites.makespan[m])
	return (u[site]*makespan[site] - alone) / 100 * float64(machines[m].processors)
}

// ofSites returns the two figures of a set-up.
func ofSites(column []reproduce.Number, setup int) [2]float64 {
	return [2]float64{float64(column[2*setup]), float64(column[2*setup+1])}
}

// contradiction shows that the printed leased areas and the printed utilisations of the
// set-ups with KTH cannot both be.
func (s *delegationStudy) contradiction() (reproduce.Table, string) {
	t := reproduce.Table{
		Title: "Net area that goes from the first site to the second",
		Note:  "By the printed U of either site (what it does less, or more, than alone), by the printed leased areas, and here. The last line is ours from our own areas; it agrees with our U.",
	}
	rows := []reproduce.Measure{
		{Name: "printed: by U of the first site, millions", Decimals: 1}, {Name: "printed: by U of the second, millions", Decimals: 1},
		{Name: "printed: by the leased areas, millions", Decimals: 1}, {Name: "leased areas over U, printed", Decimals: 2},
		{Name: "here: by the leased areas, millions", Decimals: 1},
	}
	var factors []string
	for p, policy := range delegationPolicies {
		published := &publishedLeasing[p]
		for setup := range setups {
			t.Columns = append(t.Columns, fmt.Sprintf("%s, set-up %d", strings.ToUpper(policy), setup+1))
			u, makespan, leased := ofSites(published.utilization, setup), ofSites(published.makespan, setup), ofSites(published.leased, setup)
			first, byArea := netOfFirst(setup, u, makespan), leased[0]-leased[1]
			here := s.stats(p, column{setup, 0}).LeasedArea.Float() - s.stats(p, column{setup, 1}).LeasedArea.Float()
			for i, v := range []float64{first / 1e6, netOfSecond(setup, u, makespan) / 1e6, byArea / 1e6, byArea / first, here / 1e6} {
				rows[i].Cells = append(rows[i].Cells, reproduce.Cell{Published: reproduce.None, Here: reproduce.Number(v)})
			}
			if setups[setup][0] == 0 {
				factors = append(factors, fmt.Sprintf("%.2f", byArea/first))
			}
		}
	}
	t.Measures = rows
	return t, fmt.Sprintf("The printed leased areas of the set-ups with KTH contradict the printed U: their difference, which is what goes from KTH to its partner, is %s times what the U of KTH and, within 1 %%, the U of its partner say. "+
		"So both columns cannot be met together; ours agree with each other, and with the printed U.", strings.Join(factors, ", "))
}

// listen follows the queues of a run.
func listen(queues []*queue) func(site int, e *grid.Event) {
	return func(site int, e *grid.Event) {
		if e.Kind == grid.JobFinished {
			queues[site].add(e.Job.Submit, e.Result.Start)
		}
	}
}
