package muscle

import (
	"context"
	"fmt"

	"gridnode/testnet/measure"
	"gridnode/testnet/reproduce"
	"gridnode/testnet/scenario/packing"
)

// readings compares the margins under other readings.
func (s *muscleStudy) readings() reproduce.Experiment {
	e := reproduce.Experiment{
		Title: "Other readings", Beyond: true,
		Text: []string{
			"“Threshold”: algorithm 4 with another one, at the same loads. The lower it is, the more jobs are packed at once, and the longer processors wait for the next packing.",
			"“Batches”: so many jobs come at once and meet empty clusters. “Windows”: such a batch comes every 130 s and meets what is left of those before. Deadlines count from the batch. MUSCLE's batches are done by a head and its members, those of DLL and WRAND by clusters that plan as well as these: they begin in the order of arrival, and TITAN chooses processors anew.",
		},
	}
	for _, queue := range muscleLevels {
		t := reproduce.Table{Title: fmt.Sprintf("MCP, PB and margins, %d jobs", queue)}
		for _, r := range muscleReadings {
			t.Columns = append(t.Columns, r.name)
		}
		row := func(name string, unit reproduce.Unit, cell func(c muscleCase) reproduce.Cell) {
			m := reproduce.Measure{Name: name, Unit: unit, Decimals: 1, Alternative: true}
			for reading := range muscleReadings {
				m.Cells = append(m.Cells, cell(muscleFigure4(byMuscle, queue).read(reading)))
			}
			t.Measures = append(t.Measures, m)
		}
		for policy := byMuscle; policy <= byWRAND; policy++ {
			row("MCP, "+musclePolicyNames[policy], reproduce.Seconds, func(c muscleCase) reproduce.Cell { return s.cell(c.by(policy), reproduce.None, mcpOf) })
		}
		for policy := byMuscle; policy <= byWRAND; policy++ {
			row("PB, "+musclePolicyNames[policy], reproduce.Seconds, func(c muscleCase) reproduce.Cell { return s.cell(c.by(policy), reproduce.None, pbOf) })
		}
		for _, other := range bothOthers {
			row("margin over "+musclePolicyNames[other], reproduce.Percent, func(c muscleCase) reproduce.Cell {
				published := reproduce.None
				if margins, printed := publishedMargin[queue]; printed {
					published = margins[other-byDLL]
				}
				return s.margin(c, other, published, mcpOf)
			})
		}
		e.Tables = append(e.Tables, t)
	}
	return e
}

// variant compares MUSCLE with itself, the most pressed jobs first.
func (s *muscleStudy) variant() reproduce.Experiment {
	levels, at := queueSweep(muscleQueues, muscleFigure4)
	weighted, _ := queueSweep(muscleWeighted, muscleFigure6)
	e := reproduce.Experiment{
		Title: "Beyond the paper: the most pressed jobs first", Beyond: true,
		Text: []string{
			"Two changes to the published rules. Jobs enter the composition table in the order of the slack that is left of them instead of their arrival, so that the search, which takes the first of equally good compositions, finds the pressed ones first. And ε is divided by the sum of the slack that is left and the run time, the time until the deadlines, instead of slack alone. TITAN is the same.",
		},
		Plots: s.plots([2]string{"Figure 4 (a), with the variant", "Figure 4 (b), with the variant"}, " by workload level.", "jobs in the queue", at, levels, byUrgent),
	}
	worse, all := [2]int{}, 0
	for _, part := range []struct {
		title string
		over  sweep
	}{{"Setting of figure 4", levels}, {"Setting of figure 6", weighted}} {
		t := reproduce.Table{Title: part.title, Columns: part.over.columns}
		for i, f := range []func(*measure.Result) reproduce.Number{mcpOf, pbOf} {
			name := []string{"MCP", "PB"}[i]
			published, variant := reproduce.Measure{Name: name + ", as published", Unit: reproduce.Seconds, Decimals: 1}, reproduce.Measure{Name: name + ", urgent first", Unit: reproduce.Seconds, Decimals: 1}
			gain := reproduce.Measure{Name: "gain in " + name, Unit: reproduce.Percent, Decimals: 1}
			for _, c := range part.over.cases {
				published.Cells = append(published.Cells, s.cell(c, reproduce.None, f))
				variant.Cells = append(variant.Cells, s.cell(c.by(byUrgent), reproduce.None, f))
				gain.Cells = append(gain.Cells, s.margin(c.by(byUrgent), byMuscle, reproduce.None, f))
				if s.mean(c.by(byUrgent), f) > s.mean(c, f) {
					worse[i]++
				}
			}
			t.Measures = append(t.Measures, published, variant, gain)
		}
		all += len(part.over.cases)
		e.Tables = append(e.Tables, t)
	}
	for i, name := range []string{"MCP", "PB"} {
		e.Claims = append(e.Claims, reproduce.Claim{
			Text: fmt.Sprintf("the variant is no worse in %s in the settings of figures 4 and 6", name), Published: "not in the paper",
			Here: fmt.Sprintf("worse in %d of %d", worse[i], all), Holds: worse[i] == 0,
		})
	}
	return e
}

// exactBatches is how many small batches are compared with their optimum, per setting.
const exactBatches = 40

// exactSettings are small enough for an exact search.
var exactSettings = []struct {
	name            string
	clusters, queue int
}{{"1 cluster", 1, 6}, {"2 clusters", 2, 7}, {"table 3", 0, 7}}

// exactBatch is one batch: the optimum, and by how much of it each policy exceeds it.
type exactBatch struct {
	optimum float64
	gap     [len(musclePolicies) + 1]float64 // in percent; the last is urgent first with TITAN choosing processors anew
}

// planExact returns the runs that compare small batches with their optimum.
func (s *muscleStudy) planExact() (runs []reproduce.Run) {
	batches := exactBatches
	if s.o.Jobs > 0 {
		batches = 3
	}
	s.exact = make([][]exactBatch, len(exactSettings))
	for i := range exactSettings {
		s.exact[i] = make([]exactBatch, batches)
		for n := range batches {
			runs = append(runs, reproduce.Run{Name: "optimum, " + exactSettings[i].name, Weight: 500, Result: &s.exact[i][n], Do: func(ctx context.Context) (err error) {
				if err := ctx.Err(); err != nil {
					return err
				}
				s.exact[i][n], err = s.compareExact(i, n)
				return err
			}})
		}
	}
	return runs
}

func (s *muscleStudy) compareExact(setting, n int) (e exactBatch, err error) {
	x := exactSettings[setting]
	cfg := packing.Default()
	cfg.Seed, cfg.Queue = s.o.Seed+uint64(1000+n), x.queue
	cfg.Clusters, cfg.DeadlineRange[1] = x.clusters, 1
	b, err := packing.Batch(cfg, 8)
	if err != nil {
		return e, err
	}
	if e.optimum, err = packing.Optimum(b); err != nil {
		return e, err
	}
	for i := range e.gap {
		cfg.Policy = musclePolicies[min(i, byUrgent)]
		if i > byUrgent {
			cfg.Settle = 30
		}
		mcp, err := packing.One(cfg, b)
		if err != nil {
			return e, err
		}
		e.gap[i] = 100 * (mcp - e.optimum) / e.optimum
	}
	return e, nil
}

// optimal tells how far the policies are from the optimum of small batches.
func (s *muscleStudy) optimal() reproduce.Experiment {
	t := reproduce.Table{Title: "MCP beyond the optimum, mean over the batches"}
	worst := reproduce.Table{Title: "MCP beyond the optimum, worst batch"}
	for _, x := range exactSettings {
		t.Columns = append(t.Columns, x.name)
	}
	worst.Columns = t.Columns
	for p := range len(musclePolicies) + 1 {
		name := "urgent first, processors chosen anew"
		if p < len(musclePolicies) {
			name = musclePolicyNames[p]
		}
		mean, most := reproduce.Measure{Name: name, Unit: reproduce.Percent, Decimals: 1}, reproduce.Measure{Name: name, Unit: reproduce.Percent, Decimals: 1}
		for i := range exactSettings {
			gaps := make([]reproduce.Number, len(s.exact[i]))
			for n := range gaps {
				gaps[n] = reproduce.Number(s.exact[i][n].gap[p])
			}
			spread := reproduce.SpreadOf(gaps)
			mean.Cells = append(mean.Cells, reproduce.Cell{Published: reproduce.None, Here: spread.Mean})
			most.Cells = append(most.Cells, reproduce.Cell{Published: reproduce.None, Here: spread.Max})
		}
		t.Measures, worst.Measures = append(t.Measures, mean), append(worst.Measures, most)
	}
	return reproduce.Experiment{
		Title: "Beyond the paper: how far from the optimum", Beyond: true,
		Text: []string{fmt.Sprintf(
			"%d batches of at most 8 jobs for each setting, with deadline ratios from 0 to 1; the optimum is the least MCP over all ways to share a batch out and all schedules, by exhaustive search. Policy and TITAN together are measured. A batch that does not fill the clusters is MUSCLE's weak point: it packs all of it into the cluster that is first, however slow, where DLL spreads it. Larger batches are out of reach of an exact search.", len(s.exact[0]))},
		Tables: []reproduce.Table{t, worst},
	}
}
