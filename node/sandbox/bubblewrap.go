package sandbox

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// programs are where bubblewrap is looked for. PATH may lead to what somebody else wrote.
var programs = []string{"/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap"}

// guest is who a task believes to be.
const (
	guestID   = 65534
	guestName = "guest"
)

// sharedMemory is how much a task has in /dev/shm at most.
const sharedMemory = 64 << 20

// diskDefault bounds a folder for which no limit is given: memory is never without bounds.
const diskDefault = 256 << 20

// disk returns the size of the task's folder.
func (p *Plan) disk() int64 {
	if p.Limits.Disk > 0 {
		return p.Limits.Disk
	}
	return diskDefault
}

// deviceLinks are what programs find below /dev besides devices.
var deviceLinks = []struct{ path, target string }{
	{"/dev/fd", "/proc/self/fd"}, {"/dev/stdin", "/proc/self/fd/0"}, {"/dev/stdout", "/proc/self/fd/1"}, {"/dev/stderr", "/proc/self/fd/2"},
}

// bubblewrap returns the command line of bwrap, up to the command. etc is the directory that
// the task sees as /etc; filter is the descriptor of the filter of system calls; user is who
// it runs as, 0 for this process's account; dir is the directory that it was given; hide are variables the task does not get.
func (p *Plan) bubblewrap(etc string, filter int, user uint32, dir string, hide []string) (args []string) {
	add := func(words ...string) { args = append(args, words...) }
	add(p.Program, "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try")
	if !p.Network && len(p.Ports) == 0 && !p.alone(user) {
		add("--unshare-net")
	}
	id := strconv.Itoa(guestID)
	add("--uid", id, "--gid", id, "--hostname", guestName, "--cap-drop", "ALL", "--die-with-parent")
	for _, name := range hide {
		add("--unsetenv", name)
	}
	for _, path := range system {
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		// A link to another place of the system stays one: /bin is /usr/bin on most.
		if target, err := os.Readlink(path); err == nil && info.Mode()&os.ModeSymlink != 0 {
			add("--symlink", target, path)
			continue
		}
		if empty(path) {
			continue
		}
		add("--ro-bind", path, path)
	}
	add("--ro-bind", etc, "/etc", "--proc", "/proc")
	for _, path := range devices {
		add("--dev-bind", path, path)
	}
	for _, path := range p.Devices {
		add("--dev-bind-try", path, path)
	}
	if len(p.Devices) > 0 {
		for _, path := range deviceFacts {
			if !within(path, "/proc") { // all of that is there
				add("--ro-bind-try", path, path)
			}
		}
	}
	for _, l := range deviceLinks {
		add("--symlink", l.target, l.path)
	}
	add("--size", strconv.FormatInt(min(p.disk(), sharedMemory), 10), "--perms", "0700", "--tmpfs", "/dev/shm")
	if p.Kept {
		add("--bind", dir, Folder)
	} else {
		add("--size", strconv.FormatInt(p.disk(), 10), "--perms", "0700", "--tmpfs", Folder)
	}
	for _, path := range p.Read {
		add("--ro-bind", path, path)
	}
	add("--remount-ro", "/", "--chdir", Folder, "--seccomp", strconv.Itoa(filter), "--")
	return args
}

// sockets says which sockets a task that shares no network may make.
func (p *Plan) sockets() netFilter {
	switch {
	case p.Network:
		return netAll
	case len(p.Ports) > 0:
		return netTCP
	}
	return netOwn
}

// calls returns the filter of system calls for bwrap.
func (p *Plan) calls() ([]byte, error) {
	policy, err := filter(false, p.sockets())
	if err != nil {
		return nil, err
	}
	return program(policy)
}

// empty reports whether a directory holds nothing.
func empty(dir string) bool {
	d, err := os.Open(dir)
	if err != nil {
		return true
	}
	defer d.Close()
	names, _ := d.Readdirnames(1)
	return len(names) == 0
}

// memory returns a descriptor from which data can be read once.
func memory(data []byte) (int, error) {
	fd, err := unix.MemfdCreate("gridnode", unix.MFD_CLOEXEC)
	if err != nil {
		return -1, os.NewSyscallError("memfd_create", err)
	}
	if _, err := unix.Pwrite(fd, data, 0); err != nil {
		unix.Close(fd)
		return -1, os.NewSyscallError("write", err)
	}
	return fd, nil
}
