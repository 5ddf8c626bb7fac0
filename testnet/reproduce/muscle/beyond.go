package muscle

import (
	"context"
	"fmt"

	"gridnode/testnet/measure"
	"gridnode/testnet/reproduce"
	"gridnode/testnet/scenario/packing"
)

// muscleReadings are other ways to understand what the paper leaves open.
var muscleReadings = []struct {
	name   string
	change func(*muscleCase)
}{
	{"as above", func(*muscleCase) {}},
	{"arrival", func(c *muscleCase) { c.start = "arrival" }},
	{"anew", func(c *muscleCase) { c.settle = 30 }},
	{"both", func(c *muscleCase) { c.start, c.settle = "arrival", 30 }},
	{"waited", func(c *muscleCase) { c.deadlines = "arrival" }},
	{"carried", func(c *muscleCase) { c.window = muscleWindow }},
	{"carried, arrival", func(c *muscleCase) { c.start, c.window = "arrival", muscleWindow }},
}

// muscleWindow is how many seconds lie between two batches where they meet what is left
// of each other: 100 jobs take 93 % of what the clusters of table 3 can do in that
// time, 40 jobs 37 % and 160 jobs 148 %.
const muscleWindow = 130

// readings compares the margins under other readings.
func (s *muscleStudy) readings() reproduce.Experiment {
	e := reproduce.Experiment{
		Title: "Appendix: other readings",
		Text: []string{
			"“Arrival”: the first schedules of DLL and WRAND are random but for one that has the order of arrival, each job on the processors that are free first. “Anew”: TITAN chooses the processors of 30 % of the offspring in that way, too. “Waited”: deadlines count from the arrival of a job, not from the batch. “Carried”: a batch comes every 130 s whatever its size, and meets what is left of those before.",
			"The margins depend on how well TITAN does without a seed schedule. If deadlines count from arrival, most slack is used up when the batch is shared out. Then equation 3 fails: a cluster whose first jobs have no slack left gets an ε without bound and no more jobs, and MUSCLE as published falls behind. “Urgent first” divides by the time that is left until the deadlines instead, and stays ahead.",
			"“Carried” is the reading under which the margin grows from 40 to 100 jobs and falls again to 160, as published: 100 jobs are 93 % of what the clusters can do in the time. Who packs tightly is nearly done with a batch when the next one comes, and who does not carries much more over; at 160 jobs nobody keeps up.",
			s.whyCarried(),
		},
	}
	for _, queue := range muscleReadingLevels {
		t := reproduce.Table{Title: fmt.Sprintf("MCP and margins, %d jobs", queue)}
		for _, r := range muscleReadings {
			t.Columns = append(t.Columns, r.name)
		}
		row := func(name string, unit reproduce.Unit, cell func(c muscleCase) reproduce.Cell) {
			m := reproduce.Measure{Name: name, Unit: unit, Decimals: 1}
			for _, r := range muscleReadings {
				m.Cells = append(m.Cells, cell(muscleFigure4(byMuscle, queue).with(r.change)))
			}
			t.Measures = append(t.Measures, m)
		}
		for policy := range musclePolicies {
			row("MCP, "+musclePolicyNames[policy], reproduce.Seconds, func(c muscleCase) reproduce.Cell { return s.cell(c.by(policy), reproduce.None, mcpOf) })
		}
		for _, other := range bothOthers {
			row("margin over "+musclePolicyNames[other], reproduce.Percent, func(c muscleCase) reproduce.Cell {
				published := reproduce.None
				if margins, printed := publishedMargin[queue]; printed {
					published = margins[other-byDLL]
				}
				return s.margin(c, other, published, mcpOf)
			})
			row("margin of urgent first over "+musclePolicyNames[other], reproduce.Percent, func(c muscleCase) reproduce.Cell { return s.margin(c.by(byUrgent), other, reproduce.None, mcpOf) })
		}
		e.Tables = append(e.Tables, t)
	}
	return e
}

// whyCarried says by how much the margins depart where batches meet, and why. Figure 6
// has weights by cluster, but its is the only margin that is printed for 160 jobs.
func (s *muscleStudy) whyCarried() string {
	at := func(queue int) muscleCase {
		return muscleFigure4(byMuscle, queue).with(func(c *muscleCase) { c.start, c.window = "arrival", muscleWindow })
	}
	use := func(policy int) string { return reproduce.Format(s.mean(at(100).by(policy), utilizationOf), 1) }
	return fmt.Sprintf("“Carried, arrival”: %s; %s; %s. At 40 jobs batches hardly meet, and the reason is that of figure 4. At 100 jobs processors would have to be in use for 93 %% of the time. DLL's and WRAND's are for %s %% and %s %%, MUSCLE's for %s %%: it falls behind least, so the margin depends on how often batches come and on how many there are, neither of which is printed. At 160 jobs MCP grows with the run for everybody, and the margin is that of the rates at which batches are worked off.",
		s.bothBeside(at(40)), s.bothBeside(at(100)), s.beside(at(160), byDLL, publishedMarginWeights[160]),
		use(byDLL), use(byWRAND), use(byMuscle))
}

// variant compares MUSCLE with itself, the most pressed jobs first.
func (s *muscleStudy) variant() reproduce.Experiment {
	levels, at := queueSweep(muscleQueues, muscleFigure4)
	weighted, _ := queueSweep(muscleWeighted, muscleFigure6)
	var tight, sizes sweep
	for _, queue := range muscleLevels {
		for _, loosest := range muscleDeadlines {
			tight.cases = append(tight.cases, muscleFigure5(byMuscle, queue, loosest))
			tight.columns = append(tight.columns, fmt.Sprintf("%d jobs, 0 to %v", queue, loosest))
		}
	}
	for _, n := range muscleSizes {
		sizes.cases = append(sizes.cases, muscleFigure7(byMuscle, n))
		sizes.columns = append(sizes.columns, fmt.Sprintf("%d clusters", n))
	}
	e := reproduce.Experiment{
		Title: "Beyond the paper: the most pressed jobs first",
		Text: []string{
			"Two changes to the published rules. Jobs enter the composition table in the order of their slack instead of their arrival, so that the search, which takes the first of equally good compositions, finds the pressed ones first. And ε is divided by the sum of slack and run time, the time left until the deadlines, instead of slack alone. TITAN is the same.",
		},
		Plots: s.plots([2]string{"Figure 4 (a), with the variant", "Figure 4 (b), with the variant"}, " by workload level.", "jobs in the queue", at, levels, byUrgent),
	}
	worse, all := [2]int{}, 0
	for _, part := range []struct {
		title string
		over  sweep
	}{{"Setting of figure 4", levels}, {"Setting of figure 5", tight}, {"Setting of figure 6", weighted}, {"Setting of figure 7", sizes}} {
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
			Text: fmt.Sprintf("the variant is no worse in %s in the settings of figures 4 to 7", name), Published: "not in the paper",
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
			runs = append(runs, reproduce.Run{Name: "optimum, " + exactSettings[i].name, Weight: 500, Do: func(ctx context.Context) (err error) {
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
	cfg := s.config(muscleFigure4(byMuscle, x.queue), 1000+n)
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
		Title: "Beyond the paper: how far from the optimum",
		Text: []string{fmt.Sprintf(
			"%d batches of at most 8 jobs for each setting, with deadline ratios from 0 to 1; the optimum is the least MCP over all ways to share a batch out and all schedules, by exhaustive search. Policy and TITAN together are measured. A batch that does not fill the clusters is MUSCLE's weak point: it packs all of it into the cluster that is first, however slow, where DLL spreads it. Larger batches are out of reach of an exact search.", len(s.exact[0]))},
		Tables: []reproduce.Table{t, worst},
	}
}
