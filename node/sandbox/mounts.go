package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// apart gives the calling thread, which must be root's, file systems of its own: what is
// mounted from now on is seen by it and by what it forks.
func apart(more int) error {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS | more); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts apart: %w", err)
	}
	return nil
}

// inodesPer is how many bytes of a folder there are for each file in it, at least.
const inodesPer = 4096

// inodesLeast is how many files a folder may have, be it as small as it may.
const inodesLeast = 64

// hand gives a directory and all that is in it to a user.
func hand(dir string, user uint32) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(user), int(user))
	})
}

// folder puts an empty directory of the user, of bounded size, over Folder for the calling
// thread, or the directory that the task was given, and enters it. apart was called before.
func (p *Plan) folder(user uint32, dir string) error {
	if p.Kept {
		if err := unix.Mount(dir, Folder, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("folder %s: %w", dir, err)
		}
		if err := unix.Mount("", Folder, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
			return fmt.Errorf("folder %s: %w", dir, err)
		}
		if err := unix.Chdir(Folder); err != nil {
			return &os.PathError{Op: "chdir", Path: Folder, Err: err}
		}
		return nil
	}
	size := p.disk()
	data := fmt.Sprintf("size=%d,nr_inodes=%d,mode=0700,uid=%d,gid=%d", size, max(size/inodesPer, inodesLeast), user, user)
	if err := unix.Mount("guest", Folder, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, data); err != nil {
		return fmt.Errorf("folder of %d bytes: %w", size, err)
	}
	if err := unix.Chdir(Folder); err != nil {
		return &os.PathError{Op: "chdir", Path: Folder, Err: err}
	}
	return nil
}

// expose has paths below directories that are closed to others be found by another
// account: for the calling thread, an empty directory lies over the closed one, with
// nothing but what leads to the path. folder, unless it is nil, puts the task's folder in its
// place meanwhile; paths below that are found there. apart was called before.
func expose(paths []string, folder func() error) error {
	type hidden struct {
		path, closed string
		fd           int
		folder       bool
	}
	var list []hidden
	defer func() {
		for _, h := range list {
			unix.Close(h.fd)
		}
	}()
	for _, path := range paths {
		closed, err := closedAbove(path)
		if err != nil {
			return err
		}
		if folder != nil && within(path, Folder) {
			closed = Folder
		}
		if closed == "" {
			continue
		}
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return &os.PathError{Op: "open", Path: path, Err: err}
		}
		var info unix.Stat_t
		if err := unix.Fstat(fd, &info); err != nil {
			unix.Close(fd)
			return &os.PathError{Op: "stat", Path: path, Err: err}
		}
		list = append(list, hidden{path, closed, fd, info.Mode&unix.S_IFMT == unix.S_IFDIR})
	}
	covered := make(map[string]bool)
	if folder != nil {
		covered[Folder] = true
		if err := folder(); err != nil {
			return err
		}
	}
	for _, h := range list {
		if !covered[h.closed] {
			covered[h.closed] = true
			if err := unix.Mount("guest", h.closed, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=1m,mode=0755"); err != nil {
				return fmt.Errorf("cover %s: %w", h.closed, err)
			}
		}
		if err := target(h.path, h.folder); err != nil {
			return err
		}
		if err := unix.Mount("/proc/self/fd/"+strconv.Itoa(h.fd), h.path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("show %s: %w", h.path, err)
		}
	}
	return nil
}

// target makes what a mount at a path lies over.
func target(path string, folder bool) error {
	dir := path
	if !folder {
		dir = filepath.Dir(path)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil || folder {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// closedAbove returns the uppermost directory above path that others may not enter, empty
// if there is none.
func closedAbove(path string) (string, error) {
	parts := strings.Split(strings.Trim(filepath.Dir(path), "/"), "/")
	for i := range parts {
		dir := "/" + strings.Join(parts[:i+1], "/")
		info, err := os.Stat(dir)
		if err != nil {
			return "", err
		}
		if info.Mode()&0o001 == 0 {
			return dir, nil
		}
	}
	return "", nil
}
