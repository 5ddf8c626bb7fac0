package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
	"gridnode/node/run"
	"gridnode/node/site"
)

// Fetching: when a job that ran elsewhere has ended, home fetches its output, keeps
// it as long as it keeps the job, and tells the executing site to forget it. Nobody
// waits for that: until it is here, Output reads it at the executing site. Of an execution
// that was lost home wants nothing, and tells its site to forget it, too.
const (
	fetchersMax   = 4                // sites asked at the same time
	fetchBatch    = 64               // outputs asked for on one stream
	fetchAgain    = 2 * time.Second  // pause after a site could not be reached, doubled up to
	fetchAgainMax = 5 * time.Minute  // this
	staysAgain    = 10 * time.Second // pause until a site is told again to forget what it takes to be alive
	fetchGiveUp   = run.ForeignKept  // after the job's end; the executing site forgets it then, too
)

// fetchers are the outputs still to be fetched.
type fetchers struct {
	h *Host

	mu      sync.Mutex
	sites   map[grid.SiteID]*fetchSite
	running int
	wake    chan struct{} // holds a token when a site may be asked
}

// fetchSite is what one site still has.
type fetchSite struct {
	jobs   []fetch
	busy   bool
	pause  time.Duration // after the latest failure; 0 if there was none
	notNow time.Time
}

// fetch is one output to be fetched.
type fetch struct {
	task  grid.TaskID
	ended time.Time
	lost  bool // nothing is wanted of the execution: only a receipt is due
	stays bool // its site got that, and has files yet: it does not know that the execution is over
}

// add notes that the output of a job is at a site.
func (f *fetchers) add(site grid.SiteID, one fetch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sites[site]
	if s == nil {
		s = &fetchSite{}
		f.sites[site] = s
	}
	s.jobs = append(s.jobs, one)
	f.ring()
}

func (f *fetchers) ring() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// note adds the jobs among events that ended elsewhere. It is called on the loop.
func (f *fetchers) note(events []grid.Event) {
	if f.h.cfg.Home == "" {
		return
	}
	for i := range events {
		e := &events[i]
		elsewhere := e.Site != "" && e.Site != f.h.id && e.Job.Home == f.h.id
		ran := e.Result.End > e.Result.Start && !e.Result.Silent
		one := fetch{task: grid.TaskID{Job: e.Job.ID, Epoch: e.Epoch}, ended: time.Now()}
		switch {
		case !elsewhere || e.Job.Command == nil:
		case (e.Kind == grid.JobFinished || e.Kind == grid.JobCancelled) && ran:
			f.add(e.Site, one)
		case e.Kind == grid.JobReplaced, e.Kind == grid.JobFinished && !e.Result.Silent: // its execution was lost
			one.lost = true
			if err := f.h.files.NoteLost(one.task, e.Site); err != nil {
				f.h.log.Debug("cannot note where an execution was lost", "job", e.Job.ID, "error", err)
			}
			f.add(e.Site, one)
		}
	}
}

// recover adds what an earlier run of the host did not fetch.
func (f *fetchers) recover() {
	var ended []site.View
	_ = f.h.Do(f.h.ctx, func(s *site.Site) {
		s.Jobs(func(v site.View) bool {
			if v.State.Terminal() && !v.Foreign && v.Site != "" && v.Site != f.h.id && v.End > v.Start && !v.Result.Silent && v.Job.Command != nil {
				ended = append(ended, v)
			}
			return true
		})
	})
	for i := range ended {
		v := &ended[i]
		if !f.h.files.HasFetched(v.Job.ID) {
			f.add(v.Site, fetch{task: grid.TaskID{Job: v.Job.ID, Epoch: v.Epoch}, ended: time.UnixMicro(int64(v.End))})
		}
	}
	for task, site := range f.h.files.Lost() {
		f.add(site, fetch{task: task, ended: time.Now(), lost: true})
	}
}

// run fetches until the host stops.
func (f *fetchers) run() {
	f.recover()
	for {
		next := f.begin(time.Now())
		timer := time.NewTimer(next)
		select {
		case <-f.wake:
		case <-timer.C:
		case <-f.h.stopping:
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// begin starts to fetch from the sites that can be asked now, and returns how long
// until another can.
func (f *fetchers) begin(now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := time.Hour
	for site, s := range f.sites {
		switch {
		case s.busy:
		case len(s.jobs) == 0:
			delete(f.sites, site)
		case f.running >= fetchersMax:
			return next
		case now.Before(s.notNow):
			next = min(next, s.notNow.Sub(now))
		default:
			s.busy = true
			f.running++
			batch := f.batch(s)
			f.h.wg.Go(func() { f.from(site, s, batch) })
		}
	}
	return next
}

// batch returns what a site is asked for next: a copy, in which is noted what it says while others are added.
func (f *fetchers) batch(s *fetchSite) []fetch {
	return slices.Clone(s.jobs[:min(len(s.jobs), fetchBatch)])
}

// from fetches a batch from a site.
func (f *fetchers) from(site grid.SiteID, s *fetchSite, batch []fetch) {
	fetched, err := f.fetchAll(site, batch)
	f.ended(site, s, batch, fetched, err)
}

// ended notes what came of a batch, the first ones that a site has: so many are settled.
func (f *fetchers) ended(site grid.SiteID, s *fetchSite, batch []fetch, fetched int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	left := s.jobs[:0]
	for i, j := range s.jobs {
		if i < fetched {
			f.settle(site, batch[i])
			continue
		}
		if i < len(batch) && j.lost && time.Since(j.ended) > fetchGiveUp {
			f.h.files.ForgetLost(j.task)
			continue
		}
		if i < len(batch) && time.Since(j.ended) > fetchGiveUp {
			f.h.giveUp(j.task.Job, fmt.Sprintf("site %s could not be reached for %v", site, fetchGiveUp))
			continue
		}
		left = append(left, j)
	}
	s.jobs = left
	s.pause, s.notNow = 0, time.Time{}
	if err != nil {
		s.pause = min(max(2*s.pause, fetchAgain), fetchAgainMax)
		s.notNow = time.Now().Add(s.pause)
		f.h.log.Debug("output not fetched yet", "from", site, "jobs", len(left), "error", err)
	}
	s.busy = false
	f.running--
	f.ring()
}

// settle forgets an execution that was lost once its site has no files of it.
func (f *fetchers) settle(site grid.SiteID, j fetch) {
	switch {
	case !j.lost:
	case j.stays && time.Since(j.ended) < fetchGiveUp:
		j.stays = false
		time.AfterFunc(staysAgain, func() { f.add(site, j) })
	default:
		f.h.files.ForgetLost(j.task)
	}
}

// fetchAll returns how many of the batch are settled, from the first on. What has come is kept by one
// flush for all; only then may the site forget it.
func (f *fetchers) fetchAll(site grid.SiteID, batch []fetch) (settled int, err error) {
	s, err := f.h.net.Open(f.h.ctx, site, outputProtocol)
	if err != nil {
		return 0, err
	}
	defer s.Reset()
	r := bufio.NewReader(s)
	var come []*run.Keep
	defer func() {
		for _, k := range come {
			k.Discard()
		}
	}()
	asked := 0
	var failed error
	for asked < len(batch) {
		var files []*run.Keep
		if batch[asked].lost {
			asked++
			continue
		}
		if files, failed = f.h.fetchOne(site, s, r, batch[asked].task); failed != nil {
			break
		}
		come = append(come, files...)
		asked++
	}
	if err := run.Done(come...); err != nil {
		return 0, err
	}
	for i := range batch[:asked] {
		left, err := receipt(s, r, batch[i].task)
		if err != nil {
			return i, err
		}
		batch[i].stays = left
	}
	s.Close()
	return asked, failed
}

// fetchOne fetches the output of one job into files that are still to be kept. There are none if it
// was kept before, so that only a receipt is due, or is nowhere any more.
func (h *Host) fetchOne(from grid.SiteID, s network.Stream, r *bufio.Reader, task grid.TaskID) (files []*run.Keep, err error) {
	if h.files.HasFetched(task.Job) {
		return nil, nil
	}
	base, id := h.files.Fetched(task.Job), task.Job.Bytes()
	if err := ask(s, &wirepb.OutputRequest{Job: id[:], Epoch: task.Epoch}); err != nil {
		return nil, err
	}
	out, errs := &run.Keep{Path: base + run.Stdout.Suffix(), Bound: h.files.Log}, &run.Keep{Path: base + run.Stderr.Suffix(), Bound: h.files.Log}
	files = []*run.Keep{errs, out} // in this order: that standard output is there says that all is
	defer func() {
		if err != nil {
			errs.Discard()
			out.Discard()
			files = nil
		}
	}()
	end, left, err := receive(s, r, func(stream run.Stream, data []byte) error {
		_, err := files[run.Stderr-stream].Write(data)
		return err
	})
	if err != nil {
		return nil, err
	}
	if end == outputUnknown {
		h.giveUp(task.Job, "the site that ran it does not have it")
		errs.Discard()
		out.Discard()
		return nil, nil
	}
	if left { // first: once the output is here the job is not asked for again
		if err := h.filer.home.collect(h.ctx, from, task); err != nil {
			return nil, fmt.Errorf("files of job %s: %w", task.Job, err)
		}
	}
	return files, errors.Join(out.Create(), out.Close(), errs.Close())
}

// receipt lets a site forget the output of a job, which is kept at its home. It returns whether the
// site has files of it yet.
func receipt(s network.Stream, r *bufio.Reader, task grid.TaskID) (left bool, err error) {
	id := task.Job.Bytes()
	if err := ask(s, &wirepb.OutputRequest{Job: id[:], Epoch: task.Epoch, Received: true}); err != nil {
		return false, err
	}
	_, left, err = receive(s, r, func(run.Stream, []byte) error { return wire.Malformed("output after a receipt") })
	return left, err
}

// giveUp notes that the output of a job will never come.
func (h *Host) giveUp(job grid.JobID, why string) {
	if err := h.files.GiveUp(job, why); err != nil {
		h.log.Warn("cannot note that an output is gone", "error", err)
	}
}

func ask(s network.Stream, request *wirepb.OutputRequest) error {
	s.SetWriteDeadline(time.Now().Add(outputIdleMax))
	return wire.WriteProto(s, request)
}

// receive hands the chunks of one answer to take and returns how it ended, and whether there are
// files, too.
func receive(s network.Stream, r *bufio.Reader, take func(run.Stream, []byte) error) (end outputEnd, files bool, err error) {
	for {
		s.SetReadDeadline(time.Now().Add(outputIdleMax))
		chunk, err := readChunk(r)
		if err != nil {
			return 0, false, err
		}
		if len(chunk.Data) > 0 {
			if err := take(run.Stream(chunk.Stream), chunk.Data); err != nil {
				return 0, false, err
			}
		}
		if chunk.End != uint32(outputMore) {
			return outputEnd(chunk.End), chunk.Files, nil
		}
	}
}

// readChunk reads one chunk and checks it.
func readChunk(r *bufio.Reader) (*wirepb.OutputChunk, error) {
	chunk := new(wirepb.OutputChunk)
	if err := wire.ReadProto(r, chunk); err != nil {
		return nil, err
	}
	if chunk.End > uint32(outputUnknown) || len(chunk.Data) > 0 && (chunk.Stream < uint32(run.Stdout) || chunk.Stream > uint32(run.Stderr)) {
		return nil, wire.Malformed("chunk of output")
	}
	return chunk, nil
}

// remoteOutput reads the output of a job where it runs.
type remoteOutput struct {
	h       *Host
	ctx     context.Context
	site    grid.SiteID
	request *wirepb.OutputRequest // for what has not come
	broken  time.Time             // since when nothing comes, over how many streams ever; zero: since never
	stream  network.Stream
	r       *bufio.Reader
	rest    []byte
	end     bool
	stop    func() bool
}

// remoteAgain is how long an output is asked for again, over connections that break.
const remoteAgain = 10 * time.Second

// openRemote asks the executing site for an output. Where the connection breaks later it is asked for what is
// left, for as long as remoteAgain.
func (h *Host) openRemote(ctx context.Context, site grid.SiteID, task grid.TaskID, stream run.Stream, follow bool) (io.ReadCloser, error) {
	id := task.Job.Bytes()
	o := &remoteOutput{h: h, ctx: ctx, site: site, request: &wirepb.OutputRequest{Job: id[:], Epoch: task.Epoch, Stream: uint32(stream), Follow: follow}}
	if err := o.open(ctx); err != nil {
		return nil, err
	}
	if !follow { // the answer comes at once, so that the error is this function's
		if err := o.fill(); err != nil && err != io.EOF {
			o.Close()
			return nil, err
		}
	}
	return o, nil
}

// open asks for it over a new stream. ctx bounds how long that may take.
func (o *remoteOutput) open(ctx context.Context) error {
	s, err := o.h.net.Open(ctx, o.site, outputProtocol)
	if err != nil {
		return fmt.Errorf("the job's output is at site %s, which cannot be reached now: %w", o.site, err)
	}
	if err := ask(s, o.request); err != nil {
		s.Reset()
		return fmt.Errorf("ask site %s for output: %w", o.site, err)
	}
	o.stream, o.r = s, bufio.NewReader(s)
	o.stop = context.AfterFunc(o.ctx, func() { s.Reset() })
	return nil
}

// again asks once more after a stream has broken, unless that has been in vain for remoteAgain: then it
// returns why it broke.
func (o *remoteOutput) again(why error) error {
	o.Close()
	if o.broken.IsZero() {
		o.broken = time.Now()
	}
	ctx, cancel := context.WithDeadline(o.ctx, o.broken.Add(remoteAgain))
	defer cancel()
	for pause := streamPoll; ; pause = min(2*pause, streamPause) {
		if o.h.pause(ctx, pause) != nil {
			return why
		}
		if o.open(ctx) == nil {
			return nil
		}
	}
}

func (o *remoteOutput) Read(b []byte) (int, error) {
	if err := o.fill(); err != nil {
		return 0, err
	}
	n := copy(b, o.rest)
	o.rest = o.rest[n:]
	return n, nil
}

// fill waits for output, or returns io.EOF behind the last of it.
func (o *remoteOutput) fill() error {
	for len(o.rest) == 0 {
		if o.end {
			return io.EOF
		}
		chunk, err := readChunk(o.r)
		if err != nil {
			if err := o.again(err); err != nil {
				return fmt.Errorf("output from site %s: %w", o.site, err)
			}
			continue
		}
		if n := len(chunk.Data); n > 0 {
			o.request.Offset += int64(n)
			o.broken = time.Time{}
		}
		if chunk.End == uint32(outputUnknown) {
			return fmt.Errorf("%w: site %s does not have it", run.ErrOutputGone, o.site)
		}
		o.rest, o.end = chunk.Data, chunk.End != uint32(outputMore)
	}
	return nil
}

func (o *remoteOutput) Close() error {
	o.stop()
	return o.stream.Reset() // whatever was asked for is not wanted any more
}
