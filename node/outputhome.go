package node

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"gridnode/grid"
	"gridnode/internal/atomicfile"
	"gridnode/node/mailbox"
	"gridnode/node/notify"
	"gridnode/node/run"
	"gridnode/node/site"
)

// What a job has written goes into the files that its owner named (grid.Command.Output) when
// it is over, wherever it ran, unless it is there already (see streams). If its site cannot be reached it is tried again.
const (
	depositMax   = 4                // jobs at the same time
	depositAgain = 2 * time.Second  // pause after a failure, doubled up to
	depositPause = 5 * time.Minute  // this
	depositLate  = time.Hour        // after a restart: for jobs that ended since, and have no file
	depositWait  = 30 * time.Second // that who waits for a job's end waits for its files, at most
)

// deposits are the jobs whose output is to be put into files.
type deposits struct {
	h    *Host
	jobs *mailbox.Box[deposit]

	mu   sync.Mutex
	open map[grid.JobID]chan struct{} // of jobs that are over: closed when this was tried once

	appends sync.Mutex // one output is appended at a time: where it begins is noted before
}

type deposit struct {
	job   *grid.Job
	since time.Time
	pause time.Duration
	late  bool // only what is not there
}

// note adds the jobs among events that are over. It is called on the loop.
func (d *deposits) note(events []grid.Event) {
	for i := range events {
		e := &events[i]
		over := e.Kind == grid.JobFinished || e.Kind == grid.JobCancelled
		if over && e.Job.Home == d.h.id && wanted(e.Job) && e.Result.Start < e.Result.End {
			d.owe(e.Job.ID)
			d.jobs.Put(deposit{job: e.Job, since: time.Now()})
		}
	}
}

// owe has those wait who ask for the output of a job, until it was tried.
func (d *deposits) owe(job grid.JobID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[job] == nil {
		d.open[job] = make(chan struct{})
	}
}

// tried tells those who wait that the output of a job is where it is wanted, or could not be
// put there for now.
func (d *deposits) tried(job grid.JobID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if open := d.open[job]; open != nil {
		close(open)
		delete(d.open, job)
	}
}

// AwaitOutputs returns once what jobs have written that are over is in the files that their
// owner named, or could not be put there at once, as their site is away: then it is tried
// again. It waits for half a minute at most, and ends early with ctx.
func AwaitOutputs(ctx context.Context, h *Host, jobs []grid.JobID) {
	ctx, cancel := context.WithTimeout(ctx, depositWait)
	defer cancel()
	d := h.deposit
	for _, job := range jobs {
		d.mu.Lock()
		open := d.open[job]
		d.mu.Unlock()
		if open == nil {
			continue
		}
		select {
		case <-open:
		case <-ctx.Done():
			return
		case <-h.ctx.Done():
			return
		}
	}
}

// wanted reports whether a job's output is to be put into a file.
func wanted(j *grid.Job) bool { return j.Command != nil && j.Command.Output != "" }

// recover adds the jobs that ended while the host was away.
func (d *deposits) recover() {
	oldest := grid.Time(time.Now().Add(-depositLate).UnixMicro())
	var begun []deposit // that were appended when the host ended
	_ = d.h.Do(d.h.ctx, func(s *site.Site) {
		for v := range s.Jobs {
			if !v.Foreign && v.State.Terminal() && wanted(v.Job) && v.End > oldest && v.Start < v.End {
				one := deposit{job: v.Job, since: time.Now(), late: !d.h.streams.begun(v.Job.ID)}
				d.owe(v.Job.ID)
				if len(d.h.streams.readAppended(v.Job.ID)) > 0 {
					begun = append(begun, one)
				} else {
					d.jobs.Put(one)
				}
			}
		}
	})
	for _, one := range begun { // before others append to the same files
		d.try(one)
	}
}

// run puts outputs into files until the host stops.
func (d *deposits) run() {
	d.recover()
	d.h.streams.recover()
	d.jobs.Work(d.h.ctx, depositMax, d.try)
}

// try puts the output of one job into its files, and has it tried again if that fails in
// a way that may pass.
func (d *deposits) try(one deposit) {
	defer d.tried(one.job.ID)
	v, err := d.h.view(d.h.ctx, one.job.ID)
	if err == nil && !d.h.streams.end(one.job.ID, v.Epoch) {
		err = d.put(&one, &v)
	}
	switch {
	case d.h.ctx.Err() != nil:
		return
	case err == nil:
		d.h.streams.settled(one.job.ID)
	case stays(err), time.Since(one.since) > fetchGiveUp:
		d.h.log.Warn("the output of a job cannot be put where its owner wants it", "job", one.job.ID, "error", err)
		d.h.streams.settled(one.job.ID)
	default:
		one.pause = min(max(2*one.pause, depositAgain), depositPause)
		time.AfterFunc(one.pause, func() { d.jobs.Put(one) })
	}
}

// stays reports whether an output can be put where it is wanted no better at another try.
func stays(err error) bool {
	var path *os.PathError
	switch {
	case atomicfile.NoDescriptors(err):
		return false
	case errors.As(err, &path):
		return true
	}
	return errors.Is(err, run.ErrOutputGone) || errors.Is(err, run.ErrOutputShort) || errors.Is(err, run.ErrOutputChanged) || errors.Is(err, site.ErrUnknownJob)
}

func (d *deposits) put(one *deposit, v *site.View) error {
	c := one.job.Command
	if !c.Append {
		if err := d.h.streams.noteBegun(one.job.ID); err != nil {
			return err
		}
	}
	var where string
	if err := d.h.Do(d.h.ctx, func(s *site.Site) { where = s.SiteName(v.Site) }); err != nil {
		return err
	}
	for _, f := range []struct {
		pattern string
		stream  run.Stream
	}{{c.Output, run.Stdout}, {c.Error, run.Stderr}} {
		if f.pattern == "" {
			continue
		}
		path := run.OutputPath(f.pattern, one.job, where)
		if _, err := os.Stat(path); one.late && err == nil {
			continue
		}
		put := func() error {
			return d.h.copyOutput(d.h.ctx, one.job.ID, f.stream, path, f.stream == run.Stderr && c.Error == c.Output)
		}
		if c.Append {
			put = func() error { return d.append(one.job.ID, f.stream, path) }
		}
		if err := put(); err != nil {
			return err
		}
	}
	return nil
}

// append appends what a job has written to a file, if it is not there. Of what an earlier host had begun
// with it appends the rest, unless others have appended to that file meanwhile.
func (d *deposits) append(job grid.JobID, stream run.Stream, path string) error {
	if path == os.DevNull {
		return nil
	}
	d.appends.Lock()
	defer d.appends.Unlock()
	noted := d.h.streams.readAppended(job)
	from, begun := noted[stream.String()]
	if begun && from == appendedAll {
		return nil
	}
	var there int64 // bytes of it
	switch size, err := d.sizeFor(job, path); {
	case err != nil:
		return err
	case begun:
		if there, err = d.overlap(job, stream, path, from, size); err != nil {
			return err
		}
	default:
		noted[stream.String()] = size
		if err := d.h.streams.noteAppended(job, noted); err != nil {
			return err
		}
	}
	source, err := d.h.Output(d.h.ctx, job, stream, false)
	if err != nil {
		return err
	}
	defer source.Close()
	if _, err := io.CopyN(io.Discard, source, there); err != nil && err != io.EOF {
		return err
	}
	if err := copyFrom(d.h, job, source, path, os.O_APPEND); err != nil {
		return err
	}
	noted[stream.String()] = appendedAll
	return d.h.streams.noteAppended(job, noted)
}

// sizeFor returns how long a file is; 0 if there is none, or it is none that has a length.
func (d *deposits) sizeFor(job grid.JobID, path string) (int64, error) {
	file, err := d.h.openFor(job, path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) { // who may write it, perhaps
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0, err
	}
	return info.Size(), nil
}

// overlap returns how many of the first bytes of an output a file ends with that had another length
// before they were appended: none if something else stands there.
func (d *deposits) overlap(job grid.JobID, stream run.Stream, path string, from, to int64) (int64, error) {
	if to <= from {
		return 0, nil
	}
	source, err := d.h.Output(d.h.ctx, job, stream, false)
	if err != nil {
		return 0, err
	}
	defer source.Close()
	file, err := d.h.openFor(job, path, os.O_RDONLY)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	written, there := bufio.NewReader(source), bufio.NewReader(io.NewSectionReader(file, from, to-from))
	for n := int64(0); ; n++ {
		have, err := there.ReadByte()
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
		switch want, err := written.ReadByte(); {
		case err == io.EOF:
			return n, nil // all of it, and then what others have appended
		case err != nil:
			return 0, err
		case have != want:
			return 0, nil
		}
	}
}

// notifyConfig is what commands at the end of jobs need of a host.
func notifyConfig(h *Host) notify.Config {
	return notify.Config{
		Self: h.id, Files: h.files, Log: h.log,
		Account: func(job *grid.Job) (*run.Account, error) { return h.cfg.Accounts.Of(h.id, job) },
		View:    h.view,
		Over: func(ctx context.Context) (jobs []grid.JobID) {
			_ = h.Do(ctx, func(s *site.Site) { // none if the host stops: then none is run either
				for v := range s.Jobs {
					if !v.Foreign && v.State.Terminal() && notify.Wanted(v.Job) {
						jobs = append(jobs, v.Job.ID)
					}
				}
			})
			return jobs
		},
		Name: func(ctx context.Context, id grid.SiteID) string {
			name := string(id)
			_ = h.Do(ctx, func(s *site.Site) { name = s.SiteName(id) }) // else it goes by its ID
			return name
		},
		Home: func(ctx context.Context, job grid.JobID) {
			_, _, _ = h.JobFiles(ctx, job, true) // whatever has become of them: the job is over
		},
	}
}

// openFor opens a file where the owner of a job wants its output, as that owner may. It does not
// wait for somebody to read a pipe.
func (h *Host) openFor(job grid.JobID, path string, how int) (file *os.File, err error) {
	how |= syscall.O_NONBLOCK
	v, err := h.view(h.ctx, job)
	if err != nil {
		return nil, err
	}
	account, err := h.cfg.Accounts.Of(h.id, v.Job)
	switch {
	case err != nil:
		return nil, err
	case account == nil:
		return os.OpenFile(path, how, 0o644)
	}
	failed := account.Do(func() { file, err = os.OpenFile(path, how, 0o644) })
	if failed != nil {
		return nil, failed
	}
	return file, err
}

// copyOutput copies what a job has written into a file.
func (h *Host) copyOutput(ctx context.Context, job grid.JobID, stream run.Stream, path string, extend bool) error {
	if path == os.DevNull {
		return nil
	}
	source, err := h.Output(ctx, job, stream, false)
	if err != nil {
		return err
	}
	defer source.Close()
	how := os.O_TRUNC
	if extend {
		how = os.O_APPEND
	}
	return copyFrom(h, job, source, path, how)
}

// copyFrom does so with what is left of it.
func copyFrom(h *Host, job grid.JobID, source io.Reader, path string, how int) error {
	file, err := h.openFor(job, path, os.O_WRONLY|os.O_CREATE|how)
	if err != nil {
		return err
	}
	n, err := io.Copy(file, source)
	return errors.Join(err, closeWritten(file, n))
}
