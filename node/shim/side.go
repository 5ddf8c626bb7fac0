package shim

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"

	"gridnode/node/console"
	"gridnode/node/sandbox"
)

// Bounds of the commands that run beside tasks.
const (
	sidesMax    = 16  // of one task
	sidesAllMax = 256 // of all
	// sideDrain is how long what a command has left in the background may hold up the word
	// that it has ended.
	sideDrain = time.Second
)

// side is a command that somebody runs beside a task: as its account, inside its walls and
// limits, with its environment and directory. It ends with the task, and when the asker goes.
type side struct {
	s      *shim
	task   *task
	pid    int
	beside *sandbox.Beside // nil for a task without a plan
	conn   *console.Conn

	master *os.File // its terminal; nil: it has pipes
	stdin  *os.File
	outs   [2]*os.File
	copies sync.WaitGroup
	begun  chan struct{} // closed by begin
}

// openSide starts a command beside a task. It is called on the loop.
func (s *shim) openSide(t *task, request *console.Request, c *console.Conn) (*side, error) {
	switch {
	case !t.killAt.IsZero() || !t.collected.IsZero():
		return nil, errors.New("the job is ending")
	case t.spec.Plan != nil && t.spec.Plan.Module > 0:
		return nil, errors.New("the job is a module of WebAssembly: no programs run beside it")
	case len(t.sides) >= sidesMax || len(s.sides) >= sidesAllMax:
		return nil, fmt.Errorf("%d commands run beside the job, and %d beside all: at most %d and %d", len(t.sides), len(s.sides), sidesMax, sidesAllMax)
	}
	b := &side{s: s, task: t, conn: c, begun: make(chan struct{})}
	theirs, err := b.open(request)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
	}()
	spec := *t.spec
	spec.Args = request.Args
	spec.Env = s.sideEnv(t, request)
	if err := b.start(&spec, theirs); err != nil {
		b.closeFiles()
		return nil, err
	}
	s.sides[b.pid] = b
	if t.sides == nil {
		t.sides = make(map[int]*side)
	}
	t.sides[b.pid] = b
	return b, nil
}

// sideEnv is the environment of a command beside a task.
func (s *shim) sideEnv(t *task, request *console.Request) []string {
	env := append(t.spec.Env[:len(t.spec.Env):len(t.spec.Env)], MarkEnv+"="+s.records.markOf(t.id))
	if !request.TTY {
		return env
	}
	for i, setting := range env {
		if strings.HasPrefix(setting, "TERM=") {
			env[i] = "TERM=" + cmp.Or(request.Term, "dumb")
			return env
		}
	}
	return append(env, "TERM="+cmp.Or(request.Term, "dumb"))
}

// open makes the terminal or the pipes of a command, and returns its ends of them.
func (b *side) open(request *console.Request) (theirs []*os.File, err error) {
	if request.TTY {
		master, tty, err := pty.Open()
		if err != nil {
			return nil, fmt.Errorf("terminal: %w", err)
		}
		resize(master, cmp.Or(request.Rows, rowsDefault), cmp.Or(request.Cols, colsDefault))
		if account := b.task.spec.account(); account != nil {
			_ = tty.Chown(int(account.User), int(account.Group)) // else it cannot be opened anew, only used
		}
		b.master = master
		return []*os.File{tty, tty, tty}, nil
	}
	for i, ours := range []**os.File{&b.stdin, &b.outs[0], &b.outs[1]} {
		r, w, err := os.Pipe()
		if err != nil {
			b.closeFiles()
			for _, f := range theirs {
				f.Close()
			}
			return nil, err
		}
		if i == 0 {
			r, w = w, r
		}
		*ours = r
		theirs = append(theirs, w)
	}
	return theirs, nil
}

// start starts the command. The error is for the asker.
func (b *side) start(spec *Spec, theirs []*os.File) (err error) {
	account := spec.account()
	path, failed := spec.find(account)
	if failed != nil {
		return failed
	}
	files := [3]int{int(theirs[0].Fd()), int(theirs[1].Fd()), int(theirs[2].Fd())}
	if b.task.run != nil {
		if !spec.Plan.Sees(path) {
			return fmt.Errorf("%s: command not found inside the sandbox", spec.Args[0])
		}
		b.beside, err = b.task.run.Beside(&sandbox.Process{
			Path: path, Args: spec.Args, Env: spec.Env, Hide: []string{MarkEnv}, Dir: spec.Dir, Files: files, Terminal: b.master != nil,
		})
		if err == nil {
			b.pid = b.beside.PID
		}
		return err
	}
	sys := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Setctty: b.master != nil}
	if account != nil {
		sys.Credential = &syscall.Credential{Uid: account.User, Gid: account.Group, Groups: account.Groups}
	}
	b.pid, err = syscall.ForkExec(path, spec.Args, &syscall.ProcAttr{
		Dir: spec.Dir, Env: spec.Env, Files: []uintptr{uintptr(files[0]), uintptr(files[1]), uintptr(files[2])}, Sys: sys,
	})
	if err != nil {
		return execError(path, err)
	}
	return nil
}

func (b *side) closeFiles() {
	for _, f := range []*os.File{b.master, b.stdin, b.outs[0], b.outs[1]} {
		if f != nil {
			f.Close()
		}
	}
}

func (b *side) begin() {
	defer close(b.begun)
	if b.master != nil {
		b.copies.Go(func() { b.show(b.master, console.Output) })
		return
	}
	b.copies.Go(func() { b.show(b.outs[0], console.Output) })
	b.copies.Go(func() { b.show(b.outs[1], console.Errors) })
}

// show sends what the command writes. An asker that does not read holds it up.
func (b *side) show(from *os.File, k console.Kind) {
	buffer := make([]byte, console.DataMax)
	for {
		n, err := from.Read(buffer)
		if n > 0 && b.conn.Send(k, buffer[:n]) != nil {
			return
		}
		if err != nil {
			return
		}
	}
}

func (b *side) input(k console.Kind, body []byte) error {
	if b.master != nil {
		return typed(b.master, k, body)
	}
	switch k {
	case console.Input:
		_, _ = b.stdin.Write(body) // the command may have closed it, and go on
	case console.EOF:
		b.stdin.Close()
	case console.Resize:
	default:
		return fmt.Errorf("%w: kind %d", console.ErrMalformed, k)
	}
	return nil
}

// left ends the command, unless it has ended.
func (b *side) left() {
	b.s.post(func() {
		if b.s.sides[b.pid] != b {
			return
		}
		b.signal(syscall.SIGHUP)
		b.signal(syscall.SIGTERM)
		b.s.after(b.s.config.Grace, func() {
			if b.s.sides[b.pid] == b {
				b.signal(syscall.SIGKILL)
			}
		})
	})
}

// signal sends a signal to the command and what it has started.
func (b *side) signal(sig syscall.Signal) {
	if b.beside != nil {
		b.beside.Signal(sig)
		return
	}
	_ = syscall.Kill(-b.pid, sig) // nobody may be left
}

// signalSides sends a signal to all that runs beside t.
func (t *task) signalSides(sig syscall.Signal) {
	for _, b := range t.sides {
		b.signal(sig)
	}
}

// endSide notes that a command has ended, and has the asker told.
func (s *shim) endSide(b *side, status syscall.WaitStatus) {
	delete(s.sides, b.pid)
	delete(b.task.sides, b.pid)
	if b.beside != nil {
		b.beside.Release()
	}
	code := int32(status.ExitStatus())
	if status.Signaled() {
		code = exitSignal + int32(status.Signal())
	}
	go b.finish(code)
}

// finish tells the asker how the command ended, behind what it has written.
func (b *side) finish(code int32) {
	shown := make(chan struct{})
	go func() {
		<-b.begun
		b.copies.Wait()
		close(shown)
	}()
	patience := time.NewTimer(sideDrain)
	defer patience.Stop()
	select {
	case <-shown:
	case <-patience.C:
	}
	_ = b.conn.Send(console.Exit, console.End(code, "")) // the asker is gone if this fails
	b.conn.Close()
	b.closeFiles()
}
