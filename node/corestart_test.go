package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gridnode/grid"
	"gridnode/node/p2p"
	"gridnode/node/run"
	"gridnode/node/site"
)

// longTeam is a team whose leases outlive a restart, with the configurations that their
// daemons are started with again.
func longTeam(t *testing.T, term grid.Time, n int) (hosts []*Host, configs []HostConfig) {
	t.Helper()
	memory := &p2p.Memory{}
	for i := range n {
		cfg := realConfig(t, byte(i+1), memory)
		cfg.Listen = []string{fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", i+1)} // found there again
		cfg.Site.Processors = 1
		cfg.Site.Lease = site.LeaseConfig{Lend: true, Term: term}
		if i > 0 {
			cfg.Join = hosts[0].Addrs()
		}
		hosts, configs = append(hosts, realHost(t, cfg)), append(configs, cfg)
	}
	for _, h := range hosts {
		awaitQuotes(t, h, n)
	}
	return hosts, configs
}

// outputLines returns a job's output in order of its lines.
func outputLines(t *testing.T, h *Host, j *grid.Job) []string {
	t.Helper()
	lines := strings.Fields(readOutput(t, h, j, run.Stdout))
	slices.Sort(lines)
	return lines
}

// TestCoallocatorRestarts: a job at three sites goes on while the daemon of its home,
// and then that of a lender, is away for less than a term, and its output is whole. The
// tasks there end while their daemons are away, and pilots wait that have nothing else to do.
func TestCoallocatorRestarts(t *testing.T) {
	hosts, configs := longTeam(t, 10*grid.Minute, 3) // longer than a busy machine takes
	dir := t.TempDir()
	for n := range 3 {
		if out, err := exec.Command("mkfifo", filepath.Join(dir, fmt.Sprint(n))).CombinedOutput(); err != nil {
			t.Fatal(err, string(out))
		}
	}
	j := dividedJob(hosts, 1, fmt.Sprintf("echo ${GRIDNODE_RANK}a; read x < %s/$GRIDNODE_RANK; echo ${GRIDNODE_RANK}b", dir), 1, 1, 1)
	submitJob(t, hosts[0], j)
	until(t, "all tasks have begun", func() bool { return slices.Equal(outputLines(t, hosts[0], j), []string{"0a", "1a", "2a"}) })
	hosts[0].Kill()
	write(t, filepath.Join(dir, "0"), "go\n")
	hosts[0] = realHost(t, configs[0])
	until(t, "the task at home has ended", func() bool {
		return slices.Equal(outputLines(t, hosts[0], j), []string{"0a", "0b", "1a", "2a"})
	})
	hosts[1].Kill()
	write(t, filepath.Join(dir, "1"), "go\n")
	<-time.After(2 * idleMax) // a shim without a daemon that nobody keeps would end
	hosts[1] = realHost(t, configs[1])
	write(t, filepath.Join(dir, "2"), "go\n")
	until(t, "the job is over", func() bool { return stateOf(t, hosts[0], j).State.Terminal() })
	if v := stateOf(t, hosts[0], j); v.State != site.Done || v.Epoch != 1 {
		t.Errorf("%v in execution %d: %s; want done in the first", v.State, v.Epoch, v.Reason)
	}
	if got := outputLines(t, hosts[0], j); !slices.Equal(got, []string{"0a", "0b", "1a", "1b", "2a", "2b"}) {
		t.Errorf("output %q", got)
	}
	nothingLeft(t, hosts...)
}

// TestCoallocatorIsAway for longer than a term: what ran at the other sites has ended
// by itself, and what runs at home is ended when the daemon is back.
func TestCoallocatorIsAway(t *testing.T) {
	t.Parallel()
	hosts, configs := longTeam(t, 8*grid.Second, 3) // so long that a busy machine renews in time
	dir := t.TempDir()
	j := dividedJob(hosts, 1, fmt.Sprintf(`cd %s; echo $$ > $GRIDNODE_RANK; exec sleep 1000`, dir), 1, 1, 1)
	submitJob(t, hosts[0], j)
	var pids []string
	for n := range 3 {
		until(t, "all tasks have begun", func() bool {
			text, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(n)))
			if err != nil || len(text) == 0 {
				return false
			}
			pids = append(pids, strings.TrimSpace(string(text)))
			return true
		})
	}
	hosts[0].Kill()
	gone := func(pid string) bool { _, err := os.Stat("/proc/" + pid); return err != nil }
	until(t, "the others have ended by themselves", func() bool { return gone(pids[1]) && gone(pids[2]) })
	nothingLeft(t, hosts[1:]...)
	if gone(pids[0]) {
		t.Error("the task at home has ended while nobody was there to end it")
	}
	hosts[0] = realHost(t, configs[0])
	until(t, "the task at home is ended", func() bool { return gone(pids[0]) })
	nothingLeft(t, hosts...)
	if v := stateOf(t, hosts[0], j); v.State != site.Running || !strings.Contains(v.Reason, "starts again") {
		t.Errorf("%v: %s; want it to start again once nothing can be left of it", v.State, v.Reason)
	}
}

// TestLenderDies with a component: the other components end within a term, and every
// processor comes back.
func TestLenderDies(t *testing.T) {
	t.Parallel()
	hosts, _ := longTeam(t, 4*grid.Second, 3)
	j := dividedJob(hosts, 1, `echo $$; exec sleep 1000`, 1, 1, 1)
	submitJob(t, hosts[0], j)
	until(t, "all tasks have begun", func() bool { return len(outputLines(t, hosts[0], j)) == 3 })
	pids := outputLines(t, hosts[0], j)
	hosts[1].Kill()
	for _, pid := range pids {
		until(t, "every task has ended", func() bool { _, err := os.Stat("/proc/" + pid); return err != nil })
	}
	nothingLeft(t, hosts[2])
	until(t, "the home's own processor is free", func() bool {
		free := int64(0)
		if err := hosts[0].Do(t.Context(), func(s *site.Site) { free = s.Offer().Free }); err != nil {
			t.Fatal(err)
		}
		return free == 1
	})
	if v := stateOf(t, hosts[0], j); v.State != site.Running || !strings.Contains(v.Reason, "site-2 was lost") {
		t.Errorf("%v: %s; want it to start again once nothing can be left of it", v.State, v.Reason)
	}
}
