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

// SystemHome is the home of the site that the packages set up, whose daemon systemd runs.
const SystemHome = "/var/lib/gridnode"

// StartCommand returns what an administrator types to start the daemon of a home, and
// RestartCommand what has it start anew.
func StartCommand(home string) string {
	if bySystemd(home) {
		return "systemctl start gridnode"
	}
	return "gridnode start"
}

// RestartCommand is described at StartCommand.
func RestartCommand(home string) string {
	if bySystemd(home) {
		return "systemctl restart gridnode"
	}
	return "gridnode stop && gridnode start"
}

func bySystemd(home string) bool {
	if home != SystemHome {
		return false
	}
	_, err := os.Stat("/run/systemd/system")
	return err == nil
}

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

// ListenShared opens a socket of the local API for other accounts at path, replacing what is
// left there, with a mode and a group (-1: the daemon's). Nobody but the daemon and root may
// be able to put another socket in its place.
func ListenShared(path string, mode fs.FileMode, group int) (net.Listener, error) {
	dir := filepath.Dir(path)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("shared socket: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("shared socket: %w", err)
	}
	if s, ok := info.Sys().(*syscall.Stat_t); info.Mode().Perm()&0o022 != 0 || ok && s.Uid != 0 && int(s.Uid) != os.Geteuid() {
		return nil, fmt.Errorf("shared socket: others may write to %s (mode %04o), and so answer in the daemon's place: choose a directory of root's or the daemon's own", dir, info.Mode().Perm())
	}
	if old, err := os.Lstat(path); err == nil && old.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("shared socket: %s is there and is no socket", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("shared socket: %w", err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("shared socket: %w", err)
	}
	err = os.Chmod(path, 0o600)
	if err == nil && group >= 0 {
		err = os.Lchown(path, -1, group)
	}
	if err == nil {
		err = os.Chmod(path, mode)
	}
	if err != nil {
		listener.Close()
		return nil, fmt.Errorf("shared socket: %w", err)
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
		return nil, fmt.Errorf("%w on %s: start one with '%s'", ErrNoDaemon, home, StartCommand(home))
	}
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", SocketPath(home), err)
	}
	return conn, nil
}

// dialShared connects to a socket of ListenShared.
func dialShared(ctx context.Context, path string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("%w at %s", ErrNoDaemon, path)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("connect to %s: this account may not: an admin lets its group in (api.group, api.mode)", path)
	case err != nil:
		return nil, fmt.Errorf("connect to %s: %w", path, err)
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
