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

	"golang.org/x/sys/unix"
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

// Sync makes files that others have written durable, and their names: those that are not there are
// left out.
func Sync(paths ...string) error {
	dirs, err := syncData(paths)
	return errors.Join(err, syncDirs(dirs))
}

// Place gives files that lie there with a suffix the names without it, in this order, once all
// that is in them is durable: who finds one finds it whole, also after a power cut. It returns
// once the names are durable, too. Those that are not there are left out.
func Place(suffix string, paths ...string) error {
	parts := make([]string, len(paths))
	for i, path := range paths {
		parts[i] = path + suffix
	}
	dirs, err := syncData(parts)
	if err != nil {
		return err
	}
	for i, part := range parts {
		if err := os.Rename(part, paths[i]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return syncDirs(dirs)
}

func syncDirs(dirs map[string]bool) error {
	var errs []error
	for dir := range dirs {
		errs = append(errs, SyncDir(dir))
	}
	return errors.Join(errs...)
}

// syncData makes what is in files durable, and returns the directories of those that are there.
func syncData(paths []string) (dirs map[string]bool, err error) {
	var errs []error
	dirs = make(map[string]bool)
	for _, path := range paths {
		file, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, os.NewSyscallError("fdatasync", unix.Fdatasync(int(file.Fd()))), file.Close())
		dirs[filepath.Dir(path)] = true
	}
	return dirs, errors.Join(errs...)
}

// SyncTree makes durable all that lies below a directory, and whatever else the same file system has.
func SyncTree(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return os.NewSyscallError("syncfs", unix.Syncfs(int(d.Fd())))
}
