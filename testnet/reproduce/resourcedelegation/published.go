package resourcedelegation

import "gridnode/testnet/reproduce"

// What "The gain of resource delegation in distributed computing environments" prints.

// publishedSites is table 1: every machine by itself, with EASY.
var publishedSites = struct{ jobs, awrt, utilization, makespan []reproduce.Number }{
	jobs:        []reproduce.Number{28479, 77199, 74903},
	awrt:        []reproduce.Number{75157.63, 52937.96, 54953.84},
	utilization: []reproduce.Number{68.72, 65.70, 60.17},
	makespan:    []reproduce.Number{29363626, 29306682, 29357277},
}

// publishedLeasing is table 2, by policy: the two sites of set-up 1, then 2, then 3.
var publishedLeasing = [2]struct {
	awrt, utilization, makespan, gain, gainUtilization, leased, queue []reproduce.Number
}{
	{
		awrt:            []reproduce.Number{62055.37, 51444.91, 58432.61, 54738.92, 45062.71, 54635.66},
		utilization:     []reproduce.Number{65.22, 66.46, 62.63, 60.54, 63.37, 60.80},
		makespan:        []reproduce.Number{29363626, 29332185, 29363626, 29353826, 29328089, 29335555},
		gain:            []reproduce.Number{17.43, 2.82, 22.25, 0.39, 14.88, 0.58},
		gainUtilization: []reproduce.Number{-5.09, 1.15, -8.86, 0.62, -3.54, 1.05},
		leased:          []reproduce.Number{573141728, 413432502, 630674342, 383713739, 1768336330, 1493028875},
		queue:           []reproduce.Number{4.08, 8.06, 2.31, 17.07, 3.07, 13.22},
	},
	{
		awrt:            []reproduce.Number{56115.99, 50851.43, 52253.12, 55729.64, 40940.23, 52990.40},
		utilization:     []reproduce.Number{64.40, 66.65, 56.88, 60.86, 62.71, 60.98},
		makespan:        []reproduce.Number{29363626, 29332185, 29363626, 29364647, 29306682, 29339742},
		gain:            []reproduce.Number{25.34, 3.94, 30.48, -1.41, 22.66, 3.57},
		gainUtilization: []reproduce.Number{-6.28, 1.44, -17.22, 1.16, -4.55, 1.34},
		leased:          []reproduce.Number{640012760, 442455083, 682003341, 250461072, 2105350162, 1722880873},
		queue:           []reproduce.Number{4.48, 10.17, 1.82, 18.62, 2.93, 14.53},
	},
}
