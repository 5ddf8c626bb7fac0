package muscle

import (
	"fmt"
	"slices"
	"strings"

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
			fmt.Sprintf("The margins over DLL grow with the queue, as published; those over WRAND do not. WRAND looks at no load, so what it sends to a cluster piles up at any level: at 40 jobs with MUSCLE it has %s in the queue, and DLL %s. At 100 it has %s and DLL %s.",
				reproduce.Format(s.mean(few.by(byWRAND), queueOf), 0), reproduce.Format(s.mean(few.by(byDLL), queueOf), 0),
				reproduce.Format(s.mean(many.by(byWRAND), queueOf), 0), reproduce.Format(s.mean(many.by(byDLL), queueOf), 0)),
		},
		Tables: []reproduce.Table{s.table("Figure 4: by mean number of jobs in the queue", over, published(byDLL), published(byWRAND))},
		Plots:  s.plots([2]string{"Figure 4 (a)", "Figure 4 (b)"}, " by workload level.", "jobs in the queue", at, over, byWRAND),
	}
	e.Claims = append(e.Claims,
		s.ahead("MUSCLE outperforms DLL and WRAND in MCP under all workload levels", over, bothOthers, nil, 0, mcpOf),
		s.ahead(fmt.Sprintf("its PB is significantly better than DLL's from %d jobs on", publishedBalanced), over, []int{byDLL}, func(i int) bool { return muscleQueues[i] >= publishedBalanced }, significant, pbOf),
		s.worsePB("below 60 jobs its PB is slightly worse than DLL's", "slightly worse", over, func(i int) bool { return muscleQueues[i] < publishedBalanced }),
	)
	for _, other := range bothOthers {
		e.Claims = append(e.Claims, s.moves("its margin in MCP over "+musclePolicyNames[other]+" grows from 40 to 100 jobs", few, many, other,
			[2]reproduce.Number{publishedMargin[40][other-byDLL], publishedMargin[100][other-byDLL]}))
	}
	var missed []float64
	var text []string
	for _, c := range over.cases {
		m := s.mean(c, missedOf)
		missed = append(missed, float64(m))
		text = append(text, reproduce.Format(m, 0))
	}
	always, _ := rises(missed)
	low := reproduce.NewClaim("when the workload is low, a small number of jobs miss their deadlines", "a small number", missed[0] <= smallShare, "%.0f %% at 20 jobs, %.0f %% at 40", missed[0], missed[1])
	low.Shape = missed[0] < missed[len(missed)-1]
	more := reproduce.NewClaim("as the workload increases further, more jobs miss their deadlines", "rises", always, "%s %%", strings.Join(text, " → "))
	more.Shape = missed[len(missed)-1] > missed[0]
	e.Claims = append(e.Claims, low, more)
	return e
}

// smallShare is what counts as a small number of jobs, in percent; the paper gives none.
const smallShare = 10

// deadlines is figure 5.
func (s *muscleStudy) deadlines() reproduce.Experiment {
	e := reproduce.Experiment{Title: "Figure 5: deadlines"}
	var margins [2][]float64
	var text [2]string
	for i, queue := range muscleLevels {
		var over sweep
		for _, loosest := range muscleDeadlines {
			over.cases = append(over.cases, muscleFigure5(byMuscle, queue, loosest))
			over.columns = append(over.columns, fmt.Sprintf("0 to %v", loosest))
		}
		margins[i], text[i] = s.margins(over.cases, byDLL)
		e.Tables = append(e.Tables, s.table(fmt.Sprintf("Figure 5: by deadline range, %d jobs in the queue", queue), over, nil, nil))
		figures := [2]string{[]string{"Figure 5 (a)", "Figure 5 (b)"}[i], []string{"Figure 5 (c)", "Figure 5 (d)"}[i]}
		e.Plots = append(e.Plots, s.plots(figures, fmt.Sprintf(" by deadline range, %d jobs.", queue), "MAX_DR", muscleDeadlines, over, byWRAND)...)
		e.Claims = append(e.Claims,
			s.ahead(fmt.Sprintf("MUSCLE performs better than DLL and WRAND in MCP, %d jobs", queue), over, bothOthers, nil, 0, mcpOf),
			s.ahead(fmt.Sprintf("and significantly in PB (except when the workload is low and deadlines are loose), %d jobs", queue), over, bothOthers,
				func(i int) bool { return queue > publishedBalanced || muscleDeadlines[i] < 5 }, significant, pbOf),
		)
	}
	few, many := margins[0], margins[1]
	last := len(muscleDeadlines) - 1
	loose := reproduce.NewClaim("when the workload is low and the deadline is loose, the advantage is low", "low",
		few[last] == slices.Min(slices.Concat(few, many)), "%.1f %% over DLL at 40 jobs and 0 to 7; elsewhere %.1f to %.1f %%", few[last],
		slices.Min(slices.Concat(few[:last], many)), slices.Max(slices.Concat(few[:last], many)))
	loose.Shape = few[last] < many[last]
	tighter := reproduce.NewClaim("as deadlines become more urgent relative to the workload, the advantage becomes prominent", "rises",
		few[1] > few[2] && few[2] > few[last], "%s over DLL at 40 jobs, from urgent to loose", text[0])
	tighter.Shape = few[0] > few[last]
	diminishes := reproduce.NewClaim("as they become even shorter, it diminishes", "falls", many[0] < many[1] && many[1] < many[2], "%s over DLL at 100 jobs, from urgent to loose", text[1])
	diminishes.Shape = many[0] < slices.Max(many)
	e.Claims = append(e.Claims, loose, tighter, diminishes)
	return e
}

// weighted is figure 6.
func (s *muscleStudy) weighted() reproduce.Experiment {
	over, at := queueSweep(muscleWeighted, muscleFigure6)
	margins := func(i int) reproduce.Number { return publishedMarginWeights[muscleWeighted[i]] }
	e := reproduce.Experiment{
		Title:  "Figure 6: clusters with weights of their own",
		Text:   []string{"Over-deadline, makespan and idle time weigh (12, 3, 1), (8, 3, 1), (4, 3, 1) and (1, 3, 1) at the four clusters."},
		Tables: []reproduce.Table{s.table("Figure 6: by mean number of jobs in the queue", over, margins, nil)},
		Plots:  s.plots([2]string{"Figure 6, MCP", "Figure 6, PB"}, " with weights by cluster.", "jobs in the queue", at, over, byWRAND),
	}
	step := func(from, to int) [2]reproduce.Number {
		return [2]reproduce.Number{publishedMarginWeights[from], publishedMarginWeights[to]}
	}
	e.Claims = append(e.Claims,
		s.ahead("with weights by cluster MUSCLE is superior in all cases in MCP", over, bothOthers, nil, 0, mcpOf),
		s.moves("with weights by cluster the margin over DLL increases from 40 to 100 jobs", over.cases[0], over.cases[1], byDLL, step(40, 100)),
		s.moves("and decreases to 160 jobs", over.cases[1], over.cases[2], byDLL, step(100, 160)),
		s.worsePB("with weights by cluster its PB at 40 jobs is worse than DLL's", "worse", over, func(i int) bool { return muscleWeighted[i] == 40 }),
		s.ahead("and significantly better than DLL's and WRAND's at 100 and 160 jobs", over, bothOthers, func(i int) bool { return muscleWeighted[i] >= 100 }, significant, pbOf),
	)
	return e
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
	wrand, wrandText := s.margins(over.cases, byWRAND)
	dll, dllText := s.margins(over.cases, byDLL)
	always, steps := rises(wrand)
	pronounced := reproduce.NewClaim("its advantage over WRAND becomes more pronounced with the number of clusters", "rises", always, "%s", wrandText)
	pronounced.Shape = wrand[len(wrand)-1] > wrand[0] && steps > 0
	up, ups := rises(dll)
	trend := reproduce.NewClaim("while the trend is not obvious for DLL", "no trend", !up && ups > 0, "%s", dllText)
	e.Claims = append(e.Claims,
		s.ahead("MUSCLE outperforms DLL and WRAND in MCP with any number of clusters", over, bothOthers, nil, 0, mcpOf),
		s.ahead("and in PB", over, bothOthers, nil, 0, pbOf),
		pronounced, trend,
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
			over.cases = append(over.cases, muscleSized(byMuscle, queue, sizes))
			over.columns = append(over.columns, sizes)
		}
		e.Tables = append(e.Tables, s.table(fmt.Sprintf("By distribution of sizes, %d jobs", queue), over, nil, nil))
		e.Claims = append(e.Claims, s.ahead(fmt.Sprintf("similar patterns with other job sizes: MUSCLE is ahead in MCP, %d jobs", queue), over, bothOthers, nil, 0, mcpOf))
	}
	return e
}

func queueSweep(queues []int, of func(policy, queue int) muscleCase) (over sweep, at []float64) {
	for _, queue := range queues {
		over.cases = append(over.cases, of(byMuscle, queue))
		over.columns = append(over.columns, fmt.Sprintf("%d jobs", queue))
		at = append(at, float64(queue))
	}
	return over, at
}
