package workload

import (
	"fmt"

	"gridnode/internal/grid"
)

// Site is a site of a published experiment: what it has, what it asks, and where
// its users' jobs come from.
type Site struct {
	Name       string
	Trace      string // file name of its log; empty if none is published any more
	Processors int64
	grid.Rating
	Price     grid.Price // micro-credits an hour
	Jobs      int64      // jobs of the experiment's two days (table 2)
	TraceJobs int64      // jobs of the whole log (table 1)
}

// perHour turns a quote of Grid-Federation, credits a second, given in hundredths,
// into a price.
func perHour(hundredths int64) grid.Price {
	return grid.Price(hundredths) * grid.Credit / 100 * 3600
}

// table1 is table 1 of Grid-Federation, with the jobs of table 2. Files are named
// as in the Parallel Workloads Archive, in the cleaned versions.
var table1 = [...]Site{
	{"CTC SP2", "CTC-SP2-1996-3.1-cln.swf.gz", 512, grid.Rating{Speed: 850, Bandwidth: 2000}, perHour(484), 417, 79302},
	{"KTH SP2", "KTH-SP2-1996-2.1-cln.swf.gz", 100, grid.Rating{Speed: 900, Bandwidth: 1600}, perHour(512), 163, 28490},
	{"LANL CM5", "LANL-CM5-1994-4.1-cln.swf.gz", 1024, grid.Rating{Speed: 700, Bandwidth: 1000}, perHour(398), 215, 201387},
	{"LANL Origin", "", 2048, grid.Rating{Speed: 630, Bandwidth: 1600}, perHour(359), 817, 121989},
	{"NASA iPSC", "NASA-iPSC-1993-3.1-cln.swf.gz", 128, grid.Rating{Speed: 930, Bandwidth: 4000}, perHour(530), 535, 42264},
	{"SDSC Par96", "SDSC-Par-1996-3.1-cln.swf.gz", 416, grid.Rating{Speed: 710, Bandwidth: 1000}, perHour(404), 189, 38719},
	{"SDSC Blue", "SDSC-BLUE-2000-4.2-cln.swf.gz", 1152, grid.Rating{Speed: 730, Bandwidth: 2000}, perHour(416), 215, 250440},
	{"SDSC SP2", "SDSC-SP2-1998-4.2-cln.swf.gz", 128, grid.Rating{Speed: 920, Bandwidth: 4000}, perHour(524), 111, 73496},
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
