package probe

import (
	"errors"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refused reports a call that was let through to the kernel. What it is given must do no
// harm if it is.
func refused(what string, call uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	n, _, errno := unix.Syscall6(call, a[0], a[1], a[2], a[3], a[4], a[5])
	switch errno {
	case unix.EPERM, unix.ENOSYS, unix.EACCES:
		return nil
	case 0:
		return escaped("%s gave %d", what, n)
	}
	return escaped("%s was let through: %v", what, errno)
}

var kernelProbes = []probe{
	{name: "user-namespace", does: "become root of a user namespace (unshare)", try: func(*baits) error { return refused("unshare", unix.SYS_UNSHARE, unix.CLONE_NEWUSER) }},
	{name: "namespace-clone", does: "start a process in a namespace of its own (clone)", try: func(*baits) error {
		for _, flags := range []uintptr{unix.CLONE_NEWUSER, unix.CLONE_NEWUSER | unix.CLONE_NEWNS, unix.CLONE_NEWUSER | unix.CLONE_NEWNET} {
			cmd := exec.Command("/bin/true")
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
			if cmd.Run() == nil {
				return escaped("a process with flags %x", flags)
			}
		}
		return nil
	}},
	{name: "clone3", does: "the same by the call that hides its flags", try: func(*baits) error {
		var args [11]uint64
		args[0], args[4] = unix.CLONE_NEWUSER, uint64(unix.SIGCHLD)
		pid, _, errno := unix.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args[0])), unsafe.Sizeof(args), 0)
		if errno == 0 && pid == 0 {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		if errno != unix.ENOSYS {
			return escaped("clone3 was let through: %v", errno)
		}
		return nil
	}},
	{name: "mount", does: "mount a file system", try: func(b *baits) error {
		if unix.Mount("x", b.Folder, "tmpfs", 0, "") == nil || unix.Mount("/", b.Folder, "", unix.MS_BIND, "") == nil {
			return escaped("mounted")
		}
		if unix.Mount("", "/usr", "", unix.MS_REMOUNT|unix.MS_BIND, "") == nil {
			return escaped("made the system writable")
		}
		return nil
	}},
	{name: "mount-new", does: "mount by the new calls", try: func(*baits) error {
		name := []byte("tmpfs\x00")
		return errors.Join(refused("fsopen", unix.SYS_FSOPEN, uintptr(unsafe.Pointer(&name[0])), 0), refused("open_tree", unix.SYS_OPEN_TREE, 0, 0, 1<<30), refused("move_mount", unix.SYS_MOVE_MOUNT))
	}},
	{name: "unmount", does: "unmount what hides the machine", try: func(*baits) error {
		for _, path := range []string{"/tmp", "/proc", "/usr", "/"} {
			if unix.Unmount(path, unix.MNT_DETACH) == nil {
				return escaped("unmounted %s", path)
			}
		}
		return nil
	}},
	{name: "chroot", does: "change the root", try: func(b *baits) error {
		return errors.Join(refused("pivot_root", unix.SYS_PIVOT_ROOT), func() error {
			if unix.Chroot(b.Folder) == nil {
				return escaped("changed root")
			}
			return nil
		}())
	}},
	{name: "setns", does: "enter a namespace of others", try: func(*baits) error {
		fd, err := unix.Open("/proc/1/ns/mnt", unix.O_RDONLY, 0)
		if err == nil {
			defer unix.Close(fd)
		}
		return refused("setns", unix.SYS_SETNS, uintptr(max(fd, 0)), 0)
	}},
	{name: "bpf", does: "load programs into the kernel (bpf)", try: func(*baits) error { return refused("bpf", unix.SYS_BPF, 99) }},
	{name: "perf", does: "measure others (perf_event_open)", try: func(*baits) error { return refused("perf_event_open", unix.SYS_PERF_EVENT_OPEN) }},
	{name: "keys", does: "use the kernel's key rings", try: func(*baits) error {
		return errors.Join(refused("keyctl", unix.SYS_KEYCTL, 0, ^uintptr(2), 1), refused("add_key", unix.SYS_ADD_KEY), refused("request_key", unix.SYS_REQUEST_KEY))
	}},
	{name: "io-uring", does: "go past the filter of calls (io_uring)", try: func(*baits) error { return refused("io_uring_setup", unix.SYS_IO_URING_SETUP, 1) }},
	{name: "userfaultfd", does: "stop the kernel in the middle (userfaultfd)", try: func(*baits) error { return refused("userfaultfd", unix.SYS_USERFAULTFD, 1) }},
	{name: "modules", does: "load a module", try: func(*baits) error {
		return errors.Join(refused("init_module", unix.SYS_INIT_MODULE), refused("finit_module", unix.SYS_FINIT_MODULE, ^uintptr(0)), refused("delete_module", unix.SYS_DELETE_MODULE))
	}},
	{name: "reboot", does: "stop the machine", try: func(*baits) error { // with numbers that mean nothing
		return errors.Join(refused("reboot", unix.SYS_REBOOT), refused("kexec_load", unix.SYS_KEXEC_LOAD, 0, 0, 0, 1<<40), refused("swapoff", unix.SYS_SWAPOFF))
	}},
	{name: "clock", does: "change clock and host name", try: func(*baits) error {
		var now unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_REALTIME, &now)
		return errors.Join(refused("clock_settime", unix.SYS_CLOCK_SETTIME, unix.CLOCK_REALTIME, uintptr(unsafe.Pointer(&now))), refused("sethostname", unix.SYS_SETHOSTNAME, 0, 0))
	}},
	{name: "old-calls", does: "call by the numbers of another architecture", try: func(*baits) error {
		return otherNumbers()
	}},
}
