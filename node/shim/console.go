package shim

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"gridnode/node/console"
)

// looking is somebody who looks into a task: through its terminal, or with a command beside
// it. begin and left are called once.
type looking interface {
	begin()                                  // what there is to see may be shown
	input(k console.Kind, body []byte) error // what the asker sends
	left()                                   // the asker has gone
}

// console serves a connection that looks into a task. What the task shows is written beside
// it.
func (s *shim) console(d *conn, r *bufio.Reader, hello *decoder) error {
	if err := checkVersion(hello); err != nil {
		return err
	}
	id, text := hello.string(), hello.string()
	if err := hello.end(); err != nil {
		return err
	}
	var request console.Request
	err := json.Unmarshal([]byte(text), &request)
	if err == nil {
		err = request.Check()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errEncoding, err)
	}
	d.c.SetReadDeadline(time.Time{})
	c := console.Buffered(d.c, r)
	type answer struct {
		looking looking
		err     error
	}
	answers := make(chan answer, 1)
	s.post(func() {
		l, err := s.look(id, &request, c)
		answers <- answer{l, err}
	})
	select {
	case a := <-answers:
		if a.err != nil {
			c.Turn(a.err)
			return nil
		}
		defer a.looking.left()
		if err := c.Send(console.Opened, nil); err != nil {
			return err
		}
		a.looking.begin()
		return converse(c, a.looking)
	case <-s.quit:
		return nil
	}
}

// converse passes on what the asker sends until it goes.
func converse(c *console.Conn, l looking) error {
	for {
		k, body, err := c.Receive()
		if err == nil {
			err = l.input(k, body)
		}
		switch {
		case err == nil:
		case errors.Is(err, console.ErrMalformed):
			return fmt.Errorf("%w: %w", errEncoding, err)
		default: // the asker, or the process, has gone
			return io.EOF
		}
	}
}

// look finds what is asked for. It is called on the loop.
func (s *shim) look(id string, request *console.Request, c *console.Conn) (looking, error) {
	t := s.tasks[id]
	switch {
	case t == nil:
		return nil, console.ErrAbsent
	case len(request.Args) > 0:
		side, err := s.openSide(t, request, c)
		if err != nil {
			return nil, err // and not a nil *side
		}
		return side, nil
	case t.term == nil:
		return nil, errors.New("the job has no terminal: it was submitted without --pty; run a command beside it with exec")
	}
	resize(t.term.master, request.Rows, request.Cols)
	return &sight{term: t.term, conn: c}, nil
}

// sight looks at the terminal of a task.
type sight struct {
	term   *terminal
	conn   *console.Conn
	viewer *viewer
}

func (g *sight) begin() { g.viewer = g.term.watch(g.conn) }

func (g *sight) left() {
	if g.viewer == nil {
		return
	}
	select {
	case <-g.viewer.gone:
	default:
		g.term.left(g.viewer)
	}
}

func (g *sight) input(k console.Kind, body []byte) error { return typed(g.term.master, k, body) }

// typed passes on what was typed to a terminal. A program that does not read it holds the
// asker up, but not for ever.
func typed(master *os.File, k console.Kind, body []byte) error {
	switch k {
	case console.Input:
		_ = master.SetWriteDeadline(time.Now().Add(viewerSlow)) // without one it waits
		if _, err := master.Write(body); errors.Is(err, os.ErrDeadlineExceeded) {
			return nil // it is lost, as at a terminal whose buffer is full
		} else if err != nil {
			return err
		}
	case console.Resize:
		rows, cols, err := console.ParseSize(body)
		if err != nil {
			return err
		}
		resize(master, rows, cols)
	case console.EOF: // who types ends it with a character
	default:
		return fmt.Errorf("%w: kind %d", console.ErrMalformed, k)
	}
	return nil
}

// DialConsole looks into a task of a home's shim. A *console.Refusal says why that cannot be.
func DialConsole(ctx context.Context, home, task string, request *console.Request) (net.Conn, error) {
	text, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	c, err := dial(ctx, home)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("shim of %s: %w", home, errNoShim)
	}
	if err != nil {
		return nil, err
	}
	_, err = c.Write(appendFrame(nil, kindConsole, func(b []byte) []byte {
		b = binary.AppendUvarint(b, version)
		return appendString(appendString(b, task), string(text))
	}))
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}
