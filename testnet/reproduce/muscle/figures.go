package muscle

import (
	"gridnode/testnet/measure"
	"gridnode/testnet/reproduce"
)

// Figures of a run.
func mcpOf(r *measure.Result) reproduce.Number { return reproduce.Number(r.Total.MCP.Float()) }
func pbOf(r *measure.Result) reproduce.Number  { return reproduce.Number(r.Total.PB.Float()) }
func missedOf(r *measure.Result) reproduce.Number {
	return reproduce.Number(100 * float64(r.Total.Missed) / float64(r.Total.Submitted))
}
func queueOf(r *measure.Result) reproduce.Number {
	return reproduce.Number(r.Total.QueueLength.Float())
}

// mean returns a figure of a case over the workloads.
func (s *muscleStudy) mean(c muscleCase, f func(*measure.Result) reproduce.Number) reproduce.Number {
	return s.cell(c, reproduce.None, f).Here
}

// cell is a figure of a case: the mean over the workloads, and their range.
func (s *muscleStudy) cell(c muscleCase, published reproduce.Number, f func(*measure.Result) reproduce.Number) reproduce.Cell {
	return s.cellOf(published, func(w int) reproduce.Number { return f(s.results[c][w]) })
}

func (s *muscleStudy) cellOf(published reproduce.Number, f func(workload int) reproduce.Number) reproduce.Cell {
	numbers := make([]reproduce.Number, s.o.Windows)
	for w := range numbers {
		numbers[w] = f(w)
	}
	spread := reproduce.SpreadOf(numbers)
	c := reproduce.Cell{Published: published, Here: spread.Mean}
	if s.o.Windows > 1 {
		c.Spread = &spread
	}
	return c
}

// margin is by how much of theirs MUSCLE's figure is below another policy's, in
// percent, per workload.
func (s *muscleStudy) margin(c muscleCase, other int, published reproduce.Number, f func(*measure.Result) reproduce.Number) reproduce.Cell {
	return s.cellOf(published, func(w int) reproduce.Number {
		theirs := f(s.results[c.by(other)][w])
		return 100 * (theirs - f(s.results[c][w])) / theirs
	})
}

// sweep is cases of MUSCLE with the columns' names.
type sweep struct {
	cases   []muscleCase
	columns []string
}

func (s *muscleStudy) table(title string, over sweep, publishedDLL, publishedWRAND func(i int) reproduce.Number) reproduce.Table {
	none := func(int) reproduce.Number { return reproduce.None }
	if publishedDLL == nil {
		publishedDLL = none
	}
	if publishedWRAND == nil {
		publishedWRAND = none
	}
	t := reproduce.Table{Title: title, Columns: over.columns}
	row := func(name string, unit reproduce.Unit, decimals int, cell func(i int, c muscleCase) reproduce.Cell) {
		m := reproduce.Measure{Name: name, Unit: unit, Decimals: decimals}
		for i, c := range over.cases {
			m.Cells = append(m.Cells, cell(i, c))
		}
		t.Measures = append(t.Measures, m)
	}
	for policy := byMuscle; policy <= byWRAND; policy++ {
		row("MCP, "+musclePolicyNames[policy], reproduce.Seconds, 1, func(_ int, c muscleCase) reproduce.Cell { return s.cell(c.by(policy), reproduce.None, mcpOf) })
	}
	row("margin in MCP over DLL", reproduce.Percent, 1, func(i int, c muscleCase) reproduce.Cell { return s.margin(c, byDLL, publishedDLL(i), mcpOf) })
	row("margin in MCP over WRAND", reproduce.Percent, 1, func(i int, c muscleCase) reproduce.Cell { return s.margin(c, byWRAND, publishedWRAND(i), mcpOf) })
	for policy := byMuscle; policy <= byWRAND; policy++ {
		row("in the queue, "+musclePolicyNames[policy], reproduce.Jobs, 0, func(_ int, c muscleCase) reproduce.Cell { return s.cell(c.by(policy), reproduce.None, queueOf) })
	}
	for policy := byMuscle; policy <= byWRAND; policy++ {
		row("PB, "+musclePolicyNames[policy], reproduce.Seconds, 1, func(_ int, c muscleCase) reproduce.Cell { return s.cell(c.by(policy), reproduce.None, pbOf) })
	}
	for policy := byMuscle; policy <= byWRAND; policy++ {
		row("deadlines missed, "+musclePolicyNames[policy], reproduce.Percent, 1, func(_ int, c muscleCase) reproduce.Cell { return s.cell(c.by(policy), reproduce.None, missedOf) })
	}
	return t
}

// plots draws MCP and PB over a sweep.
func (s *muscleStudy) plots(figures [2]string, title, x string, at []float64, over sweep, last int) (plots []reproduce.Plot) {
	for i, f := range []func(*measure.Result) reproduce.Number{mcpOf, pbOf} {
		p := reproduce.Plot{Figure: figures[i], Title: []string{"Mean comprehensive performance", "Performance balance"}[i] + title, X: x, Y: "seconds", At: at}
		for policy := byMuscle; policy <= last; policy++ {
			series := reproduce.Series{Name: musclePolicyNames[policy]}
			for _, c := range over.cases {
				series.Values = append(series.Values, s.mean(c.by(policy), f))
			}
			p.Series = append(p.Series, series)
		}
		plots = append(plots, p)
	}
	return plots
}
