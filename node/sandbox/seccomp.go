package sandbox

import (
	"fmt"
	"syscall"
	"unsafe"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// forbidden are calls that no computation needs: they change the machine or the walls,
// or lead into parts of the kernel that few look after.
var forbidden = []string{
	// File systems and namespaces.
	"mount", "umount2", "pivot_root", "chroot", "fsopen", "fsconfig", "fsmount", "fspick", "move_mount", "open_tree", "mount_setattr",
	"unshare", "setns", "swapon", "swapoff", "quotactl", "quotactl_fd", "name_to_handle_at", "open_by_handle_at",
	// The machine.
	"reboot", "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "acct", "syslog", "vhangup",
	"settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname", "iopl", "ioperm",
	// Doors that sandboxes were left by.
	"bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register",
	"add_key", "request_key", "keyctl", "kcmp", "fanotify_init", "lookup_dcookie", "personality", "modify_ldt", "process_madvise", "pidfd_getfd",
}

// shared are calls that reach what other processes of the account own, where no namespace
// and no account of its own keeps the task from it.
var shared = []string{
	"shmget", "shmat", "shmctl", "msgget", "msgsnd", "msgrcv", "msgctl", "semget", "semop", "semtimedop", "semctl", "mq_open", "mq_unlink",
	// Landlock does not look at these.
	"chmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchownat", "setxattr", "lsetxattr", "removexattr", "lremovexattr", "utime", "utimes", "futimesat",
}

// ofOthers are calls that change the process whose number is their first argument; 0 is
// the caller. (Landlock itself keeps ptrace and signals within the walls.)
var ofOthers = []string{"prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr"}

// netFilter says which sockets a task may make.
type netFilter int

const (
	netOwn  netFilter = iota // it has a network of its own, with nobody in it
	netTCP                   // TCP, which Landlock watches
	netAll                   // all that is IP
	netNone                  // none: it shares the machine's
)

// namespaces are the flags of clone that make one.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWTIME

// filter returns a filter of system calls.
func filter(sharing bool, network netFilter) (*seccomp.Policy, error) {
	info, err := arch.GetInfo("")
	if err != nil {
		return nil, err
	}
	known := func(names []string) (list []string) {
		for _, name := range names {
			if _, ok := info.SyscallNames[name]; ok { // newer or older than the library, or not of this processor
				list = append(list, name)
			}
		}
		return list
	}
	refuse := seccomp.SyscallGroup{Action: seccomp.ActionErrno, Names: known(forbidden)}
	when := func(call string, conditions ...seccomp.Condition) {
		if len(known([]string{call})) > 0 {
			refuse.NamesWithCondtions = append(refuse.NamesWithCondtions, seccomp.NameWithConditions{Name: call, Conditions: conditions})
		}
	}
	is := func(argument uint32, op seccomp.Operation, value uint64) seccomp.Condition {
		return seccomp.Condition{Argument: argument, Operation: op, Value: value}
	}
	// Each flag alone: BitsSet asks for all of its bits.
	for bit := uint64(1); bit < 1<<32; bit <<= 1 {
		if namespaces&bit != 0 {
			when("clone", is(0, seccomp.BitsSet, bit))
		}
	}
	when("ioctl", is(1, seccomp.Equal, unix.TIOCSTI))
	when("ioctl", is(1, seccomp.Equal, unix.TIOCLINUX))
	if sharing {
		refuse.Names = append(refuse.Names, known(shared)...)
		for _, call := range ofOthers {
			when(call, is(0, seccomp.NotEqual, 0))
		}
		when("setpriority", is(1, seccomp.NotEqual, 0))
		when("ioprio_set", is(1, seccomp.NotEqual, 0))
		when("utimensat", is(1, seccomp.NotEqual, 0)) // by path; by descriptor it is futimens
	}
	sockets(when, is, sharing, network)
	// The flags of clone3 are out of a filter's sight: with ENOSYS libraries use clone.
	absent := seccomp.SyscallGroup{Action: seccomp.ActionErrno | seccomp.Action(syscall.ENOSYS), Names: known([]string{"clone3"})}
	return &seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{refuse, absent}}, nil
}

// sockets refuses families and kinds of sockets. Not every family is in a namespace: vsock,
// for one, reaches the host of a virtual machine from anywhere.
func sockets(when func(string, ...seccomp.Condition), is func(uint32, seccomp.Operation, uint64) seccomp.Condition, sharing bool, network netFilter) {
	if network == netNone {
		when("socket", is(0, seccomp.GreaterOrEqual, 0))
		return
	}
	if sharing || network == netTCP { // sockets of the machine have names that no folder holds
		when("socket", is(0, seccomp.Equal, unix.AF_UNIX))
	}
	for family := uint64(unix.AF_INET + 1); family < unix.AF_INET6; family++ {
		when("socket", is(0, seccomp.Equal, family))
	}
	when("socket", is(0, seccomp.GreaterThan, unix.AF_INET6))
	if network == netTCP {
		// The low bits are the kind, others are flags; of these bits SOCK_STREAM has the first alone.
		for _, bit := range []uint64{2, 4, 8} {
			when("socket", is(1, seccomp.BitsSet, bit))
		}
		// Landlock does not look at other protocols of streams, such as MPTCP and SCTP.
		when("socket", is(2, seccomp.NotEqual, 0), is(2, seccomp.NotEqual, unix.IPPROTO_TCP))
	}
}

// program returns a filter as the kernel takes it from bwrap: an array of struct sock_filter.
func program(p *seccomp.Policy) ([]byte, error) {
	instructions, err := p.Assemble()
	if err != nil {
		return nil, fmt.Errorf("filter of system calls: %w", err)
	}
	raw, err := bpf.Assemble(instructions)
	if err != nil {
		return nil, fmt.Errorf("filter of system calls: %w", err)
	}
	filters := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filters[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&filters[0])), len(filters)*int(unsafe.Sizeof(filters[0]))), nil
}
