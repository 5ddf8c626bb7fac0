package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"gridnode/grid"
	"gridnode/internal/atomicfile"
	"gridnode/internal/wire"
	"gridnode/node/content"
	"gridnode/node/mailbox"
	"gridnode/node/run"
	"gridnode/node/site"
	"gridnode/node/store"
)

// Bringing files home: what a job has left comes into the store of its home first, as a tree
// that HOME/output/JOB.files names, and from there to where its owner wants it, as that owner
// may write. Then JOB.brought says what became of it. Each step can be repeated.
const (
	filesSuffix   = ".files"
	broughtSuffix = ".brought"
	bringersMax   = 2 // jobs at the same time
	settlePoll    = 100 * time.Millisecond
)

// Brought is what has become of the files that a job has left.
type Brought struct {
	State string `json:"state"`           // running, coming, none, brought, kept or failed
	Dir   string `json:"dir,omitempty"`   // where they are, or should be
	Count int64  `json:"count,omitempty"` // files
	Size  int64  `json:"size,omitempty"`  // bytes
	Left  int64  `json:"left,omitempty"`  // files that were left out
	Why   string `json:"why,omitempty"`   // the first of them, or what went wrong
}

// States of Brought.
const (
	FilesRunning = "running" // it is not over
	FilesComing  = "coming"
	FilesNone    = "none"
	FilesBrought = "brought"
	FilesKept    = "kept"   // for whoever asks: there is no directory to bring them to
	FilesFailed  = "failed" // they are kept
)

// homecoming is the jobs whose files are to be brought home.
type homecoming struct {
	f    *filer
	jobs *mailbox.Box[grid.JobID]
	mu   sync.Mutex
	late map[grid.JobID]time.Duration // those of which a site could not be reached, and the pause until it is asked again
}

func newHomecoming(f *filer) *homecoming {
	return &homecoming{f: f, jobs: mailbox.New[grid.JobID](), late: make(map[grid.JobID]time.Duration)}
}

// note adds the jobs among events that ran here, or on processors of others that this site used.
// It is called on the loop.
func (m *homecoming) note(events []grid.Event) {
	for i := range events {
		e := &events[i]
		over := e.Kind == grid.JobFinished || e.Kind == grid.JobCancelled
		if !over || e.Job.Home != m.f.h.id || e.Site != "" && e.Site != e.Job.Home || e.Result.Start >= e.Result.End || e.Result.Silent {
			continue
		}
		apart := e.Job.Coallocate != nil || e.Job.Spread || m.ran(grid.TaskID{Job: e.Job.ID, Epoch: e.Epoch}) != ""
		if apart || e.Job.Keeps(e.Job.Home) {
			m.jobs.Put(e.Job.ID)
		}
	}
}

// recover adds the jobs that ended and whose files are nowhere yet.
func (m *homecoming) recover() {
	for _, job := range m.noted() {
		if !m.settled(job) {
			m.jobs.Put(job)
		}
	}
	self := m.f.h.id
	for _, task := range m.f.h.files.WithResults() {
		if m.settled(task.Job) { // an earlier host died before it removed them
			if err := m.f.h.files.RemoveLeft(self, task); err != nil {
				m.f.h.log.Warn("cannot remove files that were brought home", "job", task.Job, "error", err)
			}
		}
	}
	_ = m.f.h.Do(m.f.h.ctx, func(s *site.Site) {
		for v := range s.Jobs {
			if !v.Foreign && v.State.Terminal() && v.Site == self && v.Start < v.End && !v.Result.Silent && len(m.pieces(&v)) > 0 && !m.settled(v.Job.ID) {
				m.jobs.Put(v.Job.ID)
			}
		}
	})
}

// run brings files to their owners until the host stops.
func (m *homecoming) run() {
	m.recover()
	m.jobs.Work(m.f.h.ctx, bringersMax, func(job grid.JobID) { m.bring(m.f.h.ctx, job) })
}

// path returns the path of a note about a job's files.
func (m *homecoming) path(job grid.JobID, suffix string) string {
	return m.f.h.files.Fetched(job) + suffix
}

// settled reports whether nothing more will become of a job's files.
func (m *homecoming) settled(job grid.JobID) bool {
	_, err := os.Lstat(m.path(job, broughtSuffix))
	return err == nil
}

// noted returns the jobs whose files have come.
func (m *homecoming) noted() (jobs []grid.JobID) {
	paths, _ := filepath.Glob(filepath.Join(filepath.Dir(m.path(grid.JobID{}, "")), "*"+filesSuffix)) // a bad pattern: none
	for _, path := range paths {
		if id, err := grid.ParseJobID(strings.TrimSuffix(filepath.Base(path), filesSuffix)); err == nil {
			jobs = append(jobs, id)
		}
	}
	return jobs
}

// unbrought returns the trees that are on their way to their owners.
func (m *homecoming) unbrought() map[content.Digest]bool {
	needed := make(map[content.Digest]bool)
	for _, job := range m.noted() {
		if b := m.read(job); b == nil || b.State == FilesKept || b.State == FilesFailed {
			if d, err := m.tree(job); err == nil {
				needed[d] = true
			}
		}
	}
	return needed
}

// tree returns the digest of what a job has left.
func (m *homecoming) tree(job grid.JobID) (content.Digest, error) {
	text, err := os.ReadFile(m.path(job, filesSuffix))
	if errors.Is(err, os.ErrNotExist) {
		return content.Digest{}, content.ErrAbsent
	}
	if err != nil {
		return content.Digest{}, err
	}
	return content.ParseDigest(string(text))
}

// read returns what has become of a job's files; nil if that is not known yet.
func (m *homecoming) read(job grid.JobID) *Brought {
	text, err := os.ReadFile(m.path(job, broughtSuffix))
	if err != nil {
		return nil
	}
	b := &Brought{}
	if json.Unmarshal(text, b) != nil { // not done again: what was brought may be another's work by now
		return &Brought{State: FilesFailed, Why: "what was noted of them is damaged: they may have been brought or not"}
	}
	return b
}

// write keeps a note about a job's files, durably.
func (m *homecoming) write(job grid.JobID, suffix string, text []byte) error {
	return atomicfile.Write(m.path(job, suffix), text, 0o600)
}

// collect gets what an execution at another site has left into the store. An error says that
// it has to be tried again.
func (m *homecoming) collect(ctx context.Context, from grid.SiteID, task grid.TaskID) error {
	if _, err := m.tree(task.Job); err == nil {
		return nil // done before
	}
	v, err := m.f.h.view(ctx, task.Job)
	if err != nil || v.Job.Command == nil {
		return m.settle(task.Job, &Brought{State: FilesNone}) // it is kept no longer
	}
	_, b, err := m.f.results(ctx, from, task, v.Job.Command.Files)
	if errors.Is(err, content.ErrAbsent) {
		return m.settle(task.Job, &Brought{State: FilesNone})
	}
	if errors.Is(err, wire.ErrMalformed) {
		m.f.h.log.Warn("a site gives something else than a job's files", "job", task.Job, "site", from, "error", err)
		return m.settle(task.Job, &Brought{State: FilesFailed, Why: "what the site that ran it gives is not in order: " + err.Error()})
	}
	if err != nil {
		return err
	}
	return m.keep(task.Job, b)
}

// results gets what an execution at another site has left into the store. The errors here are
// content.ErrAbsent if nothing is there, and those that wrap wire.ErrMalformed.
func (f *filer) results(ctx context.Context, from grid.SiteID, task grid.TaskID, what *grid.Files) (*content.Tree, []byte, error) {
	s, peer, err := f.open(ctx, from, contentProtocol)
	if err != nil {
		return nil, nil, err
	}
	defer s.Reset()
	defer context.AfterFunc(ctx, func() { s.Reset() })()
	id := task.Job.Bytes()
	b, err := peer.Results(id[:], task.Epoch, what)
	if err != nil {
		return nil, nil, err
	}
	tree, err := content.DecodeTree(b)
	if err == nil && tree.Size() > f.cfg.Job {
		err = wire.Malformed("files of %d bytes, at most %d (files.job) are brought home", tree.Size(), f.cfg.Job)
	}
	if err == nil {
		missing, _ := f.store.Missing(tree.Chunks)
		err = f.getChunks(peer, missing)
	}
	return tree, b, err
}

// keep notes that what a job has left is in the store, durably.
func (m *homecoming) keep(job grid.JobID, tree []byte) error {
	err := m.hold(job, tree)
	if err == nil {
		m.jobs.Put(job)
	}
	return err
}

// hold puts a tree into the store, in which its chunks are, and notes that it is what a job has
// left once all of that is durable.
func (m *homecoming) hold(job grid.JobID, tree []byte) error {
	d, err := m.f.store.Put(tree)
	if err == nil {
		err = m.f.store.Sync()
	}
	if err == nil {
		err = m.write(job, filesSuffix, []byte(d.String()))
	}
	return err
}

// settle notes what has become of a job's files.
func (m *homecoming) settle(job grid.JobID, b *Brought) error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return m.write(job, broughtSuffix, text)
}

// bring brings a job's files to where its owner wants them.
func (m *homecoming) bring(ctx context.Context, job grid.JobID) {
	if m.settled(job) {
		return
	}
	v, err := m.f.h.view(ctx, job)
	if err != nil || v.Job.Command == nil || m.nothing(&v) {
		return // it is kept no longer, or leaves nothing
	}
	b, err := m.toOwner(ctx, &v)
	if ctx.Err() != nil {
		return // after the restart
	}
	m.came(job, b, err)
}

// came notes what has become of a job's files, or has them brought again if that may go otherwise then.
func (m *homecoming) came(job grid.JobID, b *Brought, err error) {
	if errors.Is(err, errNotYet) || atomicfile.NoDescriptors(err) {
		m.later(job, err)
		return
	}
	m.mu.Lock()
	delete(m.late, job)
	m.mu.Unlock()
	if err != nil {
		m.f.h.log.Warn("the files of a job cannot be put where its owner wants them", "job", job, "error", err)
		b.State, b.Why = FilesFailed, run.ShortReason(err)
	}
	if err := m.settle(job, b); err != nil {
		m.f.h.log.Warn("cannot note that the files of a job are home", "job", job, "error", err)
	}
}

// toOwner does that. What it returns says how far it came, also with an error.
func (m *homecoming) toOwner(ctx context.Context, v *site.View) (*Brought, error) {
	what := v.Job.Command.Files
	if what == nil {
		what = &grid.Files{}
	}
	b := &Brought{State: FilesBrought, Dir: what.Dir}
	if b.Dir == "" {
		b.Dir = v.Job.Command.Dir
	}
	tree, err := m.left(ctx, v, what)
	if errors.Is(err, content.ErrAbsent) {
		return &Brought{State: FilesNone}, nil
	}
	if err != nil {
		return b, err
	}
	m.f.h.wg.Go(func() { m.release(v) })
	b.Count, b.Size, b.Left, b.Why = tree.Count(), tree.Size(), tree.Left, tree.Why
	switch {
	case len(tree.Entries) == 0 && b.Left == 0:
		b.State = FilesNone
		return b, nil
	case len(tree.Entries) == 0:
		return b, nil
	case b.Dir == "":
		b.State = FilesKept
		return b, nil
	}
	return b, m.put(ctx, v, tree, b.Dir, what)
}

// left returns the tree of what a job has left, its chunks in the store.
func (m *homecoming) left(ctx context.Context, v *site.View, what *grid.Files) (*content.Tree, error) {
	d, err := m.tree(v.Job.ID)
	if err == nil {
		return m.f.store.Tree(d)
	}
	if v.Site != m.f.h.id {
		return nil, err
	}
	tree, err := m.gather(ctx, v, what)
	if err != nil {
		return nil, err
	}
	b, _, err := tree.Encode()
	if err != nil {
		return nil, err
	}
	return tree, m.hold(v.Job.ID, b)
}

// put writes a tree as the owner of a job may write.
func (m *homecoming) put(ctx context.Context, v *site.View, tree *content.Tree, dir string, what *grid.Files) error {
	account, err := m.f.h.cfg.Accounts.Of(m.f.h.id, v.Job)
	if err != nil {
		return err
	}
	// Chunks are read by another goroutine: where the account writes it may not read the home.
	type answer struct {
		b   []byte
		err error
	}
	asked, answers := make(chan content.Chunk), make(chan answer)
	go func() {
		for c := range asked {
			b, err := m.f.store.Get(c.Digest)
			answers <- answer{b, err}
		}
	}()
	defer close(asked)
	wanted := m.f.wanted(what)
	only := wanted.Takes
	if ranked(v) {
		only = wanted.TakesOf
	}
	laying := &content.Laying{Replace: true, Only: only, Chunk: func(c content.Chunk) ([]byte, error) {
		asked <- c
		a := <-answers
		return a.b, a.err
	}}
	write := func() {
		if err = os.MkdirAll(dir, 0o777); err != nil {
			return
		}
		var free int64
		if free, err = store.Free(dir); err == nil && free < tree.Size() {
			err = fmt.Errorf("%s: they have %d bytes, and the disk has %d left", dir, tree.Size(), free)
			return
		}
		var root *os.Root
		if root, err = os.OpenRoot(dir); err != nil {
			return
		}
		defer root.Close()
		if err = content.Lay(ctx, tree, root, laying); err == nil {
			err = atomicfile.SyncTree(dir)
		}
	}
	if account == nil {
		write()
		return err
	}
	if failed := account.Do(write); failed != nil {
		return failed
	}
	return err
}

// nothing reports whether a job that this site ran, alone or on the processors of others, leaves no
// files to be brought. Those that are in the store are to be, though nobody else has them any more.
func (m *homecoming) nothing(v *site.View) bool {
	if v.Site != m.f.h.id || len(m.pieces(v)) > 0 {
		return false
	}
	_, err := m.tree(v.Job.ID)
	return err != nil
}

// status returns what has become of a job's files.
func (m *homecoming) status(v *site.View) *Brought {
	if v.State.Terminal() && v.Result.Silent {
		return &Brought{State: FilesNone}
	}
	if b := m.read(v.Job.ID); b != nil {
		return b
	}
	self := m.f.h.id
	switch {
	case !v.State.Terminal():
		return &Brought{State: FilesRunning}
	case v.Start >= v.End, v.Site == "", m.nothing(v), v.Site != self && !v.Job.Keeps(v.Site):
		return &Brought{State: FilesNone}
	case v.Site != self && m.f.h.files.HasFetched(v.Job.ID):
		if _, err := m.tree(v.Job.ID); err != nil {
			return &Brought{State: FilesNone}
		}
	}
	return &Brought{State: FilesComing}
}

// JobFiles returns what has become of the files that a job of this site has left, and which
// they are; nil while they are not here. With wait it returns once that is settled.
func (h *Host) JobFiles(ctx context.Context, job grid.JobID, wait bool) (*Brought, *content.Tree, error) {
	for {
		v, err := h.view(ctx, job)
		switch {
		case err != nil:
			return nil, nil, err
		case v.Foreign:
			return nil, nil, fmt.Errorf("%s: %w", job, ErrNotHome)
		case h.filer == nil:
			return &Brought{State: FilesNone}, nil, nil
		}
		b := h.filer.home.status(&v)
		if wait && (b.State == FilesRunning || b.State == FilesComing) {
			if err := h.pause(ctx, settlePoll); err != nil {
				return nil, nil, err
			}
			continue
		}
		var tree *content.Tree
		if b.State == FilesNone {
			return b, nil, nil
		}
		if d, err := h.filer.home.tree(job); err == nil {
			tree, _ = h.filer.store.Tree(d) // nil: it is not kept any more
		}
		return b, tree, nil
	}
}

// FilesMax returns how many bytes one job may bring along.
func (h *Host) FilesMax() int64 {
	if h.filer == nil {
		return 0
	}
	return h.filer.cfg.Job
}

// Content returns the store of what jobs bring along; nil if this node keeps nothing.
func (h *Host) Content() *content.Store {
	if h.filer == nil {
		return nil
	}
	return h.filer.store
}
