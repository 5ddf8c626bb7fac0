package matchmaking

import "gridnode/testnet/reproduce"

// publishedRow is a row of table 3.
type publishedRow struct{ wait, slowdown reproduce.Number }

// publishedTable3 is table 3 by architecture; central is not in it. All have 455.4
// thousand jobs, 117 CPU-years of goodput and 100 % of the jobs finished.
var publishedTable3 = map[string]publishedRow{
	"cern": {44, 6}, "condor": {7681, 1610}, "dmm": {1283, 298}, "fcondor": {2570, 255}, "sep-c": {1938, 590},
}

// publishedSets is how many jobs the sets have (§5.3).
var publishedSets = struct{ least, mean, most reproduce.Number }{953, 11_827, 39_550}

// Of figure 12 (b), by threshold in percent: DMM messages in percent of those of workload
// management, and of all (§6.5).
var (
	publishedOver  = map[int]reproduce.Number{60: 86, 100: 35}
	publishedShare = map[int]reproduce.Number{60: 16, 125: 7}
)
