package link

import (
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// pair returns the two ends of a connection over TCP, or over TLS on it.
func pair(t *testing.T, secure bool) (a, b End) {
	t.Helper()
	k := key(t, filepath.Join(t.TempDir(), "key"))
	l, err := Listen("127.0.0.1:0", k)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan End, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		if !secure {
			got <- c.(*net.TCPConn)
			return
		}
		s, _, err := l.Greet(c)
		if err != nil {
			t.Error(err)
		}
		got <- s
	}()
	if secure {
		c, err := Dial(t.Context(), l.Addr().String(), k, Hello{Name: "p", Nodes: 1, Processors: 1, Way: &Way{Task: "t", Rank: 1}})
		if err != nil {
			t.Fatal(err)
		}
		a = c
	} else {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		a = c.(*net.TCPConn)
	}
	return a, <-got
}

func TestJoinKeepsDirectionsApart(t *testing.T) {
	near, plain := pair(t, false)
	far, wrapped := pair(t, true)
	done := make(chan struct{})
	go func() {
		Join(plain, wrapped)
		close(done)
	}()
	text := strings.Repeat("0123456789", 100_000)
	go func() {
		if _, err := io.WriteString(near, text); err != nil || near.CloseWrite() != nil {
			t.Error(err)
		}
	}()
	if got, err := io.ReadAll(far); err != nil || string(got) != text {
		t.Errorf("%d bytes came, %v, want %d", len(got), err, len(text))
	}
	if _, err := io.WriteString(far, "answer"); err != nil || far.CloseWrite() != nil {
		t.Error(err)
	}
	if got, err := io.ReadAll(near); err != nil || string(got) != "answer" {
		t.Errorf("the answer is %q, %v", got, err)
	}
	<-done
	near.Close()
	far.Close()
}

func TestResetIsNoEnd(t *testing.T) {
	for _, which := range []string{"plain", "secure"} {
		near, plain := pair(t, false)
		far, wrapped := pair(t, true)
		done := make(chan struct{})
		go func() {
			Join(plain, wrapped)
			close(done)
		}()
		read, reset := End(far), End(near)
		if which == "secure" {
			read, reset = near, far
		}
		Reset(reset)
		if got, err := io.ReadAll(read); err == nil {
			t.Errorf("%s end reset: the other reads %q and then its end", which, got)
		}
		<-done
		read.Close()
	}
}
