package node

import (
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"

	"gridnode/grid"
	"gridnode/node/p2p"
	"gridnode/node/run"
	"gridnode/node/site"
)

// team is three sites that lend to each other; jobs are submitted to the first.
func team(t *testing.T, processors ...int64) []*Host {
	t.Helper()
	return teamAs(t, func(int, *HostConfig) {}, processors...)
}

// teamAs is a team of hosts whose configuration is changed first.
func teamAs(t *testing.T, change func(i int, cfg *HostConfig), processors ...int64) []*Host {
	t.Helper()
	memory := &p2p.Memory{}
	var hosts []*Host
	for i, n := range processors {
		cfg := realConfig(t, byte(i+1), memory)
		cfg.Listen = []string{fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", i+1)}
		cfg.Site.Processors = n
		cfg.Site.Lease = site.LeaseConfig{Lend: true, Term: grid.Minute}
		if i > 0 {
			cfg.Join = hosts[0].Addrs()
		}
		change(i, &cfg)
		hosts = append(hosts, realHost(t, cfg))
	}
	for _, h := range hosts {
		awaitQuotes(t, h, len(hosts))
	}
	return hosts
}

// dividedJob is a job with a component at each host, of so many processors.
func dividedJob(hosts []*Host, n uint64, script string, sizes ...int64) *grid.Job {
	j := scriptJob(hosts[0], n, script)
	var components []string
	j.Processors = 0
	for i, size := range sizes {
		components = append(components, fmt.Sprintf("%d@%s", size, hosts[i].ID()))
		j.Processors += size
	}
	j.Tasks = j.Processors
	j.Coallocate = &grid.Coallocation{Components: strings.Join(components, ","), CCR: -1}
	return j
}

// nothingLeft waits until no site holds, lends or borrows anything, or counts a
// processor as busy.
func nothingLeft(t *testing.T, hosts ...*Host) {
	t.Helper()
	for _, h := range hosts {
		until(t, "nothing is left at "+h.cfg.Site.Name, func() bool {
			left := 0
			err := h.Do(t.Context(), func(s *site.Site) {
				left = s.Held()
				if offer := s.Offer(); offer.Free != offer.Processors {
					left++
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			return left == 0
		})
		until(t, "no connections are forwarded at "+h.cfg.Site.Name, func() bool {
			idle := false
			if err := h.Do(t.Context(), func(*site.Site) { idle = h.pilots.core.Idle() }); err != nil {
				t.Fatal(err)
			}
			return idle && h.pilots.forward.Len() == 0
		})
	}
}

// TestCoallocatedJob: its tasks run at three sites, know who they are and where the
// others are; output and exit code are as of a job at home, and nothing is left.
func TestCoallocatedJob(t *testing.T) {
	t.Parallel()
	hosts := team(t, 2, 4, 4)
	j := dividedJob(hosts, 1, `echo $GRIDNODE_RANK of $GRIDNODE_NTASKS $GRIDNODE_COMPONENT/$GRIDNODE_COMPONENTS $GRIDNODE_LOCAL_RANK/$GRIDNODE_LOCAL_NTASKS $GRIDNODE_SITE
IFS=,; set -- $GRIDNODE_PEERS; [ "$1" = "$GRIDNODE_RENDEZVOUS" ] || echo bad rendezvous; [ $# = $GRIDNODE_NTASKS ] || echo $# peers; echo err >&2`, 1, 2, 1)
	submitJob(t, hosts[0], j)
	until(t, "it is over", func() bool { return stateOf(t, hosts[0], j).State.Terminal() })
	v := stateOf(t, hosts[0], j)
	if v.State != site.Done || v.Gang == nil || len(v.Gang.Parts) != 3 {
		t.Fatalf("%+v", v)
	}
	lines := strings.Split(strings.TrimSpace(readOutput(t, hosts[0], j, run.Stdout)), "\n")
	sort.Strings(lines)
	want := []string{"0 of 4 0/3 0/1 site-1", "1 of 4 1/3 0/2 site-2", "2 of 4 1/3 1/2 site-2", "3 of 4 2/3 0/1 site-3"}
	if !slices.Equal(lines, want) {
		t.Errorf("%q, want %q", lines, want)
	}
	if got := readOutput(t, hosts[0], j, run.Stderr); got != strings.Repeat("err\n", 4) {
		t.Errorf("stderr %q", got)
	}
	nothingLeft(t, hosts...)
	files, err := os.ReadDir(hosts[0].cfg.Home + "/" + "tasks")
	if err != nil || len(files) != 2 {
		t.Errorf("%v, %v: want one file for each output", files, err)
	}
}

// TestSiteThatDoesNotLend has most idle processors, so it is asked first; the job runs
// elsewhere all the same, and says what came of it. It is not waited for, either: by
// adaptive, a job would have it to itself at once.
func TestSiteThatDoesNotLend(t *testing.T) {
	t.Parallel()
	for policy, count := range map[string]string{"fcm": "2..3", "adaptive": "1..3"} {
		if testing.Short() && policy == "adaptive" {
			continue // other placements by the same threads
		}
		t.Run(policy, func(t *testing.T) { siteThatDoesNotLend(t, policy, count) })
	}
}

func siteThatDoesNotLend(t *testing.T, policy, count string) {
	memory := &p2p.Memory{}
	var hosts []*Host
	for i, lends := range []bool{false, false, true, true} {
		cfg := realConfig(t, byte(i+1), memory)
		cfg.Site.Processors = []int64{1, 9, 2, 2}[i]
		cfg.Site.Lease = site.LeaseConfig{Lend: lends, Term: grid.Minute}
		if i > 0 {
			cfg.Join = hosts[0].Addrs()
		}
		hosts = append(hosts, realHost(t, cfg))
	}
	for _, h := range hosts {
		awaitQuotes(t, h, len(hosts))
	}
	j := scriptJob(hosts[0], 1, "true")
	j.Processors, j.Tasks = 4, 4
	j.Coallocate = &grid.Coallocation{Count: count, Policy: policy, CCR: -1}
	submitJob(t, hosts[0], j)
	until(t, "it is over", func() bool { return stateOf(t, hosts[0], j).State.Terminal() })
	v := stateOf(t, hosts[0], j)
	if v.State != site.Done {
		t.Errorf("%v: %s", v.State, v.Reason)
	}
	refused := ""
	for _, verdict := range v.Verdicts {
		if verdict.Site == hosts[1].ID() {
			refused = verdict.Detail
		}
	}
	if !strings.Contains(refused, "does not lend") {
		t.Errorf("verdicts %+v, want the reason of the site that does not lend", v.Verdicts)
	}
	nothingLeft(t, hosts...)
}

// TestUnknownSiteIsLookedFor: in a young federation, where nobody can be sure to know all
// sites, a job that names one that is not found is refused after some looks, not the first.
func TestUnknownSiteIsLookedFor(t *testing.T) {
	t.Parallel()
	hosts := team(t, 1, 1)
	j := dividedJob(hosts, 1, `true`, 1, 1)
	stranger, err := peer.IDFromPrivateKey(testKey(9))
	if err != nil {
		t.Fatal(err)
	}
	j.Coallocate.Components = fmt.Sprintf("1,1@%s", stranger)
	submitJob(t, hosts[0], j)
	until(t, "it is refused", func() bool { return stateOf(t, hosts[0], j).State == site.Refused })
	if v := stateOf(t, hosts[0], j); !strings.Contains(v.Reason, stranger.String()) {
		t.Errorf("refused because %s", v.Reason)
	}
}

// TestOneTaskFails: the others are ended, wherever they run.
func TestOneTaskFails(t *testing.T) {
	t.Parallel()
	hosts := team(t, 1, 1, 1)
	j := dividedJob(hosts, 1, `[ $GRIDNODE_RANK = 1 ] && exit 7; echo $$; exec sleep 1000`, 1, 1, 1)
	submitJob(t, hosts[0], j)
	until(t, "it is over", func() bool { return stateOf(t, hosts[0], j).State.Terminal() })
	v := stateOf(t, hosts[0], j)
	if v.State != site.Failed || v.Result.ExitCode != 7 || !strings.Contains(v.Reason, "task 1, of component 1 at site-2, ended with exit code 7") {
		t.Errorf("%v, exit code %d: %s", v.State, v.Result.ExitCode, v.Reason)
	}
	for _, pid := range strings.Fields(readOutput(t, hosts[0], j, run.Stdout)) {
		if _, err := os.Stat("/proc/" + pid); err == nil {
			t.Errorf("process %s lives", pid)
		}
	}
	nothingLeft(t, hosts...)
}

// TestCancelCoallocatedJob: running, and waiting for sites.
func TestCancelCoallocatedJob(t *testing.T) {
	t.Parallel()
	hosts := team(t, 1, 1, 1)
	running := dividedJob(hosts, 1, `echo $$; exec sleep 1000`, 1, 1, 1)
	submitJob(t, hosts[0], running)
	until(t, "all tasks run", func() bool {
		return stateOf(t, hosts[0], running).State == site.Running && strings.Count(readOutput(t, hosts[0], running, run.Stdout), "\n") == 3
	})
	waiting := dividedJob(hosts, 2, `true`, 1, 1)
	submitJob(t, hosts[0], waiting)
	until(t, "the other waits", func() bool { return stateOf(t, hosts[0], waiting).State == site.Queued })
	if v := stateOf(t, hosts[0], waiting); !strings.Contains(v.Reason, "waits in the placement queue: tried") || len(v.Verdicts) != 3 {
		t.Errorf("it waits because %q, %v", v.Reason, v.Verdicts)
	}
	cancel1(t, hosts[0], waiting)
	if v := stateOf(t, hosts[0], waiting); v.State != site.CancelledByUser {
		t.Errorf("%v, want cancelled", v.State)
	}
	cancel1(t, hosts[0], running)
	until(t, "it is cancelled", func() bool { return stateOf(t, hosts[0], running).State == site.CancelledByUser })
	for _, pid := range strings.Fields(readOutput(t, hosts[0], running, run.Stdout)) {
		if _, err := os.Stat("/proc/" + pid); err == nil {
			t.Errorf("process %s lives", pid)
		}
	}
	nothingLeft(t, hosts...)
}
