package live

import (
	"flag"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"gridnode/internal/wire"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario/federation"
	"gridnode/testnet/workload"
)

var (
	liveNodes = flag.Int("live-nodes", 50, "nodes of the largest network of TestLiveCountsAsVirtual: 10, 24, 50 or 100")
	liveRest  = flag.Duration("live-rest", 0, "how long they rest before the first job")
)

// TestLiveCountsAsVirtual: real nodes exchange the messages, of each type within a tenth,
// that the same workload takes in virtual time, and so do their look-ups. The bubble
// keeps the nodes' clocks apart from how busy the machine is.
func TestLiveCountsAsVirtual(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute of processor time, and minutes under the race detector")
	}
	for _, nodes := range []int{10, 24, 50, 100} {
		if nodes <= *liveNodes {
			t.Run(fmt.Sprint(nodes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { countsAsVirtual(t, nodes) })
			})
		}
	}
}

// liveAge is when jobs begin to come, after the last node's start: the directory of fifty nodes
// is at rest by then, and all rounds of latency reports lie before or after the jobs.
const liveAge = 36 * time.Second

func countsAsVirtual(t *testing.T, nodes int) {
	watch(t, overdue)
	defer time.Sleep(10 * time.Second) // streams that wait for a greeting give up
	const jobs = 2000                  // enough messages of each type
	cfg := ComparisonConfig{Seed: 1, Nodes: nodes, Jobs: jobs, Rest: *liveRest, Placement: "coordinated", OFT: 50, age: liveAge + time.Duration(nodes)*liveApart}
	live, virtual, err := Compare(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	const (
		few        = 200 // of fewer messages, chance changes more than a tenth
		fewLookups = 5
		one        = 1_00 // request more or less: of a few look-ups, which nodes they ask decides about a tenth
		tolerance  = measure.Ratio(10_0000)
	)
	compared := 0
	for _, d := range Differences(live, virtual) {
		t.Logf("%-24s %7d live, %7d virtual (%d to %d): %v %%", d.Type, d.Live, d.Virtual, d.Least, d.Most, d.Percent)
		if max(d.Live, d.Virtual) < few || d.Type == wire.KindName(wire.MarketCancel) {
			continue // a cancellation is a negotiation too many: a few per cent more of those are a fifth more of it
		}
		compared++
		if d.Outside < -tolerance || d.Outside > tolerance {
			t.Errorf("%s: %d live, %d to %d virtual: %v", d.Type, d.Live, d.Least, d.Most, d.Outside)
		}
	}
	if compared < 8 {
		t.Errorf("only %d types of messages were compared: live %v, virtual %v", compared, live.ByType, virtual[0].ByType)
	}
	least, most := virtual[0].RequestsPerLookup, virtual[0].RequestsPerLookup
	for _, v := range virtual {
		least, most = min(least, v.RequestsPerLookup), max(most, v.RequestsPerLookup)
	}
	if l := live.RequestsPerLookup; live.Lookups >= fewLookups && (l < least-one || l > most+one) {
		t.Errorf("a live look-up took %v requests, a virtual one %v to %v", l, least, most)
	}
	for _, r := range append(virtual, live) {
		t.Logf("%s: accepted %d; %d look-ups, %v requests each; up for %v s before (live), measured for %v s", r.Mode, r.Accepted, r.Lookups, r.RequestsPerLookup, live.SetupSeconds, r.SpanSeconds)
		if r.Jobs != jobs || r.Accepted < jobs*98/100 {
			t.Errorf("%s: of %d jobs, of which %d were to be submitted, %d were accepted", r.Mode, r.Jobs, jobs, r.Accepted)
		}
	}
}

// TestSpeedupSuitsTheArrivals: whatever the size of the fleet, about as many jobs
// arrive a second.
func TestSpeedupSuitsTheArrivals(t *testing.T) {
	for _, nodes := range []int{1, 12, 100} {
		w, err := federation.NewTable1(nodes, nil, workload.Options{})
		if err != nil {
			t.Fatal(err)
		}
		speedup, _ := (&Config{Count: 240}).tempo(w)
		source := w.Source(0)
		var first, last float64
		for i := range 240 {
			var job workload.Job
			if ok, err := source.Next(&job); !ok || err != nil {
				t.Fatalf("%d nodes: %v after %d jobs", nodes, err, i)
			}
			if i == 0 {
				first = job.Submit.Seconds()
			}
			last = job.Submit.Seconds()
		}
		if rate := 239 / (last - first) * float64(speedup); rate < 0.9*arrivalRate || rate > 1.01*arrivalRate {
			t.Errorf("%d nodes: %.1f jobs a second arrive at a speed-up of %d, want about %d", nodes, rate, speedup, arrivalRate)
		}
	}
}
