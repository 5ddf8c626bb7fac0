package shim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Making two files takes about as long as running a short job, removing them longer, and most
// short jobs write nothing. So a task whose files are made late writes into empty ones that lie
// ready in a directory beside those of tasks. With its first byte, of which inotify tells, a
// file gets the name that it is to have. One that is still empty when nothing is left of its
// task lies ready for the next.

// SpareDir is the name of that directory.
const SpareDir = ".spare"

// sparesMax bounds the files that lie ready.
const sparesMax = 256

// spares are the empty files of one directory.
type spares struct {
	dir   string   // where they lie
	free  []string // paths of those that nobody has
	made  int
	watch *os.File
	users map[string]*output // by path
	tell  func(func())       // has the loop do something
}

// openSpares makes the directory anew: what lies there belonged to tasks of an earlier shim, which
// are lost with what they wrote.
func openSpares(dir string, tell func(func())) (*spares, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("inotify: %w", err)
	}
	s := &spares{dir: dir, watch: os.NewFile(uintptr(fd), "inotify"), users: make(map[string]*output), tell: tell}
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_MODIFY|unix.IN_ONLYDIR); err != nil {
		s.watch.Close()
		return nil, fmt.Errorf("watch %s: %w", dir, err)
	}
	go s.listen()
	return s, nil
}

// listen names files that are written to until the watch is closed.
func (s *spares) listen() {
	buf := make([]byte, 16<<10)
	for {
		n, err := s.watch.Read(buf)
		if err != nil {
			return
		}
		var names []string
		for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
			names = append(names, string(bytes.TrimRight(b[unix.SizeofInotifyEvent:size], "\x00")))
			b = b[size:]
		}
		s.tell(func() {
			for _, name := range names { // none: some were missed, which the next look finds
				if o := s.users[filepath.Join(s.dir, name)]; o != nil {
					o.trim()
				}
			}
		})
	}
}

// open returns an empty file and where it is. The caller notes who has it.
func (s *spares) open() (fd int, path string, err error) {
	const flags = syscall.O_WRONLY | syscall.O_APPEND | syscall.O_CLOEXEC | syscall.O_NOFOLLOW
	for len(s.free) > 0 {
		path, s.free = s.free[len(s.free)-1], s.free[:len(s.free)-1]
		fd, err := syscall.Open(path, flags, 0)
		if err == nil && pristine(fd) {
			return fd, path, nil
		}
		if err == nil {
			syscall.Close(fd)
		}
		_ = os.Remove(path) // its name is not used again
	}
	s.made++
	path = filepath.Join(s.dir, strconv.Itoa(s.made))
	fd, err = syscall.Open(path, flags|syscall.O_CREAT|syscall.O_EXCL, 0o600)
	if err != nil {
		return -1, "", &os.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, path, nil
}

// pristine reports whether a file is as it was made and nobody else has it open: a task could do
// anything to its own, and hand it to another that lives on.
func pristine(fd int) bool {
	var info syscall.Stat_t
	if syscall.Fstat(fd, &info) != nil || info.Mode != syscall.S_IFREG|0o600 || info.Size != 0 || info.Nlink != 1 {
		return false
	}
	// A lease to write is had on a file only that is open once.
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		return false
	}
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
	return err == nil
}

// give takes a file back whose task is gone.
func (s *spares) give(path string) {
	delete(s.users, path)
	if len(s.free) >= sparesMax {
		_ = os.Remove(path) // its name is not used again
		return
	}
	s.free = append(s.free, path)
}

func (s *spares) close() {
	if s != nil {
		s.watch.Close()
	}
}
