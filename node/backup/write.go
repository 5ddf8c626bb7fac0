package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"gridnode/node/store"
)

// Write writes a backup of home, of which snapshot has the records. It fills in the
// manifest's format and batch. It may run while the daemon does: each file of the home is
// replaced as a whole, or only grows.
func Write(to io.Writer, home string, snapshot *store.Snapshot, m Manifest) error {
	m.Format, m.Batch = Format, snapshot.Batch
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	packed := gzip.NewWriter(to)
	w := &writer{tar.NewWriter(packed), m.At}
	err = w.put(manifestEntry, bytes.NewReader(text), int64(len(text)))
	if err == nil {
		err = w.records(home, snapshot)
	}
	for _, f := range Files {
		if err == nil && (m.Keys || !f.Key) {
			err = w.home(home, f.Name)
		}
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = packed.Close()
	}
	if err != nil {
		return fmt.Errorf("write backup: %w", err)
	}
	return nil
}

type writer struct {
	*tar.Writer
	at time.Time
}

func (w *writer) put(name string, from io.Reader, size int64) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: w.at}); err != nil {
		return err
	}
	_, err := io.CopyN(w, from, size)
	return err
}

// records writes the snapshot, by way of a file: its size comes before it.
func (w *writer) records(home string, snapshot *store.Snapshot) error {
	file, err := os.CreateTemp(home, "backup-*.tmp")
	if err != nil {
		return err
	}
	file.Close()
	defer os.Remove(file.Name())
	if err := snapshot.Write(file.Name()); err != nil {
		return err
	}
	return w.file(recordsEntry, file.Name())
}

// home writes a file of the home, or those of a folder.
func (w *writer) home(home, name string) error {
	folder, isFolder := strings.CutSuffix(name, "/")
	if !isFolder {
		return w.file(name, filepath.Join(home, name))
	}
	entries, err := os.ReadDir(filepath.Join(home, folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if err == nil && e.Type().IsRegular() {
			err = w.file(path.Join(folder, e.Name()), filepath.Join(home, folder, e.Name()))
		}
	}
	return err
}

// file writes a file that there may be, as long as it is now.
func (w *writer) file(name, at string) error {
	file, err := os.Open(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	return w.put(name, file, info.Size())
}
