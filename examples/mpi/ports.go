package main

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// The ports at which the processes of the program listen lie below those that Linux
// gives to others (32768 to 60999). Process r of n takes one with
// (port - portFirst) % n = r, so that no two have the same port, wherever they run,
// and c/redirect.c knows a process by its port.
const (
	portFirst = 20000
	portLast  = 32768 // excluded
)

// freePort finds a port of that kind that nobody listens at, beginning anywhere.
func freePort(rank, ranks int) (int, error) {
	ports := (portLast - portFirst - rank + ranks - 1) / ranks
	begin := rand.IntN(ports)
	for i := range ports {
		port := portFirst + rank + (begin+i)%ports*ranks
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			l.Close()
			return port, nil
		}
	}
	return 0, fmt.Errorf("all %d ports from %d on that process %d of %d may have are taken", ports, portFirst, rank, ranks)
}
