//go:build !linux

package peer

import (
	"errors"
	"net"
	"os"

	"gridnode/node/access"
)

// errNoPeer says that a connection does not tell who is at its other end.
var errNoPeer = errors.New("no account at the other end")

// at returns the daemon's own account: nobody else may open its socket, and others are
// not opened here.
func at(conn net.Conn) (access.Peer, error) {
	if _, local := conn.(*net.UnixConn); !local {
		return access.Peer{}, errNoPeer
	}
	return access.Peer{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}, nil
}
