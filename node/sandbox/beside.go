package sandbox

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"
)

// Beside is a process that was started beside a task: inside the same walls, as the same
// account, in the same control group, with the same limits of each process.
type Beside struct {
	PID  int
	hold chan struct{} // closed by Release: the thread that it was started from may end
}

// Beside starts a process beside the task. The error says what is in its way; a *StartError
// is about the program.
func (r *Running) Beside(proc *Process) (*Beside, error) {
	b := &Beside{hold: make(chan struct{})}
	limits := r.launcher.rlimits(r.plan, r.user)
	started := make(chan error, 1)
	go onOwnThread(func() {
		var err error
		b.PID, err = r.beside(proc, limits)
		started <- err
		if err == nil && !r.plan.exposed() {
			<-b.hold // the process ends with the thread
		}
	})
	if err := <-started; err != nil {
		return nil, err
	}
	return b, nil
}

// Signal sends a signal to the process and what came from it.
func (b *Beside) Signal(sig syscall.Signal) {
	for _, pid := range descendants([]int{b.PID}) {
		_ = syscall.Kill(pid, sig) // it may have ended
	}
}

// Release says that the process has ended.
func (b *Beside) Release() { close(b.hold) }

// beside starts a process from the calling thread, which is used up.
func (r *Running) beside(proc *Process, limits []rlimit) (pid int, err error) {
	s := &seat{group: r.seat.group}
	if s.group != nil {
		if err := s.group.Join(); err != nil {
			return 0, err
		}
	}
	if r.net != nil {
		if err := r.net.enter(); err != nil {
			return 0, err
		}
	}
	b := begin{path: r.plan.inside(proc), args: proc.Args, dir: proc.Dir, files: proc.Files[:], terminal: proc.Terminal}
	env := proc.Env
	switch {
	case r.plan.Kind == Bubblewrap:
		spaces, err := r.spaces()
		if err != nil {
			return 0, err
		}
		defer closeAll(spaces)
		env = slices.DeleteFunc(slices.Clone(env), func(setting string) bool {
			return slices.ContainsFunc(proc.Hide, func(name string) bool { return hasName(setting, name) })
		})
		r.through(&b, proc, spaces)
		if err := r.plan.beforeJoining(); err != nil {
			return 0, err
		}
	case r.plan.Kind == Landlock && r.user != 0:
		if err := r.join(); err != nil {
			return 0, err
		}
		b.dir, b.joined = "", true
	case r.plan.Kind == Landlock:
		if b.dir, err = r.plan.enter(b.dir, 0); err != nil {
			return 0, err
		}
	}
	return s.fork(r.plan, &b, env, r.user, limits)
}

// hasName reports whether a setting of the environment is of this name.
func hasName(setting, name string) bool {
	return len(setting) > len(name) && setting[len(name)] == '=' && setting[:len(name)] == name
}

// Programs that are needed to follow a task behind bubblewrap's walls, and to give a process
// there a terminal of its own.
var (
	joiners  = []string{"/usr/bin/nsenter", "/bin/nsenter"}
	sessions = []string{"/usr/bin/setsid", "/bin/setsid"}
)

func firstOf(programs []string) string {
	for _, path := range programs {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

// inner returns what goes before the command of a process behind bubblewrap's walls that has a
// terminal: it gets a session of its own. Else what is typed would interrupt bwrap, and so
// end everything behind the walls.
func inner(proc *Process) []string {
	path := firstOf(sessions)
	if !proc.Terminal || path == "" {
		return nil
	}
	return []string{path, "--ctty"}
}

// space is a namespace of a task's, by descriptor.
type space struct {
	name string // of nsenter's flag
	fd   int
}

func closeAll(spaces []space) {
	for _, s := range spaces {
		unix.Close(s.fd)
	}
}

// errStarting is returned for a task that is not behind its walls yet.
var errStarting = errors.New("the job is only just starting: try again")

// spaces opens the namespaces of a task behind bubblewrap's walls that the calling thread is
// not in.
func (r *Running) spaces() (list []space, err error) {
	// bwrap, what is the first process behind the walls, and the task's own.
	line := descendants([]int{r.PID})
	if len(line) < 3 {
		return nil, errStarting
	}
	pid := strconv.Itoa(line[2])
	for _, s := range []struct{ name, file string }{
		{"user", "user"}, {"mount", "mnt"}, {"pid", "pid"}, {"ipc", "ipc"}, {"uts", "uts"}, {"cgroup", "cgroup"}, {"net", "net"},
	} {
		mine, _ := os.Readlink("/proc/thread-self/ns/" + s.file)
		path := "/proc/" + pid + "/ns/" + s.file
		theirs, err := os.Readlink(path)
		if err == nil && mine == theirs || s.file == "net" && r.net != nil { // it has been entered
			continue
		}
		fd, err := unix.Open(path, unix.O_RDONLY, 0)
		if err != nil {
			closeAll(list)
			return nil, fmt.Errorf("namespaces of the job: %w", &os.PathError{Op: "open", Path: path, Err: err})
		}
		list = append(list, space{s.name, fd})
	}
	if len(list) < 3 {
		closeAll(list)
		return nil, errStarting
	}
	return list, nil
}

// through changes what is started to nsenter, which starts it behind the walls.
func (r *Running) through(b *begin, proc *Process, spaces []space) {
	program := b.path
	b.path = firstOf(joiners)
	b.args = []string{"nsenter", "--preserve-credentials"}
	b.files = b.files[:3:3]
	for _, s := range spaces {
		b.args = append(b.args, "--"+s.name+"=/proc/self/fd/"+strconv.Itoa(len(b.files)))
		b.files = append(b.files, s.fd)
	}
	b.args = append(append(b.args, "--"), inner(proc)...)
	b.args = append(append(b.args, "/bin/sh", "-c", `cd "$0" && exec "$@"`, Folder, program), proc.Args[1:]...)
	b.dir, b.terminal = "/", proc.Terminal && len(inner(proc)) == 0
	if b.path == "" {
		b.path = joiners[0] // the error says that it is missing
	}
}

// beforeJoining puts the calling thread behind what bwrap puts its own process behind. The
// filter lets setns through, which nsenter needs: without rights over a namespace, which
// nobody behind the walls has, it leads nowhere.
func (p *Plan) beforeJoining() error {
	if p.Network || len(p.Ports) > 0 {
		if err := p.restrict(""); err != nil {
			return err
		}
	}
	return p.load(false, p.sockets(), "setns")
}

// join has the calling thread, which is root's, be in the namespaces of a task behind Landlock,
// and behind the same walls.
func (r *Running) join() error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	dir := "/proc/" + strconv.Itoa(r.PID)
	for _, s := range []struct {
		file string
		flag int
	}{{"ipc", unix.CLONE_NEWIPC}, {"uts", unix.CLONE_NEWUTS}, {"pid", unix.CLONE_NEWPID}, {"mnt", unix.CLONE_NEWNS}} {
		fd, err := unix.Open(dir+"/ns/"+s.file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("namespaces of the job: %w", err)
		}
		err = unix.Setns(fd, s.flag)
		unix.Close(fd)
		if err != nil {
			return os.NewSyscallError("setns", err)
		}
	}
	if err := unix.Chdir(Folder); err != nil {
		return &os.PathError{Op: "chdir", Path: Folder, Err: err}
	}
	if err := r.plan.restrict(Folder); err != nil {
		return err
	}
	return r.plan.load(false, r.plan.sockets())
}

// load puts the calling thread behind a filter of system calls that lets some through.
func (p *Plan) load(sharing bool, network netFilter, except ...string) error {
	policy, err := filter(sharing, network)
	if err == nil {
		for i := range policy.Syscalls {
			policy.Syscalls[i].Names = slices.DeleteFunc(policy.Syscalls[i].Names, func(name string) bool { return slices.Contains(except, name) })
		}
		err = seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Policy: *policy})
	}
	if err != nil {
		return fmt.Errorf("filter of system calls: %w", err)
	}
	return nil
}
