package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// openMPI builds examples/mpi and returns the folder, or skips the test.
func openMPI(t *testing.T) string {
	t.Helper()
	for _, tool := range []string{"mpicc", "mpirun", "orted"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("Open MPI is not installed: %v (Debian: openmpi-bin, libopenmpi-dev)", err)
		}
	}
	if out, err := exec.Command("mpirun", "--version").Output(); err != nil || !strings.HasPrefix(string(out), "mpirun (Open MPI) 4.") {
		t.Skipf("examples/mpi is for Open MPI 4; mpirun --version says %q, %v", out, err)
	}
	dir := t.TempDir()
	open(t, dir, 0o777)
	if out, err := exec.Command("../../examples/mpi/build.sh", dir).CombinedOutput(); err != nil {
		t.Fatalf("build the example: %v: %s", err, out)
	}
	return dir
}

// carriedLine is what a task says about connections to other sites when it ends.
var carriedLine = regexp.MustCompile(`(?m)^mpi: task ([0-9]+) at port [0-9]+: ([0-9]+) connections to other sites$`)

// submitMPI is the command line that submits a program. Its processes yield while
// they wait for each other: here they share few processors.
func submitMPI(how, dir, components string, program ...string) []string {
	return append([]string{"submit", how, "--components", components, "--env", "MPI_SECRET=known to this test only",
		"--env", "OMPI_ALLOW_RUN_AS_ROOT=1", "--env", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "--env", "OMPI_MCA_mpi_yield_when_idle=1",
		"--", filepath.Join(dir, "mpi")}, program...)
}

// computesPi has an MPI program run over sites and checks what it says. Between them
// there must be at least so many connections: one for each daemon that is not where
// task 0 is, and one for each pair of processes at different sites.
func computesPi(t *testing.T, home *site, dir, components string, tasks, between int) {
	t.Helper()
	id := strings.TrimSpace(home.ok(submitMPI("-q", dir, components, filepath.Join(dir, "pi"), "100000")...))
	if r := home.run("wait", id); r.code != 0 {
		t.Fatalf("%v\n%s%s%s", r, home.ok("why", id), home.ok("logs", id), home.ok("logs", "--stderr", id))
	}
	text := home.ok("logs", id)
	want := fmt.Sprintf("%d processes, %d of %d words right", tasks, tasks*(tasks-1), tasks*(tasks-1))
	if !strings.HasPrefix(text, "pi 3.14159265") || !strings.Contains(text, want) {
		t.Errorf("the program says %q, want π and %q", text, want)
	}
	carried, said := 0, home.ok("logs", "--stderr", id)
	lines := carriedLine.FindAllStringSubmatch(said, -1)
	for _, l := range lines {
		n, err := strconv.Atoi(l[2])
		if err != nil {
			t.Fatal(err)
		}
		carried += n
	}
	t.Logf("%d connections between sites", carried)
	if len(lines) != tasks || carried < between {
		t.Errorf("%d tasks, %d connections between sites, want %d and at least %d: %s", len(lines), carried, tasks, between, said)
	}
	if r := home.code(2, submitMPI("-Wq", dir, components, filepath.Join(dir, "pi"), "0")...); r.stdout == "" {
		t.Errorf("a program that fails: %v", r)
	}
}

// TestMPI: a program of Open MPI runs as the tasks of a job at three sites, and ends
// with it.
func TestMPI(t *testing.T) {
	dir := openMPI(t)
	sites := lenders(t, "20s", 1, 2, 1)
	home, components := sites[0], "1@site0,2@site1,1@site2"
	computesPi(t, home, dir, components, 4, 3+5)

	id := strings.TrimSpace(home.ok(submitMPI("-q", dir, components, "sh", "-c", "echo $$; exec sleep 1000")...))
	home.eventually("all processes run", func() bool { return strings.Count(home.ok("logs", id), "\n") == 4 })
	pids := strings.Fields(home.ok("logs", id))
	home.ok("cancel", id)
	for _, text := range pids {
		pid, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		home.eventually("every process has ended", func() bool { return !runs(pid) })
	}
	for i, processors := range []int64{1, 2, 1} {
		sites[i].allFree(processors)
	}
}

// TestMPIBetweenNetworks: the same at two sites whose tasks cannot reach each other:
// each has a loopback of its own, and Open MPI uses nothing else.
func TestMPIBetweenNetworks(t *testing.T) {
	dir := openMPI(t)
	names, _ := namespaces(t)
	var sites []*site
	for i, name := range names {
		flags := []string{"--processors", "2"}
		if i > 0 {
			flags = append(flags, "--join", sites[0].addr)
		}
		s := newSite(t, fmt.Sprintf("site%d", i), flags...)
		s.netns, s.ip = name, fmt.Sprintf("10.77.0.%d", i+1)
		sites = append(sites, s.set("network.listen", fmt.Sprintf("/ip4/%s/tcp/%d", s.ip, s.port), "leases.lend", "allow").start())
	}
	for _, s := range sites {
		s.sees(2)
	}
	computesPi(t, sites[0], dir, "2@site0,2@site1", 4, 2+4)
	for _, s := range sites {
		s.allFree(2)
	}
}
