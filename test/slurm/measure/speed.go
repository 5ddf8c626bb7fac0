package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"gridnode/node/api"
	"gridnode/test/slurm"
)

// submitters is how many sbatch run at a time, as when users do.
const submitters = 4

// speed is what burst and latency run on: a cluster of two processors and one of sixteen,
// each with a site, and pilots if that is asked for.
type speed struct {
	*world
	small, large *site
	cluster      *slurm.Cluster // the large one
}

func newSpeed(ctx context.Context, program string, pilots int) (*speed, error) {
	w, err := newWorld(program)
	if err != nil {
		return nil, err
	}
	s := &speed{world: w}
	for _, c := range []struct {
		name       string
		processors int
		into       **site
	}{{"small", 2, &s.small}, {"large", 16, &s.large}} {
		cluster, err := w.cluster(ctx, slurm.Config{Name: c.name, Processors: c.processors})
		if err != nil {
			w.close()
			return nil, err
		}
		s.cluster = cluster
		if pilots > 0 {
			w.env = []string{fmt.Sprintf("GRIDNODE_SLURM_PILOTS=%d", min(pilots, c.processors))}
		}
		if *c.into, err = w.site(ctx, c.name, cluster); err != nil {
			w.close()
			return nil, err
		}
	}
	if err := s.small.sees(ctx, 2); err != nil {
		w.close()
		return nil, err
	}
	return s, nil
}

// burst submits n jobs that do nothing at the small site, and to Slurm alone at the large one.
func burst(ctx context.Context, program string, n, pilots int) error {
	s, err := newSpeed(ctx, program, pilots)
	if err != nil {
		return err
	}
	defer s.close()
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
	fmt.Printf("BenchmarkBurst/gridnode 1 %d jobs %.1f jobs/s %d done %d at-the-larger\n", n, float64(n)/took.Seconds(), done, there)
	ran := filepath.Join(s.dir, "burst")
	begun = time.Now()
	var wg sync.WaitGroup
	todo := make(chan struct{}, n)
	for range n {
		todo <- struct{}{}
	}
	close(todo)
	for range submitters {
		wg.Go(func() {
			for range todo {
				_ = s.cluster.Command(ctx, "sbatch", "-o", "/dev/null", "--wrap", "echo >>"+ran).Run() // what is missing is seen
			}
		})
	}
	wg.Wait()
	err = until(ctx, func() (bool, error) {
		text, err := os.ReadFile(ran)
		return len(text) >= n, err
	})
	if err != nil {
		return fmt.Errorf("not all jobs of Slurm ran: %w", err)
	}
	fmt.Printf("BenchmarkBurst/slurm-alone 1 %d jobs %.1f jobs/s %d done %d at-the-larger\n", n, float64(n)/time.Since(begun).Seconds(), n, n)
	return nil
}

// latency takes the time of single jobs that do nothing, one after the other.
func latency(ctx context.Context, program string, n, pilots int) error {
	s, err := newSpeed(ctx, program, pilots)
	if err != nil {
		return err
	}
	defer s.close()
	for _, way := range []struct {
		name string
		run  func(i int) error
	}{
		{"gridnode", func(int) error {
			reply, err := s.large.client.SubmitAndWait(ctx, []api.JobSpec{{Args: []string{"true"}, Policy: "local", Time: api.Seconds(60_000_000)}}, func([]string) {})
			if err == nil && reply.Jobs[0].State != "done" {
				err = fmt.Errorf("a job is %s: %s", reply.Jobs[0].State, reply.Jobs[0].Reason)
			}
			return err
		}},
		{"sbatch", func(i int) error {
			ran := filepath.Join(s.dir, fmt.Sprint("latency", i))
			if err := s.cluster.Command(ctx, "sbatch", "-o", "/dev/null", "--wrap", "echo >"+ran).Run(); err != nil {
				return err
			}
			for {
				if _, err := os.Stat(ran); err == nil || ctx.Err() != nil {
					return ctx.Err()
				}
				pause(ctx, time.Millisecond)
			}
		}},
		{"srun", func(int) error { return s.cluster.Command(ctx, "srun", "true").Run() }},
	} {
		var took []time.Duration
		for i := range n {
			begun := time.Now()
			if err := way.run(i); err != nil {
				return fmt.Errorf("%s: %w", way.name, err)
			}
			took = append(took, time.Since(begun))
			pause(ctx, 100*time.Millisecond)
		}
		slices.Sort(took)
		fmt.Printf("BenchmarkLatency/%s 1 %d jobs %d ms-median %d ms-worst\n", way.name, n, took[n/2].Milliseconds(), took[n-1].Milliseconds())
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
	queued := 0
	for _, b := range out {
		if b == '\n' {
			queued++
		}
	}
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
