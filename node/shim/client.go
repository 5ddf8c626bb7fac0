package shim

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"gridnode/grid"
)

// startMax is how long a shim may take to start, what it must clear away included. One that ends
// is not waited for, and a busy machine needs long.
const startMax = sweepMax + time.Minute

// ErrClosed is returned by a Client's methods when the connection is gone. The
// caller connects anew and compares what it knows with Adopt.
var ErrClosed = errors.New("connection to the shim is closed")

// Options of Connect.
type Options struct {
	// Command starts a shim; nil means this program with the words
	// "shim --home HOME". Its output goes to shim.log in the home. HomeWord in it, and
	// in Env, stands for the home.
	Command []string
	// Program is what Connect executes instead of Command's first word: a path that only
	// this process may know. What a shim is asked to start is of its own program.
	Program string
	Env     []string // added to this process's environment for the shim, not for tasks
}

// HomeWord stands for the home in Options.
const HomeWord = "{HOME}"

// For returns the command line and the environment of the shim of a home.
func (o *Options) For(home string) (args, env []string) {
	command := o.Command
	if command == nil {
		// Not os.Executable: the file may have been replaced since this process began.
		command = []string{"/proc/self/exe", "shim", "--home", HomeWord}
	}
	for _, word := range command {
		args = append(args, strings.ReplaceAll(word, HomeWord, home))
	}
	for _, setting := range o.Env {
		env = append(env, strings.ReplaceAll(setting, HomeWord, home))
	}
	return args, env
}

// Client is a daemon's connection to its shim. Its methods may be called concurrently.
type Client struct {
	conn    *conn
	pid     int
	leases  bool // it keeps leases
	logs    bool // it reads Spec.Log
	outputs bool // it reads Spec.Outputs
	peers   bool // it reads Spec.Peers
	tasks   []Task
	events  chan Ended
	closed  chan struct{} // closed by Close
	once    sync.Once
	ended   chan struct{} // closed when the reader has ended

	mu  sync.Mutex
	err error
}

// Connect returns a connection to the home's shim, and starts one if there is none.
// The shim closes an earlier connection when a new one is made.
func Connect(ctx context.Context, home string, options Options) (*Client, error) {
	home, err := filepath.Abs(home)
	if err != nil {
		return nil, fmt.Errorf("connect to the shim: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startMax)
	defer cancel()
	pause := time.Millisecond
	for {
		client, err := Dial(ctx, home)
		if err == nil || !errors.Is(err, errNoShim) {
			return client, err
		}
		if err := spawn(ctx, home, options); err != nil {
			return nil, fmt.Errorf("start the shim of %s: %w", home, err)
		}
		// It listens, or another one does, or that one is just ending.
		select {
		case <-time.After(pause):
			pause = min(2*pause, 100*time.Millisecond)
		case <-ctx.Done():
			return nil, fmt.Errorf("connect to the shim of %s: %w; see %s", home, ctx.Err(), logPath(home))
		}
	}
}

// errNoShim means that nobody serves the home at this moment.
var errNoShim = errors.New("no shim answers")

// Dial returns a connection to the home's shim, and an error if there is none.
func Dial(ctx context.Context, home string) (*Client, error) {
	c, err := dial(ctx, home)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
			return nil, fmt.Errorf("shim of %s: %w", home, errNoShim)
		}
		return nil, fmt.Errorf("shim of %s: %w", home, err)
	}
	client, err := Attach(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("shim of %s: %w", home, err)
	}
	return client, nil
}

// Attach returns a client on a connection that leads to a shim, which it owns from then on.
func Attach(ctx context.Context, c stream) (*Client, error) {
	client := &Client{conn: newConn(c), events: make(chan Ended), closed: make(chan struct{}), ended: make(chan struct{})}
	client.conn.send(kindHello, helloBody)
	client.conn.flush()
	r := bufio.NewReaderSize(c, 64<<10)
	stop := context.AfterFunc(ctx, client.conn.close)
	err := client.adopt(r)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		client.conn.close()
		return nil, err
	}
	go client.read(r)
	return client, nil
}

// adopt reads the welcome and what the shim knows.
func (c *Client) adopt(r *bufio.Reader) error {
	var buf []byte
	for welcome := true; ; welcome = false {
		k, body, err := readFrame(r, &buf)
		if err != nil {
			return fmt.Errorf("%w: %w", errNoShim, err) // it was about to end
		}
		switch {
		case welcome && k == kindWelcome:
			d := decoder{rest: body}
			if err := checkVersion(&d); err != nil {
				return err
			}
			c.pid = int(d.int(1 << 31))
			c.leases, c.logs, c.outputs, c.peers = len(d.rest) > 0, len(d.rest) > 1, len(d.rest) > 2, len(d.rest) > 3
		case !welcome && k == kindTask:
			var t Task
			if err := t.decode(body); err != nil {
				return err
			}
			c.tasks = append(c.tasks, t)
		case !welcome && k == kindReady:
			return nil
		default:
			return fmt.Errorf("%w: frame of kind %d", errEncoding, k)
		}
	}
}

// read delivers ends until the connection is gone.
func (c *Client) read(r *bufio.Reader) {
	defer close(c.ended)
	defer close(c.events)
	defer c.conn.close()
	var buf []byte
	for {
		k, body, err := readFrame(r, &buf)
		var e Ended
		if err == nil && k != kindEnded {
			err = fmt.Errorf("%w: frame of kind %d", errEncoding, k)
		}
		if err == nil {
			err = e.decode(body)
		}
		if err != nil {
			c.mu.Lock()
			c.err = fmt.Errorf("%w: %w", ErrClosed, err)
			c.mu.Unlock()
			return
		}
		select {
		case c.events <- e:
		case <-c.closed: // nobody wants it any more
		}
	}
}

// Adopt returns what the shim knew when the connection was made.
func (c *Client) Adopt() []Task { return c.tasks }

// PID returns the shim's process number.
func (c *Client) PID() int { return c.pid }

// Events returns the channel of ends, those not acknowledged from before the
// connection first. It is closed when the connection is gone.
func (c *Client) Events() <-chan Ended { return c.events }

// Err returns why Events was closed, nil as long as it is not.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Start orders a task to be started. An error means that it was not: spec is out of
// bounds, or the connection is gone. Whatever fails later comes as an Ended with
// CauseStart. To start a task the shim has, or had and was not acknowledged, changes nothing.
func (c *Client) Start(spec Spec) error {
	if err := spec.check(); err != nil {
		return err
	}
	if spec.Lease > 0 && !c.leases {
		return errNoLeases
	}
	if spec.Peers != nil && !c.peers {
		return errNoPeers
	}
	if !c.logs {
		spec.Log = 0 // until that shim's tasks have ended
	}
	if !c.outputs {
		spec.Outputs = OutputsAtOnce
	}
	return c.order(kindStart, spec.append)
}

// Kill orders a task and everything it started to be ended. Its end comes through
// Events, with reason. For a task the shim does not run this does nothing.
func (c *Client) Kill(id, reason string) error {
	return c.order(kindKill, func(b []byte) []byte { return appendKill(b, id, shorten(reason)) })
}

// Extend orders a task to be ended span from now, whatever its limit was; 0 lifts the
// limit. For a task the shim does not run, or is ending, this does nothing.
func (c *Client) Extend(id string, span grid.Time) error {
	if span < 0 || span > grid.SpanMax {
		return fmt.Errorf("task %s: limit of %d µs", id, int64(span))
	}
	return c.order(kindExtend, func(b []byte) []byte { return appendExtend(b, id, span) })
}

// Expire tells the shim to end everything it runs, and itself, a span from now, whatever was
// said before and whether the daemon lives then or not; 0: never.
func (c *Client) Expire(span grid.Time) error {
	if span < 0 || span > grid.SpanMax {
		return fmt.Errorf("expiry after %d µs", int64(span))
	}
	return c.order(kindExpire, func(b []byte) []byte { return appendExpire(b, span) })
}

// errNoLeases means that a shim which was there before the daemon cannot end what is not renewed.
var errNoLeases = errors.New("the shim of an earlier version, which goes on until its tasks have ended, keeps no leases")

// Renew orders a task to go on for a span from now, whatever is left of its lease. For a
// task that has none, or that the shim does not run or is ending, this does nothing.
func (c *Client) Renew(id string, span grid.Time) error {
	if span < 0 || span > grid.SpanMax {
		return fmt.Errorf("task %s: lease of %d µs", id, int64(span))
	}
	if !c.leases {
		return nil // it runs nothing that has one
	}
	return c.order(kindRenew, func(b []byte) []byte { return appendExtend(b, id, span) })
}

// errNoPeers means that a shim which was there before the daemon makes no ways between tasks.
var errNoPeers = errors.New("the shim of an earlier version on that node cannot have tasks reach each other over several machines")

// Reach has the shim of a pilot call with a link.Way of this number, which leads to where a task
// of Spec.Peers listens, once it does. For a task that the shim does not run this does nothing.
func (c *Client) Reach(number uint64, id string) error {
	return c.order(kindReach, func(b []byte) []byte { return appendReach(b, number, id) })
}

// Ack tells the shim that the end of a task is saved and may be forgotten.
func (c *Client) Ack(id string) error {
	return c.order(kindAck, func(b []byte) []byte { return appendString(b, id) })
}

// Retire tells the shim to end as soon as no task runs and every end is
// acknowledged or the connection closed, instead of waiting to be idle for a while.
func (c *Client) Retire() error { return c.order(kindRetire, nil) }

func (c *Client) order(k kind, body func([]byte) []byte) error {
	select {
	case <-c.conn.done:
		return ErrClosed
	case <-c.closed:
		return ErrClosed
	default:
	}
	c.conn.send(k, body)
	c.conn.flush()
	return nil
}

// closeMax is how long Close waits for the shim to have read everything.
const closeMax = time.Second

// Close ends the connection; the shim and its tasks go on. What was ordered before
// has been carried out, unless the shim hangs or is dead. Events is closed.
func (c *Client) Close() {
	c.once.Do(func() { close(c.closed) })
	c.conn.finish()
	select {
	case <-c.ended: // the shim closes its side when it is done with ours
	case <-time.After(closeMax):
	}
	c.conn.close()
	<-c.ended
}

func logPath(home string) string { return filepath.Join(home, "shim.log") }

// logMax is the size at which a new shim begins a new log.
const logMax = 1 << 20

// spawn starts a shim that does not depend on this process, and waits until it
// listens. It returns nil, too, if the home has a shim already.
func spawn(ctx context.Context, home string, options Options) error {
	if info, err := os.Stat(logPath(home)); err == nil && info.Size() > logMax {
		os.Rename(logPath(home), logPath(home)+".old")
	}
	log, err := os.OpenFile(logPath(home), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	ready, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	command, env := options.For(home)
	cmd := exec.Command(cmp.Or(options.Program, command[0]), command[1:]...)
	cmd.Args[0] = filepath.Base(os.Args[0])
	cmd.Dir = "/"
	cmd.Env = append(append(os.Environ(), env...), readyEnv+"=3")
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return err
	}
	go cmd.Wait() // lest it stays a zombie when it ends before this process
	stop := context.AfterFunc(ctx, func() { ready.SetReadDeadline(time.Now()) })
	defer stop()
	answer, err := bufio.NewReader(ready).ReadString('\n')
	answer = strings.TrimSpace(answer)
	switch {
	case answer == readyWord, answer == errRuns.Error():
		return nil
	case answer != "":
		return errors.New(answer)
	}
	return fmt.Errorf("it ended, or does not answer (%w); see %s", err, logPath(home))
}
