package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// manager listens as systemd does, and returns what the daemon says to it.
func manager(t *testing.T, watchdog string) (m serviceManager, next func() string) {
	t.Helper()
	address := &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"}
	conn, err := net.ListenUnixgram("unixgram", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv(notifyVariable, address.Name)
	t.Setenv(watchdogVariable, watchdog)
	t.Setenv(watchdogPIDVariable, "")
	if m, err = findServiceManager(); err != nil {
		t.Fatal(err)
	}
	return m, func() string {
		b := make([]byte, 256)
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		n, err := conn.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
}

// A service manager hears of the start, of every beat while the daemon answers, and of the
// end; what the daemon starts finds no way to it.
func TestServiceManagerHears(t *testing.T) {
	m, next := manager(t, "3000") // three milliseconds
	if address := os.Getenv(notifyVariable); address != "" {
		t.Errorf("%s is still %q: jobs could speak for the daemon", notifyVariable, address)
	}
	m.ready("physics")
	if got, want := next(), "READY=1\nSTATUS=physics"; got != want {
		t.Errorf("heard %q, want %q", got, want)
	}
	left := 3
	m.keepAlive(t.Context(), func(context.Context) error {
		if left--; left < 0 {
			return errors.New("hangs")
		}
		return nil
	}, slog.New(slog.DiscardHandler))
	for range 3 {
		if got := next(); got != "WATCHDOG=1" {
			t.Errorf("heard %q", got)
		}
	}
	m.stopping()
	if got, want := next(), "STOPPING=1\nSTATUS=stopping"; got != want {
		t.Errorf("heard %q after the daemon hung, want %q", got, want)
	}
}

// Without a service manager, or without its watchdog, nothing is said.
func TestNobodyHears(t *testing.T) {
	t.Setenv(notifyVariable, "")
	m, err := findServiceManager()
	if err != nil {
		t.Fatal(err)
	}
	m.ready("physics")
	m.keepAlive(t.Context(), func(context.Context) error { t.Error("asked for nobody"); return nil }, nil)
}
