package sandbox

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A task without network has one of its own, with a loopback and nobody else. To make one,
// and to take it apart, the kernel needs many milliseconds on a busy machine, one at a time.
// So root keeps networks: when nothing is left of a task, the next one has its network.
// Guests cannot change them, as root owns them.

// network is one that a task is alone in.
type network struct{ fd int } // -1 until it is made

// alone reports whether a task of a user is started in a network that is kept.
func (p *Plan) alone(user uint32) bool {
	return user != 0 && p.Walled() && !p.Network && len(p.Ports) == 0
}

// network returns one that nobody is in.
func (l *Launcher) network() *network {
	if n := len(l.nets); n > 0 {
		fd := l.nets[n-1]
		l.nets = l.nets[:n-1]
		return &network{fd}
	}
	return &network{-1}
}

// enter has the calling thread, and what it forks, be in the network, which is made if it
// is new.
func (n *network) enter() error {
	if n.fd >= 0 {
		return os.NewSyscallError("setns", unix.Setns(n.fd, unix.CLONE_NEWNET))
	}
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	if err := loopback(); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	fd, err := unix.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("open", err)
	}
	n.fd = fd
	return nil
}

// close gives it up.
func (n *network) close() {
	if n != nil && n.fd >= 0 {
		unix.Close(n.fd)
	}
}

// loopback switches on the loopback of the calling thread's network.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}
