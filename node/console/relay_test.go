package console

import (
	"io"
	"net"
	"os"
	"syscall"
	"testing"
)

// ends returns two ends of one connection.
func ends(t *testing.T) (a, b net.Conn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var both [2]net.Conn
	for i, fd := range fds {
		file := os.NewFile(uintptr(fd), "end")
		if both[i], err = net.FileConn(file); err != nil {
			t.Fatal(err)
		}
		file.Close()
		t.Cleanup(func() { both[i].Close() })
	}
	return both[0], both[1]
}

// What a process has said before it ended reaches who asks, whatever that one is still typing.
func TestRelayPassesOnWhatCameBeforeTheEnd(t *testing.T) {
	for range 200 {
		process, here := ends(t)
		there, asker := ends(t)
		for c, text := range map[net.Conn]string{process: "said", asker: "typed"} {
			if _, err := io.WriteString(c, text); err != nil {
				t.Fatal(err)
			}
		}
		process.Close()
		Relay(here, there)
		if said, err := io.ReadAll(asker); string(said) != "said" {
			t.Fatalf("the asker hears %q, %v", said, err)
		}
		asker.Close()
	}
}
