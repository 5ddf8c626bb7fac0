package reproduce

import (
	"context"
	"fmt"
	"time"

	"gridnode/testnet/sweep"
)

// Run is a part of a study that depends on no other.
type Run struct {
	Name   string // shown with an error
	Weight int64  // how long it takes, roughly, in any unit
	Do     func(ctx context.Context) error
	Result any // as of sweep.Run
}

// Reproduce repeats a paper's evaluation. Cancelling ctx ends it with ctx's error.
func Reproduce(ctx context.Context, p Paper, o Options) (*Report, error) {
	begun := time.Now()
	if err := o.validate(); err != nil {
		return nil, err
	}
	plan := o
	plan.Away = nil // what is run to plan is run here
	study, err := p.Plan(ctx, plan)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	if err := o.RunAll(ctx, study.Runs); err != nil {
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

// RunAll does the runs, the heaviest first, Options.Workers at a time. The first error ends
// it; runs not yet begun are not made.
func (o *Options) RunAll(ctx context.Context, runs []Run) error {
	list := make([]sweep.Run, len(runs))
	for i, r := range runs {
		list[i] = sweep.Run{Name: r.Name, Weight: r.Weight, Result: r.Result, Do: func(ctx context.Context, _ func(int64)) error { return r.Do(ctx) }}
	}
	return sweep.Do(ctx, list, sweep.Options{Workers: o.Workers, Progress: o.Progress, Away: o.Away})
}
