package slurm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gridnode/test/realsite"
)

// Config describes a cluster.
type Config struct {
	Name       string
	Nodes      int      // 0 means 1
	Processors int      // of each node, whatever the machine has; 0 means 4
	Memory     int      // MB of each node that jobs are given by; 0: memory is not counted
	Accounting bool     // keeps accounts in a slurmdbd with a database of its own
	Accounts   *Cluster // keeps them in the slurmdbd of that cluster, which keeps accounts, instead
	Extra      string   // further lines of slurm.conf
	Folder     string   // of its files; Start gives one of the test
	Apart      bool     // controller and nodes have each a network namespace of its own (needs root)
}

// Cluster is a Slurm cluster that runs.
type Cluster struct {
	Config
	Conf string // path of slurm.conf

	ports      []int // controller, slurmdbd, database, then nodes
	network    *network
	controller *daemon
	others     []*daemon
}

// startMax is how long a daemon may take until it answers.
const startMax = 20 * time.Second

// Missing says what of Slurm is not installed, or nil.
func Missing(accounting bool) error {
	programs := []string{"slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel", "sinfo"}
	if accounting {
		programs = append(programs, "slurmdbd", "mariadbd", "sacct", "sacctmgr")
	}
	for _, p := range programs {
		if _, err := lookUp(p); err != nil {
			return fmt.Errorf("%w (make slurm installs it)", err)
		}
	}
	return nil
}

// lookUp finds a program where distributions put daemons, too.
func lookUp(program string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not installed", program)
}

// Up starts a cluster and returns when its nodes are idle.
func Up(ctx context.Context, cfg Config) (c *Cluster, err error) {
	if err := Missing(cfg.Accounting); err != nil {
		return nil, err
	}
	cfg.Nodes, cfg.Processors = max(cfg.Nodes, 1), max(cfg.Processors, 0)
	if cfg.Processors == 0 {
		cfg.Processors = 4
	}
	c = &Cluster{Config: cfg, Conf: filepath.Join(cfg.Folder, "slurm.conf")}
	if c.ports, err = freePorts(3 + cfg.Nodes); err != nil {
		return nil, err
	}
	if cfg.Accounts != nil {
		c.Accounting, c.ports[1] = true, cfg.Accounts.ports[1]
	}
	defer func() {
		if err != nil {
			c.Down()
			c = nil
		}
	}()
	if cfg.Apart {
		if c.network, err = newNetwork(1 + cfg.Nodes); err != nil {
			return c, err
		}
	}
	if err := c.write(); err != nil {
		return c, err
	}
	switch {
	case cfg.Accounts != nil:
		err = c.enterAccounts(ctx)
	case cfg.Accounting:
		err = c.keepAccounts(ctx)
	}
	if err != nil {
		return c, err
	}
	if err := c.StartController(ctx); err != nil {
		return c, err
	}
	for n := range cfg.Nodes {
		if err := c.launch(c.network.namespace(1+n), "slurmd", "-D", "-N", c.node(n)); err != nil {
			return c, err
		}
	}
	return c, c.until(ctx, func() error {
		out, err := c.Command(ctx, "sinfo", "-h", "-o", "%D %T").Output()
		if want := strconv.Itoa(cfg.Nodes) + " idle"; err == nil && strings.TrimSpace(string(out)) != want {
			err = fmt.Errorf("sinfo says %q, not %q", strings.TrimSpace(string(out)), want)
		}
		return err
	})
}

func (c *Cluster) node(n int) string { return fmt.Sprintf("%s%d", c.Name, n+1) }

// write makes the folder and the configuration.
func (c *Cluster) write() error {
	u, err := user.Current()
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	host, _, _ = strings.Cut(host, ".")
	for _, dir := range []string{"state", "spool"} {
		if err := os.MkdirAll(filepath.Join(c.Folder, dir), 0o755); err != nil {
			return err
		}
	}
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("ClusterName=%s", c.Name)
	say("SlurmctldHost=%s(%s)", host, c.network.address(0))
	say("SlurmctldPort=%d", c.ports[0])
	say("SlurmUser=%s\nSlurmdUser=%s\nAuthType=auth/none\nCredType=cred/none", u.Username, u.Username)
	say("StateSaveLocation=%s/state\nSlurmdSpoolDir=%s/spool/%%n", c.Folder, c.Folder)
	say("SlurmctldPidFile=%s/slurmctld.pid\nSlurmdPidFile=%s/slurmd.%%n.pid", c.Folder, c.Folder)
	say("SlurmctldLogFile=%s/slurmctld.log\nSlurmdLogFile=%s/slurmd.%%n.log", c.Folder, c.Folder)
	say("ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMpiDefault=none\nSwitchType=switch/none")
	say("SelectType=select/cons_tres\nSlurmdParameters=config_overrides\nReturnToService=2")
	if c.network == nil {
		say("CommunicationParameters=NoCtldInAddrAny,NoInAddrAny")
	}
	say("EnforcePartLimits=ALL\nKillWait=2\nMessageTimeout=10")
	say("SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1")
	parameters, memory := "CR_CPU", ""
	if c.Memory > 0 {
		parameters, memory = "CR_CPU_Memory", fmt.Sprintf(" RealMemory=%d", c.Memory)
		say("JobAcctGatherType=jobacct_gather/linux\nJobAcctGatherFrequency=task=1\nJobAcctGatherParams=OverMemoryKill\nDefMemPerCPU=%d", c.Memory/c.Processors)
	}
	say("SelectTypeParameters=%s", parameters)
	if c.Accounting {
		say("AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=127.0.0.1\nAccountingStoragePort=%d", c.ports[1])
		if c.Memory == 0 {
			say("JobAcctGatherType=jobacct_gather/linux\nJobAcctGatherFrequency=task=1")
		}
	} else {
		say("AccountingStorageType=accounting_storage/none")
	}
	if c.Extra != "" {
		say("%s", c.Extra)
	}
	for n := range c.Nodes {
		say("NodeName=%s NodeHostname=%s NodeAddr=%s Port=%d CPUs=%d%s State=UNKNOWN", c.node(n), host, c.network.address(1+n), c.ports[3+n], c.Processors, memory)
	}
	say("PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP")
	say("PartitionName=brief Nodes=ALL Default=NO MaxTime=1 State=UP")
	// The node daemon asks for a control group plugin whatever tracks processes; this one
	// starts in containers, too.
	if err := os.WriteFile(filepath.Join(c.Folder, "cgroup.conf"), []byte("CgroupPlugin=cgroup/v1\n"), 0o644); err != nil {
		return err
	}
	return os.WriteFile(c.Conf, []byte(b.String()), 0o644)
}

// StartController starts the controller, again after StopController.
func (c *Cluster) StartController(ctx context.Context) (err error) {
	if c.controller, err = c.spawn(c.network.namespace(0), "slurmctld", "-D"); err != nil {
		return err
	}
	return c.until(ctx, func() error { return c.Command(ctx, "scontrol", "ping").Run() })
}

// StopController ends the controller: in order, or as a crash does.
func (c *Cluster) StopController(crash bool) { c.controller.stop(crash) }

// saved reports whether the controller has written what it knows of jobs since an instant.
func (c *Cluster) saved(since time.Time) bool {
	info, err := os.Stat(filepath.Join(c.Folder, "state", "job_state"))
	return err == nil && info.ModTime().After(since)
}

// Save returns once the controller has written what it knows of jobs at this moment. It is made to
// write by a change of a job that it knows.
func (c *Cluster) Save(ctx context.Context, job string) error {
	for i := range 2 { // the first may have been under way before
		since := time.Now()
		if err := c.Command(ctx, "scontrol", "update", "JobId="+job, fmt.Sprintf("Comment=save %d", i)).Run(); err != nil {
			return fmt.Errorf("change job %s: %w", job, err)
		}
		if err := c.until(ctx, func() error {
			if !c.saved(since) {
				return errors.New("the controller has not saved what it knows of jobs")
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// ControllerTime returns how much processor time the controller has used.
func (c *Cluster) ControllerTime() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.controller.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ") // behind the name
	fields := strings.Fields(rest)
	var ticks int64
	for _, at := range []int{11, 12} { // utime and stime
		if at >= len(fields) {
			return 0, fmt.Errorf("/proc has %d fields of the controller", len(fields))
		}
		n, err := strconv.ParseInt(fields[at], 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * (time.Second / 100), nil // the kernel tells it in hundredths
}

// Env is what programs need in their environment to use this cluster.
func (c *Cluster) Env() string { return "SLURM_CONF=" + c.Conf }

// Command returns one of Slurm's programs, about to run against this cluster.
func (c *Cluster) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	if path, err := lookUp(name); err == nil {
		cmd.Path, cmd.Err = path, nil
	}
	cmd.Env = append(os.Environ(), c.Env())
	return cmd
}

// Down ends everything.
func (c *Cluster) Down() {
	if c.controller != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		_ = c.Command(ctx, "scancel", "--full", "--signal=KILL", "--state=RUNNING").Run() // jobs that no test waited for
		cancel()
		c.controller.stop(false)
	}
	for i := len(c.others) - 1; i >= 0; i-- {
		c.others[i].stop(false)
	}
	c.network.remove()
}

// launch starts a daemon that ends with the cluster.
func (c *Cluster) launch(namespace, name string, args ...string) error {
	d, err := c.spawn(namespace, name, args...)
	if err == nil {
		c.others = append(c.others, d)
	}
	return err
}

// until waits until check succeeds.
func (c *Cluster) until(ctx context.Context, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, startMax)
	defer cancel()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cluster %s does not come up: %w; see %s", c.Name, err, c.Folder)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// freePorts returns loopback ports that nobody listens at.
func freePorts(n int) (ports []int, err error) {
	for range n {
		port, err := realsite.FreePort()
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}
