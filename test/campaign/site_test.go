package main

import (
	"bufio"
	"os/exec"
	"testing"
	"time"
)

// TestDaemonThatDoesNotEnd: one that is told to end and does not is killed, and said to have broken a promise.
func TestDaemonThatDoesNotEnd(t *testing.T) {
	for what, c := range map[string]struct {
		script string
		broken int
		within time.Duration
	}{
		"ends":         {"echo up; read wait", 0, time.Minute},
		"does not end": {"trap '' TERM QUIT; echo up; read wait", 1, 10 * time.Millisecond},
	} {
		cmd := exec.Command("sh", "-c", c.script)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "up\n" {
			t.Fatalf("%s: %q, %v", what, line, err)
		}
		s := &site{w: &world{out: &outcome{}}, name: "a", daemon: cmd, ended: make(chan struct{})}
		go func() { _ = cmd.Wait(); close(s.ended) }()
		s.stop(c.within)
		if s.daemon != nil || len(s.w.out.Broken) != c.broken {
			t.Errorf("%s: daemon %v, broken %q", what, s.daemon, s.w.out.Broken)
		}
	}
}
