//go:build !linux

package server

import (
	"net"
	"os/user"
)

// peerUser returns the daemon's own account: nobody else may open the socket.
func peerUser(net.Conn) (string, error) {
	account, err := user.Current()
	if err != nil {
		return "", err
	}
	return account.Username, nil
}
