package node

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/node/p2p"
	"gridnode/node/run"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
)

// claimSites are three sites that tell of themselves every five seconds and at no other
// time, so that it is known what a co-allocator does not know yet.
func claimSites(t *testing.T, memory *p2p.Memory) (sites []HostConfig) {
	for i, processors := range []int64{2, 4, 4} {
		cfg := realConfig(t, byte(i+1), memory)
		cfg.Listen = []string{fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", i+1)}
		cfg.Site.Processors = processors
		cfg.Site.Lease = site.LeaseConfig{Lend: true, Term: 3 * grid.Second}
		cfg.Site.Directory = directory.Config{LoadInterval: grid.Minute, GossipInterval: grid.Minute, HeartbeatInterval: 5 * grid.Second, RefreshInterval: 5 * grid.Second}
		sites = append(sites, cfg)
	}
	return sites
}

// claimed is how often a job was tried to be placed, and how often its claim failed.
type claimed struct{ tries, failures int32 }

// TestClaimsBesideLocalJobs: beside jobs of local users, the components of a job start at
// one moment; what was idle when its co-allocator was told, and is not any more, is
// refused, and claimed once it is idle again. Real nodes and virtual time count the same.
func TestClaimsBesideLocalJobs(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for what sites tell of themselves")
	}
	live, virtual := claimsLive(t), claimsVirtual(t)
	if live.failures != 1 || virtual.failures != 1 || live.tries < 2 || virtual.tries < 2 {
		t.Errorf("live %+v, virtual %+v, want one failure and another try of each", live, virtual)
	}
	if more := live.tries - virtual.tries; more < -3 || more > 3 {
		t.Errorf("live %+v, virtual %+v", live, virtual)
	}
}

func claimsLive(t *testing.T) claimed {
	var hosts []*Host
	for i, cfg := range claimSites(t, &p2p.Memory{}) {
		if i > 0 {
			cfg.Join = hosts[0].Addrs()
		}
		hosts = append(hosts, realHost(t, cfg))
	}
	for _, h := range hosts {
		awaitQuotes(t, h, len(hosts))
	}
	local := func(h *Host, n uint64, processors int64, script string) *grid.Job {
		j := scriptJob(h, n, script)
		j.Processors = processors
		submitJob(t, h, j)
		until(t, "a local job runs", func() bool { return stateOf(t, h, j).State == site.Running })
		return j
	}
	stays := local(hosts[2], 1, 3, "sleep 60")
	reported := func() (at grid.Time) {
		if err := hosts[0].Do(t.Context(), func(s *site.Site) {
			if l, known := s.Load(hosts[1].ID()); known {
				at = l.Issued
			}
		}); err != nil {
			t.Fatal(err)
		}
		return at
	}
	before := reported()
	until(t, "the second site tells of itself", func() bool { return reported() > before })
	ends := local(hosts[1], 2, 2, "sleep 4")
	gang := dividedJob(hosts, 3, "date +%s.%N", 1, 3, 1)
	submitJob(t, hosts[0], gang)
	until(t, "it is over", func() bool { return stateOf(t, hosts[0], gang).State.Terminal() })
	v := stateOf(t, hosts[0], gang)
	if v.State != site.Done {
		t.Fatalf("%v: %s", v.State, v.Reason)
	}
	var starts []float64
	for _, line := range strings.Fields(readOutput(t, hosts[0], gang, run.Stdout)) {
		at, err := strconv.ParseFloat(line, 64)
		if err != nil {
			t.Fatal(err)
		}
		starts = append(starts, at)
	}
	if len(starts) != 5 {
		t.Fatalf("%d tasks have run, want 5", len(starts))
	}
	if first, last := slices.Min(starts), slices.Max(starts); last-first > 2 || first < stateOf(t, hosts[1], ends).End.Seconds() {
		t.Errorf("its tasks started from %v to %v; the local job that was in its way ended at %v", first, last, stateOf(t, hosts[1], ends).End.Seconds())
	}
	if got := stateOf(t, hosts[2], stays).State; got != site.Running {
		t.Errorf("the local job beside it is %v", got)
	}
	return claimed{v.Tries, v.Failures}
}

func claimsVirtual(t *testing.T) claimed {
	n, err := testnet.New(testnet.Config{Seed: 1, Inputs: scenario.Inputs(), Link: testnet.Link{LatencyMin: grid.Millisecond, LatencyMax: grid.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	sites := make([]*site.Site, 3)
	for i, host := range claimSites(t, nil) {
		cfg := host.Site
		cfg.ID, cfg.Directory.Federation, cfg.Siblings.Size = grid.SiteID(cfg.Name), "test", 8
		if _, err := n.Add(testnet.Member{ID: cfg.ID, New: func(int) (_ testnet.Site, err error) {
			sites[i], err = site.New(cfg, uint64(i))
			return sites[i], err
		}}); err != nil {
			t.Fatal(err)
		}
	}
	pass := func(what string, least grid.Time, until func() bool) {
		t.Helper()
		from := n.Now()
		if err := n.Run(t.Context(), from+5*grid.Minute, func() bool { return n.Now() >= from+least && until() }); err != nil || !until() {
			t.Fatalf("waited in vain until %s: %v", what, err)
		}
	}
	job := func(at int, number uint64, processors int64, span grid.Time) *grid.Job {
		return &grid.Job{
			ID: grid.JobID{Hi: 1, Lo: number}, Home: n.ID(at), User: "ann", Resources: grid.Resources{Processors: processors}, Tasks: 1, Submit: n.Now(),
			Estimate: grid.Minute, RunTime: span, Work: grid.WorkOf(grid.Minute, 0, grid.Rating{Speed: 1000, Bandwidth: 1000}), Deadline: grid.Never, Budget: grid.NoBudget,
		}
	}
	submit := func(at int, j *grid.Job) *grid.Job {
		n.Inject(n.Now(), at, &site.Submit{Job: j})
		return j
	}
	in := func(at int, j *grid.Job, state site.State) func() bool {
		return func() bool { v, _ := sites[at].Job(j.ID); return v.State == state }
	}
	reported := func() grid.Time { l, _ := sites[0].Load(n.ID(1)); return l.Issued }
	pass("the sites know each other", 10*grid.Second, func() bool { return reported() > 0 })
	pass("a local job runs", 0, in(2, submit(2, job(2, 1, 3, grid.Hour)), site.Running))
	before := reported()
	pass("the second site tells of itself", 0, func() bool { return reported() > before })
	pass("a local job runs", 10*grid.Millisecond, in(1, submit(1, job(1, 2, 2, 4*grid.Second)), site.Running))
	gang := job(0, 3, 5, 10*grid.Millisecond)
	gang.Tasks = 5
	gang.Coallocate = &grid.Coallocation{Components: fmt.Sprintf("1@%s,3@%s,1@%s", n.ID(0), n.ID(1), n.ID(2)), CCR: -1}
	pass("the job at several sites is done", 0, in(0, submit(0, gang), site.Done))
	v, _ := sites[0].Job(gang.ID)
	return claimed{v.Tries, v.Failures}
}
