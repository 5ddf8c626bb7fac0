package scale

import (
	"context"
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gridnode/testnet/measure"
)

var (
	liveSizes  = flag.String("live-sizes", "10,24", "numbers of nodes that TestLiveBesideVirtual measures")
	liveReport = flag.Bool("live-report", false, "have it print the report as JSON")
)

// liveOptions is a measurement of all protocols in which every size has as much to do.
func liveOptions(sizes ...int) Options {
	o := DefaultOptions()
	o.Live, o.Sizes, o.LiveJobs, o.LivePace, o.LiveRest = true, sizes, 20, 12, time.Minute
	o.Shrink, o.Load, o.Protocols = 16, 60, o.Protocols.All()
	return o
}

// TestLiveBesideVirtual: real nodes that trade, lend, run jobs at several sites, head
// clusters and pay say as much to each other in a minute as virtual ones that replay the
// same jobs. The bubble keeps the nodes' clocks apart from how busy the machine is.
func TestLiveBesideVirtual(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute of processor time")
	}
	var all Report
	for word := range strings.SplitSeq(*liveSizes, ",") {
		nodes, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			r, err := Measure(context.Background(), liveOptions(nodes))
			if err != nil {
				t.Fatal(err)
			}
			all.Options = r.Options
			all.Results, all.Live, all.WallSeconds = append(all.Results, r.Results...), append(all.Live, r.Live...), all.WallSeconds+r.WallSeconds
		})
	}
	all.Options.Sizes = nil
	for _, c := range all.Live {
		all.Options.Sizes = append(all.Options.Sizes, c.Sites)
		checkRates(t, &c)
	}
	if *liveReport {
		if err := all.Write(os.Stdout, "json"); err != nil {
			t.Fatal(err)
		}
	}
}

// checkRates checks that every protocol is in use, and as much as in virtual time. Leases
// are few, and one that is refused leads to others; so are look-ups, of some dozen
// requests each: chance changes them more.
func checkRates(t *testing.T, c *Comparison) {
	t.Helper()
	tolerances := map[string]float64{"market": 0.1, "directory": 0.1, "gossip": 0.1, "bank": 0.1, "lease": 0.35, "fee": 0.35, "look-ups": 0.25, "all": 0.1}
	for _, rate := range c.Rates {
		if !rate.Whole() {
			continue
		}
		tolerance, known := tolerances[rate.Name]
		delete(tolerances, rate.Name)
		live, least, most := rate.Live.Float(), rate.Least.Float(), rate.Most.Float()
		if !known && max(live, most)*c.minutes() < few {
			continue // what is said once in a while
		}
		if !known {
			tolerance = 0.2
		}
		if live < least*(1-tolerance) || live > most*(1+tolerance) || live == 0 {
			t.Errorf("%d nodes: %s: %.2f messages per site and minute live, %.2f to %.2f virtual", c.Sites, rate.Name, live, least, most)
		}
	}
	if len(tolerances) > 0 {
		t.Errorf("%d nodes: no messages of %v", c.Sites, tolerances)
	}
	for _, r := range append(c.virtual, c.live) {
		if r.Jobs != int64(20*c.Sites) || r.Acceptance < measure.Ratio(9_800) {
			t.Errorf("%d nodes, %s: %d jobs, %v of them accepted", c.Sites, r.Mode, r.Jobs, r.Acceptance)
		}
	}
}
