// Package atomicfile writes files of which a crash or a power cut leaves the old or the new one,
// whole.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Write has path name a new file with this text and mode, whatever was there. It returns once
// that is on disk. A link is replaced, not followed. May be called concurrently: one text wins.
func Write(path string, text []byte, mode fs.FileMode) error {
	return Fill(path, mode, func(file *os.File) error { _, err := file.Write(text); return err })
}

// Rewrite is Write for a file that people look after: a link is followed, and its mode and, where
// root writes, its owner stay. One that was not there gets mode 0600.
func Rewrite(path string, text []byte) error {
	path, err := followed(path)
	if err != nil {
		return err
	}
	before, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Write(path, text, 0o600)
	}
	if err != nil {
		return err
	}
	return Fill(path, before.Mode().Perm(), func(file *os.File) error {
		if s, ok := before.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
			if err := file.Chown(int(s.Uid), int(s.Gid)); err != nil {
				return err
			}
		}
		_, err := file.Write(text)
		return err
	})
}

// linksMost bounds how many links in a row are followed.
const linksMost = 40

// followed returns where a path leads, which need not be there.
func followed(path string) (string, error) {
	for range linksMost {
		target, err := os.Readlink(path)
		if err != nil {
			return path, nil
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	return "", &fs.PathError{Op: "follow", Path: path, Err: syscall.ELOOP}
}

// Fill is Write of what fill writes. If fill fails nothing has changed, and Fill returns its
// error.
func Fill(path string, mode fs.FileMode, fill func(*os.File) error) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".new-*") // of mode 0600
	if err != nil {
		return err
	}
	err = fill(file)
	if err == nil {
		err = errors.Join(file.Chmod(mode), file.Sync())
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes the creation, renaming and removal of files in a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(filepath.Clean(dir))
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}
