package gridfederation

import "gridnode/testnet/reproduce"

// What Grid-Federation prints, in the order of its table 1. Means and totals are in
// column "all".

// publishedAlone is table 2 (experiment 1): every site by itself.
var publishedAlone = struct{ utilization, accepted, rejected []reproduce.Number }{
	utilization: []reproduce.Number{53.492, 50.06438, 47.103, 44.55013, 62.347, 48.17991, 82.08857, 79.49243, reproduce.None},
	accepted:    []reproduce.Number{96.642, 93.865, 83.72, 93.757, 100, 98.941, 57.67, 50.45, 90.30},
	rejected:    []reproduce.Number{3.357, 6.134, 16.27, 6.24, 0, 1.058, 42.3255, 49.54, reproduce.None},
}

// publishedJobs is the column "total job" of tables 2 and 3.
var publishedJobs = []reproduce.Number{417, 163, 215, 817, 535, 189, 215, 111, 2662}

// publishedFederated is table 3 (experiment 2): a federation without economy.
var publishedFederated = struct{ utilization, accepted, rejected, local, migrated, remote []reproduce.Number }{
	utilization: []reproduce.Number{87.15, 68.69, 67.20, 77.62, 78.73, 79.17, 90.009, 87.285, reproduce.None},
	accepted:    []reproduce.Number{100, 99.38, 90.69, 98.89, 99.81, 100, 98.60, 97.29, 98.61},
	rejected:    []reproduce.Number{0, 0.61, 9.30, 1.10, 0.18, 0, 1.39, 2.70, reproduce.None},
	local:       []reproduce.Number{324, 110, 145, 733, 428, 143, 105, 54, reproduce.None},
	migrated:    []reproduce.Number{93, 52, 50, 75, 106, 46, 107, 54, reproduce.None},
	remote:      []reproduce.Number{72, 35, 70, 81, 129, 30, 77, 89, reproduce.None},
}

// publishedIncentive is the total incentive (experiment 3) by population, in
// millions of Grid Dollars.
var publishedIncentive = []reproduce.Number{2120, 2160, 2310}

// Mean response times, in seconds, and budgets spent, in Grid Dollars, of section 3.7
// by site and case: alone, OFC, 50/50, OFT. What is not there is only plotted.
var (
	publishedAccepted = map[int][4]reproduce.Number{ // without rejected jobs
		siteOrigin: {reproduce.None, 7.865e3, reproduce.None, 6.201e3},
	}
	publishedResponse = map[int][4]reproduce.Number{
		siteNASA: {1.268e3, reproduce.None, reproduce.None, 1.553e3},
		siteAll:  {1.207e4, reproduce.None, reproduce.None, 1.171e4},
	}
	publishedBudget = map[int][4]reproduce.Number{
		siteOrigin: {4.851e5, 5.189e5, reproduce.None, reproduce.None},
		siteAll:    {9.359e5, 8.874e5, reproduce.None, reproduce.None},
	}
)

// publishedMessages is the total of experiment 4 by population.
var publishedMessages = []reproduce.Number{1.024e4, reproduce.None, 1.964e4}

// publishedOriginRemote is what LANL Origin received under OFC in experiment 4.
const publishedOriginRemote reproduce.Number = 6.407e3

// publishedPerJob is the mean of messages per job of experiment 5, by size and population.
var publishedPerJob = map[int][3]reproduce.Number{
	10: {5.55, reproduce.None, 10.65},
	50: {17.38, reproduce.None, 41.37},
}

// publishedSizes are the sizes of experiment 5. The text names the first and the last.
var publishedSizes = []int{10, 20, 30, 40, 50}
