//go:build !client

package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// serviceManager is what has started the daemon and wants to hear how it is, in the
// words of sd_notify(3). Its zero value is nobody.
//
// Own code: it is a datagram with words in it, and the libraries at hand leave the
// address in the environment, where jobs would find it.
type serviceManager struct {
	conn     net.Conn
	watchdog time.Duration // it ends the daemon after so long without a word; 0: never
}

// Variables by which a service manager says where it listens.
const (
	notifyVariable      = "NOTIFY_SOCKET"
	watchdogVariable    = "WATCHDOG_USEC"
	watchdogPIDVariable = "WATCHDOG_PID"
)

// findServiceManager returns who has started this process, and takes what tells of it out
// of the environment: nothing that the daemon starts may speak for it.
func findServiceManager() (serviceManager, error) {
	address, span, pid := os.Getenv(notifyVariable), os.Getenv(watchdogVariable), os.Getenv(watchdogPIDVariable)
	for _, name := range []string{notifyVariable, watchdogVariable, watchdogPIDVariable} {
		os.Unsetenv(name)
	}
	if address == "" {
		return serviceManager{}, nil
	}
	var m serviceManager
	if strings.HasPrefix(address, "@") {
		address = "\x00" + address[1:] // an abstract one
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		return m, fmt.Errorf("%s: %w", notifyVariable, err)
	}
	m.conn = conn
	if micro, err := strconv.ParseInt(span, 10, 64); err == nil && micro > 0 && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		m.watchdog = time.Duration(micro) * time.Microsecond
	}
	return m, nil
}

// say tells it some words, a line each. It may be gone: that is no concern of the daemon's.
func (m serviceManager) say(lines ...string) {
	if m.conn != nil {
		_, _ = m.conn.Write([]byte(strings.Join(lines, "\n")))
	}
}

// ready says that users and sites are answered from now on.
func (m serviceManager) ready(status string) { m.say("READY=1", "STATUS="+status) }

// stopping says that the daemon is about to end by itself.
func (m serviceManager) stopping() { m.say("STOPPING=1", "STATUS=stopping") }

// keepAlive says again and again that the daemon works, as long as alive answers, until
// ctx ends. A daemon whose loop hangs says nothing more and is started anew.
func (m serviceManager) keepAlive(ctx context.Context, alive func(context.Context) error, log *slog.Logger) {
	if m.conn == nil || m.watchdog == 0 {
		return
	}
	ticker := time.NewTicker(m.watchdog / 3)
	defer ticker.Stop()
	for {
		if err := alive(ctx); err != nil {
			if ctx.Err() == nil {
				log.Error("the service manager's watchdog hears nothing more: the daemon does not answer itself", "error", err)
			}
			return
		}
		m.say("WATCHDOG=1")
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
