package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"gridnode/node/api"
	"gridnode/test/realsite"
	"gridnode/test/slurm"
)

// submitters is how many commands submit at a time, as when users do.
const submitters = 4

// speed is what burst and latency run on: a cluster of two processors and one of sixteen,
// which keep their accounts in one place, each with a site in front of it.
type speed struct {
	*world
	small, large *site
	at           struct{ small, large *slurm.Cluster } // their clusters
	runs         int
}

func newSpeed(ctx context.Context, program string) (*speed, error) {
	w, err := newWorld(program)
	if err != nil {
		return nil, err
	}
	s := &speed{world: w}
	if err := s.fill(ctx); err != nil {
		w.close()
		return nil, err
	}
	return s, nil
}

func (s *speed) fill(ctx context.Context) (err error) {
	if s.at.small, err = s.cluster(ctx, slurm.Config{Name: "small", Processors: 2, Accounting: true}); err != nil {
		return err
	}
	if s.at.large, err = s.cluster(ctx, slurm.Config{Name: "large", Processors: 16, Accounts: s.at.small}); err != nil {
		return err
	}
	s.env = []string{"GRIDNODE_MARKET_POLICY=fastest"}
	if s.small, err = s.site(ctx, "small", s.at.small); err != nil {
		return err
	}
	if s.large, err = s.site(ctx, "large", s.at.large); err != nil {
		return err
	}
	if out, err := s.small.command(ctx, "slurm", "install", s.commands()).CombinedOutput(); err != nil {
		return fmt.Errorf("slurm install: %w: %s", err, out)
	}
	return s.small.sees(ctx, 2)
}

// commands is the directory of gridnode's commands by Slurm's names.
func (s *speed) commands() string { return filepath.Join(s.dir, "commands") }

// keepPilots has the sites keep processors for small jobs, and returns when they do.
func (s *speed) keepPilots(ctx context.Context, most int) error {
	for _, of := range []struct {
		site    *site
		cluster *slurm.Cluster
	}{{s.small, s.at.small}, {s.large, s.at.large}} {
		of.site.kill()
		of.site.env = append(of.site.env, fmt.Sprintf("GRIDNODE_SLURM_PILOTS=%d", min(most, of.cluster.Processors)))
		if err := of.site.start(); err != nil {
			return err
		}
	}
	for _, of := range []struct {
		site    *site
		cluster *slurm.Cluster
	}{{s.small, s.at.small}, {s.large, s.at.large}} {
		if err := inPilot(ctx, of.site, of.cluster); err != nil {
			return err
		}
	}
	return s.small.sees(ctx, 2)
}

// inPilot returns once small jobs of a site run in its pilot.
func inPilot(ctx context.Context, s *site, c *slurm.Cluster) error {
	return realsite.Until(ctx, untilPause, func() (bool, error) {
		out, err := c.Command(ctx, "squeue", "-h", "-t", "RUNNING", "-o", "%i").Output()
		pilot := strings.TrimSpace(string(out))
		if err != nil || pilot == "" || strings.Contains(pilot, "\n") {
			return false, err
		}
		reply, err := s.client.SubmitAndWait(ctx, []api.JobSpec{small(pilot)}, func([]string) {})
		return err == nil && reply.Jobs[0].State == "done", err
	})
}

// small is a job that fails unless it runs in that pilot.
func small(pilot string) api.JobSpec {
	return api.JobSpec{Args: []string{"sh", "-c", "test $SLURM_JOB_ID = " + pilot}, Policy: "local", Time: api.Seconds(60_000_000)}
}

// endSites ends the sites, and what they keep.
func (s *speed) endSites(ctx context.Context) error {
	for _, of := range s.sites {
		of.kill()
	}
	for _, c := range s.clusters {
		out, err := c.Command(ctx, "squeue", "-h", "-o", "%i").Output()
		if err != nil {
			return err
		}
		for _, id := range strings.Fields(string(out)) {
			_ = c.Command(ctx, "scancel", id).Run() // what is left is seen
		}
		err = realsite.Until(ctx, untilPause, func() (bool, error) {
			out, err := c.Command(ctx, "squeue", "-h").Output()
			return err == nil && len(out) == 0, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// burst submits n jobs that do nothing at the small site: through gridnode, and with Slurm's own
// means to use two clusters.
func burst(ctx context.Context, program string, n, pilots int, say func(string, ...any)) error {
	s, err := newSpeed(ctx, program)
	if err != nil {
		return err
	}
	defer s.close()
	own := func(c *slurm.Cluster, args ...string) func() *exec.Cmd {
		return func() *exec.Cmd { return c.Command(ctx, "sbatch", append([]string{"-o", "/dev/null"}, args...)...) }
	}
	through := func() *exec.Cmd {
		cmd := exec.CommandContext(ctx, filepath.Join(s.commands(), "sbatch"), "-o", "/dev/null", "-t", "1")
		cmd.Env, cmd.Dir = s.small.env, s.small.home
		return cmd
	}
	gridnode := func(suffix string) error {
		if err := s.array(ctx, "gridnode"+suffix, n); err != nil {
			return err
		}
		return s.commanded(ctx, "gridnode-sbatch"+suffix, n, through)
	}
	if err := gridnode(""); err != nil {
		return err
	}
	if err := s.keepPilots(ctx, pilots); err != nil {
		return err
	}
	if err := gridnode("-pilots"); err != nil {
		return err
	}
	if err := s.endSites(ctx); err != nil {
		return err
	}
	if err := s.commanded(ctx, "slurm-large-alone", n, own(s.at.large)); err != nil {
		return err
	}
	if err := s.commanded(ctx, "slurm-M", n, own(s.at.small, "-M", "small,large")); err != nil {
		return err
	}
	if err := slurm.Federate(ctx, "both", s.at.small, s.at.large); err != nil {
		say("no federation of Slurm's own: %v", err)
		return nil
	}
	return s.commanded(ctx, "slurm-federation", n, own(s.at.small))
}

// array submits the jobs as one array.
func (s *speed) array(ctx context.Context, name string, n int) error {
	indices := make([]int64, n)
	for i := range indices {
		indices[i] = int64(i)
	}
	begun := time.Now()
	reply, err := s.small.client.SubmitAndWait(ctx, []api.JobSpec{{Args: []string{"true"}, Array: indices, Policy: "fastest", Time: api.Seconds(60_000_000)}}, func([]string) {})
	if err != nil {
		return err
	}
	took := time.Since(begun)
	done, there := 0, 0
	for i := range reply.Jobs {
		if reply.Jobs[i].State == "done" {
			done++
		}
		if reply.Jobs[i].SiteName == "large" {
			there++
		}
	}
	result(name, n, took, done, there)
	return nil
}

func result(name string, n int, took time.Duration, done, there int) {
	fmt.Printf("BenchmarkBurst/%s 1 %d jobs %.1f jobs/s %d done %d at-the-larger\n", name, n, float64(n)/took.Seconds(), done, there)
}

// commanded submits the jobs with a command each, some at a time, and waits until all have run.
func (s *speed) commanded(ctx context.Context, name string, n int, command func() *exec.Cmd) error {
	s.runs++
	ran := filepath.Join(s.dir, fmt.Sprint("ran", s.runs))
	if err := s.written(ran); err != nil {
		return err
	}
	var wg sync.WaitGroup
	todo := make(chan struct{}, n)
	for range n {
		todo <- struct{}{}
	}
	close(todo)
	begun := time.Now()
	var mu sync.Mutex
	var failed error
	for range submitters {
		wg.Go(func() {
			for range todo {
				cmd := command()
				cmd.Args = append(cmd.Args, "--wrap", "echo $SLURM_CLUSTER_NAME >>"+ran)
				if out, err := cmd.CombinedOutput(); err != nil {
					mu.Lock()
					failed = fmt.Errorf("%v: %w: %s", cmd.Args, err, out)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if failed != nil {
		return failed
	}
	var text []byte
	err := realsite.Until(ctx, untilPause, func() (done bool, err error) {
		text, err = os.ReadFile(ran)
		return bytes.Count(text, []byte{'\n'}) >= n, err
	})
	if err != nil {
		return fmt.Errorf("%s: %d of %d jobs have run: %w", name, bytes.Count(text, []byte{'\n'}), n, err)
	}
	result(name, n, time.Since(begun), bytes.Count(text, []byte{'\n'}), bytes.Count(text, []byte("large\n")))
	return nil
}

// latency takes the time of single jobs that do nothing, one after the other.
func latency(ctx context.Context, program string, n, pilots int) error {
	s, err := newSpeed(ctx, program)
	if err != nil {
		return err
	}
	defer s.close()
	through := func(int) error {
		reply, err := s.large.client.SubmitAndWait(ctx, []api.JobSpec{{Args: []string{"true"}, Policy: "local", Time: api.Seconds(60_000_000)}}, func([]string) {})
		if err == nil && reply.Jobs[0].State != "done" {
			err = fmt.Errorf("a job is %s: %s", reply.Jobs[0].State, reply.Jobs[0].Reason)
		}
		return err
	}
	alone := func(i int) error {
		ran := filepath.Join(s.dir, fmt.Sprint("latency", i))
		if err := s.at.large.Command(ctx, "sbatch", "-o", "/dev/null", "--wrap", "echo >"+ran).Run(); err != nil {
			return err
		}
		for {
			if _, err := os.Stat(ran); err == nil || ctx.Err() != nil {
				return ctx.Err()
			}
			pause(ctx, time.Millisecond)
		}
	}
	// By turns, as the machine is not always as fast, nor is Slurm.
	if err := turns(ctx, n, way{"gridnode", through}, way{"sbatch", alone}, way{"srun", func(int) error { return s.at.large.Command(ctx, "srun", "true").Run() }}); err != nil {
		return err
	}
	if err := s.keepPilots(ctx, pilots); err != nil {
		return err
	}
	return turns(ctx, n, way{"gridnode-pilots", through})
}

// way is one of those to run a job.
type way struct {
	name string
	run  func(i int) error
}

// turns runs n jobs each way, in turn, and prints how long they took.
func turns(ctx context.Context, n int, ways ...way) error {
	took := make([][]time.Duration, len(ways))
	for i := range n {
		for w := range ways {
			begun := time.Now()
			if err := ways[w].run(i); err != nil {
				return fmt.Errorf("%s: %w", ways[w].name, err)
			}
			took[w] = append(took[w], time.Since(begun))
			pause(ctx, time.Duration((0.1+rand.Float64())*float64(time.Second))) // Slurm begins jobs once a second, too: no way is to keep step with that
		}
	}
	for w, t := range took {
		slices.Sort(t)
		fmt.Printf("BenchmarkLatency/%s 1 %d jobs %d ms-best %d ms-median %d ms-worst\n", ways[w].name, n, t[0].Milliseconds(), t[n/2].Milliseconds(), t[n-1].Milliseconds())
	}
	return nil
}

// poll has n jobs wait in a cluster's queue and takes the controller's processor time without
// a site and with one that has a job there.
func poll(ctx context.Context, program string, n int, span time.Duration, say func(string, ...any)) error {
	w, err := newWorld(program)
	if err != nil {
		return err
	}
	defer w.close()
	c, err := w.cluster(ctx, slurm.Config{Name: "poll", Processors: 4, Extra: "MaxJobCount=100000"})
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	for i := range submitters {
		wg.Go(func() {
			for k := i; k < n; k += submitters {
				_ = c.Command(ctx, "sbatch", "--hold", "-o", "/dev/null", "--wrap", "true").Run() // those that are there are counted
			}
		})
	}
	wg.Wait()
	out, err := c.Command(ctx, "squeue", "-h", "-o", "%i").Output()
	if err != nil {
		return err
	}
	queued := bytes.Count(out, []byte{'\n'})
	say("%d jobs wait", queued)
	pause(ctx, 10*time.Second) // until the controller has saved them
	without, err := used(ctx, c, span)
	if err != nil {
		return err
	}
	s, err := w.site(ctx, "site", c)
	if err != nil {
		return err
	}
	if _, err := s.client.Submit(ctx, []api.JobSpec{{Args: []string{"sleep", "1000"}, Policy: "local", Time: api.Seconds(3600_000_000)}}); err != nil {
		return err
	}
	pause(ctx, 10*time.Second)
	with, err := used(ctx, c, span)
	if err != nil {
		return err
	}
	fmt.Printf("BenchmarkPoll/%d-queued 1 %d queued %.2f %%-without-a-site %.2f %%-with %.2f %%-of-a-core\n", n, queued, without, with, with-without)
	return nil
}

// used returns how many percent of a core a controller takes.
func used(ctx context.Context, c *slurm.Cluster, span time.Duration) (percent float64, err error) {
	before, err := c.ControllerTime()
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	pause(ctx, span)
	after, err := c.ControllerTime()
	return 100 * (after - before).Seconds() / time.Since(begun).Seconds(), err
}
