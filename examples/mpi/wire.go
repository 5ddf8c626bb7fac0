package main

import (
	"bufio"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// greeting is the first line of each connection to a task, as JSON.
type greeting struct {
	Secret  string `json:"secret"`
	Do      string `json:"do"`
	Port    int    `json:"port,omitempty"`    // of mpirun, at task 0
	Command string `json:"command,omitempty"` // for the shell
}

// What a connection is for.
const (
	doLaunch  = "launch"  // run the daemon; the answer is one byte, its exit code
	doMpirun  = "mpirun"  // go on to mpirun's port
	doProcess = "process" // go on to the process of the program
)

// Times and bounds.
const (
	greetingMax  = 1 << 16
	greetingTime = 10 * time.Second
	dialTime     = time.Minute           // the other task may not listen yet
	dialPause    = 20 * time.Millisecond // between tries
)

// dial connects to another task and says what for.
func (t *task) dial(ctx context.Context, rank int, g greeting) (*net.TCPConn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	g.Secret = t.secret
	line, err := json.Marshal(g)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	for {
		c, err := d.DialContext(ctx, "tcp", t.peers[rank])
		if err == nil {
			if _, err = c.Write(append(line, '\n')); err != nil {
				c.Close()
				return nil, fmt.Errorf("task %d: %w", rank, err)
			}
			return c.(*net.TCPConn), nil
		}
		select {
		case <-time.After(dialPause):
		case <-ctx.Done():
			return nil, fmt.Errorf("task %d: %w", rank, err)
		}
	}
}

// greeted reads what a connection is for; r has what follows.
func (t *task) greeted(c net.Conn) (g greeting, r *bufio.Reader, err error) {
	r = bufio.NewReaderSize(c, greetingMax)
	c.SetReadDeadline(time.Now().Add(greetingTime))
	line, err := r.ReadSlice('\n')
	if err == nil {
		err = json.Unmarshal(line, &g)
	}
	if err == nil && subtle.ConstantTimeCompare([]byte(g.Secret), []byte(t.secret)) != 1 {
		err = errors.New("wrong secret")
	}
	if err != nil {
		return greeting{}, nil, err
	}
	return g, r, c.SetReadDeadline(time.Time{})
}

// splice carries bytes both ways until both ends have shut down, or one is lost.
func splice(a *net.TCPConn, fromA io.Reader, b *net.TCPConn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		pour(b, fromA)
	}()
	pour(a, b)
	<-done
	a.Close()
	b.Close()
}

// pour carries bytes one way; what cannot be written is not read either.
func pour(to *net.TCPConn, from io.Reader) {
	if _, err := io.Copy(to, from); err != nil {
		to.Close()
		return
	}
	to.CloseWrite()
}
