package main

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"gridnode/node/console"
)

// errDetached ends a look at a job that goes on.
var errDetached = errors.New("detached")

// seat is where somebody sits who looks into a job: the streams of this process, and its
// terminal, if it has one.
type seat struct {
	cmd  *cobra.Command
	file *os.File // the terminal; nil: there is none
	keys []byte   // that detach
	seen bool     // something was shown
}

// newSeat finds the terminal, if one is wanted.
func newSeat(cmd *cobra.Command, wanted bool, keys string) (*seat, error) {
	s := &seat{cmd: cmd}
	var err error
	if s.keys, err = parseKeys(keys); err != nil {
		return nil, usagef("--detach-keys: %w", err)
	}
	if file, ok := cmd.InOrStdin().(*os.File); ok && wanted && term.IsTerminal(int(file.Fd())) {
		s.file = file
	}
	return s, nil
}

// fill says in a request what kind of terminal there is.
func (s *seat) fill(request *console.Request) {
	if s.file == nil {
		return
	}
	request.Term = os.Getenv("TERM")
	request.Rows, request.Cols = s.size()
}

func (s *seat) size() (rows, cols uint16) {
	width, height, err := term.GetSize(int(s.file.Fd()))
	if err != nil {
		return 0, 0
	}
	return uint16(height), uint16(width)
}

// use passes on what is typed and prints what comes, until the process ends, the connection
// does, or who sits here has enough. It returns the exit code of the process and a reason.
func (s *seat) use(c *console.Conn) (code int32, reason string, err error) {
	if s.file != nil {
		state, err := term.MakeRaw(int(s.file.Fd()))
		if err != nil {
			return 0, "", err
		}
		defer func() { _ = term.Restore(int(s.file.Fd()), state) }() // nothing is left to be done about it
		resized := make(chan os.Signal, 1)
		signal.Notify(resized, syscall.SIGWINCH)
		defer signal.Stop(resized)
		done := make(chan struct{})
		defer close(done)
		go func() {
			for {
				select {
				case <-resized:
					_ = c.Send(console.Resize, console.Size(s.size())) // the other side sees that it is gone
				case <-done:
					return
				}
			}
		}()
	}
	left := make(chan struct{})
	go s.typed(c, left)
	type end struct {
		code   int32
		reason string
		err    error
	}
	ends := make(chan end, 1)
	go func() {
		var e end
		e.code, e.reason, e.err = s.shown(c)
		ends <- e
	}()
	select {
	case e := <-ends:
		return e.code, e.reason, e.err
	case <-left:
		c.Close()
		return 0, "", errDetached
	}
}

// typed sends what is typed, until the keys that detach.
func (s *seat) typed(c *console.Conn, left chan struct{}) {
	w := watcher{}
	if s.file != nil {
		w.keys = s.keys
	}
	buffer := make([]byte, console.DataMax)
	for {
		n, err := s.cmd.InOrStdin().Read(buffer)
		out, found := w.pass(buffer[:n])
		if len(out) > 0 && c.Send(console.Input, out) != nil {
			return
		}
		if found {
			close(left)
			return
		}
		if err != nil {
			_ = c.Send(console.EOF, nil) // the other side sees that it is gone
			return
		}
	}
}

// errBroken is what somebody is told whose look into a job was cut off.
var errBroken = errors.New("the connection to the job was lost; the job goes on")

// shown prints what comes.
func (s *seat) shown(c *console.Conn) (code int32, reason string, err error) {
	for {
		k, body, err := c.Receive()
		if err != nil {
			return 0, "", errBroken
		}
		w := io.Discard
		switch k {
		case console.Output:
			w, s.seen = s.cmd.OutOrStdout(), true
		case console.Errors:
			w = s.cmd.ErrOrStderr()
		case console.Exit:
			return console.ParseEnd(body)
		}
		if _, err := w.Write(body); err != nil {
			return 0, "", err
		}
	}
}
