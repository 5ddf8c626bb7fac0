package sandbox

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// rlimit is a limit of each process of a task (setrlimit).
type rlimit struct {
	what  int
	name  string
	value int64
}

// rlimits returns the limits of each process: those that control groups do not hold for
// all of them together, and those that they know nothing of.
func (l *Launcher) rlimits(p *Plan, user uint32) []rlimit {
	var list []rlimit
	add := func(what int, name string, value int64) {
		if value > 0 {
			list = append(list, rlimit{what, name, value})
		}
	}
	add(unix.RLIMIT_NOFILE, "open files", p.Limits.Files)
	disk := p.Limits.Disk
	if p.Walled() {
		disk = p.disk()
		list = append(list, rlimit{unix.RLIMIT_CORE, "core", 0})
	}
	add(unix.RLIMIT_FSIZE, "size of a file", disk)
	if !l.Grouped("memory") {
		add(unix.RLIMIT_DATA, "memory", p.Limits.Memory)
	}
	if processes := p.Limits.Processes; processes > 0 && !l.Grouped("pids") {
		switch {
		case user != 0: // nobody else has it
		case p.Account != nil: // the account's other processes count, too
			processes += ofAccount(int(p.Account.User))
		default:
			processes += ofAccount(os.Geteuid())
		}
		add(unix.RLIMIT_NPROC, "processes", processes)
	}
	return list
}

// apply limits a process of a user and a group, 0 for this process's own. The calling thread is used up:
// limits are set by the same account, or need a right that not every root has.
func apply(pid int, limits []rlimit, user, group uint32) error {
	if user != 0 {
		id, gid := uintptr(user), uintptr(group)
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, gid, gid, gid); errno != 0 {
			return errno
		}
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, id, id, id); errno != 0 {
			return errno
		}
	}
	for _, l := range limits {
		var now unix.Rlimit
		err := unix.Prlimit(pid, l.what, nil, &now)
		if err == unix.ESRCH {
			return nil // it has ended already
		}
		if err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		value := min(uint64(l.value), now.Max) // only root raises it
		if err := unix.Prlimit(pid, l.what, &unix.Rlimit{Cur: value, Max: value}, nil); err != nil {
			return fmt.Errorf("%s of %d: %w", l.name, value, err)
		}
	}
	return nil
}
