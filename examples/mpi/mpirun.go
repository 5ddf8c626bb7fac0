package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// host is what mpirun calls a task; each is a machine of its own to it.
func host(rank int) string { return "task" + strconv.Itoa(rank) }

// mpirun runs it, with a process of the program for each task.
func (l *launcher) mpirun(ctx context.Context, program []string) error {
	if _, err := exec.LookPath("mpirun"); err != nil {
		return fmt.Errorf("%w; Debian: apt-get install openmpi-bin", err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if strings.ContainsAny(self, " \t") {
		return fmt.Errorf("%q: mpirun cannot run an agent whose path has spaces", self)
	}
	hosts := make([]string, len(l.peers))
	for rank := range hosts {
		hosts[rank] = host(rank) + ":1"
	}
	args := []string{
		"-np", strconv.Itoa(len(hosts)), "--host", strings.Join(hosts, ","), "--map-by", "node", "--bind-to", "none",
		"--leave-session-attached", // a daemon is to end no sooner than what it runs
		"--mca", "plm_rsh_agent", self + " agent", "--mca", "plm_rsh_no_tree_spawn", "1",
		"--mca", "routed_radix", strconv.Itoa(len(hosts)), // daemons speak to mpirun only
		"--mca", "oob_tcp_if_include", "lo", "--mca", "oob_tcp_disable_ipv6_family", "1",
		"--mca", "pml", "ob1", "--mca", "btl", "tcp,self",
		"--mca", "btl_tcp_if_include", "lo", "--mca", "btl_tcp_disable_family", "6",
	}
	cmd := command(ctx, "mpirun", append(args, program...)...)
	cmd.Env = withoutSlurm(os.Environ())
	return cmd.Run()
}

// withoutSlurm leaves out what scripts of Slurm find in a job: Open MPI would take the job for
// one of Slurm, and ask that for machines.
func withoutSlurm(of []string) []string {
	return slices.DeleteFunc(slices.Clone(of), func(setting string) bool { return strings.HasPrefix(setting, "SLURM") })
}

// agent stands in for ssh: mpirun calls it with a host and a command, the task of
// that name runs it, and its exit code is the agent's.
func (t *task) agent(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return errors.New("usage: mpi agent HOST COMMAND... (mpirun calls it)")
	}
	rank := 0
	for rank < len(t.peers) && host(rank) != args[0] {
		rank++
	}
	if rank == len(t.peers) {
		return fmt.Errorf("mpirun wants to run something at %q: want task0 to task%d", args[0], rank-1)
	}
	line := strings.Join(args[1:], " ")
	found := ofMpirun.FindStringSubmatch(line)
	if found == nil {
		return fmt.Errorf("no address of mpirun in %q; this is for Open MPI 4", line)
	}
	port, err := strconv.ParseUint(found[1], 10, 16)
	if err != nil {
		return fmt.Errorf("address of mpirun %q: %w", found[0], err)
	}
	c, err := t.dial(ctx, rank, greeting{Do: doLaunch, Port: int(port), Command: line})
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	var code [1]byte
	if _, err := io.ReadFull(c, code[:]); err != nil {
		return fmt.Errorf("%s is lost: %w", args[0], err)
	}
	if code[0] != 0 {
		return fmt.Errorf("the daemon of %s ended with exit code %d", args[0], code[0])
	}
	return nil
}
