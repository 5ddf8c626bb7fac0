package gridfederation

import (
	"gridnode/grid"
	"gridnode/testnet/reproduce"
	"gridnode/testnet/workload"
)

// charges are credits by three readings of what a job costs.
type charges struct {
	computing float64 // eq. 3 × processors: the one that is compared
	taken     float64 // price × processors × time, communication included
	printed   float64 // eq. 3 to the letter, whatever the width of the job
}

func (c *charges) plus(d charges) {
	c.computing += d.computing
	c.taken += d.taken
	c.printed += d.printed
}

// chargesFor returns what a site charges for a job.
//
// Eq. 3 charges for computing: B(J, R_m) = c_m · l/(μ_m · p), the first term of eq. 2
// without the communication of the second. "The cluster owner charges c_i per unit time or
// per unit of million instructions (MI) executed" (§2.1): by instructions a job costs
// c_m · l/μ_m, p times eq. 3. The published totals are some fifty times as large as eq. 3
// to the letter gives, so the processors are counted.
func chargesFor(job *grid.Job, at *workload.Site) charges {
	printed := job.CostAt(at.Rating, at.Price, grid.CostPaper).Float()
	return charges{
		computing: printed * float64(job.Processors),
		taken:     job.CostAt(at.Rating, at.Price, grid.CostProcessorTime).Float(),
		printed:   printed,
	}
}

// incentive returns what a site, or all, earned.
func (o *outcome) incentive(site int) (sum charges) {
	if site != siteAll {
		return o.earned[site]
	}
	for i := range o.earned {
		sum.plus(o.earned[i])
	}
	return sum
}

// earnedBy is incentive by the reading that is compared.
func (o *outcome) earnedBy(site int) float64 { return o.incentive(site).computing }

// charged returns what a site, or all, charged in the run itself, by its cost model.
func (o *outcome) charged(site int) reproduce.Number {
	return reproduce.Number(grid.Credits(o.stats(site).Incentive).Float())
}

// incentives is the table of all owners' income by reading.
func (s *federationStudy) incentives() reproduce.Table {
	millions := func(name string, decimals int, f func(o *outcome) float64) reproduce.Measure {
		m := s.byPopulation(name, reproduce.Millions, decimals, publishedIncentive, func(o *outcome) reproduce.Number { return reproduce.Number(f(o) / 1e6) })
		m.Alternative = true
		return m
	}
	chosen := millions("eq. 3 × processors", 1, func(o *outcome) float64 { return o.earnedBy(siteAll) })
	chosen.Alternative = false
	return reproduce.Table{
		Title: "Total incentive of all owners", Columns: populationNames(),
		Note: "The first line is compared; the others are other readings of what a job costs. The schedule is the same by all of them: in table 1 the price is nearly proportional to the speed " +
			"(0.0057 a MIPS everywhere), so computing costs the same at all sites, and no budget, twice the cost at home, is ever reached.",
		Measures: []reproduce.Measure{
			chosen,
			millions("price × processors × time, with communication", 1, func(o *outcome) float64 { return o.incentive(siteAll).taken }),
			millions("the same, for work done within the two days", 1, func(o *outcome) float64 { return o.timely }),
			millions("eq. 3 to the letter", 1, func(o *outcome) float64 { return o.incentive(siteAll).printed }),
		},
	}
}
