package shim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gridnode/grid"
	"gridnode/node/shim/link"
)

// PilotOrder is a pilot: a job of a cluster that keeps processors on its nodes, with a shim
// on each, which runs what the daemon says.
type PilotOrder struct {
	Name     string
	Go, Gone string    // as in Order: it begins once at most
	End      string    // path of the file that says how the pilot ended, an Ended as JSON
	Home     string    // directory of the homes of its shims, each named by the number of its node
	Daemon   string    // path of the file that says where the daemon listens, HOST:PORT
	Key      string    // path of the key that both have
	Silence  grid.Time // for how long a shim waits for its daemon, once it runs nothing
}

// NodeFlag has the program be the shim of one node of a pilot, instead of the whole pilot.
const NodeFlag = "--pilot-node"

// Pilot carries out the order of a pilot in a file and returns the exit code. On one node it
// is the shim, with its guard; on several it has srun start one on each: args are the
// command line that does so, in which the last word is the order. node says that it is one of these.
func Pilot(path string, args []string, node bool) int {
	keepDescriptors()
	if !guarded() {
		code, err := guard()
		if err != nil {
			fmt.Fprintf(os.Stderr, "gridnode shim: %v\n", err)
		}
		return code
	}
	err := pilot(path, args, node)
	if err != nil {
		fmt.Fprintf(os.Stderr, "gridnode shim: %v\n", err)
		return exitNoStart
	}
	return 0
}

func pilot(path string, args []string, node bool) error {
	o, err := readPilot(path)
	if err != nil {
		return err
	}
	shape, err := shapeOf(os.Getenv)
	if err != nil {
		return err
	}
	if node {
		return o.serve(shape)
	}
	if err := os.Rename(o.Go, o.Gone); errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(os.Stderr, "gridnode shim: pilot %s was taken back, or has begun elsewhere\n", o.Name)
		return nil
	} else if err != nil {
		return err
	}
	stop := beat(o.Gone)
	began := wall(time.Now())
	if shape.Nodes > 1 {
		err = spread(shape.Nodes, args)
	} else {
		err = o.serve(shape)
	}
	stop()
	e := &Ended{ID: o.Name, Cause: CauseExit, Start: began, End: wall(time.Now())}
	if err != nil {
		e.ExitCode, e.Cause, e.Reason = exitNoStart, CauseStart, shorten(err.Error())
	}
	return errors.Join(err, writeEnd(o.End, e))
}

// readPilot reads and checks an order.
func readPilot(path string) (*PilotOrder, error) {
	o, err := readFile[PilotOrder](path)
	if err != nil {
		return nil, err
	}
	if o.Name == "" || len(o.Name) > idMax || !filepath.IsAbs(o.Home) || o.Silence <= 0 || o.Silence > grid.SpanMax {
		return nil, fmt.Errorf("%s is no order of a pilot", path)
	}
	o.Gone, err = goneOf(o.Gone)
	return o, err
}

// shapeOf says which part of a pilot this process is, by what the cluster says in variables.
func shapeOf(env func(string) string) (h link.Hello, err error) {
	counts, err := cpusOf(env("SLURM_JOB_CPUS_PER_NODE"))
	if err != nil {
		return h, fmt.Errorf("SLURM_JOB_CPUS_PER_NODE: %w", err)
	}
	if h.Nodes = len(counts); env("SLURM_NODEID") != "" {
		if h.Node, err = strconv.Atoi(env("SLURM_NODEID")); err != nil || h.Node < 0 || h.Node >= h.Nodes {
			return h, fmt.Errorf("SLURM_NODEID=%s of %d nodes", env("SLURM_NODEID"), h.Nodes)
		}
	}
	h.Processors, h.Host = counts[h.Node], env("SLURMD_NODENAME")
	return h, nil
}

// cpusOf reads the processors of each node: "4(x2),3" are 4, 4 and 3.
func cpusOf(text string) (counts []int64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		number, times, repeated := strings.Cut(part, "(x")
		n, err := strconv.ParseInt(number, 10, 32)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%.80q: want processors of nodes", text)
		}
		repeat := 1
		if repeated {
			if repeat, err = strconv.Atoi(strings.TrimSuffix(times, ")")); err != nil || repeat < 1 {
				return nil, fmt.Errorf("%.80q: want processors of nodes", text)
			}
		}
		if len(counts)+repeat > link.NodesMax {
			return nil, fmt.Errorf("%.80q: more than %d nodes", text, link.NodesMax)
		}
		counts = append(counts, slices.Repeat([]int64{n}, repeat)...)
	}
	return counts, nil
}

// spread has srun start a shim on each node of the allocation, and waits for all.
func spread(nodes int, args []string) error {
	n := strconv.Itoa(nodes)
	cmd := exec.Command("srun", append([]string{"--nodes=" + n, "--ntasks=" + n, "--ntasks-per-node=1", "--input=none", "--kill-on-bad-exit=0", "--overlap"}, args...)...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.Env = slices.DeleteFunc(os.Environ(), func(setting string) bool { // of the batch job, not of the step
		name, _, _ := strings.Cut(setting, "=")
		return slices.Contains([]string{"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_CPUS_PER_TASK", "SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_DISTRIBUTION"}, name)
	})
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT) // Slurm sends them to the steps, too
	defer signal.Stop(signals)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("srun on %d nodes: %w", nodes, err)
	}
	return nil
}

// serve is the shim of a node.
func (o *PilotOrder) serve(shape link.Hello) error {
	shape.Name = o.Name
	key, err := link.ReadKey(o.Key)
	if err != nil {
		return err
	}
	home := filepath.Join(o.Home, strconv.Itoa(shape.Node))
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	rename("gridnode-pilot")
	s, err := newShim(Config{Home: home, Idle: o.Silence.Duration(), Grace: GraceDefault, journalMax: journalMax, calls: true})
	if err != nil {
		return err
	}
	s.inherit = clusterEnv(os.Environ())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.ways = newWays(ctx, func(ctx context.Context, way link.Way) (link.End, error) {
		hello := shape
		hello.Way = &way
		return dialDaemon(ctx, o.Daemon, key, hello)
	})
	called := make(chan struct{})
	go func() {
		defer close(called)
		s.call(ctx, o.Daemon, key, shape)
	}()
	done := make(chan struct{})
	go onThread(func() {
		defer close(done)
		s.loop()
	})
	<-done
	cancel()
	err = s.close()
	<-called
	s.ways.wg.Wait()
	return err
}

// Pauses between attempts to reach a daemon.
const (
	callPause    = 20 * time.Millisecond
	callPauseMax = 2 * time.Second
)

// call keeps a connection to the daemon, wherever that listens now, one after the other: what
// was said in an earlier one has been taken in when the next begins.
func (s *shim) call(ctx context.Context, daemon string, key *link.Key, hello link.Hello) {
	for pause := callPause; ctx.Err() == nil; {
		if c, err := dialDaemon(ctx, daemon, key, hello); err == nil {
			stop := context.AfterFunc(ctx, func() { c.Close() })
			s.converse(c)
			stop()
			pause = callPause
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, callPauseMax)
		case <-ctx.Done():
		}
	}
}

// dialDaemon calls where the file says that the daemon listens.
func dialDaemon(ctx context.Context, daemon string, key *link.Key, hello link.Hello) (link.End, error) {
	address, err := os.ReadFile(daemon)
	if err != nil {
		return nil, err
	}
	c, err := link.Dial(ctx, strings.TrimSpace(string(address)), key, hello)
	if err != nil {
		return nil, err // and not a nil *tls.Conn
	}
	return c, nil
}

// passed are the variables of the cluster that what runs in a pilot has in place of those of
// its site: by them Slurm's own commands find the allocation that it runs in.
var passed = []string{
	"SLURM_CONF", "SLURM_JOB_ID", "SLURM_JOBID", "SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_JOB_PARTITION", "SLURM_JOB_ACCOUNT", "SLURM_JOB_QOS",
	"SLURMD_NODENAME", "SLURM_TOPOLOGY_ADDR", "SLURM_TOPOLOGY_ADDR_PATTERN",
}

// clusterEnv returns the settings among them. Steps share processors with the pilot's.
func clusterEnv(all []string) (env []string) {
	for _, setting := range all {
		if name, _, _ := strings.Cut(setting, "="); slices.Contains(passed, name) {
			env = append(env, setting)
		}
	}
	return append(env, "SLURM_OVERLAP=1")
}

// override returns settings with others in the place of those of the same names.
func override(env, others []string) []string {
	for _, o := range others {
		name, _, _ := strings.Cut(o, "=")
		env = append(slices.DeleteFunc(slices.Clone(env), func(setting string) bool { return strings.HasPrefix(setting, name+"=") }), o)
	}
	return env
}

// Left returns what the shim of a pilot has left in its home, now that it is gone: the ends
// that its daemon had not acknowledged. What it did not end is not among them.
func Left(home string) (ended []Ended, err error) {
	_, p, err := openRecords(home)
	if err != nil {
		return nil, err
	}
	for _, id := range p.order {
		if k := p.tasks[id]; k != nil && k.ended != nil {
			ended = append(ended, *k.ended)
		}
	}
	return ended, nil
}
