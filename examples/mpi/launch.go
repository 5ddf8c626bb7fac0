package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// launcher is a task while it runs its part of the program.
type launcher struct {
	*task
	port    int          // where its process of the program listens
	env     []string     // for the daemon, and so for the process
	carried atomic.Int64 // connections of daemon and process to tasks at other sites
	daemons chan launch  // to be run
}

// launch is a daemon to be run.
type launch struct {
	greeting
	lost  context.Context // over when the agent is gone
	agent *net.TCPConn
}

// killTime is how long mpirun and daemons have to end what they run.
const killTime = 5 * time.Second

// launch runs the program: task 0 has mpirun start it, and each task runs the daemon
// that it is told to, until that ends.
func (t *task) launch(ctx context.Context, program []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	port, err := freePort(t.rank, len(t.peers))
	if err != nil {
		return err
	}
	l := &launcher{task: t, port: port, daemons: make(chan launch)}
	scratch, err := os.MkdirTemp("", "mpi") // daemons that share one disturb each other
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if err := l.redirect(ctx, scratch); err != nil {
		return err
	}
	own, err := net.Listen("tcp", t.peers[t.rank])
	if err != nil {
		return err
	}
	defer own.Close()
	go l.accept(ctx, own, l.serve)
	if t.rank > 0 {
		err = l.daemon(ctx)
	} else {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			l.daemon(ctx) // mpirun says what became of it
		}()
		if err = l.mpirun(ctx, program); err == nil {
			select { // mpirun does not wait for its daemons
			case <-ended:
			case <-time.After(killTime):
			}
		}
		cancel()
		<-ended
	}
	fmt.Fprintf(os.Stderr, "mpi: task %d at port %d: %d connections to other sites\n", t.rank, l.port, l.carried.Load())
	return err
}

// redirect listens in the place of each process at another site, and has the
// daemon's environment say so.
func (l *launcher) redirect(ctx context.Context, scratch string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	library := filepath.Join(filepath.Dir(self), "redirect.so")
	if _, err := os.Stat(library); err != nil {
		return fmt.Errorf("%w: build.sh builds it; it must stand beside %s", err, self)
	}
	ports := make([]string, len(l.peers))
	for rank := range ports {
		ports[rank] = "0"
		if l.sites[rank] == l.sites[l.rank] {
			continue
		}
		if ports[rank], err = l.relay(ctx, rank, greeting{Do: doProcess}); err != nil {
			return err
		}
	}
	l.env = append(withoutSlurm(os.Environ()), "TMPDIR="+scratch, "LD_PRELOAD="+library, "MPI_REDIRECT="+strings.Join(ports, ","),
		"OMPI_MCA_btl_tcp_port_min_v4="+strconv.Itoa(l.port), "OMPI_MCA_btl_tcp_port_range_v4=1")
	return nil
}

// relay listens at a port and carries connections to it to another task.
func (l *launcher) relay(ctx context.Context, rank int, g greeting) (port string, err error) {
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go l.accept(ctx, at, func(ctx context.Context, c *net.TCPConn) {
		to, err := l.dial(ctx, rank, g)
		if err != nil {
			fmt.Fprintln(os.Stderr, "mpi:", err)
			c.Close()
			return
		}
		if l.sites[rank] != l.sites[l.rank] {
			l.carried.Add(1)
		}
		splice(c, c, to)
	})
	_, port, err = net.SplitHostPort(at.Addr().String())
	return port, err
}

// accept serves connections until ctx is over.
func (l *launcher) accept(ctx context.Context, at net.Listener, serve func(context.Context, *net.TCPConn)) {
	context.AfterFunc(ctx, func() { at.Close() })
	for {
		c, err := at.Accept()
		switch {
		case err == nil:
			go serve(ctx, c.(*net.TCPConn))
		case errors.Is(err, net.ErrClosed):
			return
		default: // out of descriptors, say: they come back
			time.Sleep(dialPause)
		}
	}
}

// serve does what a connection to this task is for.
func (l *launcher) serve(ctx context.Context, c *net.TCPConn) {
	defer c.Close()
	g, r, err := l.greeted(c)
	if err != nil {
		fmt.Fprintf(os.Stderr, "mpi: task %d refuses a connection: %v\n", l.rank, err)
		return
	}
	switch g.Do {
	case doLaunch:
		l.serveLaunch(ctx, c, r, g)
	case doProcess:
		l.goOn(ctx, c, r, l.port)
	case doMpirun:
		l.goOn(ctx, c, r, g.Port)
	default:
		fmt.Fprintf(os.Stderr, "mpi: task %d refuses a connection: it is for %q\n", l.rank, g.Do)
	}
}

// goOn carries a connection on to a port of this task's machine.
func (l *launcher) goOn(ctx context.Context, c *net.TCPConn, r *bufio.Reader, port int) {
	var d net.Dialer
	to, err := d.DialContext(ctx, "tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		fmt.Fprintf(os.Stderr, "mpi: task %d: %v\n", l.rank, err)
		return
	}
	splice(c, r, to.(*net.TCPConn))
}

// serveLaunch has a daemon run, and stays until the agent is gone.
func (l *launcher) serveLaunch(ctx context.Context, c *net.TCPConn, r *bufio.Reader, g greeting) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		r.ReadByte() // the agent says nothing more: this ends when it does
		cancel()
	}()
	select {
	case l.daemons <- launch{g, ctx, c}:
		<-ctx.Done()
	case <-ctx.Done():
	}
}

// ofMpirun is where the daemon's command line says how mpirun can be reached.
var ofMpirun = regexp.MustCompile(`tcp://[0-9.,]+:([0-9]+)`)

// daemon waits until this task is told to run its daemon, and runs it. How the daemon
// ended the agent hears, and so mpirun: what that makes of it is the program's outcome.
func (l *launcher) daemon(ctx context.Context) error {
	var in launch
	select {
	case in = <-l.daemons:
	case <-ctx.Done():
		return errors.New("ended before mpirun came")
	}
	port, err := l.relay(ctx, 0, greeting{Do: doMpirun, Port: in.Port})
	if err != nil {
		return err
	}
	line := ofMpirun.ReplaceAllString(in.Command, "tcp://127.0.0.1:"+port)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(in.lost, func() { // mpirun has ended, and so will the daemon, or it is lost
		select {
		case <-time.After(killTime):
			cancel()
		case <-ctx.Done():
		}
	})()
	cmd := command(ctx, "sh", "-c", line)
	cmd.Env = l.env
	err = cmd.Run()
	code := cmd.ProcessState.ExitCode()
	if code < 0 {
		code = 1 // killed, or not started
	}
	in.agent.Write([]byte{byte(code)})
	if err != nil {
		fmt.Fprintf(os.Stderr, "mpi: task %d: its daemon: %v\n", l.rank, err)
	}
	return nil
}

// command is one that is asked to end when ctx is over, and a while later has to.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = killTime
	return cmd
}
