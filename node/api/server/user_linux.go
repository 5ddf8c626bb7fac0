package server

import (
	"errors"
	"net"
	"os/user"
	"strconv"
	"syscall"
)

// errNoPeer says that a connection does not tell who is at its other end.
var errNoPeer = errors.New("no account at the other end")

// peerUser returns the account at the other end of a Unix socket, by name if it
// has one.
func peerUser(conn net.Conn) (string, error) {
	uc, ok := conn.(*net.UnixConn)
	if !ok {
		return "", errNoPeer
	}
	raw, err := uc.SyscallConn()
	if err != nil {
		return "", err
	}
	var cred *syscall.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err != nil || credErr != nil {
		return "", errNoPeer
	}
	return accountName(strconv.FormatUint(uint64(cred.Uid), 10)), nil
}

// accountName returns the name of an account, or its number if it has none.
func accountName(uid string) string {
	if account, err := user.LookupId(uid); err == nil {
		return account.Username
	}
	return uid
}
