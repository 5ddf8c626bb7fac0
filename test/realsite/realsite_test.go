package realsite

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A port that a site got is not given to a connection that begins here, nor to another site.
func TestFreePort(t *testing.T) {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		t.Skip(err)
	}
	first, _ := strconv.Atoi(strings.Fields(string(text))[0])
	seen := map[int]bool{}
	for range 500 {
		port, err := FreePort()
		if err != nil {
			t.Fatal(err)
		}
		if port >= first || seen[port] {
			t.Fatalf("port %d, of which the system gives away those from %d; given before: %t", port, first, seen[port])
		}
		seen[port] = true
	}
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Fatalf("the port is not free: %v", err)
	}
	l.Close()
}

func TestStart(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	cmd := exec.Command("sh", "-c", "echo ready 12D /ip4/127.0.0.1; sleep 60")
	ready, err := Start(cmd, log)
	if err != nil || ready != (Ready{"12D", "/ip4/127.0.0.1"}) {
		t.Fatalf("it says %+v, %v", ready, err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	cmd = exec.Command("sh", "-c", "echo no room >&2; exit 1")
	_, err = Start(cmd, log)
	if r := new(Refusal); !errors.As(err, &r) || !strings.Contains(r.Log, "no room") || cmd.ProcessState == nil {
		t.Errorf("one that ends at once: %v", err)
	}
}
