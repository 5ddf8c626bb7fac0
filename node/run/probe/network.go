package probe

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// dialMax is how long an attempt to reach somebody waits.
const dialMax = time.Second

func dials(network, address string) error {
	c, err := net.DialTimeout(network, address, dialMax)
	if err != nil {
		return nil
	}
	c.Close()
	return escaped("connected to %s", address)
}

// makes reports a socket that can be made.
func makes(family, kind, protocol int) error {
	fd, err := unix.Socket(family, kind, protocol)
	if err != nil {
		return nil
	}
	unix.Close(fd)
	return escaped("made a socket of family %d, kind %d, protocol %d", family, kind, protocol)
}

var networkProbes = []probe{
	{name: "tcp", does: "connect to the machine's own TCP ports", try: func(b *baits) error { return dials("tcp", b.TCP) }},
	{name: "udp", does: "send to the machine's own UDP ports", try: func(b *baits) error {
		c, err := net.DialTimeout("udp", b.UDP, dialMax)
		if err != nil {
			return nil
		}
		defer c.Close()
		_, _ = c.Write([]byte("hello")) // whether it arrives is seen outside
		return nil
	}, after: func(r *runner, _ *outcome) string {
		b := make([]byte, 16)
		_ = r.udp.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if n, _, err := r.udp.ReadFrom(b); err == nil && n > 0 {
			return "a packet arrived outside"
		}
		return ""
	}},
	{name: "socket", does: "connect to the daemon's socket", try: func(b *baits) error { return dials("unix", b.Socket) }},
	{name: "socket-abstract", does: "connect to a socket without a file", try: func(b *baits) error { return dials("unix", "\x00"+b.Name) }},
	{name: "netlink", does: "talk to the kernel about the network", try: func(*baits) error { return makes(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE) }},
	{name: "vsock", does: "talk to the host of the virtual machine", try: func(*baits) error { return makes(unix.AF_VSOCK, unix.SOCK_STREAM, 0) }},
	{name: "packets", does: "send raw packets", try: func(*baits) error {
		if err := makes(unix.AF_PACKET, unix.SOCK_RAW, 0); err != nil {
			return err
		}
		return makes(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)
	}},
	{name: "families", does: "make sockets of rare families", try: func(*baits) error {
		for _, family := range []int{unix.AF_ALG, unix.AF_BLUETOOTH, unix.AF_CAN, unix.AF_TIPC, unix.AF_XDP, unix.AF_RDS, unix.AF_KEY, unix.AF_APPLETALK} {
			if err := makes(family, unix.SOCK_STREAM, 0); err != nil {
				return err
			}
			if err := makes(family, unix.SOCK_DGRAM, 0); err != nil {
				return err
			}
			if err := makes(family, unix.SOCK_SEQPACKET, 0); err != nil {
				return err
			}
		}
		return nil
	}},
}
