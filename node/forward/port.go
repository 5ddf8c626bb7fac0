package forward

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
)

// A task is told its port some time before it listens there. Until then the system may give the
// port to anybody who asks for any, or connects to somewhere, if it is one of those that it
// gives away: so tasks get others.

const loopback = "127.0.0.1"

// span is ports from first to last, both included.
type span struct{ first, last int }

// Ports that a task may get, but for those that the system gives away. Below lie those of
// well-known services, and the ports from 20000 on programs choose themselves: the MPI of the
// examples does.
var eligible = []span{{10000, 19999}, {32768, 65535}}

// portRange is where Linux says which ports it gives away.
const portRange = "/proc/sys/net/ipv4/ip_local_port_range"

// spared returns the spans of ports that the system does not give away, as far as it says.
func spared() []span {
	text, err := os.ReadFile(portRange)
	var away span
	if err == nil {
		_, err = fmt.Sscan(string(text), &away.first, &away.last)
	}
	if err != nil {
		return nil
	}
	return without(eligible, away)
}

// without returns spans without what lies in another one.
func without(spans []span, away span) (left []span) {
	for _, s := range spans {
		for _, part := range []span{{s.first, min(s.last, away.first-1)}, {max(s.first, away.last+1), s.last}} {
			if part.first <= part.last && (len(left) == 0 || left[len(left)-1] != part) {
				left = append(left, part)
			}
		}
	}
	return left
}

// triesMax is how many ports are tried before the system is asked for one.
const triesMax = 64

// freePort returns a port that nobody listens at and nobody was given: one of spans, drawn at
// random as other sites of this machine draw, too; else one that the system gives.
func freePort(spans []span, taken map[int]bool) (int, error) {
	total := 0
	for _, s := range spans {
		total += s.last - s.first + 1
	}
	for range triesMax {
		want := 0
		if total > 0 {
			want = nth(spans, rand.IntN(total))
		}
		l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(want)))
		if err != nil {
			if want == 0 {
				return 0, err
			}
			continue
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		if !taken[port] {
			return port, nil
		}
	}
	if total > 0 {
		return freePort(nil, taken)
	}
	return 0, fmt.Errorf("%d ports were tried, and all were taken", triesMax)
}

// nth returns the port at an index of spans.
func nth(spans []span, i int) int {
	for _, s := range spans {
		n := s.last - s.first + 1
		if i < n {
			return s.first + i
		}
		i -= n
	}
	panic(fmt.Sprintf("forward: index %d behind the last of %v", i, spans))
}
