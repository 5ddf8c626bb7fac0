package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"gridnode/coalloc/dataset"
	"gridnode/grid"
)

// folderMax bounds the files of a directory that is a data set.
const folderMax = 1_000_000

// Measure looks at a file or directory that is to be a data set. Without a name it is
// named by its content; a name that is a digest must be that of the content.
func Measure(ctx context.Context, name, path string) (dataset.Set, error) {
	set := dataset.Set{DataSet: grid.DataSet{Name: name}, Path: path}
	info, err := os.Stat(path)
	if err != nil {
		return set, err
	}
	byContent := name == "" || len(name) > len(grid.DigestPrefix) && name[:len(grid.DigestPrefix)] == grid.DigestPrefix
	switch {
	case info.IsDir() && byContent:
		return set, fmt.Errorf("%s is a directory, which has no digest: give a name", path)
	case info.IsDir():
		set.Folder = true
		set.Size, err = folderSize(ctx, path)
		return set, err
	case !info.Mode().IsRegular():
		return set, fmt.Errorf("%s is neither a file nor a directory", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return set, err
	}
	defer file.Close()
	set.Size, set.Modified = info.Size(), info.ModTime().UnixNano()
	if !byContent {
		return set, nil
	}
	digest, n, err := DigestOf(ctx, file)
	switch {
	case err != nil:
		return set, err
	case n != set.Size:
		return set, fmt.Errorf("%s changes while it is read", path)
	case name != "" && name != digest:
		return set, fmt.Errorf("%s has the digest %s", path, digest)
	}
	set.Name = digest
	return set, nil
}

// DigestOf returns the name by which content is known, and its size.
func DigestOf(ctx context.Context, r io.Reader) (name string, size int64, err error) {
	hash := sha256.New()
	size, err = io.Copy(hash, &untilDone{ctx, r})
	return grid.DigestPrefix + hex.EncodeToString(hash.Sum(nil)), size, err
}

// untilDone reads until its context ends.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u *untilDone) Read(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(b)
}

var errFolder = errors.New("it has too many files")

// folderSize returns the bytes of the files below a directory.
func folderSize(ctx context.Context, path string) (size int64, err error) {
	files := 0
	err = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if files++; files > folderMax {
			return fmt.Errorf("%s: %w: at most %d", path, errFolder, folderMax)
		}
		if !d.Type().IsRegular() {
			return ctx.Err()
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		size += info.Size()
		return ctx.Err()
	})
	return size, err
}
