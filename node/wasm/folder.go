package wasm

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	wsys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/sys"
)

// entrySize is what every file, directory and link counts at least: it bounds their number.
const entrySize = 4096

// folder is the one directory that a module sees. Every path is looked up below it by
// os.Root: neither .. nor a symbolic link leads out, whenever it was made. What lies in it,
// and how much of it is open, is counted and bounded. Only the module's thread uses it.
type folder struct {
	wsys.UnimplementedFS // no hard links: then each file has one name, and is counted once
	root                 *os.Root
	disk, files          int64 // bounds; 0: none
	used                 int64 // bytes
	open                 map[uint64]*opened
	handles              int64 // open files and directories
}

// opened is a file that is open at least once.
type opened struct {
	size    int64 // as it is counted
	handles int
	gone    bool // it has no name any more: its bytes are free when it is closed
}

// openFolder takes a directory as it is; what lies in it counts.
func openFolder(dir string, disk, files int64) (*folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	f := &folder{root: root, disk: disk, files: files, open: make(map[uint64]*opened)}
	err = fs.WalkDir(root.FS(), ".", func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // it may go on without
		}
		if info, err := entry.Info(); err == nil {
			f.used += cost(info)
		}
		return nil
	})
	return f, err
}

// cost is what a file counts.
func cost(info fs.FileInfo) int64 {
	if !info.Mode().IsRegular() {
		return entrySize
	}
	return costOf(info.Size())
}

func costOf(size int64) int64 { return max(size, entrySize) }

// take counts bytes more, unless there is no room for them.
func (f *folder) take(bytes int64) bool {
	if f.disk > 0 && bytes > 0 && f.used+bytes > f.disk {
		return false
	}
	f.used += bytes
	return true
}

// full is what a module is told that has no room left. WASI as wazero speaks it has no
// word for it.
const full = wsys.EIO

// errnoOf translates an error. What os.Root refuses has no number of its own.
func errnoOf(err error) wsys.Errno {
	var number syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &number) || errors.Is(err, fs.ErrInvalid) || errors.Is(err, fs.ErrClosed) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist):
		return wsys.UnwrapOSError(err)
	}
	return wsys.EPERM // it leads out
}

// below returns a path as os.Root wants it.
func below(path string) string {
	path = strings.TrimLeft(path, "/")
	if path == "" {
		return "."
	}
	return filepath.Clean(path)
}

// inode names a file among those of the directory.
func inode(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}

var accessFlags = []struct {
	flag wsys.Oflag
	os   int
}{
	{wsys.O_RDWR, os.O_RDWR}, {wsys.O_WRONLY, os.O_WRONLY}, {wsys.O_APPEND, os.O_APPEND}, {wsys.O_CREAT, os.O_CREATE},
	{wsys.O_EXCL, os.O_EXCL}, {wsys.O_DIRECTORY, syscall.O_DIRECTORY}, {wsys.O_NOFOLLOW, syscall.O_NOFOLLOW},
}

// OpenFile implements wsys.FS.
func (f *folder) OpenFile(path string, flag wsys.Oflag, perm fs.FileMode) (wsys.File, wsys.Errno) {
	if f.files > 0 && f.handles >= f.files {
		return nil, wsys.EAGAIN // too many are open
	}
	path = below(path)
	flags := 0
	for _, a := range accessFlags {
		if flag&a.flag != 0 {
			flags |= a.os
		}
	}
	if flags&os.O_CREATE != 0 {
		if errno := f.make(path, flags, perm); errno != 0 {
			return nil, errno
		}
		flags &^= os.O_CREATE | os.O_EXCL
	}
	handle, err := f.root.OpenFile(path, flags, 0)
	if err != nil {
		return nil, errnoOf(err)
	}
	info, err := handle.Stat()
	if err == nil && flags&syscall.O_NOFOLLOW != 0 { // a Root follows links that lead to what is below it, whatever flags say
		var there fs.FileInfo
		if there, err = f.root.Lstat(path); err == nil && !os.SameFile(info, there) {
			err = syscall.ELOOP
		}
	}
	if err != nil {
		handle.Close()
		return nil, errnoOf(err)
	}
	f.handles++
	if info.IsDir() {
		return &dir{in: f, path: path, handle: handle}, 0
	}
	ino := inode(info)
	o := f.open[ino]
	if o == nil {
		o = &opened{size: cost(info)}
		f.open[ino] = o
	}
	o.handles++
	file := &file{in: f, handle: handle, path: path, flags: flags, ino: ino, as: o}
	if flag&wsys.O_TRUNC != 0 {
		if errno := file.Truncate(0); errno != 0 {
			file.Close()
			return nil, errno
		}
	}
	return file, 0
}

// make makes a file that is not there, if there is room for it. That it is there is an error
// only with O_EXCL.
func (f *folder) make(path string, flags int, perm fs.FileMode) wsys.Errno {
	if !f.take(entrySize) {
		if _, err := f.root.Stat(path); err == nil && flags&os.O_EXCL == 0 {
			return 0
		}
		return full
	}
	handle, err := f.root.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|flags&syscall.O_NOFOLLOW, perm.Perm()|0o600)
	if err != nil {
		f.used -= entrySize
		if flags&os.O_EXCL == 0 && errors.Is(err, fs.ErrExist) {
			return 0
		}
		return errnoOf(err)
	}
	return errnoOf(handle.Close())
}

// Lstat implements wsys.FS.
func (f *folder) Lstat(path string) (sys.Stat_t, wsys.Errno) { return stat(f.root.Lstat(below(path))) }

// Stat implements wsys.FS.
func (f *folder) Stat(path string) (sys.Stat_t, wsys.Errno) { return stat(f.root.Stat(below(path))) }

func stat(info fs.FileInfo, err error) (sys.Stat_t, wsys.Errno) {
	if err != nil {
		return sys.Stat_t{}, errnoOf(err)
	}
	return sys.NewStat_t(info), 0
}

// Mkdir implements wsys.FS.
func (f *folder) Mkdir(path string, perm fs.FileMode) wsys.Errno {
	return f.entry(f.root.Mkdir, below(path), perm.Perm()|0o700)
}

// Symlink implements wsys.FS: a link may name anything, and leads only to what is here.
func (f *folder) Symlink(target, link string) wsys.Errno {
	return f.entry(func(link string, _ fs.FileMode) error { return f.root.Symlink(target, link) }, below(link), 0)
}

// entry makes a directory or link, if there is room for it.
func (f *folder) entry(make func(string, fs.FileMode) error, path string, perm fs.FileMode) wsys.Errno {
	if !f.take(entrySize) {
		return full
	}
	err := make(path, perm)
	if err != nil {
		f.used -= entrySize
	}
	return errnoOf(err)
}

// Readlink implements wsys.FS.
func (f *folder) Readlink(path string) (string, wsys.Errno) {
	target, err := f.root.Readlink(below(path))
	return target, errnoOf(err)
}

// Chmod implements wsys.FS.
func (f *folder) Chmod(path string, perm fs.FileMode) wsys.Errno {
	return errnoOf(f.root.Chmod(below(path), perm.Perm()))
}

// Utimens implements wsys.FS.
func (f *folder) Utimens(path string, atim, mtim int64) wsys.Errno {
	return errnoOf(f.root.Chtimes(below(path), instant(atim), instant(mtim)))
}

// instant turns a time of WASI into one that os.Chtimes takes: zero leaves it as it is.
func instant(nanos int64) time.Time {
	if nanos == wsys.UTIME_OMIT {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}

// Rename implements wsys.FS.
func (f *folder) Rename(from, to string) wsys.Errno {
	from, to = below(from), below(to)
	old, err := f.root.Lstat(from)
	if err != nil {
		return errnoOf(err)
	}
	target, missing := f.root.Lstat(to)
	if err := f.root.Rename(from, to); err != nil {
		return errnoOf(err)
	}
	if missing == nil && !os.SameFile(old, target) {
		f.remove(target)
	}
	return 0
}

// remove counts a file that has lost its name no more, or not after it is closed.
func (f *folder) remove(info fs.FileInfo) {
	if o := f.open[inode(info)]; o != nil && info.Mode().IsRegular() {
		o.gone = true
		return
	}
	f.used -= cost(info)
}

// Rmdir implements wsys.FS.
func (f *folder) Rmdir(path string) wsys.Errno { return f.unlink(path, true) }

// Unlink implements wsys.FS.
func (f *folder) Unlink(path string) wsys.Errno { return f.unlink(path, false) }

func (f *folder) unlink(path string, isDir bool) wsys.Errno {
	path = below(path)
	info, err := f.root.Lstat(path)
	switch {
	case err != nil:
		return errnoOf(err)
	case info.IsDir() && !isDir:
		return wsys.EISDIR
	case !info.IsDir() && isDir:
		return wsys.ENOTDIR
	}
	if err := f.root.Remove(path); err != nil {
		return errnoOf(err)
	}
	f.remove(info)
	return 0
}
