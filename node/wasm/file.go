package wasm

import (
	"errors"
	"io"
	"os"

	wsys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/sys"
)

// place is an offset. By this name of the type, the methods of wazero's interface are told
// from those of io.Seeker, which they are not.
type place = int64

// file is a file of a folder that is open.
type file struct {
	in     *folder
	handle *os.File
	path   string
	flags  int
	ino    uint64
	as     *opened
	closed bool
}

func (f *file) Dev() (uint64, wsys.Errno)               { return 0, 0 }
func (f *file) Ino() (sys.Inode, wsys.Errno)            { return f.ino, 0 }
func (f *file) IsDir() (bool, wsys.Errno)               { return false, 0 }
func (f *file) IsAppend() bool                          { return f.flags&os.O_APPEND != 0 }
func (f *file) Stat() (sys.Stat_t, wsys.Errno)          { return stat(f.handle.Stat()) }
func (f *file) Readdir(int) ([]wsys.Dirent, wsys.Errno) { return nil, wsys.ENOTDIR }
func (f *file) Sync() wsys.Errno                        { return errnoOf(f.handle.Sync()) }
func (f *file) Datasync() wsys.Errno                    { return f.Sync() }

// SetAppend opens the file once more: the kernel does not change it.
func (f *file) SetAppend(enable bool) wsys.Errno {
	flags := f.flags &^ os.O_APPEND
	if enable {
		flags |= os.O_APPEND
	}
	if flags == f.flags {
		return 0
	}
	again, err := f.in.root.OpenFile(f.path, flags, 0)
	if err != nil {
		return errnoOf(err)
	}
	info, err := again.Stat()
	at, failed := f.handle.Seek(0, io.SeekCurrent)
	if err == nil && inode(info) != f.ino {
		err = os.ErrNotExist // another file has its name
	}
	if err = errors.Join(err, failed); err == nil {
		_, err = again.Seek(at, io.SeekStart)
	}
	if err != nil {
		again.Close()
		return wsys.EIO
	}
	f.handle.Close()
	f.handle, f.flags = again, flags
	return 0
}

func (f *file) Read(b []byte) (int, wsys.Errno) {
	n, err := f.handle.Read(b)
	return result(n, err)
}

func (f *file) Pread(b []byte, off int64) (int, wsys.Errno) {
	if off < 0 {
		return 0, wsys.EINVAL
	}
	n, err := f.handle.ReadAt(b, off)
	return result(n, err)
}

// result leaves the end of a file to be told by no bytes.
func result(n int, err error) (int, wsys.Errno) {
	if err == io.EOF {
		err = nil
	}
	return n, errnoOf(err)
}

func (f *file) Seek(offset place, whence int) (int64, wsys.Errno) {
	if whence < io.SeekStart || whence > io.SeekEnd {
		return 0, wsys.EINVAL
	}
	at, err := f.handle.Seek(offset, whence)
	return at, errnoOf(err)
}

// room makes sure that the file may be of a size, and counts it as such.
func (f *file) room(size int64) wsys.Errno {
	more := costOf(size) - f.as.size
	if more <= 0 {
		return 0
	}
	if !f.in.take(more) {
		return full
	}
	f.as.size += more
	return 0
}

func (f *file) Write(b []byte) (int, wsys.Errno) {
	whence := io.SeekCurrent
	if f.IsAppend() {
		whence = io.SeekEnd
	}
	at, err := f.handle.Seek(0, whence)
	if err != nil {
		return 0, errnoOf(err)
	}
	if errno := f.room(at + int64(len(b))); errno != 0 {
		return 0, errno
	}
	n, err := f.handle.Write(b)
	return n, errnoOf(err)
}

func (f *file) Pwrite(b []byte, off int64) (int, wsys.Errno) {
	if off < 0 || off+int64(len(b)) < 0 {
		return 0, wsys.EINVAL
	}
	if f.IsAppend() {
		return f.Write(b)
	}
	if errno := f.room(off + int64(len(b))); errno != 0 {
		return 0, errno
	}
	n, err := f.handle.WriteAt(b, off)
	return n, errnoOf(err)
}

func (f *file) Truncate(size int64) wsys.Errno {
	if size < 0 {
		return wsys.EINVAL
	}
	if errno := f.room(size); errno != 0 {
		return errno
	}
	if err := f.handle.Truncate(size); err != nil {
		return errnoOf(err)
	}
	f.in.used += costOf(size) - f.as.size
	f.as.size = costOf(size)
	return 0
}

func (f *file) Utimens(atim, mtim int64) wsys.Errno { return f.in.Utimens(f.path, atim, mtim) }

func (f *file) Close() wsys.Errno {
	if f.closed {
		return 0
	}
	f.closed = true
	f.in.handles--
	if f.as.handles--; f.as.handles == 0 {
		delete(f.in.open, f.ino)
		f.in.used -= f.as.size
		if info, err := f.handle.Stat(); err == nil && !f.as.gone {
			f.in.used += cost(info)
		}
	}
	return errnoOf(f.handle.Close())
}

// dir is a directory of a folder that is open.
type dir struct {
	wsys.DirFile
	in     *folder
	path   string
	handle *os.File
	closed bool
}

func (d *dir) Dev() (uint64, wsys.Errno)      { return 0, 0 }
func (d *dir) Stat() (sys.Stat_t, wsys.Errno) { return stat(d.handle.Stat()) }
func (d *dir) Sync() wsys.Errno               { return 0 }
func (d *dir) Datasync() wsys.Errno           { return 0 }
func (d *dir) Utimens(a, m int64) wsys.Errno  { return d.in.Utimens(d.path, a, m) }
func (d *dir) Ino() (sys.Inode, wsys.Errno) {
	st, errno := d.Stat()
	return st.Ino, errno
}

// Seek goes back to the beginning, and nowhere else.
func (d *dir) Seek(offset place, whence int) (int64, wsys.Errno) {
	if offset != 0 || whence != io.SeekStart {
		return 0, wsys.EINVAL
	}
	_, err := d.handle.Seek(0, io.SeekStart)
	return 0, errnoOf(err)
}

func (d *dir) Readdir(n int) (list []wsys.Dirent, errno wsys.Errno) {
	entries, err := d.handle.ReadDir(n)
	for _, entry := range entries {
		e := wsys.Dirent{Name: entry.Name(), Type: entry.Type()}
		if info, err := entry.Info(); err == nil {
			e.Ino = inode(info)
		}
		list = append(list, e)
	}
	if err == io.EOF {
		err = nil
	}
	return list, errnoOf(err)
}

func (d *dir) Close() wsys.Errno {
	if d.closed {
		return 0
	}
	d.closed = true
	d.in.handles--
	return errnoOf(d.handle.Close())
}
