package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridnode/test/slurm"
)

// slurmPage is the page that TestSlurmPage tries.
const slurmPage = "docs/slurm.md"

// beforeSlurmPage makes what the page's commands name.
const beforeSlurmPage = `
$ printf '#!/bin/sh\necho process $SLURM_PROCID of $SLURM_NTASKS\n' >model; chmod +x model
desk$ printf '#!/bin/sh\necho element $SLURM_ARRAY_TASK_ID at $SLURM_CLUSTER_NAME\n' >simulate.sh
`

// withPartners has a site alone go on with jobs of desk in a partition and an account of their
// own, once the cluster has these.
const withPartners = `
$ gridnode stop; sed -i '/^slurm:$/r ../partners' .gridnode/config.yaml
$ gridnode start --detach 2>&1 | grep -F slurm.partners.desk.partition
$ scontrol create PartitionName=guests Nodes=ALL
$ gridnode start --detach 2>&1 | grep -F slurm.partners.desk.account
$ sacctmgr -i add account exchange cluster=b; sacctmgr -i add user $USER account=exchange cluster=b
$ gridnode start --detach && gridnode stop
`

// besides are the commands between the page's blocks: what is typed for each, and what that prints.
var besides = map[string][]string{
	"gridnode status":                       {"gridnode status", "…", "… done physics 8 …", "…"},
	"sinfo":                                 {"sinfo", "…", "main* up …", "…"},
	"sacctmgr show associations user=$USER": {"sacctmgr show associations user=$USER", "…", "b work …", "…"},
	"sbatch --test-only":                    {"sbatch --test-only -n 16 --wrap true", "sbatch: Job … to start at … in partition main"},
	"gridnode cancel": {"J=$(gridnode submit --parsable -n 8 --once -t 1h -- sleep 1000); until squeue -h -t RUNNING | grep gridnode; do sleep 0.1; done; " +
		"gridnode cancel $J; while squeue -h | grep gridnode; do sleep 0.1; done", "…"},
	"make slurm": {"true"}, // makeSlurm
}

var (
	besideLine = regexp.MustCompile("`((?:gridnode|make|sinfo|sacctmgr|squeue|sbatch|scontrol|scancel) [^`]+|sinfo)`")
	clusterOf  = regexp.MustCompile(`^cluster (\w+):`)
	confOf     = regexp.MustCompile(`^ +export (SLURM_CONF=\S+)$`)
)

// makeSlurm does what `make slurm` does, until the test is over, and returns what it says of how
// to reach each cluster.
func makeSlurm(t *testing.T) (conf map[string]string) {
	t.Helper()
	cmd := exec.Command("make", "-s", "-C", "../..", "slurm")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) // as Ctrl-C does
		late := time.AfterFunc(patience, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		defer late.Stop()
		_ = cmd.Wait() // make calls an interrupt an error
		for name, conf := range conf {
			if _, err := os.Stat(strings.TrimPrefix(conf, "SLURM_CONF=")); err == nil {
				t.Errorf("make slurm has left the folder of cluster %s", name)
			}
		}
	})
	conf = map[string]string{}
	name := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := clusterOf.FindStringSubmatch(lines.Text()); m != nil {
			name = m[1]
		} else if m := confOf.FindStringSubmatch(lines.Text()); m != nil {
			conf[name] = m[1]
		}
		if strings.HasPrefix(lines.Text(), "both run") {
			return conf
		}
	}
	t.Fatalf("make slurm has ended after %v: %s", conf, &stderr)
	return nil
}

// TestSlurmPage does what the page on clusters says, on the two that `make slurm` starts: a site
// alone, then a machine and both clusters in a federation. Of the array it runs ten elements.
func TestSlurmPage(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not with -short: it starts a real Slurm")
	}
	if err := slurm.Missing(true); err != nil {
		if os.Getenv("GRIDNODE_SLURM") == "must" {
			t.Fatal(err)
		}
		t.Skipf("left out: %v", err)
	}
	text, err := os.ReadFile("../../" + slurmPage)
	if err != nil {
		t.Fatal(err)
	}
	conf := makeSlurm(t)
	dir, err := os.MkdirTemp("", "slurmpage") // a socket's path has to be short
	if err == nil {
		err = os.Chmod(dir, 0o755) // guests' accounts pass through
	}
	if err != nil {
		t.Fatal(err)
	}
	r := &reading{T: t, path: slurmPage, dir: dir, shells: map[string]*console{}, ports: map[string]string{}, kept: map[string]string{"chemistry": "desk"}}
	alone := fmt.Sprintf("GRIDNODE_NETWORK_LISTEN=127.0.0.1:%d", freePort(t)) // it says no address
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	r.env = map[string][]string{"": {conf["b"], alone, "USER=" + u.Username}, "physics": {conf["b"]}, "biology": {conf["a"]}}
	defer r.close()
	r.commands(block{}, beforeSlurmPage)
	seen := map[string]bool{}
	for _, m := range besideLine.FindAllStringSubmatch(string(text), -1) {
		if besides[m[1]] == nil {
			t.Errorf("nobody tries `%s` of %s", m[1], slurmPage)
		}
		seen[m[1]] = true
	}
	for _, b := range blocksOf(string(text)) {
		switch b.language {
		case "console":
			r.onClusters(b)
		case "yaml": // of a site alone, which is tried by then
			r.shows("", "gridnode status -o name | xargs gridnode logs | sort", "process 0 of 8", "…", "process 7 of 8")
			for command, s := range besides {
				if !seen[command] {
					t.Errorf("%s says nothing of `%s`", slurmPage, command)
				}
				r.shows("", s[0], s[1:]...)
			}
			b.info, b.text = "file ../partners", b.text[1:]
			r.write(b, "../partners")
			r.commands(b, withPartners)
		}
	}
	r.shows("desk", "sacct -X -n -P -o State | sort | uniq -c", "101 COMPLETED")
	r.shows("desk", "cat slurm-*_*.out | grep -c 'element [0-9]* at'", "100")
	r.shows("desk", "sacct -X -n -P -o JobID,Partition,JobName | grep -v _ | cut -d'|' -f2", "physics")
	r.shows("physics", "sacct -X -n -P -o Account,Partition,State | grep exchange | sort -u", "exchange|guests|COMPLETED")
}

// onClusters tries a block of the page. What is for the head node of each cluster is done at both.
func (r *reading) onClusters(b block) {
	r.Helper()
	keep, _ := strings.CutPrefix(b.info, "keep ")
	for _, s := range b.steps() {
		if s.shell == "physics" && strings.HasPrefix(s.command, "gridnode start") {
			r.commands(b, "physics$ sed -i '/^slurm:$/r ../partners' .gridnode/config.yaml")
		}
		if last := r.try(s, false); keep != "" {
			r.kept[keep] = last
		}
	}
	if len(b.text) == 0 || !strings.HasPrefix(b.text[0], "physics$") {
		return
	}
	token := r.try(step{line: b.line, shell: "desk", command: "gridnode invite --site biology"}, false)
	defer func(first string) { r.kept["TOKEN"] = first }(r.kept["TOKEN"])
	r.kept["TOKEN"] = token
	for _, s := range b.steps() {
		s.shell, s.command = "biology", strings.ReplaceAll(s.command, "192.0.2.2:", "192.0.2.3:")
		for i, line := range s.want {
			s.want[i] = strings.ReplaceAll(line, "physics", "biology")
		}
		r.try(s, false)
	}
	r.shows("desk", "gridnode sites -o name | sort", "biology", "desk", "physics")
}

// shows has a command print what is wanted before long.
func (r *reading) shows(shell, command string, want ...string) {
	r.Helper()
	r.try(step{shell: shell, command: command, want: want}, true)
}
