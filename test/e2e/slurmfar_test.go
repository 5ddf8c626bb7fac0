package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gridnode/test/slurm"
)

// TestTasksOnNodesElsewhereReachEachOther: the nodes of two clusters are other machines than their
// daemons, and none of one cluster has a way to one of the other, nor to what listens at the
// loopback of its own daemon's machine.
func TestTasksOnNodesElsewhereReachEachOther(t *testing.T) {
	far := func(name string, nodes int, flags ...string) *slurmSite {
		s := newSlurmSite(t, name, slurm.Config{Name: name, Nodes: nodes, Processors: 2, Apart: true}, flags...)
		s.set("leases.lend", "allow", "leases.term", "20s")
		s.start()
		return s
	}
	a := far("fara", 1)
	b := far("farb", 2, "--join", a.addr)
	a.sees(2)
	solver := filepath.Join(t.TempDir(), "poisson")
	if out, err := exec.Command("go", "build", "-o", solver, "gridnode/examples/poisson").CombinedOutput(); err != nil {
		t.Fatalf("build the example: %v: %s", err, out)
	}
	open(t, solver, 0o755)
	checksum := func(components string) string {
		t.Helper()
		id := strings.TrimSpace(a.ok("submit", "-t", "2m", "-q", "--components", components, "--", solver, "-n", "32"))
		a.run("wait", id)
		out := a.ok("logs", id)
		_, sum, found := strings.Cut(out, "checksum ")
		if !found {
			t.Errorf("over %s the program says\n%s\n%s\n%s", components, out, a.ok("logs", "--stderr", id), a.ok("why", id))
		}
		return sum
	}
	// At home and lent; two components lent by one cluster.
	alone, err := exec.Command(solver, "-n", "32").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, want, _ := strings.Cut(string(alone), "checksum ")
	for _, components := range []string{"2@fara,3@farb", "1@farb,2@farb"} {
		if got := checksum(components); got != want {
			t.Errorf("over %s the program says %q, want %q", components, got, want)
		}
	}
	// Those that run find each other also once both daemons were restarted, if they try again:
	// who connects before the shims have called may lose the connection.
	gate := filepath.Join(filepath.Dir(solver), "gate")
	id := strings.TrimSpace(a.ok("submit", "-t", "2m", "-q", "--components", "2@fara,3@farb", "--",
		"sh", "-c", fmt.Sprintf("echo begun; while [ ! -e %s ]; do sleep 0.1; done; until %s -n 32; do sleep 0.5; done", gate, solver)))
	a.eventually("all tasks run", func() bool { return strings.Count(a.ok("logs", id), "begun") == 5 })
	for _, s := range []*slurmSite{a, b} {
		s.kill()
		s.start()
	}
	if err := os.WriteFile(gate, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	a.ok("wait", id)
	if out := a.ok("logs", id); !strings.Contains(out, "checksum "+want) || strings.Count(out, "begun") != 5 {
		t.Errorf("after restarts of the daemons the program says\n%s\nwant checksum %s", out, want)
	}
	for _, s := range []*slurmSite{a, b} {
		s.eventually("Slurm has nothing", func() bool { return s.cluster.Run(t, "squeue", "-h") == "" })
	}
}
