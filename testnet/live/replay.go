package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"gridnode/grid"
	"gridnode/node"
	"gridnode/node/site"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
)

// submitsMax bounds the submissions that wait for their acknowledgement: behind it
// the replay falls back, as users would.
const submitsMax = 256

// Replay submits the jobs of the workload at their times, waits until every one is
// over, and returns what came of them. It can be called once. Cancelling ctx ends
// it with ctx's error; the nodes go on until Close.
func (l *Live) Replay(ctx context.Context) (*measure.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	total := l.total()
	before, err := l.count(ctx)
	if err != nil {
		return nil, err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil) // before the wait
	for i, h := range l.hosts {
		events := h.Subscribe()
		defer events.Close()
		wg.Go(func() {
			if err := l.tally.follow(ctx, i, events); err != nil {
				cancel(fmt.Errorf("site %s: %w", l.work.Sites[i].Name, err))
			}
		})
	}
	p := scenario.NewProgress(l.cfg.Progress, "up", total, l.tally.over)
	defer p.Stop()
	begun := time.Now()
	l.setup = begun.Sub(l.begun)
	l.tally.begin(begun)
	err = l.feed(ctx, begun, total)
	for err == nil && !l.tally.done(total) {
		select {
		case <-l.tally.changed:
			p.Pulse()
			l.step(stageReplay, l.tally.over(), total)
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := l.quiesce(ctx); err != nil {
		return nil, err
	}
	if l.counted, err = l.count(ctx); err != nil {
		return nil, err
	}
	l.counted.Minus(before)
	l.counted.Span = grid.FromDuration(time.Since(begun))
	result, err := l.result(begun)
	if err == nil && l.cfg.Out != "" {
		err = result.Save(l.cfg.Out)
	}
	return result, err
}

// total returns how many jobs are replayed.
func (l *Live) total() int64 {
	if l.cfg.Count > 0 {
		return min(l.work.Jobs, l.cfg.Count)
	}
	return l.work.Jobs
}

// feed submits jobs until total are submitted or ctx ends.
func (l *Live) feed(ctx context.Context, begun time.Time, total int64) error {
	source := l.jobs()
	places := make(chan struct{}, submitsMax)
	failed := make(chan error, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		job, site, err := source.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		at := begun.Add(job.Submit.Duration())
		timer := time.NewTimer(time.Until(at))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case err := <-failed:
			return err
		}
		places <- struct{}{}
		l.late = max(l.late, time.Since(at))
		l.step(stageReplay, l.tally.over(), total)
		wg.Go(func() {
			defer func() { <-places }()
			if err := submit(ctx, l.hosts[site], job); err != nil {
				select {
				case failed <- fmt.Errorf("submit job %s at %s: %w", job.ID, l.work.Sites[site].Name, err):
				default:
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// submit hands a job over at this moment. A busy node is asked again.
func submit(ctx context.Context, h *node.Host, j *grid.Job) error {
	for {
		j.Submit = h.Now()
		job := *j
		job.Deadline = j.Submit.Add(j.Deadline) // saturates at grid.Never
		answer, err := h.Ask(ctx, func(token uint64) grid.Input { return &site.Submit{Token: token, Job: &job} })
		if err == nil {
			return answer.(*site.Submitted).Err
		}
		if !errors.Is(err, node.ErrBusy) {
			return err
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// quiesce waits until no message about a job is under way, so that all are counted.
func (l *Live) quiesce(ctx context.Context) error {
	last := int64(-1)
	for {
		var sent int64
		for _, h := range l.hosts {
			c := h.Counter()
			sent += paperCount(&c)
		}
		if sent == last {
			return nil
		}
		last = sent
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
