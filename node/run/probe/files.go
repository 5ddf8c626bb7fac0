package probe

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// reads reports a file that can be read.
func reads(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	b := make([]byte, 4096)
	if n, err := f.Read(b); err == nil && n > 0 {
		return escaped("read %d bytes of %s", n, path)
	}
	return nil
}

// lists reports a directory that shows one of its names.
func lists(dir string) error {
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		return escaped("%s shows %s", dir, entries[0].Name())
	}
	return nil
}

// writes reports a file that can be made or written.
func writes(paths ...string) error {
	for _, path := range paths {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			continue
		}
		_, err = f.WriteString("x")
		f.Close()
		if err == nil {
			return escaped("wrote to %s", path)
		}
	}
	return nil
}

var fileProbes = []probe{
	{name: "key", does: "read the site's key", try: func(b *baits) error { return reads(b.Key) }},
	{name: "home", does: "list the site's home", try: func(b *baits) error { return lists(b.Home) }},
	{name: "home-write", does: "make a file in the site's home", try: func(b *baits) error { return writes(filepath.Join(b.Home, "made"), b.Key) }},
	{name: "home-remove", does: "remove and rename the site's key", try: func(b *baits) error {
		if os.Rename(b.Key, b.Key+".gone") == nil || os.Remove(b.Key) == nil {
			return escaped("the key is gone")
		}
		return nil
	}, after: keyIsThere},
	{name: "key-mode", does: "open the site's key to everybody (chmod)", try: func(b *baits) error {
		if os.Chmod(b.Key, 0o666) == nil {
			return escaped("changed the mode of %s", b.Key)
		}
		return nil
	}, after: keyIsThere},
	{name: "key-times", does: "change the times of the site's key", try: func(b *baits) error {
		if unix.Utimes(b.Key, []unix.Timeval{{}, {}}) == nil || unix.UtimesNanoAt(unix.AT_FDCWD, b.Key, []unix.Timespec{{}, {}}, 0) == nil {
			return escaped("changed the times of %s", b.Key)
		}
		return nil
	}, after: keyIsThere},
	{name: "key-link", does: "reach the key by a symbolic and a hard link", try: func(b *baits) error {
		soft, hard := filepath.Join(b.Folder, "soft"), filepath.Join(b.Folder, "hard")
		if err := os.Symlink(b.Key, soft); err != nil {
			return errors.New("cannot make links in the folder: " + err.Error())
		}
		if os.Link(b.Key, hard) == nil {
			return escaped("linked %s", b.Key)
		}
		return reads(soft)
	}},
	{name: "key-handle", does: "reach the key by a file handle", try: func(b *baits) error {
		h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, b.Key, 0)
		if err == nil {
			if fd, err := unix.OpenByHandleAt(unix.AT_FDCWD, h, unix.O_RDONLY); err == nil {
				unix.Close(fd)
				return escaped("opened %s", b.Key)
			}
		}
		return nil
	}},
	{name: "shadow", does: "read the machine's passwords", try: func(*baits) error { return reads("/etc/shadow") }},
	{name: "homes", does: "list the homes of people", try: func(*baits) error { return errors.Join(lists("/root"), lists("/home")) }},
	{name: "temp", does: "read what others have in /tmp", try: func(b *baits) error { return reads(b.Temp) }},
	{name: "shared-file", does: "read what others have in /dev/shm", try: func(b *baits) error { return reads(b.Shared) }},
	{name: "var", does: "list logs and mails", try: func(*baits) error { return errors.Join(lists("/var/log"), lists("/var/lib")) }},
	{name: "system-write", does: "change the system", try: func(*baits) error {
		return writes("/usr/bin/gridnode-probe", "/usr/lib/gridnode-probe", "/etc/passwd", "/etc/gridnode-probe", "/bin/gridnode-probe", "/opt/gridnode-probe")
	}},
	{name: "root-write", does: "make a file in / and beside devices", try: func(*baits) error {
		return writes("/gridnode-probe", "/dev/gridnode-probe", "/proc/gridnode-probe", "/var/gridnode-probe", "/run/gridnode-probe")
	}},
	{name: "devices", does: "open disks, memory and the kernel's log", try: func(*baits) error {
		for _, path := range []string{"/dev/mem", "/dev/kmsg", "/dev/kvm", "/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/fuse", "/dev/loop-control", "/dev/net/tun", "/dev/uinput", "/dev/tty0", "/dev/console"} {
			if fd, err := unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK, 0); err == nil {
				unix.Close(fd)
				return escaped("opened %s", path)
			}
		}
		return nil
	}},
	{name: "mknod", does: "make a device of a disk", try: func(b *baits) error {
		path := filepath.Join(b.Folder, "disk")
		if unix.Mknod(path, unix.S_IFBLK|0o600, int(unix.Mkdev(254, 0))) == nil {
			return reads(path)
		}
		return nil
	}},
	{name: "proc-root", does: "reach files through /proc/PID/root and cwd", try: func(b *baits) error {
		for _, pid := range []string{"1", "self", strconv.Itoa(b.PID), strconv.Itoa(os.Getppid())} {
			for _, way := range []string{"root", "cwd"} {
				if err := reads(filepath.Join("/proc", pid, way, b.Key)); err != nil {
					return err
				}
			}
		}
		return nil
	}},
	{name: "proc-environ", does: "read the environments of other processes", try: func(b *baits) error {
		all, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, path := range all {
			if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), secretEnv+"="+b.Text) {
				return escaped("%s holds a secret", path)
			}
		}
		return nil
	}},
	{name: "proc-memory", does: "open the memory of the daemon", try: func(b *baits) error {
		fd, err := unix.Open("/proc/"+strconv.Itoa(b.PID)+"/mem", unix.O_RDWR, 0)
		if err == nil {
			unix.Close(fd)
			return escaped("opened the memory of process %d", b.PID)
		}
		return nil
	}},
	{name: "kernel-settings", does: "change settings of the kernel", try: func(*baits) error {
		return writes("/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory", "/proc/sysrq-trigger", "/sys/kernel/mm/transparent_hugepage/enabled", "/proc/sys/kernel/hostname")
	}},
	{name: "group-leave", does: "leave the control group", try: func(*baits) error {
		var files []string
		for _, pattern := range []string{"/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/*/cgroup.procs", "/sys/fs/cgroup/*/tasks"} {
			some, _ := filepath.Glob(pattern)
			files = append(files, some...)
		}
		for _, path := range files {
			if os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())), 0) == nil {
				return escaped("moved to %s", path)
			}
		}
		return nil
	}},
	{name: "descriptors", does: "find descriptors that somebody left open", try: func(*baits) error {
		for fd := 3; fd < 1024; fd++ {
			// What this program opened itself closes at execve.
			if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
				return escaped("descriptor %d is open", fd)
			}
		}
		return nil
	}},
	{name: "environment", does: "find the daemon's variables in the environment", try: func(b *baits) error {
		for _, setting := range os.Environ() {
			if name, value, _ := strings.Cut(setting, "="); name != baitsEnv && strings.Contains(value, b.Text) {
				return escaped("%s holds a secret", name)
			}
		}
		return nil
	}},
}

// keyIsThere looks whether the key is as it was.
func keyIsThere(r *runner, _ *outcome) string {
	info, err := os.Stat(r.baits.Key)
	switch {
	case err != nil:
		return err.Error()
	case info.Mode().Perm() != 0o600:
		return "the key has mode " + info.Mode().String()
	case info.ModTime().Unix() == 0 || info.Sys().(*syscall.Stat_t).Size != int64(len(r.baits.Text)):
		return "the key was changed"
	}
	return ""
}
