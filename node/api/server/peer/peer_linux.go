package peer

import (
	"errors"
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"gridnode/node/access"
)

// errNoPeer says that a connection does not tell who is at its other end.
var errNoPeer = errors.New("no account at the other end")

// groupsMax is how many groups of an account are looked at; the kernel allows as many.
const groupsMax = 65536

// at returns the account at the other end of a Unix socket, as it was when the
// connection was made.
func at(conn net.Conn) (access.Peer, error) {
	uc, ok := conn.(*net.UnixConn)
	if !ok {
		return access.Peer{}, errNoPeer
	}
	raw, err := uc.SyscallConn()
	if err != nil {
		return access.Peer{}, err
	}
	var cred *syscall.Ucred
	var groups []uint32
	var failed error
	err = raw.Control(func(fd uintptr) {
		if cred, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); failed == nil {
			groups = peerGroups(fd)
		}
	})
	if err != nil || failed != nil {
		return access.Peer{}, errNoPeer
	}
	return access.Peer{UID: cred.Uid, GID: cred.Gid, Groups: groups}, nil
}

// peerGroups returns the supplementary groups of the other end; none if the kernel does not
// tell them.
func peerGroups(fd uintptr) []uint32 {
	groups := make([]uint32, 64)
	for {
		size := uint32(4 * len(groups))
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0)
		switch {
		case errno == 0:
			return groups[:size/4]
		case errno == unix.ERANGE && len(groups) < groupsMax:
			groups = make([]uint32, groupsMax)
		default:
			return nil
		}
	}
}
