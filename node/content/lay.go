package content

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"
)

// Laying says how a tree is written.
type Laying struct {
	// Chunk returns the content of a chunk; it is trusted.
	Chunk func(Chunk) ([]byte, error)
	// Replace: what is there gives way to files and links of the same name, each at once.
	// Else the directory is empty, and there must be nothing.
	Replace bool
	// Only says which entries are written; nil: all. Folders of those are.
	Only func(*Entry) bool
}

// partSuffix ends the names of files that are being written in place of others.
const partSuffix = ".gridnode-part"

// Lay writes a tree below a directory, and nothing outside of it. It holds one chunk at a
// time. The error names the file.
func Lay(ctx context.Context, t *Tree, root *os.Root, l *Laying) error {
	w := &layer{Laying: l, root: root, ctx: ctx, chunks: t.Chunks}
	defer w.discard()
	for i := range t.Entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		e := &t.Entries[i]
		if err := w.entry(e); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	return w.finish(t)
}

// layer is a tree that is being written.
type layer struct {
	*Laying
	ctx    context.Context
	root   *os.Root
	chunks []Chunk // that were not reached
	rest   []byte  // of the chunk that was
	skip   int64   // bytes of the next chunks that belong to files that are not wanted
	file   *os.File
	name   string // of file
	folded []*Entry
}

func (w *layer) wants(e *Entry) bool { return w.Only == nil || w.Only(e) }

func (w *layer) entry(e *Entry) error {
	if !w.wants(e) {
		w.skip += e.Size
		return nil
	}
	if dir := path.Dir(e.Name); dir != "." && w.Replace {
		if err := w.root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	switch e.Kind {
	case Folder:
		w.folded = append(w.folded, e)
		err := w.root.Mkdir(e.Name, 0o700)
		if w.Replace && errors.Is(err, fs.ErrExist) {
			w.folded = w.folded[:len(w.folded)-1] // somebody else's: its mode stays
			info, failed := w.root.Stat(e.Name)
			if err = failed; err == nil && !info.IsDir() {
				err = errors.New("there is a file of that name")
			}
		}
		return err
	case Link:
		if !w.Replace {
			return w.root.Symlink(e.Target, e.Name)
		}
		part := w.part(e.Name)
		_ = w.root.Remove(part)
		if err := w.root.Symlink(e.Target, part); err != nil {
			return err
		}
		return w.root.Rename(part, e.Name)
	}
	return w.write(e)
}

func (w *layer) part(name string) string {
	dir, base := path.Split(name)
	return dir + "." + base[:min(len(base), 200)] + partSuffix
}

// write writes one file.
func (w *layer) write(e *Entry) (err error) {
	w.name = e.Name
	if w.Replace {
		w.name = w.part(e.Name)
		_ = w.root.Remove(w.name) // what one that was ended has left
	}
	if w.file, err = w.root.OpenFile(w.name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	if err := w.fill(e.Size); err != nil {
		return err
	}
	if err := w.file.Chmod(e.Mode | 0o200); err != nil {
		return err
	}
	if err := w.file.Close(); err != nil {
		return err
	}
	w.file = nil
	at := time.Unix(0, e.Modified)
	if err := w.root.Chtimes(w.name, at, at); err != nil {
		return err
	}
	if w.Replace {
		return w.root.Rename(w.name, e.Name)
	}
	return nil
}

// fill writes the next bytes of the content to the file, and leaves holes for zeros.
func (w *layer) fill(size int64) error {
	hole := false
	for size > 0 {
		some, err := w.some(size)
		if err != nil {
			return err
		}
		if size -= int64(len(some)); zeros(some) {
			hole = true
			if _, err := w.file.Seek(int64(len(some)), 1); err != nil {
				return err
			}
			continue
		}
		hole = false
		if _, err := w.file.Write(some); err != nil {
			return err
		}
	}
	if !hole {
		return nil
	}
	at, err := w.file.Seek(0, 1)
	if err == nil {
		err = w.file.Truncate(at)
	}
	return err
}

// some returns the next bytes of the content, at most most.
func (w *layer) some(most int64) ([]byte, error) {
	for len(w.rest) == 0 {
		if err := w.ctx.Err(); err != nil {
			return nil, err
		}
		if len(w.chunks) == 0 {
			return nil, errors.New("its content is not complete")
		}
		c := w.chunks[0]
		w.chunks = w.chunks[1:]
		if w.skip >= c.Size {
			w.skip -= c.Size
			continue
		}
		b, err := w.Chunk(c)
		if err != nil {
			return nil, err
		}
		if int64(len(b)) != c.Size {
			return nil, fmt.Errorf("a chunk of %d bytes has %d", c.Size, len(b))
		}
		w.rest, w.skip = b[w.skip:], 0
	}
	if w.skip > 0 { // in the middle of a chunk
		n := min(w.skip, int64(len(w.rest)))
		w.rest, w.skip = w.rest[n:], w.skip-n
		return w.some(most)
	}
	b := w.rest[:min(int64(len(w.rest)), most)]
	w.rest = w.rest[len(b):]
	return b, nil
}

func zeros(b []byte) bool {
	if len(b) < 64<<10 {
		return false
	}
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

// finish gives folders their modes, those inside first.
func (w *layer) finish(*Tree) error {
	slices.SortFunc(w.folded, func(x, y *Entry) int { return cmp.Compare(y.Name, x.Name) })
	for _, e := range w.folded {
		if err := w.root.Chmod(e.Name, e.Mode|0o700); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	return nil
}

// discard removes a file that is not complete.
func (w *layer) discard() {
	if w.file != nil {
		w.file.Close()
		_ = w.root.Remove(w.name)
	}
}
