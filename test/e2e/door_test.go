package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gridnode/test/slurm"
)

// doorSite returns a site, with Slurm's commands in a directory.
func doorSite(t *testing.T, flags ...string) (s *site, bin string) {
	t.Helper()
	s = newSite(t, "door", flags...)
	s.start()
	bin = filepath.Join(t.TempDir(), "bin")
	s.ok("slurm", "install", bin)
	return s, bin
}

// shell runs a script with Slurm's commands in PATH, which has to end well.
func (s *site) shell(bin, dir, script string) string {
	s.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + dir, "GRIDNODE_HOME=" + s.home}
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Fatalf("%s: %v\n%s%s", script, err, out, s.logTail())
	}
	return strings.TrimSpace(string(out))
}

func TestSlurmCommands(t *testing.T) {
	s, bin := doorSite(t, "--processors", "4")
	dir := t.TempDir()
	script := `#!/bin/bash
#SBATCH -J sim -N1 --ntasks-per-node=2
#SBATCH --time=00:10:00 --array=0-3%2
#SBATCH -o %x-%A_%a.out
srun sh -c 'echo rank $SLURM_PROCID of $SLURM_NTASKS in $SLURM_ARRAY_TASK_ID'
`
	if err := os.WriteFile(filepath.Join(dir, "job.sh"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	array := s.shell(bin, dir, "sbatch --parsable job.sh")
	after := s.shell(bin, dir, "sbatch --parsable -d afterok:"+array+" --wrap 'exit 7'")
	never := s.shell(bin, dir, "sbatch --parsable -d afterok:"+after+" --kill-on-invalid-dep=yes --wrap true")
	s.code(7, "wait", after)
	s.run("wait", never)
	got := s.shell(bin, dir, "sacct -X -n -P -o JobID,State,ExitCode -j "+array+","+after+","+never)
	var want []string
	for i := range 4 {
		want = append(want, fmt.Sprintf("%s_%d|COMPLETED|0:0", array, i))
	}
	want = append(want, after+"|FAILED|7:0", never+"|CANCELLED|0:15")
	if got != strings.Join(want, "\n") {
		t.Errorf("sacct says\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	out := filepath.Join(dir, "sim-"+array+"_3.out")
	s.eventually("there is output at "+out, func() bool {
		text, err := os.ReadFile(out)
		return err == nil && strings.Contains(string(text), "rank 1 of 2 in 3\n")
	})
	if got := s.shell(bin, dir, "srun -n 2 sh -c 'echo $SLURM_PROCID' | sort | tr '\\n' ' '"); got != "0 1" {
		t.Errorf("srun printed %q", got)
	}
	if got := s.shell(bin, dir, "squeue -h -o %i"); got != "" {
		t.Errorf("squeue still lists %q", got)
	}
	other := s.shell(bin, dir, "sbatch --parsable --array=0-3 -d aftercorr:"+array+" --wrap true")
	if got := s.shell(bin, dir, "scontrol -o show job "+other+"_2"); !strings.Contains(got, "Dependency=afterok:") {
		t.Errorf("scontrol says %q", got)
	}
	s.ok("wait", other)
	if r := s.shell(bin, dir, "sbatch --array=0-4 -d aftercorr:"+array+" --wrap true 2>&1 || true"); !strings.Contains(r, "index 4") {
		t.Errorf("an array with more indices: %q", r)
	}
	gate := newGate(t)
	long := s.shell(bin, dir, "sbatch --parsable --hold --wrap 'read x <"+string(gate)+"'")
	begun := s.shell(bin, dir, "sbatch --parsable -d after:"+long+" --wrap true")
	if got := s.shell(bin, dir, "squeue -h -o %r -j "+begun); got != "Dependency" {
		t.Errorf("a job that is to wait for a begin: %q", got)
	}
	s.shell(bin, dir, "scontrol release "+long)
	s.ok("wait", begun)
	gate.open(t)
	s.ok("wait", long)
	for _, tt := range []struct{ script, want string }{
		{"sacct -X -n -P -o JobIDRaw,State,MaxRSSNode -j 999999," + after, after + "|FAILED|"}, // of several, the known ones
		{"squeue -h -t all -o '%A^^^%T^^^%U^^^%y' -j 999999," + after, after + "^^^FAILED^^^" + strconv.Itoa(os.Getuid()) + "^^^0"},
		{"squeue -h -M door -t all -o %A -j " + after, "CLUSTER: door\n" + after},
		{"squeue -h -M other -t all -o %A", "CLUSTER: other"},
		{"sbatch -H -M door -J held --wrap true | sed 's/[0-9][0-9]*/N/'", "Submitted batch job N on cluster door"},
		{"sbatch -H -M none,door -J held --parsable --wrap true | sed 's/[0-9][0-9]*/N/'", "N;door"},
		{"scancel -A nobody; scancel -R none; scancel -q high; scancel -M none; scancel -w none; squeue -h -n held | wc -l", "2"},
		{"scancel -M door -n held -t PD; squeue -h -n held | wc -l", "0"},
		{"scontrol show hostnames 'n[1-2],m' | tr '\\n' ' '", "n1 n2 m"},
		{"sinfo -h -M door -o '%R %V %e' | cut -d' ' -f1,2", "door door"},
		{"echo there >beside; printf 'a\nb\n' | srun sh -c 'cat; cat beside' | tr '\n' ' '", "a b there"}, // where it was called
		{"srun -i beside -n 2 sh -c 'read x; echo $SLURM_PROCID $x' | sort | tr '\n' ' '", "0 there 1 there"},
		{"echo none | srun -i none cat", ""},
		{"srun -n 2 -i 1 cat 2>&1 || true", "srun: error: --input 1: outside of a job each task has the standard input, or none"},
		{"srun --pty sh -c 'test -t 0 && echo terminal' 2>/dev/null | tr -d '\r'", "terminal"},
		{"srun -n 2 --pty true 2>&1 || true", "srun: error: --pty: one task has the terminal: leave out --ntasks"},
		{"sbatch -W -n 2 -o steps --wrap 'printf \"1\\n2\\n\" | srun cat | sort | tr \"\\n\" \" \"; echo 3 | srun -i 1 sh -c \"cat >&2\" 2>&1' >/dev/null 2>&1; until grep -q 3 steps; do sleep 0.1; done; cat steps | tr '\\n' ' '", "1 1 2 2 3"},
		{"srun -n 2 cat <beside | tr '\n' ' '", "there there"},
	} {
		if got := s.shell(bin, dir, tt.script); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.script, got, tt.want)
		}
	}
}

// What a job writes is in its file while it runs, also after a restart of the daemon, and
// all of it when it is over.
func TestOutputComesWhileAJobRuns(t *testing.T) {
	s, bin := doorSite(t, "--processors", "2")
	dir, gate := t.TempDir(), newGate(t)
	out, complaint := filepath.Join(dir, "live.out"), filepath.Join(dir, "live.err")
	job := s.shell(bin, dir, "sbatch --parsable -o live.out -e live.err --wrap 'echo first; echo bad >&2; read x <"+string(gate)+"; echo last'")
	has := func(path, want string) func() bool {
		return func() bool {
			text, err := os.ReadFile(path)
			return err == nil && string(text) == want
		}
	}
	s.eventually("the first line is in the file", has(out, "first\n"))
	s.eventually("the complaint is in the file", has(complaint, "bad\n"))
	s.kill()
	if err := os.Remove(out); err != nil {
		t.Fatal(err)
	}
	s.start()
	gate.open(t)
	s.ok("wait", job)
	s.eventually("all is in the file", has(out, "first\nlast\n"))
	s.eventually("nothing is noted of it any more", func() bool {
		left, err := os.ReadDir(filepath.Join(s.home, "streams"))
		return err == nil && len(left) == 0
	})
}

// A restart of the daemon changes nothing of who waits for what.
func TestWaitingJobsOutliveTheDaemon(t *testing.T) {
	s, bin := doorSite(t, "--processors", "2")
	dir := t.TempDir()
	first := s.shell(bin, dir, "sbatch --parsable --hold --wrap true")
	second := s.shell(bin, dir, "sbatch --parsable -d afterok:"+first+" --wrap true")
	s.kill()
	s.start()
	if got := s.shell(bin, dir, "squeue -h -o '%i %t %r'"); got != first+" PD JobHeldUser\n"+second+" PD Dependency" {
		t.Errorf("squeue says %q", got)
	}
	s.shell(bin, dir, "scontrol release "+first)
	s.ok("wait", second)
	if third := s.shell(bin, dir, "sbatch --parsable --wrap true"); third == first || third == second {
		t.Errorf("number %s was given twice", third)
	}
}

// A job is warned before its limit, and what it says then reaches its file.
func TestSignalBeforeTheLimit(t *testing.T) {
	t.Parallel()
	s, bin := doorSite(t, "--processors", "2")
	dir := t.TempDir()
	out := filepath.Join(dir, "warned")
	s.shell(bin, dir, `sbatch -t 1 --signal=B:USR1@40 -o warned --wrap 'trap "echo saved; exit 3" USR1; while :; do sleep 0.1; done'`)
	s.code(3, "wait", "1")
	s.eventually("the job has said that it was warned", func() bool {
		text, err := os.ReadFile(out)
		return err == nil && string(text) == "saved\n"
	})
}

const snakefile = `
N = 33
rule all:
    input: "total"
rule make:
    output: "raw/{i}"
    shell: "echo {wildcards.i} > {output}"
rule double:
    input: "raw/{i}"
    output: "double/{i}"
    shell: "echo $(( 2 * $(cat {input}) )) > {output}"
rule check:
    input: "double/{i}"
    output: "checked/{i}"
    shell: "grep -q . {input} && cp {input} {output}"
rule collect:
    input: expand("checked/{i}", i=range(N))
    output: "total"
    shell: "cat {input} | awk '{{s += $1}} END {{print s}}' > {output}"
`

const snakeStatus = `#!/bin/sh
case $(sacct -X -n -P -j "$1" -o State) in
COMPLETED) echo success ;;
PENDING|CONFIGURING|RUNNING|COMPLETING) echo running ;;
*) echo failed ;;
esac
`

// TestSnakemake: a workflow of 100 jobs, submitted by a tool that knows nothing of
// gridnode, over a plain machine and two Slurm clusters, or three machines where Slurm is
// not installed.
func TestSnakemake(t *testing.T) {
	if testing.Short() {
		t.Skip("a workflow of 100 jobs takes a minute")
	}
	if _, err := exec.LookPath("snakemake"); err != nil {
		t.Skip("no snakemake on this machine: apt-get install snakemake")
	}
	first := newSite(t, "first", "--processors", "1").set("market.policy", "fastest").start()
	for _, name := range []string{"second", "third"} {
		if slurm.Missing(false) == nil {
			newSlurmSite(t, name, slurm.Config{Name: name, Processors: 4}, "--foreign", "allow", "--join", first.addr).start()
			continue
		}
		newSite(t, name, "--processors", "4", "--foreign", "allow", "--join", first.addr).start()
	}
	first.sees(3)
	bin := filepath.Join(t.TempDir(), "bin")
	first.ok("slurm", "install", bin)
	dir := t.TempDir()
	for name, text := range map[string]string{"Snakefile": snakefile, "status.sh": snakeStatus} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		open(t, filepath.Join(dir, name), 0o755)
	}
	for _, path := range []string{"raw", "double", "checked", ""} { // of jobs at other sites, too
		if err := os.MkdirAll(filepath.Join(dir, path), 0o700); err != nil {
			t.Fatal(err)
		}
		open(t, filepath.Join(dir, path), 0o777)
	}
	begun := time.Now()
	first.shell(bin, dir, `umask 0; snakemake --jobs 24 --latency-wait 20 --max-jobs-per-second 50 --max-status-checks-per-second 20 \
		--cluster "sbatch --parsable -o /dev/null -c {threads}" --cluster-status ./status.sh`)
	took := time.Since(begun)
	total, err := os.ReadFile(filepath.Join(dir, "total"))
	if err != nil || strings.TrimSpace(string(total)) != "1056" {
		t.Errorf("the workflow computed %q, %v, want 1056", total, err)
	}
	states, sites := map[string]int{}, map[string]int{}
	for line := range strings.Lines(first.shell(bin, dir, "sacct -X -n -P -o State,Partition")) {
		state, site, _ := strings.Cut(strings.TrimSpace(line), "|")
		states[state]++
		sites[site]++
	}
	t.Logf("100 jobs in %v: %v at %v", took.Round(time.Second), states, sites)
	if len(states) != 1 || states["COMPLETED"] != 100 {
		t.Errorf("states %v, want 100 times COMPLETED", states)
	}
	if len(sites) < 2 {
		t.Errorf("all of them ran at one site: %v", sites)
	}
}
