package node

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"gridnode/coalloc/dataset"
	"gridnode/grid"
	"gridnode/internal/atomicfile"
	"gridnode/internal/wire"
	"gridnode/node/content"
	"gridnode/node/run"
	"gridnode/node/site"
	"gridnode/node/store"
)

// Bounds of what is brought to this site.
const (
	bringsMax   = 4       // data sets being copied here at the same time
	bringsSpace = 1 << 30 // bytes that have to be left on the disk
	bringRounds = 3       // through all holders
	bringPause  = 2 * time.Second
)

// bringer gives tasks what they read: the paths of data sets that this site holds, and
// copies of those that it does not.
type bringer struct {
	h     *Host
	most  int64 // bytes copied for one job
	slots chan struct{}

	mu    sync.Mutex
	under map[string]*bringing // by path
}

// bringing is a copy that is being made.
type bringing struct {
	done chan struct{}
	err  error // set before done is closed
}

func newBringer(h *Host, most int64) *bringer {
	return &bringer{h: h, most: most, slots: make(chan struct{}, bringsMax), under: make(map[string]*bringing)}
}

// inputs returns the paths of data sets, in their order, and makes copies in dir of
// those that are not here. It blocks until all are there. An error says which one is not
// and why.
func (b *bringer) inputs(ctx context.Context, sets []grid.DataSet, dir string) ([]string, error) {
	paths := make([]string, len(sets))
	left := b.most
	for i := range sets {
		path, err := b.here(ctx, &sets[i])
		if err != nil {
			return nil, err
		}
		if path == "" {
			if path, err = b.copied(ctx, &sets[i], dir, &left); err != nil {
				return nil, fmt.Errorf("input %s is not here: %w", sets[i].Name, err)
			}
		}
		paths[i] = path
	}
	return paths, nil
}

// here returns the path of a data set that this site holds, "" if it does not.
func (b *bringer) here(ctx context.Context, set *grid.DataSet) (string, error) {
	var held dataset.Set
	holds := false
	if err := b.h.Do(ctx, func(s *site.Site) { held, holds = s.DataSet(set.Name) }); err != nil {
		return "", err
	}
	if !holds || set.Size != grid.SizeUnknown && set.Size != held.Size {
		return "", nil
	}
	return held.Path, intact(&held)
}

// intact returns an error unless a data set is as it was when it was entered. Of a
// directory only that it is one is looked at.
func intact(held *dataset.Set) error {
	info, err := os.Stat(held.Path)
	switch {
	case err != nil:
		return fmt.Errorf("data set %s: %w", held.Name, err)
	case held.Folder && info.IsDir():
	case held.Folder || !info.Mode().IsRegular() || info.Size() != held.Size || info.ModTime().UnixNano() != held.Modified:
		return fmt.Errorf("data set %s: %s has changed since it was added", held.Name, held.Path)
	}
	return nil
}

// copied returns the path of a copy of a data set in dir, and makes it if need be. left
// is what may still be copied for the job.
func (b *bringer) copied(ctx context.Context, set *grid.DataSet, dir string, left *int64) (string, error) {
	path := filepath.Join(dir, copyName(set.Name))
	for {
		if info, err := os.Stat(path); err == nil {
			*left -= info.Size()
			return path, nil
		}
		b.mu.Lock()
		c := b.under[path]
		mine := c == nil
		if mine {
			c = &bringing{done: make(chan struct{})}
			b.under[path] = c
		}
		b.mu.Unlock()
		if mine {
			c.err = b.bring(ctx, set, path, left)
			b.mu.Lock()
			delete(b.under, path)
			b.mu.Unlock()
			close(c.done)
			return path, c.err
		}
		select {
		case <-c.done:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		if c.err != nil && !errors.Is(c.err, context.Canceled) && !errors.Is(c.err, context.DeadlineExceeded) { // if whoever made it has gone, we do
			return "", c.err
		}
	}
}

// copyName is what the copy of a data set is called: no two are called the same, and
// the end of the name is the data set's.
func copyName(name string) string {
	hash := sha256.Sum256([]byte(name))
	return hex.EncodeToString(hash[:8]) + "-" + name[strings.LastIndexAny(name, "/:")+1:]
}

// errNobody is why nothing is copied.
var errNobody = errors.New("no site that holds it lets others copy it")

// bring makes a copy from whoever has one.
func (b *bringer) bring(ctx context.Context, set *grid.DataSet, path string, left *int64) error {
	select {
	case b.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-b.slots }()
	defer os.Remove(path + run.PartSuffix) // what pour has left
	err := errNobody
	for round := 0; ; round++ {
		holders, size, silent, found := b.holders(ctx, set)
		if found != nil {
			return found
		}
		switch {
		case len(holders) == 0 && silent == 0:
			return err
		case len(holders) > 0 && size > *left:
			return fmt.Errorf("it has %d bytes, and this site copies at most %d for a job (data.fetch)", size, b.most)
		}
		if len(holders) > 0 {
			if err := room(filepath.Dir(path), size); err != nil {
				return err
			}
		}
		for _, from := range holders {
			if err = b.fetch(ctx, from, set.Name, size, path); err == nil {
				*left -= size
				return nil
			}
			b.h.log.Info("a data set could not be copied", "name", set.Name, "from", from, "error", err)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case hopeless(err):
				return err
			}
		}
		if round+1 == bringRounds {
			return err
		}
		if err := b.h.pause(ctx, bringPause); err != nil {
			return err
		}
	}
}

// holders returns who lets others copy a data set, nearest first, its size, and how many
// of those who have announced it do not answer.
func (b *bringer) holders(ctx context.Context, set *grid.DataSet) (sites []grid.SiteID, size int64, silent int, err error) {
	value, err := b.h.Ask(ctx, func(token uint64) grid.Input { return &dataset.Find{Token: token, Name: set.Name} })
	if err != nil {
		return nil, 0, 0, err
	}
	answer := value.(*dataset.Found)
	if answer.Err != nil {
		return nil, 0, 0, answer.Err
	}
	if size = set.Size; size == grid.SizeUnknown {
		size = answer.Size()
	}
	for _, h := range answer.Holding(size) {
		if h.Shared && h.Site != b.h.id {
			sites = append(sites, h.Site)
		}
	}
	latency := make(map[grid.SiteID]grid.Time)
	err = b.h.Do(ctx, func(s *site.Site) {
		network := s.Network(b.h.Now(), append(slices.Clone(sites), b.h.id))
		for i, site := range sites {
			latency[site] = network.Latency(len(sites), i)
		}
	})
	slices.SortStableFunc(sites, func(x, y grid.SiteID) int { return cmp.Compare(latency[x], latency[y]) })
	return sites, size, answer.Silent, err
}

// room makes a directory and returns an error unless its disk has room for size bytes.
func room(dir string, size int64) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	free, err := store.Free(dir)
	if err != nil {
		return err
	}
	if free-bringsSpace < size {
		return fmt.Errorf("it has %d bytes, and the disk has no room for it", size)
	}
	return nil
}

// fetch copies a data set of size bytes from a site to path, with what is here of it. There is
// nothing at path unless all of it is, also after a power cut: who finds it there does not look into it.
func (b *bringer) fetch(ctx context.Context, from grid.SiteID, name string, size int64, path string) error {
	f := b.h.filer
	s, peer, err := f.open(ctx, from, dataProtocol)
	if err != nil {
		return err
	}
	defer s.Reset()
	defer context.AfterFunc(ctx, func() { s.Reset() })()
	text, err := peer.DataSet(name)
	if err != nil {
		return err
	}
	tree, err := content.DecodeTree(text)
	switch {
	case err != nil:
		return err
	case len(tree.Entries) == 0 && tree.Why != "":
		return fmt.Errorf("its holder refuses: %q", tree.Why)
	case len(tree.Entries) != 1 || tree.Entries[0].Kind != content.File || tree.Size() != size:
		return wire.Malformed("data set %s of %d bytes in %d files, it was said to be one of %d", name, tree.Size(), len(tree.Entries), size)
	}
	missing, most := f.store.Missing(tree.Chunks)
	room, err := f.store.Room(most)
	if errors.Is(err, content.ErrRoom) { // the store's, not the disk's
		return f.pour(peer, tree, name, path)
	}
	if err != nil {
		return err
	}
	if err := getInto(peer, missing, room); err != nil {
		return err
	}
	part, err := os.OpenFile(path+run.PartSuffix, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644) // guests have accounts of their own; the home is closed to others
	if err != nil {
		return err
	}
	defer os.Remove(path + run.PartSuffix)
	err = f.copyData(part, tree, name)
	if errors.Is(err, content.ErrAbsent) {
		f.sift(tree) // the next attempt gets it
	}
	if closed := part.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = atomicfile.Place(run.PartSuffix, path)
	}
	return err
}

// pour gets a data set that the store has no room for to where it is wanted, without keeping it.
// What has come stays in the part when it fails, for the next attempt.
func (f *filer) pour(peer *content.Peer, tree *content.Tree, name, path string) error {
	part, err := os.OpenFile(path+run.PartSuffix, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer part.Close()
	missing, places, err := f.lacks(part, tree)
	if err == nil && len(missing) > 0 {
		err = getAll(peer, missing, func(d content.Digest, b []byte) error { return writeAt(part, b, places[d]) })
	}
	if err == nil {
		err = part.Truncate(tree.Size()) // another set's of that name may have been longer
	}
	if digest, addressed := strings.CutPrefix(name, grid.DigestPrefix); err == nil && addressed {
		err = hasDigest(part, name, digest)
	}
	if err != nil {
		return err
	}
	return atomicfile.Place(run.PartSuffix, path)
}

// lacks returns which chunks of a tree of one file are neither in a part of it nor in the store,
// each once, and where they belong. Those in the store are written there.
func (f *filer) lacks(part *os.File, tree *content.Tree) (missing []content.Chunk, places map[content.Digest][]int64, err error) {
	places = make(map[content.Digest][]int64)
	buf := make([]byte, content.ChunkMax)
	at := int64(0)
	for _, c := range tree.Chunks {
		place := at
		at += c.Size
		n, err := part.ReadAt(buf[:c.Size], place)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, nil, err
		}
		if int64(n) == c.Size && sha256.Sum256(buf[:n]) == c.Digest {
			continue
		}
		if places[c.Digest] == nil {
			b, err := f.store.Read(c.Digest, buf)
			switch {
			case errors.Is(err, content.ErrAbsent):
				missing = append(missing, c)
			case err != nil:
				return nil, nil, err
			default:
				if err := writeAt(part, b, []int64{place}); err != nil {
					return nil, nil, err
				}
				continue
			}
		}
		places[c.Digest] = append(places[c.Digest], place)
	}
	return missing, places, nil
}

// writeAt writes something to each of some places of a file.
func writeAt(file *os.File, b []byte, places []int64) error {
	for _, at := range places {
		if _, err := file.WriteAt(b, at); err != nil {
			return fmt.Errorf("%w: %w", content.ErrWrite, err)
		}
	}
	return nil
}

// hasDigest returns an error unless a data set that is named by its digest has it.
func hasDigest(file *os.File, name, digest string) error {
	hash := sha256.New()
	if _, err := io.Copy(hash, io.NewSectionReader(file, 0, math.MaxInt64)); err != nil {
		return err
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != digest {
		return wire.Malformed("data set %s: what was sent has the digest %s", name, got)
	}
	return nil
}

// copyData writes a data set that is in the store, and checks its digest if the name is one.
func (f *filer) copyData(to io.Writer, tree *content.Tree, name string) error {
	digest, addressed := strings.CutPrefix(name, grid.DigestPrefix)
	hash := sha256.New()
	if addressed {
		to = io.MultiWriter(to, hash)
	}
	err := content.Copy(to, tree, tree.Entries[0].Name, func(c content.Chunk) ([]byte, error) { return f.store.Get(c.Digest) })
	if err != nil {
		return err
	}
	if got := hex.EncodeToString(hash.Sum(nil)); addressed && got != digest {
		return wire.Malformed("data set %s: what was sent has the digest %s", name, got)
	}
	return nil
}
