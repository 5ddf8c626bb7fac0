package shim

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/creack/pty"

	"gridnode/node/console"
	"gridnode/node/kept"
)

// A task with a terminal has one end of a pseudo-terminal, this process the other. What the
// task writes there goes to its file of output, as far as that may grow, and to whoever looks
// at it. Nobody has to: the terminal is read always, so that the task goes on. Who looks and
// reads too slowly holds the task back, as at a real terminal, but not for longer than
// viewerSlow.
const (
	recentMax  = 64 << 10 // bytes of the latest output, for whoever begins to look
	viewerMax  = 16       // pieces of output on their way to a viewer
	viewerSlow = 10 * time.Second
)

// Size of a terminal that nobody looks at yet.
const (
	rowsDefault = 24
	colsDefault = 80
)

// terminal is this process's end of a task's terminal.
type terminal struct {
	master *os.File
	log    string // path of the file of output
	bound  int64  // bytes kept of it
	done   chan struct{}

	mu     sync.Mutex
	recent []byte
	viewer *viewer // nil: nobody looks
	last   []byte  // for whoever looks once the task has ended; nil: it has not
}

// viewer is somebody who looks at a terminal.
type viewer struct {
	conn *console.Conn
	out  chan []byte
	end  chan []byte   // the body of the last frame
	gone chan struct{} // closed by leave
	once sync.Once
}

// openTerminal makes the terminal of a task, if it is to have one, and returns the task's end.
func openTerminal(spec *Spec) (*terminal, *os.File, error) {
	if !spec.Terminal {
		return nil, nil, nil
	}
	master, tty, err := pty.Open()
	if err != nil {
		return nil, nil, fmt.Errorf("terminal: %w", err)
	}
	err = pty.Setsize(master, &pty.Winsize{Rows: rowsDefault, Cols: colsDefault})
	if account := spec.account(); err == nil && account != nil {
		err = tty.Chown(int(account.User), int(account.Group)) // programs open it anew
	}
	if err != nil {
		master.Close()
		tty.Close()
		return nil, nil, fmt.Errorf("terminal: %w", err)
	}
	return &terminal{master: master, log: spec.Stdout, bound: kept.Bound(spec.Log), done: make(chan struct{})}, tty, nil
}

// pump reads the terminal until nobody has the other end.
func (t *terminal) pump() {
	defer close(t.done)
	log, _ := os.OpenFile(t.log, os.O_WRONLY|os.O_APPEND, 0) // it was made a moment ago; nil: nothing is kept
	if log != nil {
		defer log.Close()
	}
	var written int64
	buffer := make([]byte, console.DataMax)
	for {
		n, err := t.master.Read(buffer)
		if n > 0 {
			if log != nil && written <= t.bound { // one byte more says that there was more
				_, _ = log.Write(buffer[:n]) // the disk is full: whoever looks still sees it
				written += int64(n)
			}
			t.show(buffer[:n])
		}
		if err != nil {
			return
		}
	}
}

// show keeps what was written last and hands it to whoever looks.
func (t *terminal) show(b []byte) {
	t.mu.Lock()
	t.recent = append(t.recent, b...)
	if extra := len(t.recent) - recentMax; extra > 0 {
		t.recent = append(t.recent[:0], t.recent[extra:]...)
	}
	v := t.viewer
	t.mu.Unlock()
	if v == nil {
		return
	}
	piece := append([]byte(nil), b...)
	select {
	case v.out <- piece:
		return
	default:
	}
	slow := time.NewTimer(viewerSlow)
	defer slow.Stop()
	select {
	case v.out <- piece:
	case <-v.gone:
	case <-slow.C:
		v.leave()
	}
}

// watch has somebody look, who is shown what was written last. Who looked before is sent away.
func (t *terminal) watch(conn *console.Conn) *viewer {
	v := &viewer{conn: conn, out: make(chan []byte, viewerMax), end: make(chan []byte, 1), gone: make(chan struct{})}
	t.mu.Lock()
	before := t.viewer
	t.viewer = v
	for rest := t.recent; len(rest) > 0; {
		n := min(len(rest), console.DataMax)
		v.out <- append([]byte(nil), rest[:n]...) // there is room for all of them
		rest = rest[n:]
	}
	if t.last != nil { // it ended when the viewer had been let in
		t.viewer = nil
		v.finish(t.last)
	}
	t.mu.Unlock()
	if before != nil {
		before.finish(console.End(exitElsewhere, "somebody else looks at the job now"))
	}
	go v.write()
	return v
}

// exitElsewhere is what a viewer is told whose place somebody else has taken.
const exitElsewhere = -1

// write sends what is to be shown until the viewer leaves.
func (v *viewer) write() {
	defer v.leave()
	for {
		var err error
		select {
		case piece := <-v.out:
			err = v.conn.Send(console.Output, piece)
		case <-v.gone:
			return
		case last := <-v.end:
			for err == nil {
				select {
				case piece := <-v.out: // it came before
					err = v.conn.Send(console.Output, piece)
					continue
				default:
				}
				_ = v.conn.Send(console.Exit, last) // the viewer is gone if this fails
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// finish sends a viewer away, with the body of the last frame.
func (v *viewer) finish(last []byte) {
	select {
	case v.end <- last:
	default: // it has one
	}
	time.AfterFunc(viewerSlow, v.leave)
}

// leave closes the viewer's connection.
func (v *viewer) leave() {
	v.once.Do(func() {
		close(v.gone)
		v.conn.Close()
	})
}

// left notes that a viewer has gone.
func (t *terminal) left(v *viewer) {
	v.leave()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.viewer == v {
		t.viewer = nil
	}
}

// over reports whether all that was written to the terminal is kept. It may be called on nil.
func (t *terminal) over() bool {
	if t == nil {
		return true
	}
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// end tells whoever looks how the task ended. It may be called on nil.
func (t *terminal) end(e *Ended) {
	if t == nil {
		return
	}
	t.close()
	t.mu.Lock()
	v := t.viewer
	t.viewer, t.last = nil, console.End(e.ExitCode, e.Reason)
	t.mu.Unlock()
	if v == nil {
		return
	}
	v.finish(t.last)
}

// close gives the terminal up. It may be called on nil.
func (t *terminal) close() {
	if t != nil {
		t.master.Close()
	}
}

// resize gives a terminal another size, of which its programs are told.
func resize(master *os.File, rows, cols uint16) {
	if rows > 0 && cols > 0 {
		_ = pty.Setsize(master, &pty.Winsize{Rows: rows, Cols: cols}) // it is closed if this fails
	}
}
