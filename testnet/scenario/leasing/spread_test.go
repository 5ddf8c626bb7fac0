package leasing

import (
	"fmt"
	"testing"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/scenario"
)

// TestWideSpreadJobs: jobs of far more tasks than can have addresses end, whether they run
// at home, at a partner or at both, with as many messages as narrow ones; also if the
// daemons of both sites die while they run.
func TestWideSpreadJobs(t *testing.T) {
	var events int64
	for _, tt := range []struct {
		name   string
		busy   int64 // processors of the home that another job has
		tasks  int64
		faults bool
	}{
		{"two tasks at two sites", 5999, 2, false},
		{"at home", 0, 5000, false},
		{"1500 at two sites", 5000, 1500, false},
		{"5000 at two sites", 5000, 5000, false},
		{"5000 at the partner", 6000, 5000, false},
		{"1500 over restarts", 5000, 1500, true},
		{"5000 over restarts", 5000, 5000, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWide(t)
			if tt.busy > 0 {
				w.submit(t, 0, 1, tt.busy, false)
			}
			w.submit(t, 0, 2, tt.tasks, true)
			if tt.faults {
				for i := range w.n.Len() {
					if err := w.n.Schedule(testnet.Fault{Kind: testnet.FaultDaemon, At: grid.Time(i+1) * 10 * grid.Minute, For: grid.Minute, Sites: []int{i}}); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := w.n.Run(t.Context(), grid.Day, nil); err != nil {
				t.Fatal(err)
			}
			v, known := w.sites[0].Job(grid.JobID{Hi: 1, Lo: 2})
			if !known || v.State != site.Done || v.Epoch != 1 {
				t.Fatalf("%+v: want it done in its first execution", v)
			}
			if v.Gang.Tasks() != int(tt.tasks) || (len(v.Gang.Parts) == 2) != (tt.busy > 0 && tt.busy < 6000) {
				t.Errorf("it ran on %+v", v.Gang.Parts)
			}
			for i := range w.sites {
				if left := w.n.Held(i); left != "" || len(w.sites[i].Leases()) > 0 {
					t.Errorf("site %d has left %s, and leases %+v", i, left, w.sites[i].Leases())
				}
			}
			if len(v.Gang.Parts) == 2 && !tt.faults {
				if events != 0 && events != w.n.Events() {
					t.Errorf("%d events, and %d for another number of tasks", w.n.Events(), events)
				}
				events = w.n.Events()
			}
		})
	}
}

// TestOwnProcessorsOutlastLeases: a home that comes back when a lease of a spread job is
// over ends what of it runs at home before anybody else has those processors; then the job
// runs again.
func TestOwnProcessorsOutlastLeases(t *testing.T) {
	w := newWide(t)
	w.submit(t, 0, 1, 5000, false)
	w.submit(t, 1, 2, 6500, false)
	w.submit(t, 0, 3, 1500, true)
	w.submit(t, 0, 4, 1000, false) // waits for the thousand that the one before has at home
	if err := w.n.Schedule(testnet.Fault{Kind: testnet.FaultDaemon, At: 10 * grid.Minute, For: 20 * grid.Minute, Sites: []int{0}}); err != nil {
		t.Fatal(err)
	}
	if err := w.n.Run(t.Context(), grid.Day, nil); err != nil {
		t.Fatal(err)
	}
	for number, epoch := range map[uint64]uint32{3: 2, 4: 1} {
		if v, _ := w.sites[0].Job(grid.JobID{Hi: 1, Lo: number}); v.State != site.Done || v.Epoch != epoch {
			t.Errorf("job %d: %+v, want it done in execution %d", number, v, epoch)
		}
	}
}

// wide is a site of 6000 processors that leases what a submitted job lacks, and its
// partner, which has more.
type wide struct {
	n     *testnet.Network
	sites []*site.Site
}

func newWide(t *testing.T) *wide {
	t.Helper()
	processors := []int64{6000, 7000}
	var checks *testnet.Checker
	n, err := testnet.New(testnet.Config{
		Seed: 1, Inputs: scenario.Inputs(), Durable: true, DialTimeout: grid.Second,
		Link:  testnet.Link{LatencyMin: grid.Millisecond, LatencyMax: 20 * grid.Millisecond},
		Check: func(now grid.Time) error { return checks.Violation(now) },
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &wide{n: n, sites: make([]*site.Site, 2)}
	for i, processors := range processors {
		cfg := site.Config{
			ID: grid.SiteID(fmt.Sprintf("site-%d", i)), Rating: wideRating, Resources: grid.Resources{Processors: processors}, Parts: site.Leases,
			Lease: site.LeaseConfig{Lend: true, Match: lease.MatchConfig{
				Policy: lease.SSTRD, Links: []lease.Link{{Site: grid.SiteID(fmt.Sprintf("site-%d", 1-i)), Relation: lease.Sibling}},
			}},
		}
		if _, err := n.Add(testnet.Member{ID: cfg.ID, Rating: wideRating, New: func(int) (testnet.Site, error) {
			s, err := site.New(cfg, draw.PCG(1, cfg.ID, draw.ForSite).Uint64())
			w.sites[i] = s
			return s, err
		}}); err != nil {
			t.Fatal(err)
		}
	}
	checks = testnet.Check(n, processors, scenario.Submission)
	return w
}

var wideRating = grid.Rating{Speed: 1, Bandwidth: 1}

// submit has a job of an hour submitted at a site, in the order of their numbers.
func (w *wide) submit(t *testing.T, at int, number uint64, tasks int64, spread bool) {
	t.Helper()
	w.n.Inject(grid.Time(number)*grid.Second, at, &site.Submit{Token: number, Job: &grid.Job{
		ID: grid.JobID{Hi: 1, Lo: number}, Home: w.n.ID(at), User: "u", Resources: grid.Resources{Processors: tasks}, Tasks: tasks,
		Estimate: 2 * grid.Hour, RunTime: grid.Hour, Work: grid.WorkOf(2*grid.Hour, 0, wideRating), Deadline: grid.Never, Budget: grid.NoBudget, Spread: spread,
	}})
}
