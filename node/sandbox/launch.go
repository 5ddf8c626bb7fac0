package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"gridnode/node/sandbox/cgroup"
)

// Process is what to start.
type Process struct {
	Path  string   // of the program
	Args  []string // Args[0] is its name
	Env   []string // KEY=VALUE
	Hide  []string // names of variables that bubblewrap keeps on this side of the walls
	Dir   string   // where it starts; with Plan.HasFolder its folder instead
	Files [3]int   // descriptors of its input, output and errors

	Terminal bool // they are a terminal, which is to be its own
}

// Launcher starts processes by their plans. Not safe for concurrent use.
type Launcher struct {
	name   string       // of the home
	groups *cgroup.Home // nil: none
	spare  chan *seat   // ready, or about to be; spares of them
	nets   []int        // networks without anybody in them, by descriptor
	users  int          // accounts given so far
	etc    [2]string    // directories that tasks see as /etc, without and with network; empty: not made
	wg     sync.WaitGroup
}

// etcFor returns the directory that a task sees as /etc.
func (l *Launcher) etcFor(p *Plan) (string, error) {
	i := 0
	if p.Network {
		i = 1
	}
	if _, err := os.Stat(l.etc[i]); l.etc[i] == "" || err != nil { // or somebody has cleaned up
		dir, err := os.MkdirTemp("", etcPrefix(l.name)) // it has to be one that guests may enter: no home is
		if err != nil {
			return "", err
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			return "", err
		}
		l.etc[i] = dir
		if err := makeEtc(filepath.Join(dir, "etc"), p.Network); err != nil {
			return "", err
		}
	}
	return filepath.Join(l.etc[i], "etc"), nil
}

// Open returns a launcher for a shim. name is that of its home: two launchers of one name
// may not be open at a time. What one that died left in control groups is killed.
func Open(name string) *Launcher {
	l := &Launcher{name: name}
	if place, err := cgroup.Find(); err == nil {
		l.groups, _ = place.Open(homeName(name)) // without them there are other limits
	}
	return l
}

// Sweep kills what a launcher of that name that died has left in control groups, and removes
// what it has left in files.
func Sweep(name string) error {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), etcPrefix(name)+"*")) // a bad pattern: none
	for _, dir := range left {
		_ = os.RemoveAll(dir) // it is a copy of what everybody may read
	}
	place, err := cgroup.Find()
	if err != nil {
		return nil // then it had none
	}
	return place.Sweep(homeName(name))
}

// etcPrefix begins the names of directories that tasks see as /etc.
func etcPrefix(name string) string { return "gridnode-etc-" + homeName(name) + "-" }

// homeName names a home in control groups.
func homeName(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:8])
}

// Grouped reports whether control groups hold a limit: memory, pids or cpu.
func (l *Launcher) Grouped(controller string) bool { return l.groups.Has(controller) }

// Close gives up what is kept for the next task. Tasks must have been released.
func (l *Launcher) Close() error {
	if l.spare != nil {
		for range spares {
			(<-l.spare).leave()
		}
	}
	for _, fd := range l.nets {
		unix.Close(fd)
	}
	l.wg.Wait()
	for _, dir := range l.etc {
		if dir != "" {
			os.RemoveAll(dir)
		}
	}
	if l.groups == nil {
		return nil
	}
	return l.groups.Close()
}

// seat is a thread from which one task is started, and that task's control group. Under
// version 1 the thread has joined it, which takes long: a seat is made before it is needed.
type seat struct {
	group *cgroup.Group // nil: none
	work  chan func()   // closed when the thread is to end
	over  chan struct{} // closed when the group is to be removed
	err   error
}

// spares is how many seats are kept ready: the time that one takes to join its group
// bounds how many tasks can be started in a row.
const spares = 3

// take returns a seat, and has the next one made.
func (l *Launcher) take() (*seat, error) {
	if l.spare == nil {
		l.spare = make(chan *seat, spares)
		for range spares {
			l.prepare()
		}
	}
	s := <-l.spare
	l.prepare()
	return s, s.err
}

func (l *Launcher) prepare() {
	work := make(chan func())
	s := &seat{work: work, over: make(chan struct{})}
	l.wg.Go(func() {
		onOwnThread(func() {
			if l.groups != nil {
				if s.group, s.err = l.groups.Make(); s.err == nil {
					s.err = s.group.Join()
				}
			}
			l.spare <- s
			for do := range work {
				do()
			}
		})
		<-s.over
		if s.group != nil {
			_ = s.group.Close() // a task of which something is left: the next Open tries again
		}
	})
}

// do runs f on the seat's thread.
func (s *seat) do(f func()) {
	done := make(chan struct{})
	s.work <- func() { defer close(done); f() }
	<-done
}

// leave ends the thread and removes the group.
func (s *seat) leave() {
	s.endThread()
	close(s.over)
}

// endThread ends the thread, if it has not ended.
func (s *seat) endThread() {
	if s.work != nil {
		close(s.work)
		s.work = nil
	}
}

// onOwnThread runs f on a thread that ends with it and is not the process's first.
func onOwnThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if syscall.Gettid() == os.Getpid() {
			onOwnThread(f)
			runtime.UnlockOSThread()
			return
		}
		f()
	}()
	<-done
}

// usersMax is how many accounts for guests one process gives before it begins anew.
const usersMax = 64

// user returns the account that the next guest runs as.
func (l *Launcher) user(p *Plan) uint32 {
	if p.User == 0 {
		return 0
	}
	l.users++
	return p.User + uint32(os.Getpid())%(1<<22)*usersMax + uint32(l.users%usersMax)
}

// Start starts a process by a plan. The error says what the walls or limits lack; a
// *StartError is about the program.
func (l *Launcher) Start(p *Plan, proc *Process) (*Running, error) {
	s, err := l.take()
	if err != nil {
		s.leave()
		return nil, err
	}
	r := &Running{plan: p, seat: s, launcher: l, dir: proc.Dir, user: l.user(p)}
	if s.group != nil {
		err = s.group.Set(cgroup.Limits{Memory: p.Limits.Memory, Processes: p.Limits.Processes, Processors: p.Limits.Processors})
	}
	var etc string
	if err == nil && p.Kind == Bubblewrap {
		etc, err = l.etcFor(p)
	}
	if err == nil {
		if p.Kept && r.user != 0 {
			err = hand(proc.Dir, r.user)
		}
		if p.alone(r.user) {
			r.net = l.network()
		}
		s.do(func() {
			if err == nil && r.net != nil {
				err = r.net.enter()
			}
			if err == nil {
				r.PID, err = s.start(p, proc, r.user, l.rlimits(p, r.user), etc)
			}
		})
	}
	if err != nil {
		r.net.close()
		s.leave()
		return nil, err
	}
	if p.exposed() {
		s.endThread()
	}
	return r, nil
}

// exposed reports whether the task could signal the thread it was started from, and so this
// process: there is no namespace between them, and Landlock sees them within the same walls.
// Then the thread ends at once, and the task does not end with it.
func (p *Plan) exposed() bool { return p.Kind == Landlock && p.User == 0 }

// StartError is an error of the program, not of what is around it.
type StartError struct{ Err error }

func (e *StartError) Error() string { return e.Err.Error() }
func (e *StartError) Unwrap() error { return e.Err }

// start starts the process from the calling thread. etc is what a task of bubblewrap sees as
// /etc.
func (s *seat) start(p *Plan, proc *Process, user uint32, limits []rlimit, etc string) (pid int, err error) {
	b := begin{path: p.inside(proc), args: proc.Args, dir: proc.Dir, files: proc.Files[:], terminal: proc.Terminal}
	switch p.Kind {
	case Bubblewrap:
		calls, err := p.calls()
		if err != nil {
			return 0, err
		}
		fd, err := memory(calls)
		if err != nil {
			return 0, err
		}
		defer unix.Close(fd)
		b.files = append(b.files[:3:3], fd)
		words := append(p.bubblewrap(etc, len(b.files)-1, user, b.dir, proc.Hide), inner(proc)...)
		b.path, b.args, b.dir, b.terminal = p.Program, append(append(words, b.path), proc.Args[1:]...), "/", proc.Terminal && len(inner(proc)) == 0
		if err := p.beforeBubblewrap(user, proc.Dir); err != nil {
			return 0, err
		}
	case Landlock:
		if b.dir, err = p.enter(b.dir, user); err != nil {
			return 0, err
		}
	}
	return s.fork(p, &b, proc.Env, user, limits)
}

// inside returns where a task sees its program: one that it has brought along lies in its
// directory, which has another name within the walls.
func (p *Plan) inside(proc *Process) string {
	if name, err := filepath.Rel(proc.Dir, proc.Path); p.Kept && err == nil && filepath.IsLocal(name) {
		return filepath.Join(Folder, name)
	}
	return proc.Path
}

// begin is what is started, with the descriptors it gets from 0 on.
type begin struct {
	path     string
	args     []string
	dir      string
	files    []int
	terminal bool // the first of them is a terminal, which becomes that of its session
	joined   bool // it is in the namespace of processes of another one, and ends with that
}

// fork starts a process from the calling thread.
func (s *seat) fork(p *Plan, b *begin, env []string, user uint32, limits []rlimit) (pid int, err error) {
	sys := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Ptrace: len(limits) > 0, Setctty: b.terminal}
	if p.exposed() || b.joined { // the library looks for the parent, which cannot be seen from there
		sys.Pdeathsig = 0
	}
	group := user
	switch {
	case user != 0:
		sys.Credential = &syscall.Credential{Uid: user, Gid: user}
	case p.Account != nil && !p.Walled():
		sys.Credential = p.Account.credential()
		user, group = p.Account.User, p.Account.Group
	}
	if s.group != nil && s.group.FD() >= 0 {
		sys.UseCgroupFD, sys.CgroupFD = true, s.group.FD()
	}
	files := make([]uintptr, len(b.files))
	for i, fd := range b.files {
		files[i] = uintptr(fd)
	}
	attr := &syscall.ProcAttr{Dir: b.dir, Env: env, Files: files, Sys: sys}
	pid, err = syscall.ForkExec(b.path, b.args, attr)
	stopped := sys.Ptrace
	if err == syscall.EPERM && stopped { // where tracing is forbidden, limits come a moment late
		sys.Ptrace, stopped = false, false
		pid, err = syscall.ForkExec(b.path, b.args, attr)
	}
	if err != nil {
		return 0, &StartError{err}
	}
	if len(limits) == 0 {
		return pid, nil
	}
	return pid, limited(pid, limits, user, group, stopped)
}

// limited gives limits to a process, which has stopped before its first instruction unless
// tracing is forbidden, and has it go on.
func limited(pid int, limits []rlimit, user, group uint32, stopped bool) (err error) {
	var status syscall.WaitStatus
	wait := func() {
		for err = syscall.EINTR; err == syscall.EINTR; {
			_, err = syscall.Wait4(pid, &status, syscall.WALL, nil)
		}
	}
	if stopped {
		wait()
		if err == nil && !status.Stopped() {
			return errors.New("the process ended before it began")
		}
	}
	if err == nil {
		onOwnThread(func() { err = apply(pid, limits, user, group) }) // this one may not change others any more
	}
	if err == nil && stopped {
		err = syscall.PtraceDetach(pid)
	}
	if err != nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		why := err
		wait()
		return fmt.Errorf("limits of the process: %w", why)
	}
	return nil
}

// beforeBubblewrap prepares the calling thread for bwrap.
func (p *Plan) beforeBubblewrap(user uint32, dir string) error {
	seen := p.Read
	if p.Kept {
		seen = append(slices.Clone(seen), dir)
	}
	if user != 0 && len(seen) > 0 {
		if err := errors.Join(apart(0), expose(seen, nil)); err != nil {
			return err
		}
	}
	if p.Network || len(p.Ports) > 0 { // else nobody is in its network
		return p.restrict("")
	}
	return nil
}

// enter puts the calling thread behind Landlock, and returns the directory to start in,
// empty if it is there already.
func (p *Plan) enter(dir string, user uint32) (string, error) {
	network, sharing := netNone, user == 0
	switch {
	case p.Network:
		network = netAll
	case len(p.Ports) > 0:
		network = netTCP
	}
	folder := dir
	if user != 0 {
		if network == netNone { // it was entered
			network = netOwn
		}
		if err := apart(unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWPID); err != nil {
			return "", err
		}
		if err := expose(p.Read, func() error { return p.folder(user, dir) }); err != nil {
			return "", err
		}
		folder, dir = Folder, ""
	}
	if err := p.restrict(folder); err != nil {
		return "", err
	}
	return dir, p.load(sharing, network)
}
