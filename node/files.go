package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"gridnode/coalloc/dataset"
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/node/content"
	"gridnode/node/site"
	"gridnode/node/store"
)

// How sites get files from each other: content.Serve and content.Peer. Sites of versions that
// speak only the first do not know requests for data sets.
const (
	contentProtocol = "/gridnode/content/1.0.0"
	dataProtocol    = "/gridnode/content/1.1.0"
)

// FilesConfig says what jobs may bring along, and what of it is kept.
type FilesConfig struct {
	Cache int64 // most bytes kept of what jobs read and leave; 0: CacheDefault
	Job   int64 // most bytes that one job brings along, and that are brought home of one, never more than Cache; 0: JobDefault
	Loose int64 // most bytes brought home of a job that has not said what; 0: LooseDefault
	Log   int64 // bytes kept of each of a job's standard output and errors; 0: kept.Default
}

// Defaults of FilesConfig.
const (
	CacheDefault = 20 << 30
	JobDefault   = 10 << 30
	LooseDefault = 1 << 30
)

const (
	contentDir   = "content"        // below the home
	servesMax    = 16               // streams served at the same time
	servesEach   = 8                // of them to one site
	stageRounds  = 3                // if what is kept turns out to be torn
	fetchRounds  = 10               // without anything that came
	fetchPause   = time.Second      // after the first of them, doubled up to
	fetchPauses  = 30 * time.Second // this
	elsewhereMin = 32 << 20         // bytes that are looked for at other sites than home, and announced
	elsewhereMax = 3                // of those sites
	elsewhereAsk = 5 * time.Second  // for who has them
	resultsKnown = 8                // lists of results and of data sets that are remembered as they are served
)

// elsewhereSpan is how long a site announces what a job has brought along: what is used later it
// may have given up.
const elsewhereSpan = grid.Hour

// filer keeps and moves the files of jobs.
type filer struct {
	h     *Host
	cfg   FilesConfig
	store *content.Store
	home  *homecoming

	mu      sync.Mutex
	serving int
	served  map[grid.SiteID]int // of them, to each site
	known   map[given]*results  // what is served
	order   []given             // of known, oldest first
}

// given names what is served besides the store: what an execution has left, as a job's ID
// alone says nothing of who may have that, or a data set.
type given struct {
	home grid.SiteID
	task grid.TaskID

	set      string // its name
	modified int64  // of its file
}

// results is what an execution has left, or a data set, as it is served.
type results struct {
	tree  []byte
	index *content.Index
}

func newFiler(h *Host) (*filer, error) {
	if h.cfg.Home == "" {
		return nil, nil
	}
	f := &filer{h: h, cfg: h.cfg.Files, known: make(map[given]*results), served: make(map[grid.SiteID]int)}
	f.cfg.Cache, f.cfg.Job, f.cfg.Loose = cmp.Or(f.cfg.Cache, CacheDefault), cmp.Or(f.cfg.Job, JobDefault), cmp.Or(f.cfg.Loose, LooseDefault)
	f.cfg.Job = min(f.cfg.Job, f.cfg.Cache) // more would be moved for nothing
	f.home = newHomecoming(f)
	var err error
	f.store, err = content.OpenStore(filepath.Join(h.cfg.Home, contentDir), f.cfg.Cache, bringsSpace, f.needed)
	return f, err
}

// needed returns the trees of jobs that have not ended, and those that are on their way to
// their owners.
func (f *filer) needed() (map[content.Digest]bool, error) {
	needed := f.home.unbrought()
	err := f.h.Do(f.h.ctx, func(s *site.Site) {
		for v := range s.Jobs {
			if text, _ := v.Job.Tree(); text != "" && !v.State.Terminal() {
				if d, err := content.ParseDigest(text); err == nil {
					needed[d] = true
				}
			}
		}
	})
	return needed, err
}

// stage lays out what a task brings along where its scratch directory will be: of a squad, for
// each of its processes.
func (f *filer) stage(ctx context.Context, task *grid.Task) error {
	for round := 1; ; round++ {
		tree, err := f.fetch(ctx, task.Job)
		for n := 0; err == nil && n < max(tasksOf(task), 1); n++ {
			err = f.lay(ctx, tree, task, n)
		}
		if round == stageRounds || !errors.Is(err, content.ErrAbsent) {
			return err
		}
		f.h.log.Warn("what is kept of a job's files is damaged: it is got again", "job", task.Job.ID, "error", err)
		f.sift(tree)
	}
}

// sift has the store give up what a crash has left torn of a tree: that shows as it is read.
func (f *filer) sift(tree *content.Tree) {
	if tree == nil {
		return
	}
	var b []byte
	for i := range tree.Chunks {
		if read, err := f.store.Read(tree.Chunks[i].Digest, b); err == nil {
			b = read
		}
	}
}

// fetch makes sure that what a job brings along is here, and returns it. Of tasks that want
// the same, one gets it.
func (f *filer) fetch(ctx context.Context, job *grid.Job) (tree *content.Tree, err error) {
	text, _ := job.Tree()
	d, err := content.ParseDigest(text)
	if err != nil {
		return nil, err
	}
	err = f.store.Once(d, ctx.Done(), func() error { return f.bring(ctx, job.Home, d) })
	if err != nil {
		return nil, err
	}
	return f.store.Tree(d)
}

// bring gets what is missing of a tree, and goes on where a broken connection has ended: from
// its home, or much of it from the nearest site that has it.
func (f *filer) bring(ctx context.Context, home grid.SiteID, d content.Digest) error {
	began := time.Now()
	before := f.store.Bytes()
	pause := fetchPause
	others := elsewhere{f: f, home: home, tree: d}
	for round := 0; ; {
		missing, size, err := f.missing(d)
		if err == nil && len(missing) == 0 {
			if moved := f.store.Bytes() - before; moved > 0 {
				f.h.log.Info("files of a job are here", "tree", d.String()[:12], "from", home, "bytes", moved, "took", time.Since(began).Round(time.Millisecond))
				if moved >= elsewhereMin {
					others.lend()
				}
			}
			return nil
		}
		if home == f.h.id {
			return errors.New("they are not kept here any more: submit the job again")
		}
		from := others.next(ctx, err == nil && size >= elsewhereMin || round > 0)
		came := f.store.Bytes()
		err = f.get(ctx, from, d, missing)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%d bytes had come: %w", f.store.Bytes()-before, ctx.Err())
		case hopeless(err):
			return err
		case from != home:
			if err != nil {
				others.sites = others.sites[1:]
				f.h.log.Info("files of a job cannot be had from a site that has announced them", "tree", d.String()[:12], "from", from, "error", err)
			}
			continue // the next, in the end home
		case err == nil:
			continue // what is still missing shows
		case errors.Is(err, wire.ErrMalformed):
			return err
		}
		if f.store.Bytes() > came {
			round, pause = 0, fetchPause
		}
		if round++; round > fetchRounds {
			return fmt.Errorf("they cannot be had from the job's home: %w", err)
		}
		f.h.log.Info("files of a job are still on their way", "tree", d.String()[:12], "from", home, "error", err)
		if err := f.h.pause(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, fetchPauses)
	}
}

// elsewhere is the sites besides a tree's home that may have it.
type elsewhere struct {
	f     *filer
	home  grid.SiteID
	tree  content.Digest
	asked bool
	sites []grid.SiteID // nearest first
}

// next returns where a tree is got from. Others than home are asked for if that is wanted, once.
func (e *elsewhere) next(ctx context.Context, wanted bool) grid.SiteID {
	if wanted && !e.asked {
		e.asked = true
		ctx, cancel := context.WithTimeout(ctx, elsewhereAsk)
		sites, _, _, err := e.f.h.bring.holders(ctx, &grid.DataSet{Name: dataset.TreeName(e.tree.String()), Size: grid.SizeUnknown})
		cancel()
		if err != nil {
			e.f.h.log.Debug("nobody can be asked who has files of a job", "tree", e.tree, "error", err)
		}
		e.sites = sites[:min(len(sites), elsewhereMax)]
	}
	if len(e.sites) == 0 {
		return e.home
	}
	return e.sites[0]
}

// lend has others know that a tree has come here.
func (e *elsewhere) lend() {
	tree, err := e.f.store.Tree(e.tree)
	if err != nil {
		return // it went again
	}
	h := e.f.h
	h.inbox.put(&dataset.Lend{Name: dataset.TreeName(e.tree.String()), Size: tree.Size(), Until: h.Now().Add(elsewhereSpan)})
}

// missing returns which chunks of a tree are not here, and their bytes; content.ErrAbsent if the
// tree is not.
func (f *filer) missing(d content.Digest) ([]content.Chunk, int64, error) {
	tree, err := f.store.Tree(d)
	if err != nil {
		return nil, 0, err
	}
	f.store.Has(d)
	missing, size := f.store.Missing(tree.Chunks)
	return missing, size, nil
}

// get gets a tree, or what is missing of it, over one stream. What is missing of a tree that
// comes is left to another call if it is much.
func (f *filer) get(ctx context.Context, from grid.SiteID, d content.Digest, missing []content.Chunk) error {
	s, peer, err := f.open(ctx, from, contentProtocol)
	if err != nil {
		return err
	}
	defer s.Reset()
	defer context.AfterFunc(ctx, func() { s.Reset() })()
	if len(missing) == 0 {
		b, err := peer.Tree(d)
		if errors.Is(err, content.ErrAbsent) {
			return errors.New("it does not have them")
		}
		if err != nil {
			return err
		}
		tree, err := content.DecodeTree(b)
		if err != nil {
			return err
		}
		if size := tree.Size(); size > f.cfg.Job {
			return fmt.Errorf("%w: %d bytes, and a job brings at most %d here (files.job)", content.ErrRoom, size, f.cfg.Job)
		}
		if _, err := f.store.Put(b); err != nil {
			return err
		}
		size := int64(0)
		if missing, size = f.store.Missing(tree.Chunks); size >= elsewhereMin {
			return nil
		}
	}
	return f.getChunks(peer, missing)
}

func (f *filer) getChunks(peer *content.Peer, missing []content.Chunk) error {
	var size int64
	for i := range missing {
		size += missing[i].Size
	}
	room, err := f.store.Room(size)
	if err != nil {
		return err
	}
	return getInto(peer, missing, room)
}

// getInto gets chunks into room that is theirs, and gives back what is left of it.
func getInto(peer *content.Peer, missing []content.Chunk, room *content.Room) error {
	defer room.Release()
	return getAll(peer, missing, room.Keep)
}

// getAll gets chunks and returns an error unless all of them are there.
func getAll(peer *content.Peer, missing []content.Chunk, take func(content.Digest, []byte) error) error {
	absent, err := peer.Chunks(missing, take)
	if err == nil && absent > 0 {
		err = fmt.Errorf("it does not have %d of %d parts", absent, len(missing))
	}
	return err
}

// hopeless reports whether an error is this site's: whoever gives what is wanted, it comes again.
func hopeless(err error) bool {
	return errors.Is(err, content.ErrRoom) || errors.Is(err, content.ErrWrite) || content.Full(err)
}

func (f *filer) open(ctx context.Context, site grid.SiteID, protocol string) (network.Stream, *content.Peer, error) {
	s, err := f.h.net.Open(ctx, site, protocol)
	if err != nil {
		return nil, nil, err
	}
	return s, content.NewPeer(s), nil
}

// lay writes a tree where the scratch directory of a process will be.
func (f *filer) lay(ctx context.Context, tree *content.Tree, task *grid.Task, number int) error {
	dir, account, err := f.h.files.Staged(task, number, f.h.cfg.Accounts)
	if err != nil {
		return err
	}
	if free, err := store.Free(filepath.Dir(dir)); err != nil || free-bringsSpace < tree.Size() {
		return errors.Join(err, fmt.Errorf("they have %d bytes, and the disk has no room for them", tree.Size()))
	}
	if err := os.RemoveAll(dir); err != nil { // of an execution that was lost
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	buf := make([]byte, 0, content.ChunkMax) // one chunk is held at a time
	err = content.Lay(ctx, tree, root, &content.Laying{Chunk: func(c content.Chunk) ([]byte, error) { return f.store.Read(c.Digest, buf) }})
	if err == nil && account != nil {
		err = account.Hand(dir)
	}
	if err != nil {
		_ = os.RemoveAll(dir)
	}
	return err
}

// serve gives other sites what they ask for: whoever knows a digest has a job of it. A home
// sees the results of its own jobs and of no others.
func (f *filer) serve(from grid.SiteID, s network.Stream) error {
	f.mu.Lock()
	full := f.serving >= servesMax || f.served[from] >= servesEach
	if !full {
		f.serving++
		f.served[from]++
	}
	f.mu.Unlock()
	if full {
		return errors.New("too many sites get files here") // it tries again
	}
	defer func() {
		f.mu.Lock()
		f.serving--
		if f.served[from]--; f.served[from] == 0 {
			delete(f.served, from)
		}
		f.mu.Unlock()
	}()
	ctx, cancel := context.WithCancel(f.h.ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { s.Reset() })()
	return content.Serve(s, &giver{f: f, ctx: ctx, from: from})
}

// giver is content.Giver for one stream.
type giver struct {
	f    *filer
	ctx  context.Context
	from grid.SiteID
	of   *results // asked for on this stream
}

// Read implements content.Giver.
func (g *giver) Read(d content.Digest, buf []byte) ([]byte, error) {
	if g.of != nil {
		if b, err := g.of.index.Chunk(d, buf); !errors.Is(err, content.ErrAbsent) {
			return b, err
		}
	}
	return g.f.store.Give(d, buf)
}

// Results implements content.Giver.
func (g *giver) Results(job []byte, epoch uint32, what *grid.Files) ([]byte, error) {
	id, err := grid.JobIDFromBytes(job)
	if err != nil {
		return nil, wire.Malformed("%v", err)
	}
	task := given{home: g.from, task: grid.TaskID{Job: id, Epoch: epoch}}
	f := g.f
	if g.of = f.given(task); g.of == nil {
		if what == nil {
			what = &grid.Files{}
		}
		tree, index, err := f.left(g.ctx, task, what)
		if err != nil {
			return nil, err
		}
		b, _, err := tree.Encode()
		if err != nil {
			return nil, err
		}
		g.of = &results{b, index}
		f.remember(task, g.of)
	}
	return g.of.tree, nil
}

// given returns what is remembered, nil if it is not.
func (f *filer) given(is given) *results {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known[is]
}

func (f *filer) remember(is given, r *results) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known[is] == nil {
		f.order = append(f.order, is)
	}
	f.known[is] = r
	for len(f.order) > resultsKnown {
		delete(f.known, f.order[0])
		f.order = f.order[1:]
	}
}

// left returns the tree of what an execution has left and is wanted, and where its chunks are;
// content.ErrAbsent if nothing is kept. What the processes of a squad have left is numbered.
func (f *filer) left(ctx context.Context, of given, what *grid.Files) (*content.Tree, *content.Index, error) {
	dirs := f.h.files.Left(of.home, of.task)
	if len(dirs) == 0 {
		return nil, nil, content.ErrAbsent
	}
	_, _, squad := grid.SquadOf(of.task)
	wanted := f.wanted(what)
	var all []content.Source
	var left int64
	var why string
	for _, one := range dirs {
		root, err := os.OpenRoot(one.Dir)
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil, content.ErrAbsent
		}
		if err != nil {
			return nil, nil, err
		}
		sources, more, first, err := content.Scan(ctx, root, wanted) // what is found is opened below root later
		if err != nil || len(sources) == 0 {
			root.Close()
		}
		if err != nil {
			return nil, nil, err
		}
		if left += more; why == "" {
			why = first
		}
		if squad {
			sources = content.Numbered(one.Number, sources)
		}
		for i := range sources {
			wanted.Limits.Size -= sources[i].Size
		}
		wanted.Limits.Entries -= len(sources)
		all = append(all, sources...)
	}
	tree, err := content.Build(ctx, all)
	if err != nil {
		return nil, nil, err
	}
	tree.Left, tree.Why = left, why
	return tree, content.NewIndex(tree, all), nil
}

// wanted returns what of a job's results is brought home.
func (f *filer) wanted(what *grid.Files) *content.Wanted {
	w := &content.Wanted{Out: what.Out, Limits: content.Limits{Entries: content.EntriesMax, Size: f.cfg.Loose}}
	if len(w.Out) > 0 {
		w.Limits.Size = f.cfg.Job
	} else {
		w.Out = nil
	}
	if d, err := content.ParseDigest(what.Tree); err == nil {
		w.Before, _ = f.store.Tree(d) // without it all that is there is new
	}
	return w
}
