package main

import (
	"context"
	"slices"
	"strings"
	"time"
)

// round gives the sites jobs while strike damages something, time and again within a second and a half,
// and judges what came of it.
func (w *world) round(ctx context.Context, strike func(context.Context) error) (*outcome, error) {
	defer w.close()
	if err := w.start(ctx); err != nil {
		return nil, err
	}
	for w.out.Strikes < w.plan.strikes {
		for range 1 + w.random.IntN(4) {
			if err := w.submit(ctx); err != nil {
				return nil, err
			}
		}
		w.lease(ctx)
		pause(ctx, time.Duration(w.random.Float64()*float64(1500*time.Millisecond)))
		if err := strike(ctx); err != nil {
			return nil, err
		}
		w.out.Strikes++
	}
	if w.mend != nil {
		w.mend()
	}
	if err := w.settle(ctx); err != nil {
		return nil, err
	}
	w.out.Broken = append(w.out.Broken, w.defects()...)
	return w.out, ctx.Err()
}

// kills kills daemons, watchers and jobs, in every combination, at random instants.
func kills(ctx context.Context, p *plan) (*outcome, error) {
	w, err := newWorld(ctx, p, nil)
	if err != nil {
		return nil, err
	}
	return w.round(ctx, w.kill)
}

// kill kills some of the processes of a site: its daemon, its watchers, those of a job.
func (w *world) kill(ctx context.Context) error {
	s := w.sites[w.random.IntN(len(w.sites))]
	all := w.processes(s.name)
	victims := 1 + w.random.IntN(7) // a bit for each: never none
	var jobs, names []string
	for _, p := range all {
		if p.what == "job" && !slices.Contains(jobs, p.job) {
			jobs = append(jobs, p.job)
		}
	}
	doomed := ""
	if len(jobs) > 0 {
		doomed = jobs[w.random.IntN(len(jobs))]
	}
	w.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i, what := range []string{"daemon", "shim", "job"} {
		if victims&(1<<i) == 0 {
			continue
		}
		hit := false
		for _, p := range all {
			if p.what != what || what == "job" && p.job != doomed {
				continue
			}
			if p.kill(); !hit {
				names, hit = append(names, what), true
			}
		}
		switch {
		case hit && what == "daemon":
			<-s.ended
		case hit && what == "shim":
			if err := w.strike(s); err != nil {
				return err
			}
		case hit && what == "job":
			w.struck[doomed] = true
		}
	}
	if len(names) == 0 {
		names = []string{"nothing was there"}
	}
	w.out.note("killed " + strings.Join(names, "+"))
	if w.random.IntN(2) == 0 { // some stay down for a while
		pause(ctx, time.Duration(w.random.Float64()*float64(2*time.Second)))
	}
	return w.again()
}

// strike marks the jobs that ran at a site whose watchers or machine have died.
func (w *world) strike(s *site) error {
	written, err := w.ledger.read()
	for id, tasks := range written {
		for _, entries := range tasks {
			if n := len(entries); n > 0 && entries[n-1].What == "begin" && entries[n-1].Site == s.name {
				w.struck[id] = true
			}
		}
	}
	return err
}
