package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"time"

	"gridnode/grid"
	"gridnode/node/kept"
	"gridnode/node/run"
	"gridnode/node/site"
)

// ErrNotHome is returned by Output for a job of another site: only its home may
// read what it writes.
var ErrNotHome = errors.New("the job belongs to another site: ask there for its output")

// outputPoll is how often a file that is being followed is read again.
const outputPoll = 50 * time.Millisecond

// Output returns what a job of this site has written so far to a stream, wherever it
// runs or ran. With follow it goes on until the job is over, and waits for it to
// start. A job that has not started has written nothing. Reading goes on where it was when
// the connection to the site breaks; it fails with ctx, and with an error that names the
// site when it cannot be reached, or not again within remoteAgain. The errors here are
// ErrUnknownJob, ErrNotHome, ErrOutputGone and ErrStopped.
func (h *Host) Output(ctx context.Context, job grid.JobID, stream run.Stream, follow bool) (*OutputReader, error) {
	r := &OutputReader{h: h, ctx: ctx, job: job, stream: stream, follow: follow}
	v, err := h.view(ctx, job)
	if err != nil {
		return nil, err
	}
	if h.cfg.Home == "" {
		return nil, fmt.Errorf("%s: %w: this node keeps nothing", job, run.ErrOutputGone)
	}
	if v.Foreign {
		return nil, fmt.Errorf("%s: %w", job, ErrNotHome)
	}
	if err := r.open(&v); err != nil {
		return nil, err
	}
	return r, nil
}

// OutputCut returns of which outputs of a job this site keeps the first part only. Of one that
// another site runs, that is known here once its output is.
func OutputCut(h *Host, v *site.View) []run.Stream {
	switch {
	case h.cfg.Home == "" || v.Site == "" || v.Result.Silent:
		return nil
	case v.Site == h.id:
		return run.Cut(h.files.Task(v.Job.Home, grid.TaskID{Job: v.Job.ID, Epoch: v.Epoch}))
	}
	return run.Cut(h.files.Fetched(v.Job.ID))
}

// Loss is how an output differs from the one that its job's end speaks of.
type Loss struct {
	Missing int64 // bytes
	Changed bool  // what there is of it is something else
}

// lossOf compares what there is of an output, or its beginning, with what there was. Of what ran at a
// site that said less only the length is known, or nothing.
func lossOf(have, want grid.Kept) Loss {
	if have.Size < want.Size {
		return Loss{Missing: want.Size - have.Size}
	}
	return Loss{Changed: want.Sum != [16]byte{} && have.Sum != want.Sum}
}

// lookMost is of how long an output it is known without reading it for somebody if it is damaged.
const lookMost = 1 << 20

// OutputLosses returns what has become of the outputs of a job that is over. Of one that another site
// ran, that is known once its output is here; and of long ones only how much is missing.
func OutputLosses(h *Host, v *site.View) (losses [2]Loss) {
	for i := range losses {
		losses[i], _ = lossAt(h, v, run.Stream(i+1), lookMost)
	}
	return losses
}

// lossAt returns what has become of an output, of which so much is read at most, and whether it is here.
func lossAt(h *Host, v *site.View, stream run.Stream, most int64) (loss Loss, here bool) {
	if h.cfg.Home == "" || v.Site == "" || !v.State.Terminal() {
		return loss, false
	}
	base := h.files.Task(v.Job.Home, grid.TaskID{Job: v.Job.ID, Epoch: v.Epoch})
	if v.Site != h.id {
		base = h.files.Fetched(v.Job.ID)
	}
	if !run.HasOutput(base) {
		return loss, false // not yet, or not any more, which is said otherwise
	}
	want, path := v.Result.Output[stream-run.Stdout], base+stream.Suffix()
	have := want
	if info, err := os.Lstat(path); err != nil {
		have = grid.Kept{}
	} else if have.Size = min(info.Size(), want.Size); want.Size <= most {
		if have, err = kept.Read(path, want.Size); err != nil {
			return Loss{Changed: true}, true
		}
	}
	if loss = lossOf(have, want); loss.Missing > 0 && kept.At(path) > 0 {
		loss = Loss{} // its home keeps less of it, and says so
	}
	return loss, true
}

// view returns what the site knows of a job, or ErrUnknownJob.
func (h *Host) view(ctx context.Context, job grid.JobID) (v site.View, err error) {
	known := false
	if err := h.Do(ctx, func(s *site.Site) { v, known = s.Glance(job) }); err != nil {
		return v, err
	}
	if !known {
		return v, fmt.Errorf("%s: %w", job, site.ErrUnknownJob)
	}
	return v, nil
}

// OutputReader reads the output of a job's latest execution, and of the next one
// when the job is placed anew while it is followed.
type OutputReader struct {
	h      *Host
	ctx    context.Context
	job    grid.JobID
	stream run.Stream
	follow bool

	source io.ReadCloser // nil while there is nothing to read from
	epoch  uint32        // of source
	offset int64         // bytes handed out of it
	sum    kept.Sum      // of these
	over   bool          // the job was over when source was opened
	last   bool          // source is the last one
}

// Epoch returns of which execution of the job the bytes are that Read has returned last.
func (r *OutputReader) Epoch() uint32 { return r.epoch }

// open opens the source for an execution, if it has one.
func (r *OutputReader) open(v *site.View) (err error) {
	r.last = v.State.Terminal() || !r.follow
	r.epoch, r.offset, r.sum, r.over = v.Epoch, 0, kept.Sum{}, v.State.Terminal()
	task := grid.TaskID{Job: r.job, Epoch: v.Epoch}
	switch {
	case v.Site == "" || v.State == site.Placing || v.State == site.Queued || v.State.Terminal() && (v.Start == v.End || v.Result.Silent):
		// Not started, or it never was, or it has written nothing.
	case v.Site == r.h.id:
		base := r.h.files.Task(r.h.id, task)
		o := r.h.tail(r.ctx, base, task, r.stream, 0, r.follow)
		if v.State.Terminal() && errors.Is(o.Open(), fs.ErrNotExist) && !run.HasOutput(base) { // one that nothing was written to has no file
			return fmt.Errorf("%s: %w", r.job, run.ErrOutputGone)
		}
		r.source = o
	case r.h.files.HasFetched(r.job):
		r.source, err = r.h.files.OpenFetched(r.job, r.stream, 0)
	default:
		r.source, err = r.h.openRemote(r.ctx, v.Site, task, r.stream, r.follow)
		if errors.Is(err, run.ErrOutputGone) {
			err = r.elsewhere(v, err)
		}
	}
	return err
}

// elsewhere is what to do when the executing site does not have an output: it may
// have been fetched a moment ago, or the job has not arrived there yet.
func (r *OutputReader) elsewhere(v *site.View, gone error) (err error) {
	r.Close()
	switch {
	case r.h.files.HasFetched(r.job):
		r.last = true
		r.source, err = r.h.files.OpenFetched(r.job, r.stream, r.offset)
		return err
	case v.State.Terminal() && v.Result.Silent:
		r.last = true
		return nil
	case v.State.Terminal():
		return gone
	}
	return nil
}

func (r *OutputReader) Read(b []byte) (int, error) {
	for {
		if r.source != nil {
			n, err := r.source.Read(b)
			r.offset += int64(n)
			r.sum.Write(b[:n])
			if errors.Is(err, run.ErrOutputGone) {
				var v site.View
				if v, err = r.h.view(r.ctx, r.job); err == nil {
					err = r.elsewhere(&v, run.ErrOutputGone)
				}
				if err != nil {
					return 0, err
				}
				continue
			}
			if n > 0 || err != io.EOF {
				return n, err
			}
		}
		if r.last {
			return 0, r.end()
		}
		if err := r.next(); err != nil {
			return 0, err
		}
	}
}

// end returns io.EOF, or run.ErrOutputShort or run.ErrOutputChanged if what was read is not what the
// job's end speaks of.
func (r *OutputReader) end() error {
	v, err := r.h.view(r.ctx, r.job)
	if err != nil || v.Epoch != r.epoch || !v.State.Terminal() {
		return io.EOF // what was to be read is read
	}
	read, want := r.sum.Kept(), v.Result.Output[r.stream-run.Stdout]
	if read == want {
		return io.EOF
	}
	loss, here := lossAt(r.h, &v, r.stream, math.MaxInt64) // not all was to be read, or it was another while it grew
	if !here && r.over && r.source != nil {
		loss = lossOf(read, want)
	}
	switch {
	case loss.Missing > 0:
		return fmt.Errorf("%s: %w %d bytes of its %s", r.job, run.ErrOutputShort, loss.Missing, r.stream)
	case loss.Changed:
		return fmt.Errorf("%s: %w: its %s is not what the job wrote", r.job, run.ErrOutputChanged, r.stream)
	}
	return io.EOF
}

// next waits until the job is over or may have another execution with output.
func (r *OutputReader) next() error {
	for first := true; ; first = false {
		if !first || r.source == nil {
			if err := r.h.pause(r.ctx, outputPoll); err != nil {
				return err
			}
		}
		v, err := r.h.view(r.ctx, r.job)
		switch {
		case err != nil:
			return err
		case v.Epoch != r.epoch || r.source == nil && v.State != site.Placing && v.State != site.Queued:
			r.Close()
			return r.open(&v)
		case v.State.Terminal() && v.Site != r.h.id && r.h.files.HasFetched(r.job):
			// What was read there may have ended early: it was fetched, and forgotten there.
			r.Close()
			r.last = true
			r.source, err = r.h.files.OpenFetched(r.job, r.stream, r.offset)
			return err
		case v.State.Terminal():
			r.last = true
			return nil
		}
	}
}

func (r *OutputReader) Close() error {
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

// tail reads the file of a task of this site; with follow, until the task is over.
func (h *Host) tail(ctx context.Context, base string, task grid.TaskID, stream run.Stream, offset int64, follow bool) *run.Tail {
	t := &run.Tail{Base: base, Stream: stream, Offset: offset, Bound: h.files.Log, Pause: func() error { return h.pause(ctx, outputPoll) }}
	if follow {
		t.Over = func() bool {
			v, err := h.view(ctx, task.Job)
			return err != nil || v.Epoch != task.Epoch || v.State.Terminal()
		}
	}
	return t
}
