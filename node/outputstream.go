package node

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"gridnode/grid"
	"gridnode/internal/atomicfile"
	"gridnode/node/run"
	"gridnode/node/site"
)

// What a job writes reaches its owner's files while it runs, wherever that is, unless they are
// appended to: of those nobody would know after a restart what they have already, so it comes when
// the job is over, and before that it is noted where. What was written in this way is written anew
// when the job is over if the stream was broken.
const (
	streamsMax  = 64                     // jobs at the same time; what others write comes when they are over
	streamPoll  = 300 * time.Millisecond // how often a file of this site is read again
	streamPause = 5 * time.Second        // how long at most until another site is asked again for what has not come
	streamLast  = 30 * time.Second       // how long the last of an output may take after the job's end
)

// streamsDir has an empty file for each job whose files may have a part of its output.
const streamsDir = "streams"

// streams are the jobs whose output is put into files as it comes.
type streams struct {
	h    *Host
	mu   sync.Mutex
	jobs map[grid.JobID]*stream
}

// stream is the output of one execution.
type stream struct {
	epoch uint32
	stop  context.CancelFunc
	done  chan struct{} // closed when nothing more is written
	whole bool          // all of it is in the files; to be read when done
}

// note begins with jobs among events that have begun here, or were placed elsewhere. It is
// called on the loop.
func (s *streams) note(events []grid.Event) {
	for i := range events {
		e := &events[i]
		begins := e.Kind == grid.JobStarted && e.Site == s.h.id || e.Kind == grid.JobPlaced && e.Site != s.h.id
		switch job := e.Job; {
		case !begins || job.Home != s.h.id:
		case streamed(job):
			s.begin(job, e.Site, e.Epoch)
		case wanted(job) && job.Command.Append:
			s.h.wg.Go(func() {
				if err := s.noteBegun(job.ID); err != nil {
					s.h.log.Warn("cannot note that the output of a job is to be appended to a file", "job", job.ID, "error", err)
				}
			})
		}
	}
}

// streamed reports whether the output of a job is put into files as it comes.
func streamed(j *grid.Job) bool {
	return wanted(j) && !j.Command.Append && j.Coallocate == nil && !j.Spread
}

// recover goes on with the jobs that run.
func (s *streams) recover() {
	_ = s.h.Do(s.h.ctx, func(core *site.Site) {
		for v := range core.Jobs {
			if !v.Foreign && v.Site != "" && (v.State == site.Running || v.State == site.Awarded) && streamed(v.Job) {
				s.begin(v.Job, v.Site, v.Epoch)
			}
		}
	})
}

func (s *streams) begin(job *grid.Job, at grid.SiteID, epoch uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.jobs[job.ID]; before != nil {
		before.stop()
		delete(s.jobs, job.ID)
	}
	if len(s.jobs) >= streamsMax {
		return
	}
	ctx, stop := context.WithCancel(s.h.ctx)
	one := &stream{epoch: epoch, stop: stop, done: make(chan struct{})}
	s.jobs[job.ID] = one
	s.h.wg.Go(func() {
		defer close(one.done)
		defer stop()
		one.whole = s.copy(ctx, job, at, epoch) == nil
	})
}

// end waits for the last of an output, and reports whether all of that execution is in the
// job's files.
func (s *streams) end(job grid.JobID, epoch uint32) bool {
	s.mu.Lock()
	one := s.jobs[job]
	delete(s.jobs, job)
	s.mu.Unlock()
	if one == nil {
		return false
	}
	timer := time.AfterFunc(streamLast, one.stop)
	defer timer.Stop()
	<-one.done
	return one.whole && one.epoch == epoch
}

// mark is the file that says that a job's files may have a part of its output.
func (s *streams) mark(job grid.JobID) string {
	return filepath.Join(s.h.cfg.Home, streamsDir, job.String())
}

// noteBegun notes, durably, that the files of a job may have a part of its output from now on.
func (s *streams) noteBegun(job grid.JobID) error {
	mark := s.mark(job)
	if err := os.MkdirAll(filepath.Dir(mark), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(mark, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), atomicfile.SyncDir(filepath.Dir(mark)))
}

// appended is how far it has come that outputs of a job are appended to files: of each that was begun how
// long its file was before, or appendedAll. It stands in the mark.
type appended map[string]int64

// appendedAll is in place of a length once all of an output is there.
const appendedAll = -1

// readAppended returns what was noted; nothing if that is nothing.
func (s *streams) readAppended(job grid.JobID) appended {
	a := appended{}
	text, err := os.ReadFile(s.mark(job))
	if err != nil || json.Unmarshal(text, &a) != nil {
		return appended{}
	}
	return a
}

// noteAppended notes it, durably.
func (s *streams) noteAppended(job grid.JobID, a appended) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return atomicfile.Write(s.mark(job), text, 0o600)
}

// settled notes that the files of a job have all of its output, or never will.
func (s *streams) settled(job grid.JobID) { _ = os.Remove(s.mark(job)) }

// begun reports whether the files of a job may have a part.
func (s *streams) begun(job grid.JobID) bool {
	_, err := os.Lstat(s.mark(job))
	return err == nil
}

// copy copies what an execution writes until it is over.
func (s *streams) copy(ctx context.Context, job *grid.Job, at grid.SiteID, epoch uint32) error {
	var where string
	if err := s.h.Do(ctx, func(core *site.Site) { where = core.SiteName(at) }); err != nil {
		return err
	}
	if err := s.noteBegun(job.ID); err != nil {
		return err
	}
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i, f := range []struct {
		pattern string
		stream  run.Stream
	}{{job.Command.Output, run.Stdout}, {job.Command.Error, run.Stderr}} {
		if f.pattern == "" || i > 0 && job.Command.Error == job.Command.Output {
			continue
		}
		wg.Go(func() {
			errs[i] = s.copyOne(ctx, job, at, epoch, f.stream, run.OutputPath(f.pattern, job, where))
		})
	}
	wg.Wait()
	if job.Command.Error != "" && job.Command.Error == job.Command.Output {
		errs[1] = errTwoIntoOne
	}
	return errors.Join(errs...)
}

// errTwoIntoOne: of two streams in one file, the second is there when the job is over.
var errTwoIntoOne = errors.New("two streams go into one file")

// copyOne copies one stream. The file is made with its first byte, or at once if the job runs
// here.
func (s *streams) copyOne(ctx context.Context, job *grid.Job, at grid.SiteID, epoch uint32, stream run.Stream, path string) error {
	if path == os.DevNull {
		return nil
	}
	task := grid.TaskID{Job: job.ID, Epoch: epoch}
	to := &lateFile{open: func() (*os.File, error) {
		return s.h.openFor(job.ID, path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	}}
	var err error
	if at == s.h.id {
		if _, err := to.Write(nil); err != nil {
			return err
		}
		source := s.tail(ctx, task, stream)
		defer source.Close()
		_, err = io.Copy(to, source)
	} else {
		err = s.copyRemote(ctx, to, at, task, stream)
	}
	if err == nil {
		_, err = to.Write(nil) // it is there, too, if nothing was written
	}
	return errors.Join(err, to.Close())
}

// copyRemote copies what a task writes at another site. Until something has come it is asked
// for again: a site that was awarded a job may hear of it after who asks for its output.
func (s *streams) copyRemote(ctx context.Context, to io.Writer, at grid.SiteID, task grid.TaskID, stream run.Stream) error {
	for pause := streamPoll; ; pause = min(2*pause, streamPause) {
		source, err := s.h.openRemote(ctx, at, task, stream, true)
		var n int64
		if err == nil {
			n, err = io.Copy(to, source)
			source.Close()
		}
		if err == nil || n > 0 || s.over(ctx, task) {
			return err
		}
		if err := s.h.pause(ctx, pause); err != nil {
			return err
		}
	}
}

// over reports whether a task is.
func (s *streams) over(ctx context.Context, task grid.TaskID) bool {
	v, err := s.h.view(ctx, task.Job)
	return err != nil || v.Epoch != task.Epoch || v.State.Terminal()
}

// tail reads the file of a task of this site until it is over.
func (s *streams) tail(ctx context.Context, task grid.TaskID, stream run.Stream) io.ReadCloser {
	return &run.Tail{
		Base: s.h.files.Task(s.h.id, task), Stream: stream,
		Pause: func() error { return s.h.pause(ctx, streamPoll) },
		Over:  func() bool { return s.over(ctx, task) },
	}
}

// lateFile is a file that is opened when it is first written to, and on disk once it is closed.
type lateFile struct {
	open    func() (*os.File, error)
	file    *os.File
	written int64
}

func (f *lateFile) Write(b []byte) (n int, err error) {
	if f.file == nil {
		if f.file, err = f.open(); err != nil {
			return 0, err
		}
	}
	n, err = f.file.Write(b)
	f.written += int64(n)
	return n, err
}

func (f *lateFile) Close() error {
	if f.file == nil {
		return nil
	}
	return closeWritten(f.file, f.written)
}

// closeWritten closes a file to which so many bytes were written. They are on disk then, if it is
// one that has a disk: a pipe has none.
func closeWritten(file *os.File, bytes int64) (err error) {
	if bytes > 0 {
		if err = file.Sync(); errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
			err = nil
		}
		_ = atomicfile.SyncDir(filepath.Dir(file.Name())) // not everybody may read the folder
	}
	return errors.Join(err, file.Close())
}
