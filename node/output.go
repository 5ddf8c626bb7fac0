package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"gridnode/internal/grid"
)

// ErrOutputGone is returned by Output for what is kept nowhere any more: the job
// ended too long ago, never ran, or its site lost it.
var ErrOutputGone = errors.New("the job's output is not kept any more")

// ErrNotHome is returned by Output for a job of another site: only its home may
// read what it writes.
var ErrNotHome = errors.New("the job belongs to another site: ask there for its output")

// outputPoll is how often a file that is being followed is read again.
const outputPoll = 50 * time.Millisecond

// Output returns what a job of this site has written so far to a stream, wherever it
// runs or ran. With follow it goes on until the job is over, and waits for it to
// start. A job that has not started has written nothing. Reading fails with ctx, and
// with an error that names the site when it cannot be reached. The errors here are
// ErrUnknownJob, ErrNotHome, ErrOutputGone and ErrStopped.
func (h *Host) Output(ctx context.Context, job grid.JobID, stream Stream, follow bool) (io.ReadCloser, error) {
	r := &outputReader{h: h, ctx: ctx, job: job, stream: stream, follow: follow}
	v, err := h.view(ctx, job)
	if err != nil {
		return nil, err
	}
	if h.cfg.Home == "" {
		return nil, fmt.Errorf("%s: %w: this node keeps nothing", job, ErrOutputGone)
	}
	if v.Foreign {
		return nil, fmt.Errorf("%s: %w", job, ErrNotHome)
	}
	if err := r.open(&v); err != nil {
		return nil, err
	}
	return r, nil
}

// view returns what the site knows of a job, or ErrUnknownJob.
func (h *Host) view(ctx context.Context, job grid.JobID) (v View, err error) {
	known := false
	if err := h.Do(ctx, func(s *Site) { v, known = s.Job(job) }); err != nil {
		return v, err
	}
	if !known {
		return v, fmt.Errorf("%s: %w", job, ErrUnknownJob)
	}
	return v, nil
}

// outputReader reads the output of a job's latest execution, and of the next one
// when the job is placed anew while it is followed.
type outputReader struct {
	h      *Host
	ctx    context.Context
	job    grid.JobID
	stream Stream
	follow bool

	source io.ReadCloser // nil while there is nothing to read from
	epoch  uint32        // of source
	last   bool          // source is the last one
}

// open opens the source for an execution, if it has one.
func (r *outputReader) open(v *View) error {
	r.last = v.State.Terminal() || !r.follow
	r.epoch = v.Epoch
	var err error
	switch {
	case v.Site == "" || v.State == Placing || v.State == Queued || v.State.Terminal() && v.Start == v.End:
		r.source = nil // not started, or it never was
	case v.Site == r.h.id:
		task := grid.TaskID{Job: r.job, Epoch: v.Epoch}
		r.source, err = r.h.openLocal(r.ctx, r.h.taskDir(r.h.id, task), task, r.stream, r.follow)
	case v.State.Terminal() && r.h.fetched(r.job):
		r.source, err = openFetched(r.h.outputDirOf(r.job), r.stream)
	default:
		r.source, err = r.h.openRemote(r.ctx, v.Site, grid.TaskID{Job: r.job, Epoch: v.Epoch}, r.stream, r.follow)
	}
	return err
}

func (r *outputReader) Read(b []byte) (int, error) {
	for {
		if r.source != nil {
			n, err := r.source.Read(b)
			if n > 0 || err != io.EOF {
				return n, err
			}
		}
		if r.last {
			return 0, io.EOF
		}
		if err := r.next(); err != nil {
			return 0, err
		}
	}
}

// next waits until the job is over or has another execution with output.
func (r *outputReader) next() error {
	for {
		v, err := r.h.view(r.ctx, r.job)
		switch {
		case err != nil:
			return err
		case v.Epoch != r.epoch || r.source == nil && v.State != Placing && v.State != Queued:
			r.Close()
			return r.open(&v)
		case v.State.Terminal():
			r.last = true
			return nil
		}
		if err := r.h.pause(r.ctx, outputPoll); err != nil {
			return err
		}
	}
}

func (r *outputReader) Close() error {
	if r.source == nil {
		return nil
	}
	err := r.source.Close()
	r.source = nil
	return err
}

// pause waits, or returns why it did not.
func (h *Host) pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-h.stopping:
		return ErrStopped
	}
}

// localOutput reads the file of a task of this site; with follow, until it is over.
type localOutput struct {
	h      *Host
	ctx    context.Context
	file   *os.File
	task   grid.TaskID
	follow bool
}

// openLocal opens an output in a task's directory.
func (h *Host) openLocal(ctx context.Context, dir string, task grid.TaskID, stream Stream, follow bool) (io.ReadCloser, error) {
	file, err := os.Open(filepath.Join(dir, stream.String()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", task.Job, ErrOutputGone)
	}
	if err != nil {
		return nil, fmt.Errorf("output of %s: %w", task.Job, err)
	}
	return &localOutput{h, ctx, file, task, follow}, nil
}

func (o *localOutput) Read(b []byte) (int, error) {
	for {
		over := !o.follow || o.over() // asked first: what was written before the end is read then
		n, err := o.file.Read(b)
		if n > 0 || err != io.EOF || over {
			return n, err
		}
		if err := o.h.pause(o.ctx, outputPoll); err != nil {
			return 0, err
		}
	}
}

// over reports whether the task writes no more.
func (o *localOutput) over() bool {
	v, err := o.h.view(o.ctx, o.task.Job)
	return err != nil || v.Epoch != o.task.Epoch || v.State.Terminal()
}

func (o *localOutput) Close() error { return o.file.Close() }

// fetched reports whether the output of a job is here, or known to be gone.
func (h *Host) fetched(job grid.JobID) bool {
	_, err := os.Stat(h.outputDirOf(job))
	return err == nil
}

// openFetched opens an output that was fetched from the executing site.
func openFetched(dir string, stream Stream) (io.ReadCloser, error) {
	if why, err := os.ReadFile(filepath.Join(dir, goneFile)); err == nil {
		return nil, fmt.Errorf("%w: %s", ErrOutputGone, why)
	}
	file, err := os.Open(filepath.Join(dir, stream.String()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // it was empty
	}
	if err != nil {
		return nil, err
	}
	return file, nil
}
