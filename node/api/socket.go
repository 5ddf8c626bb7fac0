package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// socketName is the local API's socket in the home directory. Only the owner of
// the home may connect.
const socketName = "api.sock"

// socketPathMax is what fits into a socket address on every system we run on.
const socketPathMax = 100

// SocketPath returns where the local API of a home listens.
func SocketPath(home string) string { return filepath.Join(home, socketName) }

// ListenAPI opens the local API's socket in home, replacing what a daemon that was
// killed has left there. The caller holds the home's lock, so nobody else listens.
func ListenAPI(home string) (net.Listener, error) {
	path := SocketPath(home)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("local API: %w", err)
	}
	short, release, err := shortPath(home)
	if err != nil {
		return nil, fmt.Errorf("local API: %w", err)
	}
	defer release()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("local API: %w", err)
	}
	// The address may be a way to the directory that is gone by the time of Close.
	listener.SetUnlinkOnClose(false)
	if err := os.Chmod(path, 0o600); err != nil {
		listener.Close()
		return nil, fmt.Errorf("local API: %w", err)
	}
	return listener, nil
}

// dialAPI connects to the local API of home. The error wraps ErrNoDaemon if nobody
// listens there.
func dialAPI(ctx context.Context, home string) (net.Conn, error) {
	short, release, err := shortPath(home)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w on %s: there is no such directory", ErrNoDaemon, home)
	}
	if err != nil {
		return nil, err
	}
	defer release()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", short)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("%w on %s: start one with 'gridnode start'", ErrNoDaemon, home)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", SocketPath(home), err)
	}
	return conn, nil
}

// shortPath returns a path of the socket that fits into a socket address: the
// plain one, or one through the open directory. release must be called once the
// socket is open.
func shortPath(home string) (path string, release func(), err error) {
	if path = SocketPath(home); len(path) <= socketPathMax {
		return path, func() {}, nil
	}
	dir, err := os.Open(home)
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join("/proc/self/fd", strconv.Itoa(int(dir.Fd())), socketName)
	return path, func() { dir.Close() }, nil
}
