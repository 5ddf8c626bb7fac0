package console

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Protocol names it in the upgrade of a request (RFC 9110, 7.8) and among sites.
const Protocol = "gridnode-console"

// Kind is what a frame holds.
type Kind byte

// Kinds of frames. Those below 16 go to the process, the others come from it.
const (
	Input  Kind = 1 // bytes for its standard input, or what was typed
	EOF    Kind = 2 // no more of them
	Resize Kind = 3 // the terminal has another size: rows and columns, two bytes each

	Opened  Kind = 16 // it is there: first, before anything else
	Refused Kind = 17 // it is not, with the reason: instead of Opened, and the last frame
	Output  Kind = 18 // what it has written, to its terminal or its standard output
	Errors  Kind = 19 // what it has written to its standard error
	Absent  Kind = 21 // it does not run now: instead of Opened, and the last frame
	Exit    Kind = 20 // it has ended: its exit code in four bytes, then a reason. The last frame
)

// Bounds.
const (
	DataMax    = 32 << 10 // bytes in one frame
	requestMax = 48 << 10 // bytes of a command
	sideMax    = 4096     // rows, and columns
	termMax    = 64
)

// ErrMalformed is wrapped by what is wrong with frames.
var ErrMalformed = errors.New("malformed frame")

// Request is what is asked for: to look at a job through its own terminal, or to run a
// command beside it.
type Request struct {
	Args []string `json:"args,omitempty"` // the command; none: the job's own terminal
	TTY  bool     `json:"tty,omitempty"`  // the command gets a terminal
	Rows uint16   `json:"rows,omitempty"` // of the asker's terminal; 0: it has none
	Cols uint16   `json:"cols,omitempty"`
	Term string   `json:"term,omitempty"` // kind of terminal, as in TERM
	Wait bool     `json:"wait,omitempty"` // for a job that has not begun
}

// Check returns an error that names what is out of bounds.
func (r *Request) Check() error {
	size := 0
	for _, word := range r.Args {
		size += len(word) + 1
		if strings.ContainsRune(word, 0) || !utf8.ValidString(word) {
			return errors.New("the command holds a NUL byte, or is no UTF-8")
		}
	}
	switch {
	case size > requestMax:
		return fmt.Errorf("the command has %d bytes, at most %d", size, requestMax)
	case len(r.Args) > 0 && r.Args[0] == "":
		return errors.New("the command is empty")
	case r.Rows > sideMax || r.Cols > sideMax:
		return fmt.Errorf("a terminal of %d x %d, at most %d", r.Cols, r.Rows, sideMax)
	case len(r.Term) > termMax || strings.Trim(r.Term, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.+_-") != "":
		return fmt.Errorf("kind of terminal %.64q", r.Term)
	}
	return nil
}

// Conn is one end of a console. Send may be called concurrently.
type Conn struct {
	rw io.ReadWriteCloser
	r  *bufio.Reader

	mu  sync.Mutex // of writing
	out []byte
	in  []byte
}

// New returns the end that reads and writes rw.
func New(rw io.ReadWriteCloser) *Conn { return &Conn{rw: rw, r: bufio.NewReaderSize(rw, DataMax+5)} }

// Buffered is New for rw of which r may have read some already.
func Buffered(rw io.ReadWriteCloser, r *bufio.Reader) *Conn { return &Conn{rw: rw, r: r} }

// Send writes one frame.
func (c *Conn) Send(k Kind, body []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = binary.BigEndian.AppendUint32(c.out[:0], uint32(len(body)))
	c.out = append(append(c.out, byte(k)), body...)
	_, err := c.rw.Write(c.out)
	return err
}

// Receive returns the next frame. The body is valid until the next call.
func (c *Conn) Receive() (k Kind, body []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(c.r, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(head[:4])
	if size > DataMax {
		return 0, nil, fmt.Errorf("%w: %d bytes, at most %d", ErrMalformed, size, DataMax)
	}
	if cap(c.in) < int(size) {
		c.in = make([]byte, DataMax)
	}
	body = c.in[:size]
	if _, err := io.ReadFull(c.r, body); err != nil {
		return 0, nil, fmt.Errorf("%w: cut short: %w", ErrMalformed, err)
	}
	return Kind(head[4]), body, nil
}

// Close closes what is below.
func (c *Conn) Close() error { return c.rw.Close() }

// Read is for passing frames on without a look at them.
func (c *Conn) Read(b []byte) (int, error) { return c.r.Read(b) }

// Write is for the same.
func (c *Conn) Write(b []byte) (int, error) { return c.rw.Write(b) }

// Size returns the body of Resize.
func Size(rows, cols uint16) []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, rows), cols)
}

// ParseSize reads it.
func ParseSize(body []byte) (rows, cols uint16, err error) {
	if len(body) != 4 {
		return 0, 0, fmt.Errorf("%w: size of %d bytes", ErrMalformed, len(body))
	}
	rows, cols = binary.BigEndian.Uint16(body), binary.BigEndian.Uint16(body[2:])
	if rows > sideMax || cols > sideMax {
		return 0, 0, fmt.Errorf("%w: a terminal of %d x %d", ErrMalformed, cols, rows)
	}
	return rows, cols, nil
}

// End returns the body of Exit.
func End(code int32, reason string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(code)), reason...)
}

// ParseEnd reads it.
func ParseEnd(body []byte) (code int32, reason string, err error) {
	if len(body) < 4 {
		return 0, "", fmt.Errorf("%w: end of %d bytes", ErrMalformed, len(body))
	}
	return int32(binary.BigEndian.Uint32(body)), string(body[4:]), nil
}

// ErrAbsent is returned for a job that does not run now, where it was asked for.
var ErrAbsent = errors.New("the job does not run")

// Refusal is an error for the asker: the job cannot be looked into.
type Refusal struct{ Reason string }

func (r *Refusal) Error() string { return r.Reason }

// Refuse tells why there is no console, and closes it.
func (c *Conn) Refuse(reason string) {
	_ = c.Send(Refused, []byte(reason[:min(len(reason), DataMax)])) // the asker is gone if this fails
	c.Close()
}

// Turn tells that there is no console for a reason, which may be ErrAbsent, and closes it.
func (c *Conn) Turn(err error) {
	if errors.Is(err, ErrAbsent) {
		_ = c.Send(Absent, nil) // the asker is gone if this fails
		c.Close()
		return
	}
	c.Refuse(err.Error())
}

// Await reads the first frame that comes from the process's side: nil if it is there,
// ErrAbsent or a *Refusal if it is not.
func (c *Conn) Await() error {
	k, body, err := c.Receive()
	switch {
	case err != nil:
		return err
	case k == Opened:
		return nil
	case k == Absent:
		return ErrAbsent
	case k == Refused:
		return &Refusal{strings.ToValidUTF8(string(body), "?")}
	}
	return fmt.Errorf("%w: kind %d before the console is open", ErrMalformed, k)
}

// lastMax is how long what an end has sent before it ended may take to be passed on.
const lastMax = 10 * time.Second

// Relay passes on what comes from either end to the other until one of them ends, and
// closes both. An end that takes nothing more may have sent something before: that comes first.
func Relay(a, b io.ReadWriteCloser) {
	var wg sync.WaitGroup
	pass := func(to, from io.ReadWriteCloser) {
		w := &taken{w: to}
		_, _ = io.CopyBuffer(w, struct{ io.Reader }{from}, make([]byte, DataMax)) // either side may go
		both := func() {
			to.Close()
			from.Close()
		}
		if w.failed {
			time.AfterFunc(lastMax, both) // the other direction ends by itself, and closes them
			return
		}
		both()
	}
	wg.Go(func() { pass(a, b) })
	wg.Go(func() { pass(b, a) })
	wg.Wait()
	a.Close()
	b.Close()
}

// taken is a writer that says whether it took everything.
type taken struct {
	w      io.Writer
	failed bool
}

func (t *taken) Write(b []byte) (int, error) {
	n, err := t.w.Write(b)
	t.failed = err != nil
	return n, err
}
