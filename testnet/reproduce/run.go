package reproduce

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Run is a part of a study that depends on no other.
type Run struct {
	Name   string // shown with an error
	Weight int64  // how long it takes, roughly, in any unit
	Do     func(ctx context.Context) error
}

// Reproduce repeats a paper's evaluation. Cancelling ctx ends it with ctx's error.
func Reproduce(ctx context.Context, p Paper, o Options) (*Report, error) {
	begun := time.Now()
	if err := o.validate(); err != nil {
		return nil, err
	}
	study, err := p.Plan(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	if err := RunAll(ctx, study.Runs, runtime.GOMAXPROCS(0), o.Progress); err != nil {
		return nil, fmt.Errorf("%s, seed %d: %w", p.Name, o.Seed, err)
	}
	experiments := study.Report()
	return &Report{
		Paper: p.Name, Title: p.Title, Command: commandOf(p, o), Seed: o.Seed,
		Notes: study.Notes, Readings: study.Readings, Inputs: study.Inputs, Experiments: experiments, Score: ScoreOf(experiments),
		Runs: len(study.Runs), WallSeconds: Number(time.Since(begun).Seconds()),
	}, nil
}

// commandOf returns the command that gives the same report.
func commandOf(p Paper, o Options) string {
	command := fmt.Sprintf("gridnode testnet reproduce %s --seed %d --windows %d", p.Name, o.Seed, o.Windows)
	if o.Traces != "" {
		command += " --traces " + o.Traces
	}
	if o.Quick {
		command += " --quick"
	}
	return command
}

// RunAll does the runs, the heaviest first, so many at a time. The first error ends
// it; runs not yet begun are not made.
func RunAll(ctx context.Context, runs []Run, workers int, progress func(done, total int64)) error {
	order := slices.Clone(runs)
	slices.SortStableFunc(order, func(a, b Run) int { return cmp.Compare(b.Weight, a.Weight) })
	var total int64
	for _, r := range order {
		total += r.Weight
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	var lock sync.Mutex // of next, done and progress
	var next int
	var done int64
	take := func() (Run, bool) {
		lock.Lock()
		defer lock.Unlock()
		if next == len(order) || ctx.Err() != nil {
			return Run{}, false
		}
		next++
		return order[next-1], true
	}
	report := func(weight int64) {
		lock.Lock()
		defer lock.Unlock()
		done += weight
		if progress != nil {
			progress(done, total)
		}
	}
	report(0)
	for range min(workers, len(order)) {
		group.Go(func() {
			for r, ok := take(); ok; r, ok = take() {
				if err := r.Do(ctx); err != nil {
					cancel(fmt.Errorf("%s: %w", r.Name, err))
					return
				}
				report(r.Weight)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}
