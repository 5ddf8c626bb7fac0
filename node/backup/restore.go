package backup

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gridnode/internal/atomicfile"
	"gridnode/node/site"
	"gridnode/node/store"
)

// manifestMax bounds the text of a manifest.
const manifestMax = 64 << 10

// StoreDir is the folder of the records in a home.
const StoreDir = "store"

// Restore makes a home of a backup. What is there already stays, and the backup is refused
// if it has the same; only a key may be there, for a backup without one. After an error the
// home is as it was.
func Restore(from io.Reader, home string) (m Manifest, err error) {
	packed, err := gzip.NewReader(from)
	if err != nil {
		return m, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	r := &restorer{home: home}
	if m, err = r.restore(tar.NewReader(packed)); err != nil {
		r.undo()
		return m, err
	}
	return m, nil
}

// restorer notes what it makes.
type restorer struct {
	home string
	made []string // paths, parents first
}

func (r *restorer) restore(archive *tar.Reader) (m Manifest, err error) {
	if m, err = readManifest(archive); err != nil {
		return m, err
	}
	if _, err := os.Stat(filepath.Join(r.home, StoreDir)); !errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("%s has a store already: restore into another home, or move it and what belongs to it away", r.home)
	}
	if err := r.folder(r.home); err != nil {
		return m, err
	}
	records := filepath.Join(r.home, "restore.tmp")
	found := false
	for {
		h, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return m, fmt.Errorf("%w: %w", ErrFormat, err)
		}
		at := filepath.Join(r.home, filepath.FromSlash(h.Name))
		switch {
		case h.Name == recordsEntry && !found:
			at, found = records, true
		case !known(h):
			return m, fmt.Errorf("%w: it has an entry %.80q", ErrFormat, h.Name)
		}
		if err := r.folder(filepath.Dir(at)); err != nil {
			return m, err
		}
		if err := r.file(at, archive); err != nil {
			return m, err
		}
	}
	if !found {
		return m, fmt.Errorf("%w: it has no records", ErrFormat)
	}
	if _, err := os.Stat(filepath.Join(r.home, "key")); err != nil {
		return m, fmt.Errorf("the backup was made without keys: put the site's key to %s first", filepath.Join(r.home, "key"))
	}
	dir := filepath.Join(r.home, StoreDir)
	r.made = append(r.made, dir, dir+".anchor")
	if err := store.Restore(dir, records, m.Batch, store.Options{Site: m.Site, Federation: m.Federation, Records: site.RecordsVersion}); err != nil {
		return m, err
	}
	return m, atomicfile.SyncDir(r.home)
}

// readManifest reads the first entry.
func readManifest(archive *tar.Reader) (m Manifest, err error) {
	h, err := archive.Next()
	if err != nil || h.Name != manifestEntry {
		return m, fmt.Errorf("%w: it does not begin with %s", ErrFormat, manifestEntry)
	}
	text, err := io.ReadAll(io.LimitReader(archive, manifestMax))
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	switch {
	case err != nil:
		return m, fmt.Errorf("%w: %s: %w", ErrFormat, manifestEntry, err)
	case m.Format > Format:
		return m, fmt.Errorf("%w: it has format %d, made by gridnode %s, and this program reads up to %d: update it", ErrFormat, m.Format, m.Version, Format)
	case m.Format < 1 || m.Site == "":
		return m, fmt.Errorf("%w: %s names no site", ErrFormat, manifestEntry)
	}
	return m, nil
}

// known reports whether an entry is one of Files: nothing else is written, wherever it
// wants to lie.
func known(h *tar.Header) bool {
	if h.Typeflag != tar.TypeReg || path.Clean(h.Name) != h.Name {
		return false
	}
	return slices.ContainsFunc(Files, func(f File) bool {
		folder, isFolder := strings.CutSuffix(f.Name, "/")
		return h.Name == f.Name || isFolder && path.Dir(h.Name) == folder
	})
}

// folder makes a folder unless it is there.
func (r *restorer) folder(path string) error {
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		if err = r.folder(filepath.Dir(path)); err == nil {
			err = os.Mkdir(path, 0o700)
		}
	}
	if err == nil {
		r.made = append(r.made, path)
	}
	return err
}

// file writes a file that may not be there. Where the packages keep the settings elsewhere, a
// link to what is not there yet leads to it.
func (r *restorer) file(path string, from io.Reader) error {
	if to, err := os.Readlink(path); err == nil {
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already: restore into another home, or move it away", path)
	}
	if err != nil {
		return err
	}
	r.made = append(r.made, path)
	if _, err = io.Copy(file, from); err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("restore %s: %w", path, err)
	}
	return nil
}

// undo removes what was made.
func (r *restorer) undo() {
	for _, path := range slices.Backward(r.made) {
		if filepath.Base(path) == StoreDir && filepath.Dir(path) == r.home {
			_ = os.RemoveAll(path)
			continue
		}
		_ = os.Remove(path) // a folder with other things in it stays
	}
}
