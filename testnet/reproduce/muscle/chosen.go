package muscle

import (
	"gridnode/testnet/reproduce"
	"gridnode/testnet/scenario/packing"
)

// threshold of the chosen reading, in seconds.
const threshold = 80

// muscleReadings are ways to understand algorithm 4; the first is the chosen one.
var muscleReadings = []struct {
	name   string
	change func(*packing.Config)
}{
	{"chosen", func(cfg *packing.Config) { cfg.Collect, cfg.Threshold = packing.CollectMakespan, threshold }},
	{"threshold 0 s", func(cfg *packing.Config) { cfg.Collect, cfg.Threshold = packing.CollectMakespan, 0 }},
	{"threshold 100 s", func(cfg *packing.Config) { cfg.Collect, cfg.Threshold = packing.CollectMakespan, 100 }},
	{"batches", func(cfg *packing.Config) { cfg.Start, cfg.Settle = "arrival", 100 }},
	{"windows", func(cfg *packing.Config) { cfg.Start, cfg.Settle, cfg.Window = "arrival", 100, muscleWindow }},
}

// muscleWindow is how many seconds lie between two batches of the reading "windows": 100
// jobs take 93 % of what the clusters of table 3 can do in that time.
const muscleWindow = 130

// loadAt is the load, in percent, at which MUSCLE has about so many jobs in the queue of
// the multicluster of table 3, by distribution of job sizes. How many it has is measured.
var loadAt = map[string]map[int]float64{
	"uniform": {20: 85, 40: 90, 60: 93, 80: 95.5, 100: 97.5, 120: 99, 140: 101, 160: 103},
	"normal":  {40: 86.5, 100: 93},
	"log":     {40: 94.5, 100: 101.5},
}

// loadOfClusters is the same for figure 7, by number of clusters.
var loadOfClusters = map[int]float64{4: 95, 6: 99.5, 8: 105.5, 10: 114}

// chosenReadings are the choices where the text is open, each with the sentence that it
// goes by.
func chosenReadings() []reproduce.Reading {
	return []reproduce.Reading{
		{ // muscle.CollectMakespan
			Of: "until when jobs are collected", Sentence: "while the expected makespans of the jobs yet to be scheduled in all clusters (provided by TITAN) are greater than a predefined threshold: collect the arriving jobs",
			Chosen: "until the time in which a cluster is expected to have done all that it has is no longer greater, for one of them",
		},
		{ // threshold
			Of: "the threshold", Sentence: "a predefined threshold",
			Chosen: "80 s, which is not printed; the appendix has others",
		},
		{ // muscle.Cluster.Has
			Of: "what ε counts", Sentence: "the fundamental attributes of parallel jobs allocated to cluster C_i",
			Chosen: "all jobs that a cluster has and has not done, those of earlier packings included",
		},
		{ // muscle.Rule.slack
			Of: "slack", Sentence: "the slack of a job is its deadline minus its execution time and its arrival time",
			Chosen: "counted from submission, so collecting does not use it up; where there is none, ε is divided by a microsecond",
		},
		{ // headRun.job
			Of: "deadlines", Sentence: "a job's deadline d_i is determined by (5)",
			Chosen: "they count from submission",
		},
		{ // muscle.Policy.OnArrival
			Of: "DLL and WRAND", Sentence: "when a parallel job is submitted to the multicluster, DLL schedules the job to the cluster whose workload is the least",
			Chosen: "they choose a job's cluster as it comes; the cluster plans what it was sent when algorithm 4 would",
		},
		{ // loadAt, executed.waiting
			Of: "the workload level", Sentence: "the workload level is measured by the mean job number in the queue in the multicluster",
			Chosen: "all policies get the same jobs at the same load; the level is the mean number of jobs that are submitted and not started with MUSCLE",
		},
		{ // executed.sums
			Of: "MCP", Sentence: "each point in the performance curve is plotted as the average of the MCP calculated each time",
			Chosen: "over all packings, of the jobs of each; a cluster that was given none has a CP of 0",
		},
		{ // packing.paretoAlpha
			Of: "the α of equation 4", Sentence: "a bounded Pareto distribution [20]",
			Chosen: "1, as in that work",
		},
	}
}
