package shim

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

const (
	socketName = "shim.sock"
	// socketPathMax is what fits struct sockaddr_un with its closing zero.
	socketPathMax = 107
)

// reach calls use with a path of the home's socket that is short enough for the
// kernel: through /proc and a descriptor of the directory if the real one is not.
func reach(home string, use func(path string) error) error {
	path := filepath.Join(home, socketName)
	if len(path) <= socketPathMax {
		return use(path)
	}
	dir, err := os.Open(home)
	if err != nil {
		return err
	}
	defer dir.Close()
	short := "/proc/self/fd/" + strconv.Itoa(int(dir.Fd()))
	if _, err := os.Stat(short); err != nil {
		return fmt.Errorf("socket path %s has %d bytes, at most %d work without /proc: use a home with a shorter path", path, len(path), socketPathMax)
	}
	return use(short + "/" + socketName)
}

// listen makes the home's socket, for this user only. The caller holds the home's lock.
func listen(home string) (l *net.UnixListener, err error) {
	err = reach(home, func(path string) error {
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			return err
		}
		old := syscall.Umask(0o177)
		defer syscall.Umask(old)
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen on the socket of %s: %w", home, err)
	}
	l.SetUnlinkOnClose(false) // its path may lead elsewhere by then
	return l, nil
}

func dial(ctx context.Context, home string) (c *net.UnixConn, err error) {
	err = reach(home, func(path string) error {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "unix", path)
		if err == nil {
			c = conn.(*net.UnixConn)
		}
		return err
	})
	return c, err
}

// peerAllowed reports whether the other end of c is this user or root.
func peerAllowed(c *net.UnixConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	var credentials *syscall.Ucred
	if control := raw.Control(func(fd uintptr) {
		credentials, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); control != nil || err != nil {
		return false
	}
	return credentials.Uid == 0 || int(credentials.Uid) == os.Geteuid()
}
