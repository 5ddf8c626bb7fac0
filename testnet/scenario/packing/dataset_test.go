package packing

import (
	"fmt"
	"strings"
	"testing"

	"gridnode/coalloc/dataset"
	"gridnode/directory"
	"gridnode/grid"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/scenario"
)

// dataNet is a home with one processor, site 0, a wide site and two narrow ones that hold
// data sets: the sites of production in virtual time.
func dataNet(t *testing.T, seed uint64, link testnet.Link, jobs headJobs, faults ...testnet.Fault) *testnet.Network {
	t.Helper()
	n, err := testnet.New(testnet.Config{Seed: seed, Inputs: scenario.Inputs(), Durable: true, Link: link})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"home", "wide", "near", "far"} {
		cfg := site.Config{
			ID: grid.SiteID(name), Name: name, Resources: grid.Resources{Processors: []int64{1, 16, 4, 4}[i]},
			Rating: grid.Rating{Speed: 1000, Bandwidth: 1000}, Price: grid.Credit, Lease: site.LeaseConfig{Lend: true, Term: 20 * grid.Second},
			Limits: site.Limits{Jobs: scenario.JobsMax, PerUser: scenario.JobsMax, Finished: scenario.JobsMax, Retention: grid.Day},
		}
		cfg.Directory = directory.Config{Federation: "virtual", Topic: "load"}
		cfg.Survey.Topic = "load"
		at, err := n.Add(testnet.Member{ID: cfg.ID, Rating: cfg.Rating, New: func(incarnation int) (testnet.Site, error) {
			return site.New(cfg, draw.PCG(seed+uint64(incarnation)<<32, cfg.ID, draw.ForSite).Uint64())
		}})
		if err != nil {
			t.Fatal(err)
		}
		n.Subscribe("load", at)
	}
	for _, f := range faults {
		if err := n.Schedule(f); err != nil {
			t.Fatal(err)
		}
	}
	n.Feed(&jobs)
	return n
}

// hold enters a data set at a site at an instant.
func hold(n *testnet.Network, at grid.Time, site int, name string, size int64, shared bool) {
	n.Inject(at, site, &dataset.Hold{Set: dataset.Set{DataSet: grid.DataSet{Name: name, Size: size}, Path: "/data", Shared: shared}})
}

// reader is a job of 4 processors at one site, which reads a data set.
func reader(n uint64, at grid.Time, policy, input string) *grid.Job {
	return &grid.Job{
		ID: grid.JobID{Lo: n}, Home: "home", Submit: at, Tasks: 4, Resources: grid.Resources{Processors: 4}, Name: policy + " " + input,
		Estimate: 30 * grid.Second, RunTime: 20 * grid.Second, Work: grid.Work{Instructions: int64(30 * grid.Second)},
		Deadline: grid.Never, Budget: grid.NoBudget, Coallocate: &grid.Coallocation{Count: "1", Policy: policy, CCR: -1},
		Inputs: []grid.DataSet{{Name: input, Size: grid.SizeUnknown}},
	}
}

// TestPlacedCloseToFiles: in virtual time, over links that lose messages and through a
// crash of a holder, jobs go to who holds what they read, and elsewhere when nobody does.
func TestPlacedCloseToFiles(t *testing.T) {
	minute := grid.Minute
	for seed := range uint64(4) {
		link := testnet.Link{LatencyMin: grid.Millisecond, LatencyMax: 2 * grid.Millisecond}
		if seed > 0 {
			link.Loss = 20_000
		}
		jobs := headJobs{
			reader(1, 3*minute, "wf", "big"), reader(2, 5*minute, "cf", "big"), reader(3, 7*minute, "", "closed"),
			reader(4, 8*minute+50*grid.Second, "", "closed"), reader(5, 15*minute, "", "dropped"), // 4 while the holder is down
		}
		n := dataNet(t, seed, link, jobs, testnet.Fault{Kind: testnet.FaultMachine, At: 8 * minute, For: minute, Sites: []int{3}})
		hold(n, minute, 2, "big", 1<<33, true)
		hold(n, minute, 3, "closed", 1<<20, false)
		hold(n, minute, 3, "dropped", 1<<20, true)
		n.Inject(14*minute, 3, &dataset.Drop{Name: "dropped"})
		if err := n.Run(t.Context(), 20*minute, nil); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		home := n.Core(0).(*site.Site)
		for i, want := range []grid.SiteID{"wide", "near", "far", "far", "wide"} {
			v, known := home.Job(grid.JobID{Lo: uint64(i + 1)})
			if !known || v.State != site.Done || v.Gang == nil || v.Gang.Parts[0].Site != want {
				t.Errorf("seed %d: job %q is %v at %+v, want %s (%s; %v)", seed, v.Job.Name, v.State, v.Gang, want, v.Reason, v.Verdicts)
				continue
			}
			if said := fmt.Sprint(v.Verdicts); i == 4 && !strings.Contains(said, "no site is known to hold dropped") || i == 0 && !strings.Contains(said, "1 of 1 inputs to be brought, about") {
				t.Errorf("seed %d: job %q: verdicts %s", seed, v.Job.Name, said)
			}
		}
		if leases := len(home.Leases()); leases != 0 {
			t.Errorf("seed %d: %d leases are left", seed, leases)
		}
	}
}
