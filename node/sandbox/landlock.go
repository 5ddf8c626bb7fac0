package sandbox

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights on files, by what Landlock calls them.
const (
	rightsRead  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	rightsFile  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	rightsFirst = unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1 // all of the first version
)

// ruleNetPort is the kind of a portRule, as the kernel has it.
const ruleNetPort = 2

type portRule struct{ access, port uint64 }

// landlock makes one of the calls of Landlock for this thread alone: libraries at hand put
// all threads of a process behind it.
//
//go:uintptrescapes
func landlock(call, a, b, c uintptr) (int, error) {
	n, _, errno := unix.Syscall6(call, a, b, c, 0, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}

// landlockVersion returns the version of Landlock that the kernel has, 0 for none.
func landlockVersion() int {
	n, err := landlock(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if err != nil {
		return 0
	}
	return n
}

// rightsOf returns every right that a version of Landlock knows.
func rightsOf(abi int) uint64 {
	rights := uint64(rightsFirst)
	for _, r := range []struct {
		since int
		right uint64
	}{{2, unix.LANDLOCK_ACCESS_FS_REFER}, {3, unix.LANDLOCK_ACCESS_FS_TRUNCATE}, {5, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV}} {
		if abi >= r.since {
			rights |= r.right
		}
	}
	return rights
}

// Versions of Landlock that know what is needed here.
const (
	abiTruncate = 3 // before, a file could be emptied that may not be written
	abiTCP      = 4
	abiScoped   = 6 // signals and abstract sockets
)

// devices that do no harm.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// facts about the machine that programs ask for. The rest of /proc is about processes, not
// only the task's own.
var facts = []string{"/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/version", "/proc/loadavg", "/proc/uptime", "/proc/filesystems", "/proc/sys/kernel/osrelease"}

// deviceFacts are what the libraries of devices ask of the machine: which there are, and how
// they hang together. Nothing can be changed there.
var deviceFacts = []string{"/proc/driver/nvidia", "/proc/devices", "/sys/bus/pci/devices", "/sys/class/drm", "/sys/class/kfd", "/sys/devices"}

// restrict puts the calling thread, and what it forks, behind Landlock: with a folder it may
// reach files there, read the system and the plan's shares, and nothing else; without one
// files are left alone. It cannot be undone.
func (p *Plan) restrict(folder string) error {
	attr := unix.LandlockRulesetAttr{}
	if folder != "" {
		attr.Access_fs = rightsOf(p.ABI)
	}
	if p.ABI >= abiTCP && !p.Network {
		attr.Access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if p.ABI >= abiScoped {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	if attr == (unix.LandlockRulesetAttr{}) {
		return nil
	}
	rules, err := landlock(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	defer unix.Close(rules)
	if folder != "" {
		if err := p.allowFiles(rules, folder, attr.Access_fs); err != nil {
			return err
		}
	}
	if attr.Access_net != 0 {
		for _, port := range p.Ports {
			rule := portRule{unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, uint64(port)}
			if _, err := landlock(unix.SYS_LANDLOCK_ADD_RULE, uintptr(rules), ruleNetPort, uintptr(unsafe.Pointer(&rule))); err != nil {
				return fmt.Errorf("landlock: port %d: %w", port, err)
			}
		}
	}
	if err := noNewPrivileges(); err != nil {
		return err
	}
	if _, err := landlock(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(rules), 0, 0); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	return nil
}

func (p *Plan) allowFiles(rules int, folder string, handled uint64) error {
	allow := func(path string, rights uint64) error {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		if err != nil {
			return &os.PathError{Op: "open", Path: path, Err: err}
		}
		defer unix.Close(fd)
		var info unix.Stat_t
		if err := unix.Fstat(fd, &info); err != nil {
			return &os.PathError{Op: "stat", Path: path, Err: err}
		}
		if info.Mode&unix.S_IFMT != unix.S_IFDIR {
			rights &= rightsFile
		}
		rule := unix.LandlockPathBeneathAttr{Allowed_access: rights & handled, Parent_fd: int32(fd)}
		if _, err := landlock(unix.SYS_LANDLOCK_ADD_RULE, uintptr(rules), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule))); err != nil {
			return fmt.Errorf("landlock: %s: %w", path, err)
		}
		return nil
	}
	readable := slices.Concat(system, facts, p.Read)
	if len(p.Devices) > 0 {
		readable = append(readable, deviceFacts...)
	}
	etc := etcNames
	if p.Network {
		etc = slices.Concat(etcNames, etcNetworked)
	}
	for _, name := range etc {
		readable = append(readable, "/etc/"+name)
	}
	for _, path := range readable {
		if err := allow(path, rightsRead); err != nil {
			return err
		}
	}
	for _, path := range slices.Concat(devices, p.Devices) {
		if err := allow(path, unix.LANDLOCK_ACCESS_FS_READ_FILE|unix.LANDLOCK_ACCESS_FS_WRITE_FILE|unix.LANDLOCK_ACCESS_FS_IOCTL_DEV); err != nil {
			return err
		}
	}
	const nodes = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
	return allow(folder, handled&^nodes)
}

// noNewPrivileges has the calling thread, and what it forks, never gain rights by executing
// a file.
func noNewPrivileges() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	return nil
}
