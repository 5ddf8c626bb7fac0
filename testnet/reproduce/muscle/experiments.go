package muscle

import (
	"fmt"
	"strings"

	"gridnode/testnet/measure"
	"gridnode/testnet/reproduce"
)

// levels is figure 4.
func (s *muscleStudy) levels() reproduce.Experiment {
	over, at := queueSweep(muscleQueues, muscleFigure4)
	published := func(other int) func(i int) reproduce.Number {
		return func(i int) reproduce.Number {
			if p, ok := publishedMargin[muscleQueues[i]]; ok {
				return p[other-byDLL]
			}
			return reproduce.None
		}
	}
	few, many := muscleFigure4(byMuscle, 40), muscleFigure4(byMuscle, 100)
	e := reproduce.Experiment{
		Title: "Figure 4: workload levels",
		Text: []string{
			s.why(few, many),
		},
		Tables: []reproduce.Table{s.table("Figure 4: by mean number of jobs in the queue", over, published(byDLL), published(byWRAND))},
		Plots:  s.plots([2]string{"Figure 4 (a)", "Figure 4 (b)"}, " by workload level.", "jobs in the queue", at, over, byWRAND),
	}
	e.Claims = append(e.Claims,
		s.ahead("MUSCLE outperforms DLL and WRAND in MCP under all workload levels", over, bothOthers, nil, mcpOf),
		s.ahead(fmt.Sprintf("its PB is better than DLL's from %d jobs on", publishedBalanced), over, []int{byDLL}, func(i int) bool { return muscleQueues[i] >= publishedBalanced }, pbOf),
	)
	for _, other := range bothOthers {
		before, after := s.margin(few, other, reproduce.None, mcpOf).Here, s.margin(many, other, reproduce.None, mcpOf).Here
		e.Claims = append(e.Claims, reproduce.Claim{
			Text:      "its margin in MCP over " + musclePolicyNames[other] + " grows from 40 to 100 jobs",
			Published: reproduce.Change(publishedMargin[40][other-byDLL], publishedMargin[100][other-byDLL], 1),
			Here:      reproduce.Change(before, after, 1), Holds: after > before,
		})
	}
	below := s.margin(few, byDLL, reproduce.None, pbOf).Here
	e.Claims = append(e.Claims, reproduce.Claim{
		Text: "below 60 jobs its PB is slightly worse than DLL's", Published: "worse", Here: fmt.Sprintf("%s against %s at 40 jobs", reproduce.Format(s.mean(few, pbOf), 1), reproduce.Format(s.mean(few.by(byDLL), pbOf), 1)),
		Holds: below < 0,
	})
	return e
}

// why says where margins depart by more than half, and why.
func (s *muscleStudy) why(few, many muscleCase) string {
	use := func(c muscleCase) string { return reproduce.Format(s.mean(c, utilizationOf), 1) }
	return fmt.Sprintf("Margins in MCP: %s; %s. Where they are larger than published, it is by what random first schedules cost DLL and WRAND: at 40 jobs their clusters are in use for %s %% and %s %% of their makespans, those of MUSCLE for %s %%. The paper's smaller margin there means that its TITAN came closer to packing a share tightly by itself; how long it searched is not printed, and the margins move with that and with the first schedules (see “Other readings”).",
		s.bothBeside(few), s.bothBeside(many), use(few.by(byDLL)), use(few.by(byWRAND)), use(few))
}

// bothBeside names the margins over DLL and WRAND beside those of figure 4.
func (s *muscleStudy) bothBeside(c muscleCase) string {
	published := publishedMargin[c.queue]
	return s.beside(c, byDLL, published[0]) + ", " + s.beside(c, byWRAND, published[1])
}

// beside names the margin in MCP over a policy beside the published one.
func (s *muscleStudy) beside(c muscleCase, other int, published reproduce.Number) string {
	here := s.margin(c, other, reproduce.None, mcpOf).Here
	text := fmt.Sprintf("%s %% over %s at %d jobs (published %s %%", reproduce.Format(here, 1), musclePolicyNames[other], c.queue, reproduce.Format(published, 1))
	if here < published/2 || here > published*3/2 {
		text += ", off by more than half"
	}
	return text + ")"
}

func utilizationOf(r *measure.Result) reproduce.Number {
	return reproduce.Number(100 * r.Total.Utilization.Float())
}

// deadlines is figure 5.
func (s *muscleStudy) deadlines() reproduce.Experiment {
	e := reproduce.Experiment{Title: "Figure 5: deadlines"}
	for i, queue := range muscleLevels {
		var over sweep
		for _, loosest := range muscleDeadlines {
			over.cases = append(over.cases, muscleFigure5(byMuscle, queue, loosest))
			over.columns = append(over.columns, fmt.Sprintf("0 to %v", loosest))
		}
		e.Tables = append(e.Tables, s.table(fmt.Sprintf("Figure 5: by deadline range, %d jobs in the queue", queue), over, nil, nil))
		figures := [2]string{[]string{"Figure 5 (a)", "Figure 5 (b)"}[i], []string{"Figure 5 (c)", "Figure 5 (d)"}[i]}
		e.Plots = append(e.Plots, s.plots(figures, fmt.Sprintf(" by deadline range, %d jobs.", queue), "MAX_DR", muscleDeadlines, over, byWRAND)...)
		e.Claims = append(e.Claims,
			s.ahead(fmt.Sprintf("MUSCLE performs better than DLL and WRAND in MCP, %d jobs", queue), over, bothOthers, nil, mcpOf),
			s.ahead(fmt.Sprintf("and in PB (except when the workload is low and deadlines are loose), %d jobs", queue), over, bothOthers, func(i int) bool { return queue > publishedBalanced || muscleDeadlines[i] <= 5 }, pbOf),
		)
	}
	return e
}

// weighted is figure 6.
func (s *muscleStudy) weighted() reproduce.Experiment {
	over, at := queueSweep(muscleWeighted, muscleFigure6)
	margins := func(i int) reproduce.Number { return publishedMarginWeights[muscleWeighted[i]] }
	e := reproduce.Experiment{
		Title: "Figure 6: clusters with weights of their own",
		Text: []string{
			"Over-deadline, makespan and idle time weigh (12, 3, 1), (8, 3, 1), (4, 3, 1) and (1, 3, 1) at the four clusters.",
			s.whyWeighted(over.cases),
		},
		Tables: []reproduce.Table{s.table("Figure 6: by mean number of jobs in the queue", over, margins, nil)},
		Plots:  s.plots([2]string{"Figure 6, MCP", "Figure 6, PB"}, " with weights by cluster.", "jobs in the queue", at, over, byWRAND),
	}
	e.Claims = append(e.Claims,
		s.ahead("MUSCLE is superior in all cases in MCP", over, bothOthers, nil, mcpOf),
		s.ahead("and significantly better in PB at 100 and 160 jobs", over, bothOthers, func(i int) bool { return muscleWeighted[i] >= 100 }, pbOf),
	)
	here := [3]reproduce.Number{}
	for i, c := range over.cases {
		here[i] = s.margin(c, byDLL, reproduce.None, mcpOf).Here
	}
	e.Claims = append(e.Claims, reproduce.Claim{
		Text: "the margin over DLL rises from 40 to 100 jobs and falls at 160", Published: "15.6 → 57.5 → 13.7 %",
		Here:  fmt.Sprintf("%s → %s → %s %%", reproduce.Format(here[0], 1), reproduce.Format(here[1], 1), reproduce.Format(here[2], 1)),
		Holds: here[0] < here[1] && here[1] > here[2],
	})
	return e
}

// whyWeighted does the same for figure 6.
func (s *muscleStudy) whyWeighted(cases []muscleCase) string {
	var parts []string
	for _, c := range cases {
		parts = append(parts, s.beside(c, byDLL, publishedMarginWeights[c.queue]))
	}
	return "Margins in MCP: " + strings.Join(parts, "; ") + ". At 40 jobs the reason is that of figure 4. At 160 jobs every batch meets empty clusters here, so that nobody is ever saturated, by which the paper explains its smaller margin; see “carried” in “Other readings”."
}

// clusters is figure 7.
func (s *muscleStudy) clusters() reproduce.Experiment {
	var over sweep
	var at []float64
	for _, n := range muscleSizes {
		over.cases = append(over.cases, muscleFigure7(byMuscle, n))
		over.columns = append(over.columns, fmt.Sprintf("%d clusters", n))
		at = append(at, float64(n))
	}
	e := reproduce.Experiment{
		Title:  "Figure 7: multicluster size",
		Text:   []string{"Clusters of 20, 24, … 56 processors of equal speed, the smallest first; weights (8, 3, 1); sizes up to that of the widest, distributed by their logarithm; 80 jobs for four clusters, and as many more as there are processors."},
		Tables: []reproduce.Table{s.table("Figure 7: by number of clusters", over, nil, nil)},
		Plots:  s.plots([2]string{"Figure 7 (a)", "Figure 7 (b)"}, " by number of clusters.", "clusters", at, over, byWRAND),
	}
	first, last := over.cases[0], over.cases[len(over.cases)-1]
	before, after := s.margin(first, byWRAND, reproduce.None, mcpOf).Here, s.margin(last, byWRAND, reproduce.None, mcpOf).Here
	e.Claims = append(e.Claims,
		s.ahead("MUSCLE outperforms DLL and WRAND in MCP in all cases", over, bothOthers, nil, mcpOf),
		s.ahead("and in PB", over, bothOthers, nil, pbOf),
		reproduce.Claim{Text: "its margin over WRAND becomes more pronounced with the number of clusters", Published: "rises", Here: reproduce.Change(before, after, 1), Holds: after > before},
	)
	return e
}

// muscleDistributions are those of job sizes other than figure 4's.
var muscleDistributions = []string{"normal", "log"}

// distributions repeats figure 4 with other job sizes.
func (s *muscleStudy) distributions() reproduce.Experiment {
	e := reproduce.Experiment{
		Title: "Other job sizes",
		Text:  []string{"“These experiments are conducted under these different distributions … The results show similar patterns, and hence only the results for a specific representative distribution are presented.” Figure 4 has uniform sizes."},
	}
	for _, queue := range muscleLevels {
		over := sweep{cases: []muscleCase{muscleFigure4(byMuscle, queue)}, columns: []string{"uniform"}}
		for _, sizes := range muscleDistributions {
			over.cases = append(over.cases, muscleFigure4(byMuscle, queue).with(func(c *muscleCase) { c.sizes = sizes }))
			over.columns = append(over.columns, sizes)
		}
		e.Tables = append(e.Tables, s.table(fmt.Sprintf("By distribution of sizes, %d jobs", queue), over, nil, nil))
		e.Claims = append(e.Claims, s.ahead(fmt.Sprintf("similar patterns: MUSCLE is ahead in MCP, %d jobs", queue), over, bothOthers, nil, mcpOf))
	}
	return e
}
