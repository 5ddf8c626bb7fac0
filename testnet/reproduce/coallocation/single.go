package coallocation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gridnode/grid"
	"gridnode/testnet/reproduce"
	"gridnode/testnet/scenario/coallocation"
)

// single is one job of 32 nodes on given clusters, with nothing else in the system.
type single struct {
	application string
	clusters    string // separated by spaces
	speeds      bool   // for the 30 s of table III
}

// synthetic is the application of figure 3, which "performs one million MPIAllGather
// all-to-all communication operations" and computes nothing worth mentioning: it has the
// greatest CCR that the scenario knows.
const synthetic = "ccr=100"

// sizesOn are the components of a job of 32 nodes: "of equal size (except for the case of 3
// clusters, in which we submit components of sizes 10-10-12 nodes)".
var sizesOn = [][]int{{32}, {16, 16}, {10, 10, 12}, {8, 8, 8, 8}}

// Clusters of figures 3 and 4, by whether Delft is one.
var combined = [2][]string{{"vrije", "amsterdam", "multimedian", "leiden"}, {"vrije", "amsterdam", "multimedian", "delft"}}

// combinations returns those of k clusters; with Delft, if there are several, those that
// include it.
func combinations(k, with int) (all []string) {
	names := combined[with]
	for set := range 1 << len(names) {
		var of []string
		for i, name := range names {
			if set>>i&1 == 1 {
				of = append(of, name)
			}
		}
		if len(of) == k && (with == 0 || k == 1 || slices.Contains(of, "delft")) {
			all = append(all, strings.Join(of, " "))
		}
	}
	return all
}

// singlePlan lists the jobs of figures 3 and 4 and of table III.
func (s *coallocationStudy) singlePlan() (all []single) {
	for k := 1; k <= 4; k++ {
		for _, clusters := range combinations(k, 0) {
			for _, application := range append([]string{synthetic}, applicationsMPI...) {
				all = append(all, single{application: application, clusters: clusters})
			}
		}
		for _, clusters := range combinations(k, 1) {
			if one := (single{application: synthetic, clusters: clusters}); !slices.Contains(all, one) {
				all = append(all, one)
			}
		}
	}
	all = append(all, single{"prime", "leiden", true})
	for _, p := range publishedSpeeds {
		all = append(all, single{"prime", "leiden " + p.cluster, true})
	}
	return all
}

// run returns what the job takes, in seconds.
func (one single) run(ctx context.Context, seed uint64) (reproduce.Number, error) {
	cfg := coallocation.Default()
	cfg.Seed, cfg.Policy, cfg.Application, cfg.Utilization, cfg.Hours, cfg.Speeds = seed, "wf", one.application, 5, 4, one.speeds
	if one.speeds {
		cfg.RunTime = 30 * grid.Second
	}
	names := strings.Fields(one.clusters)
	var components []string
	for i, name := range names {
		components = append(components, fmt.Sprintf("%d@%s", sizesOn[len(names)-1][i], name))
	}
	cfg.Components = strings.Join(components, ",")
	cfg.Without = "leiden"
	switch delft, leiden := slices.Contains(names, "delft"), slices.Contains(names, "leiden"); {
	case delft && leiden:
		cfg.Without = "none"
	case leiden:
		cfg.Without = "delft"
	}
	seconds := reproduce.None
	cfg.Ended = func(j coallocation.Job) { seconds = reproduce.Number((j.End - j.Start).Seconds()) }
	_, err := coallocation.Run(ctx, cfg)
	return seconds, err
}

// taken returns the mean time over all combinations of one to four clusters.
func (s *coallocationStudy) taken(application string, with int) (seconds [4]reproduce.Number) {
	for k := range seconds {
		all := combinations(k+1, with)
		for _, clusters := range all {
			seconds[k] += *s.singles[single{application: application, clusters: clusters}] / reproduce.Number(len(all))
		}
	}
	return seconds
}

// byClusters makes a row of what is taken.
func byClusters(name string, seconds, published [4]reproduce.Number) reproduce.Measure {
	m := reproduce.Measure{Name: name, Unit: reproduce.Seconds}
	for k, v := range seconds {
		m.Cells = append(m.Cells, reproduce.Cell{Published: published[k], Here: v})
	}
	return m
}

var unpublished = [4]reproduce.Number{reproduce.None, reproduce.None, reproduce.None, reproduce.None}

// rises reports whether each is above the one before by that part of it.
func rises(seconds [4]reproduce.Number, part reproduce.Number) bool {
	for k := 1; k < len(seconds); k++ {
		if seconds[k] <= seconds[k-1]*(1+part) {
			return false
		}
	}
	return true
}

func arrows(seconds [4]reproduce.Number) string {
	var words []string
	for _, v := range seconds {
		words = append(words, reproduce.Format(v, 0))
	}
	return strings.Join(words, " → ") + " s"
}

// experimentNetwork is section V-A: figure 3.
func (s *coallocationStudy) experimentNetwork() reproduce.Experiment {
	t, p := reproduce.NewFigure("Figure 3", "Execution time of the synthetic application by the number of clusters", "clusters", "seconds", []int{1, 2, 3, 4})
	myri, gbe := s.taken(synthetic, 0), s.taken(synthetic, 1)
	for i, name := range []string{"Myri-10G, without Delft", "GbE, with Delft"} {
		m := byClusters(name, [2][4]reproduce.Number{myri, gbe}[i], unpublished)
		t.Measures = append(t.Measures, m)
		p.Series = append(p.Series, m.Line(name, 0, 10_000))
	}
	var added [2]reproduce.Number
	lower := true
	for k := 1; k < 4; k++ {
		added[0] += (myri[k] - myri[0]) / 3
		added[1] += (gbe[k] - gbe[0]) / 3
		lower = lower && myri[k] < gbe[k]
	}
	more := reproduce.NewClaim("the increase is much more severe with GbE (half as much again, mean of two to four clusters)", "much more severe", added[1] >= 1.5*added[0],
		"+%s s against +%s s", reproduce.Format(added[1], 0), reproduce.Format(added[0], 0))
	more.Shape = added[1] > added[0]
	return reproduce.Experiment{
		Title: "Networks between clusters (section V-A)",
		Text:  []string{"One job of 32 nodes in components of equal size, on all combinations of one to four clusters; the mean over the combinations. Within one cluster it takes 180 s here."},
		Claims: []reproduce.Claim{
			reproduce.NewClaim("the execution time increases with the number of clusters combined", "increases", rises(myri, 0) && rises(gbe, 0), "%s and %s", arrows(myri), arrows(gbe)),
			more,
			reproduce.NewClaim("the average execution time is higher with GbE, on any number of clusters from two", "much higher", lower, "%s against %s", arrows(gbe), arrows(myri)),
		},
		Tables: []reproduce.Table{t}, Plots: []reproduce.Plot{p},
	}
}

// experimentSpeeds is section V-B: table III.
func (s *coallocationStudy) experimentSpeeds() reproduce.Experiment {
	alone := *s.singles[single{"prime", "leiden", true}]
	t := reproduce.Table{Title: "Table III: execution time when Leiden is combined with another cluster", Note: "Alone it takes " + reproduce.Format(alone, 0) + " s, as printed."}
	m := reproduce.Measure{Name: "execution time", Unit: reproduce.Seconds, Decimals: 1}
	least, most := reproduce.Number(1000), reproduce.Number(0)
	for _, p := range publishedSpeeds {
		here := *s.singles[single{"prime", "leiden " + p.cluster, true}]
		t.Columns = append(t.Columns, "Leiden-"+p.name)
		m.Cells = append(m.Cells, reproduce.Cell{Published: p.seconds, Here: here})
		least, most = min(least, 100*(here/alone-1)), max(most, 100*(here/alone-1))
	}
	t.Measures = []reproduce.Measure{m}
	return reproduce.Experiment{
		Title:  "Speeds of processors (section V-B)",
		Text:   []string{"An application that computes only runs as fast as the slowest of its clusters (table I)."},
		Claims: []reproduce.Claim{reproduce.NewClaim("a slight increase, by 7 % to 17 %", "7 to 17 %", least >= 5 && most <= 20, "%s to %s %%", reproduce.Format(least, 0), reproduce.Format(most, 0))},
		Tables: []reproduce.Table{t},
	}
}

// experimentRunTimes is section VI-A: figure 4.
func (s *coallocationStudy) experimentRunTimes() reproduce.Experiment {
	t, p := reproduce.NewFigure("Figure 4", "Execution time of the applications by the number of clusters", "clusters", "seconds", []int{1, 2, 3, 4})
	t.Note = "The two printed times of Wave are what the model is scaled to, so they are not counted."
	of := map[string][4]reproduce.Number{}
	for _, application := range applicationsMPI {
		of[application] = s.taken(application, 0)
		published := unpublished
		if application == "wave" {
			published = publishedWave
		}
		m := byClusters(application, of[application], published)
		m.Alternative = true
		t.Measures = append(t.Measures, m)
		p.Series = append(p.Series, m.Line(application, 0, 10_000))
	}
	more := func(application string) reproduce.Number { return 100 * (of[application][3]/of[application][0] - 1) }
	return reproduce.Experiment{
		Title: "The applications (section VI-A)",
		Text:  []string{"One job of 32 nodes on all combinations of clusters without Delft; the mean over the combinations."},
		Claims: []reproduce.Claim{
			reproduce.NewClaim("Wave's execution time increases markedly (by a tenth and more with each cluster)", "200 → … → 750 s", rises(of["wave"], 0.1), "%s", arrows(of["wave"])),
			reproduce.NewClaim("Poisson suffers much less (less than half as much, on four clusters)", "much less", more("poisson") < more("wave")/2, "+%s %% against +%s %%", reproduce.Format(more("poisson"), 0), reproduce.Format(more("wave"), 0)),
		},
		Tables: []reproduce.Table{t}, Plots: []reproduce.Plot{p},
	}
}
