package probe

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

var processProbes = []probe{
	{name: "signal", does: "signal the daemon", try: func(b *baits) error {
		for _, sig := range []syscall.Signal{0, syscall.SIGSTOP, syscall.SIGKILL} {
			if syscall.Kill(b.PID, sig) == nil {
				return escaped("sent signal %d to process %d", sig, b.PID)
			}
		}
		return nil
	}, after: processLives},
	{name: "signal-all", does: "signal everybody", try: func(*baits) error {
		for pid := 2; pid < 1<<16; pid++ {
			own := func() bool { return unix.Tgkill(os.Getpid(), pid, 0) == nil } // a thread of this process
			if !own() && syscall.Kill(pid, 0) == nil && !own() && syscall.Kill(pid, 0) == nil {
				return escaped("process %d can be signalled", pid) // and is no thread that has come or gone meanwhile
			}
		}
		return nil
	}},
	{name: "signal-handle", does: "signal the daemon by a process descriptor", try: func(b *baits) error {
		fd, err := unix.PidfdOpen(b.PID, 0)
		if err != nil {
			return nil
		}
		defer unix.Close(fd)
		if unix.PidfdSendSignal(fd, syscall.SIGKILL, nil, 0) == nil {
			return escaped("signalled process %d", b.PID)
		}
		if got, err := unix.PidfdGetfd(fd, 0, 0); err == nil {
			unix.Close(got)
			return escaped("took a descriptor of process %d", b.PID)
		}
		return nil
	}, after: processLives},
	{name: "trace", does: "trace the daemon", try: func(b *baits) error {
		if unix.PtraceSeize(b.PID) == nil || unix.PtraceAttach(b.PID) == nil {
			return escaped("traces process %d", b.PID)
		}
		return nil
	}, after: processLives},
	{name: "memory-read", does: "read the daemon's memory", try: func(b *baits) error {
		var here [8]byte
		local := []unix.Iovec{{Base: &here[0], Len: 8}}
		for _, write := range []bool{false, true} {
			call := unix.ProcessVMReadv
			if write {
				call = unix.ProcessVMWritev
			}
			_, err := call(b.PID, local, []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&here[0])), Len: 8}}, 0)
			if err == nil || err == unix.EFAULT { // it got as far as to the address
				return escaped("reaches the memory of process %d", b.PID)
			}
		}
		return nil
	}},
	{name: "limits-of-others", does: "change the daemon's limits and priority", try: func(b *baits) error {
		var set unix.CPUSet
		set.Set(0)
		switch {
		case unix.Prlimit(b.PID, unix.RLIMIT_CORE, &unix.Rlimit{}, nil) == nil:
			return escaped("changed a limit of process %d", b.PID)
		case unix.Setpriority(unix.PRIO_PROCESS, b.PID, 19) == nil:
			return escaped("changed the priority of process %d", b.PID)
		case unix.SchedSetaffinity(b.PID, &set) == nil:
			return escaped("changed the processors of process %d", b.PID)
		}
		return nil
	}},
	{name: "processes", does: "see the daemon's process", try: func(b *baits) error {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(b.PID) + "/cmdline")
		if err == nil && strings.Contains(string(text), b.Text) {
			return escaped("sees what process %d is", b.PID)
		}
		return nil
	}},
	{name: "segments", does: "attach memory that others share (System V)", try: func(b *baits) error {
		if b.SHM == 0 {
			return nil
		}
		if _, err := unix.SysvShmAttach(b.SHM, 0, unix.SHM_RDONLY); err == nil {
			return escaped("attached segment %d", b.SHM)
		}
		return nil
	}},
	{name: "root", does: "become root", try: func(*baits) error {
		if syscall.Setuid(0) == nil && syscall.Getuid() == 0 || syscall.Setgid(0) == nil && syscall.Getgid() == 0 {
			return escaped("is root")
		}
		return nil
	}},
	{name: "capabilities", does: "have or gain capabilities", try: func(*baits) error {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&header, &data[0]); err != nil {
			return err
		}
		for _, d := range data {
			if d.Effective|d.Permitted|d.Inheritable != 0 {
				return escaped("capabilities %x %x %x", d.Effective, d.Permitted, d.Inheritable)
			}
		}
		if on, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || on != 1 {
			return escaped("programs may give it rights (no_new_privs is %d)", on)
		}
		return nil
	}},
}

func processLives(r *runner, _ *outcome) string {
	var status syscall.WaitStatus
	if pid, _ := syscall.Wait4(r.baits.PID, &status, syscall.WNOHANG|syscall.WUNTRACED, nil); pid != 0 {
		return "the daemon's process has ended or stopped"
	}
	return ""
}
