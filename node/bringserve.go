package node

import (
	"context"
	"crypto/sha256"
	"os"
	"strings"

	"gridnode/coalloc/dataset"
	"gridnode/grid"
	"gridnode/node/content"
	"gridnode/node/site"
)

// dataFile is the name of the one file in the tree of a data set.
const dataFile = "data"

// DataSet implements content.Giver.
func (g *giver) DataSet(name string) ([]byte, error) {
	open, held, why := g.f.h.shared(g.ctx, name)
	if why == "" {
		var err error
		if g.of, err = g.f.listed(g.ctx, &held, open); err == nil {
			g.f.h.log.Info("a data set is copied", "name", held.Name, "bytes", held.Size, "by", g.from)
			return g.of.tree, nil
		}
		g.f.h.log.Warn("a data set that this site has announced cannot be read", "error", err)
		why = "not there any more" // where it was is nobody's business
	}
	b, _, err := (&content.Tree{Why: why}).Encode()
	return b, err
}

// listed returns the tree of a data set, made of its file where it lies. Of streams that want
// the same, one makes it.
func (f *filer) listed(ctx context.Context, held *dataset.Set, open func() (*os.File, error)) (of *results, err error) {
	file, err := open()
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	file.Close()
	if err != nil {
		return nil, err
	}
	is := given{set: held.Name, modified: info.ModTime().UnixNano()}
	err = f.store.Once(sha256.Sum256([]byte("data set "+held.Name)), ctx.Done(), func() error {
		if of = f.given(is); of != nil {
			return nil
		}
		sources := []content.Source{{
			Entry: content.Entry{Name: dataFile, Kind: content.File, Mode: 0o644, Size: held.Size, Modified: is.modified}, Open: open,
		}}
		tree, err := content.Build(ctx, sources)
		if err != nil {
			return err
		}
		text, _, err := tree.Encode()
		if err != nil {
			return err
		}
		of = &results{text, content.NewIndex(tree, sources)}
		f.remember(is, of)
		return nil
	})
	if err == nil && of == nil { // another stream has made it
		if of = f.given(is); of == nil {
			return f.listed(ctx, held, open)
		}
	}
	return of, err
}

// shared returns what opens a data set that others may copy, or says why there is none.
func (h *Host) shared(ctx context.Context, name string) (open func() (*os.File, error), held dataset.Set, why string) {
	known := false
	if err := h.Do(ctx, func(s *site.Site) { held, known = s.DataSet(name) }); err != nil {
		return nil, held, "stopping"
	}
	if digest, addressed := strings.CutPrefix(name, grid.DigestPrefix); addressed && !known && h.modules != nil {
		return h.modules.shared(digest)
	}
	switch {
	case !known:
		return nil, held, "not held"
	case !held.Shared:
		return nil, held, "not shared"
	}
	if err := intact(&held); err != nil {
		h.log.Warn("a data set that this site has announced is not there", "error", err)
		return nil, held, "not there any more" // where it was is nobody's business
	}
	return func() (*os.File, error) { return os.Open(held.Path) }, held, ""
}
