package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"gridnode/node/api"
	"gridnode/test/realsite"
	"gridnode/test/slurm"
)

// victim is what is killed, and when.
type victim struct {
	name               string
	daemon, controller bool
	saved              bool // not before the controller has written what it knows: it does so every five seconds
}

var victims = []victim{
	{"daemon", true, false, false},
	{"controller", false, true, true},
	{"both", true, true, true},
	{"controller-at-once", false, true, false},
	{"both-at-once", true, true, false},
}

// tally is what came of the kills of one victim.
type tally struct {
	kills, jobs int
	lost        int           // jobs that did not end as they would have
	twice       int           // jobs that ran to their end more than once, or twice at a time
	again       int           // begun once more, as Slurm had ended them
	differ      int           // jobs of which home says something else than they did
	sacct       int           // jobs of which Slurm's accounting says something else than home
	resumed     int           // times that Slurm took a node out of service for itself
	gap         time.Duration // longest between two jobs that the other site ran
}

// ordeal is a cluster's site and another one, while things are killed.
type ordeal struct {
	w              *world
	plain, site    *site
	cluster        *slurm.Cluster
	ran            string // a line for each job that begins, one for each that ends
	random         *rand.Rand
	mu             sync.Mutex
	last           time.Time // when the other site's latest job was over
	gap            time.Duration
	patience, down time.Duration
}

// killing says what is killed.
type killing struct {
	program, only string
	keep          bool
	n             int // kills of each victim
	abreast       int // clusters that share them
	seed          uint64
}

// kills kills each victim n times with jobs running and queued.
func kills(ctx context.Context, k *killing, say func(string, ...any)) error {
	ordeals := make([]*ordeal, min(k.abreast, k.n))
	var ends []func()
	defer func() {
		for _, end := range slices.Backward(ends) {
			end()
		}
	}()
	for i := range ordeals {
		w, err := newWorld(k.program)
		if err != nil {
			return err
		}
		w.keep = k.keep
		ends = append(ends, w.close)
		seed := k.seed + uint64(i)
		o := &ordeal{w: w, ran: filepath.Join(w.dir, "ran"), random: rand.New(rand.NewPCG(seed, seed)), patience: 3 * time.Minute, down: 1500 * time.Millisecond}
		if err := o.fill(ctx, i, ordeals[0]); err != nil {
			return err
		}
		ends = append(ends, o.beat(ctx))
		ordeals[i] = o
	}
	for _, v := range victims {
		if k.only != "" && !slices.Contains(strings.Split(k.only, ","), v.name) {
			continue
		}
		var mu sync.Mutex
		var all tally
		var errs []error
		var wg sync.WaitGroup
		for i, o := range ordeals {
			wg.Go(func() {
				for number := i; number < k.n && ctx.Err() == nil; number += len(ordeals) {
					t := new(tally)
					err := o.round(ctx, v, t, say)
					mu.Lock()
					all.add(t)
					say("%s %d: %+v", v.name, all.kills, all)
					mu.Unlock()
					if err != nil {
						mu.Lock()
						errs = append(errs, fmt.Errorf("kill %d of %s: %w; see %s", number+1, v.name, err, o.w.dir))
						mu.Unlock()
						return
					}
				}
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		fmt.Printf("BenchmarkKills/%s 1 %d kills %d jobs %d lost %d twice %d again %d differ %d sacct-differs %d resumed %.2f s-gap\n",
			v.name, all.kills, all.jobs, all.lost, all.twice, all.again, all.differ, all.sacct, all.resumed, all.gap.Seconds())
	}
	return nil
}

// add adds what came of other kills.
func (t *tally) add(o *tally) {
	t.kills, t.jobs, t.lost, t.twice, t.again = t.kills+o.kills, t.jobs+o.jobs, t.lost+o.lost, t.twice+o.twice, t.again+o.again
	t.differ, t.sacct, t.resumed, t.gap = t.differ+o.differ, t.sacct+o.sacct, t.resumed+o.resumed, max(t.gap, o.gap)
}

// fill starts the cluster, its site and the other one. The first one keeps accounts for all.
func (o *ordeal) fill(ctx context.Context, number int, first *ordeal) (err error) {
	cfg := slurm.Config{Name: fmt.Sprint("kills", number), Processors: 4, Accounting: first == nil}
	if first != nil {
		cfg.Accounts = first.cluster
	}
	if o.cluster, err = o.w.cluster(ctx, cfg); err != nil {
		return err
	}
	if o.plain, err = o.w.site(ctx, "plain", nil, "--processors", "2"); err != nil {
		return err
	}
	if o.site, err = o.w.site(ctx, "cluster", o.cluster); err != nil {
		return err
	}
	if err := o.w.written(o.ran); err != nil {
		return err
	}
	return o.plain.sees(ctx, 2)
}

// beat has the other site run one small job after the other, and returns what ends that.
func (o *ordeal) beat(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	o.last = time.Now()
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			reply, err := o.plain.client.SubmitAndWait(ctx, []api.JobSpec{{Args: []string{"true"}, Policy: "local"}}, func([]string) {})
			if err == nil && len(reply.Jobs) == 1 && reply.Jobs[0].State == "done" {
				o.mu.Lock()
				o.gap, o.last = max(o.gap, time.Since(o.last)), time.Now()
				o.mu.Unlock()
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return func() { cancel(); <-done }
}

// sent is a job of a round.
type sent struct {
	from *site
	id   string
	code int32
}

// round submits jobs, half of them at each site and more than the cluster has processors,
// kills the victim while some of them run, and looks what became of all.
func (o *ordeal) round(ctx context.Context, v victim, t *tally, say func(string, ...any)) error {
	ctx, cancel := context.WithTimeout(ctx, o.patience)
	defer cancel()
	o.mu.Lock()
	o.gap, o.last = 0, time.Now()
	o.mu.Unlock()
	var jobs []sent
	gate := filepath.Join(o.w.dir, "gate")
	for i := range 10 {
		from := o.plain
		if i%2 == 0 {
			from = o.site
		}
		code := int32(i % 4)
		span := fmt.Sprintf("sleep %.1f", 1+3*o.random.Float64())
		if v.saved && i < o.cluster.Processors { // nothing ends that the controller could not save any more
			span = fmt.Sprintf("while [ ! -e %s ]; do sleep 0.2; done; %s", gate, span)
		}
		script := fmt.Sprintf("echo begin $GRIDNODE_JOB_ID >>%[1]s; %[2]s; echo end $GRIDNODE_JOB_ID >>%[1]s; exit %[3]d", o.ran, span, code)
		reply, err := from.client.Submit(ctx, []api.JobSpec{{Args: []string{"sh", "-c", script}, Site: "cluster", Time: api.Seconds(600_000_000)}})
		if err != nil {
			return err
		}
		jobs = append(jobs, sent{from, reply.Jobs[0].ID, code})
	}
	running, wanted, wait := jobs, 2, time.Duration(o.random.Float64()*float64(4*time.Second))
	if v.saved { // no other runs then, nor ends: one of the other site may come later than one that was submitted after it
		running, wanted, wait = jobs[:o.cluster.Processors], o.cluster.Processors, wait/4
	}
	if err := realsite.Until(ctx, untilPause, func() (bool, error) { return o.begun(running) >= wanted, nil }); err != nil {
		return fmt.Errorf("no job begins: %w", err)
	}
	if v.saved {
		out, err := o.cluster.Command(ctx, "squeue", "-h", "-o", "%i").Output()
		if err != nil {
			return err
		}
		if ids := strings.Fields(string(out)); len(ids) > 0 {
			err = o.cluster.Save(ctx, ids[0])
		}
		if err != nil {
			return err
		}
	}
	pause(ctx, wait)
	if err := o.strike(ctx, v); err != nil {
		return err
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		return err
	}
	defer os.Remove(gate)
	t.kills++
	t.jobs += len(jobs)
	defer o.resume(ctx, t)()
	for _, j := range jobs {
		o.judge(ctx, j, t, say)
	}
	o.mu.Lock()
	t.gap = max(t.gap, o.gap, time.Since(o.last))
	o.mu.Unlock()
	return ctx.Err()
}

// resume puts nodes back into service, as whoever runs the cluster would, until it is stopped.
func (o *ordeal) resume(ctx context.Context, t *tally) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			pause(ctx, 5*time.Second)
			out, _ := o.cluster.Command(ctx, "sinfo", "-h", "-o", "%T").Output()
			if strings.Contains(string(out), "drain") && o.cluster.Command(ctx, "scontrol", "update", "nodename=ALL", "state=resume").Run() == nil {
				t.resumed++
			}
		}
	}()
	return func() { cancel(); <-done }
}

// strike kills and starts again.
func (o *ordeal) strike(ctx context.Context, v victim) error {
	if v.daemon {
		o.site.kill()
	}
	if v.controller {
		o.cluster.StopController(true)
	}
	pause(ctx, o.down)
	again := []func() error{o.site.start, func() error { return o.cluster.StartController(ctx) }}
	switch {
	case !v.controller:
		again = again[:1]
	case !v.daemon:
		again = again[1:]
	case o.random.IntN(2) == 0:
		slices.Reverse(again)
	}
	var errs []error
	for _, start := range again {
		errs = append(errs, start())
	}
	return errors.Join(errs...)
}

// begun returns how many of the jobs have begun.
func (o *ordeal) begun(jobs []sent) (n int) {
	text, _ := os.ReadFile(o.ran)
	for _, j := range jobs {
		if strings.Contains(string(text), "begin "+j.id) {
			n++
		}
	}
	return n
}

// judge waits for a job and compares what its home, its own traces and Slurm say of it.
func (o *ordeal) judge(ctx context.Context, j sent, t *tally, say func(string, ...any)) {
	reply, err := j.from.client.Wait(ctx, api.IDsRequest{IDs: []string{j.id}, Timeout: api.Seconds(o.patience.Microseconds())})
	if err != nil || len(reply.Jobs) != 1 || reply.TimedOut {
		say("job %s: lost: %v", j.id, err)
		t.lost++
		return
	}
	said := &reply.Jobs[0]
	text, _ := os.ReadFile(o.ran)
	begins, ends := strings.Count(string(text), "begin "+j.id), strings.Count(string(text), "end "+j.id)
	home := int32(-1)
	if said.ExitCode != nil {
		home = *said.ExitCode
	}
	switch {
	case ends == 0:
		say("job %s: lost: %s, %d, %s; began %d times", j.id, said.State, home, said.Reason, begins)
		t.lost++
	case home != j.code:
		say("job %s: ended with %d, home says %s, %d, %s", j.id, j.code, said.State, home, said.Reason)
		t.differ++
	}
	if ends > 1 {
		say("job %s: began %d times, ended %d times", j.id, begins, ends)
		t.twice++
	}
	t.again += max(begins-max(ends, 1), 0)
	if records, err := o.records(ctx, j); err != nil {
		say("job %s: ended with %d; sacct says %q, %v", j.id, j.code, records, err)
		t.sacct++
	}
}

// records returns what accounting says of a job, once it says that it ended as it did.
func (o *ordeal) records(ctx context.Context, j sent) (records []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	want := fmt.Sprintf("|%d:0", j.code)
	state := "COMPLETED"
	if j.code != 0 {
		state = "FAILED"
	}
	err = realsite.Until(ctx, untilPause, func() (bool, error) {
		out, err := o.cluster.Command(ctx, "sacct", "-X", "-D", "-n", "-P", "-o", "JobName%80,State,ExitCode,JobID").Output()
		if err != nil {
			return false, err
		}
		records = nil
		ran := 0
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "gridnode-"+j.id+".") {
				records = append(records, strings.TrimSpace(line))
				if strings.Contains(line, "|"+state+want) {
					ran++
				}
			}
		}
		if ran != 1 {
			return false, fmt.Errorf("%d records as home has it", ran)
		}
		return true, nil
	})
	return records, err
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
