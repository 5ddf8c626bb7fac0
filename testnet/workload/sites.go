package workload

import (
	"fmt"

	"gridnode/grid"
)

// Site is a site of a published experiment: what it has, what it asks, and where
// its users' jobs come from.
type Site struct {
	Name       string
	Trace      string // file name of its log; empty if none is published any more
	Processors int64
	grid.Rating
	Price     grid.Price // micro-credits an hour
	TraceJobs int64      // jobs of the whole log (table 1)

	// Of the experiment's two days, without federation (table 2), to be compared
	// with and to shape a model by; no decision uses them.
	Jobs        int64
	Utilization float64 // 0 to 1
	Accepted    float64 // share of the jobs, 0 to 1
}

// perHour turns a quote of Grid-Federation, in hundredths of a credit a second,
// into a price.
func perHour(hundredths int64) grid.Price {
	return grid.Price(hundredths) * grid.Credit / 100 * 3600
}

// table1 is table 1 of Grid-Federation, joined with table 2. Files are named as in
// the Parallel Workloads Archive, in the cleaned versions.
var table1 = [...]Site{
	{
		Name: "CTC SP2", Trace: "CTC-SP2-1996-3.1-cln.swf.gz", Processors: 512,
		Rating: grid.Rating{Speed: 850, Bandwidth: 2000}, Price: perHour(484), TraceJobs: 79302,
		Jobs: 417, Utilization: 0.53492, Accepted: 0.96642,
	}, {
		Name: "KTH SP2", Trace: "KTH-SP2-1996-2.1-cln.swf.gz", Processors: 100,
		Rating: grid.Rating{Speed: 900, Bandwidth: 1600}, Price: perHour(512), TraceJobs: 28490,
		Jobs: 163, Utilization: 0.5006438, Accepted: 0.93865,
	}, {
		Name: "LANL CM5", Trace: "LANL-CM5-1994-4.1-cln.swf.gz", Processors: 1024,
		Rating: grid.Rating{Speed: 700, Bandwidth: 1000}, Price: perHour(398), TraceJobs: 201387,
		Jobs: 215, Utilization: 0.47103, Accepted: 0.8372,
	}, {
		Name: "LANL Origin", Processors: 2048,
		Rating: grid.Rating{Speed: 630, Bandwidth: 1600}, Price: perHour(359), TraceJobs: 121989,
		Jobs: 817, Utilization: 0.4455013, Accepted: 0.93757,
	}, {
		Name: "NASA iPSC", Trace: "NASA-iPSC-1993-3.1-cln.swf.gz", Processors: 128,
		Rating: grid.Rating{Speed: 930, Bandwidth: 4000}, Price: perHour(530), TraceJobs: 42264,
		Jobs: 535, Utilization: 0.62347, Accepted: 1,
	}, {
		Name: "SDSC Par96", Trace: "SDSC-Par-1996-3.1-cln.swf.gz", Processors: 416,
		Rating: grid.Rating{Speed: 710, Bandwidth: 1000}, Price: perHour(404), TraceJobs: 38719,
		Jobs: 189, Utilization: 0.4817991, Accepted: 0.98941,
	}, {
		Name: "SDSC Blue", Trace: "SDSC-BLUE-2000-4.2-cln.swf.gz", Processors: 1152,
		Rating: grid.Rating{Speed: 730, Bandwidth: 2000}, Price: perHour(416), TraceJobs: 250440,
		Jobs: 215, Utilization: 0.8208857, Accepted: 0.5767,
	}, {
		Name: "SDSC SP2", Trace: "SDSC-SP2-1998-4.2-cln.swf.gz", Processors: 128,
		Rating: grid.Rating{Speed: 920, Bandwidth: 4000}, Price: perHour(524), TraceJobs: 73496,
		Jobs: 111, Utilization: 0.7949243, Accepted: 0.5045,
	},
}

// Table1 returns the eight sites of table 1 of Grid-Federation, in its order. The
// paper charges credits a second; prices here are by the hour.
func Table1() []Site { return append([]Site(nil), table1[:]...) }

// Sites returns n sites: table 1 again and again, as experiment 5 of
// Grid-Federation does ("to accomplish larger system size, we replicated our
// existing resources accordingly"). From the second round on names carry the
// number of the round: "CTC SP2 2".
func Sites(n int) []Site {
	sites := make([]Site, max(n, 0))
	for i := range sites {
		sites[i] = table1[i%len(table1)]
		if round := i / len(table1); round > 0 {
			sites[i].Name = fmt.Sprintf("%s %d", sites[i].Name, round+1)
		}
	}
	return sites
}
