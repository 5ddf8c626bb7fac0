package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"gridnode/node/api"
	"gridnode/test/realsite"
)

// site is a home, and its daemon while one runs.
type site struct {
	w          *world
	name, home string
	id         string
	program    string // of its daemon; empty: that of the plan
	processors int64
	address    string // where others find it
	port       int
	namespace  string   // of its network; empty: that of this process
	env        []string // besides what every site has
	daemon     *exec.Cmd
	ended      chan struct{} // closed when the daemon is gone
	client     *api.Client
}

// init makes the home of a member.
func (s *site) init(ctx context.Context) (err error) {
	if err := os.MkdirAll(s.home, 0o700); err != nil {
		return err
	}
	if s.port, err = realsite.FreePort(); err != nil {
		return err
	}
	out, err := s.command(ctx, "init", "--site", s.name, "--listen", fmt.Sprintf("/ip4/%s/tcp/%d", s.address, s.port), "--speed", "1000",
		"--federation", "campaign", "--foreign", "allow", "--processors", fmt.Sprint(s.processors), "--price", "0.5").Output()
	if err != nil {
		return fmt.Errorf("init %s: %w: %s", s.name, err, errorText(err))
	}
	s.id, s.client = strings.TrimSpace(string(out)), api.NewClient(s.home)
	return realsite.Enrol(s.home, s.w.home, s.name)
}

// listen is what others join.
func (s *site) listen() string { return fmt.Sprintf("/ip4/%s/tcp/%d/p2p/%s", s.address, s.port, s.id) }

// command is the program about to run for this site, in its network.
func (s *site) command(ctx context.Context, args ...string) *exec.Cmd {
	return s.commandOf(ctx, s.w.plan.program, args...)
}

// commandOf is the same for the program of any version.
func (s *site) commandOf(ctx context.Context, program string, args ...string) *exec.Cmd {
	args = append([]string{program}, args...)
	if s.namespace != "" {
		args = append([]string{"ip", "netns", "exec", s.namespace}, args...)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "GRIDNODE_HOME=" + s.home, "GRIDNODE_USERS_ROOT=allow",
		"GRIDNODE_SANDBOX_WALLS=none", "GRIDNODE_GUESTS_ACCOUNT=nobody", "GRIDNODE_USERS_SCRATCH=" + s.scratch()}, s.env...)
	cmd.Dir = "/"
	return cmd
}

// ok runs the program, which must exit with 0.
func (s *site) ok(ctx context.Context, args ...string) error {
	if out, err := s.command(ctx, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("gridnode %q at %s: %w: %s", args, s.name, err, out)
	}
	return nil
}

// start starts the daemon and returns once it is ready.
func (s *site) start() error {
	cmd := s.commandOf(context.Background(), cmp.Or(s.program, s.w.plan.program), "start")
	if _, err := realsite.Start(cmd, s.log()); err != nil {
		return fmt.Errorf("site %s: %w", s.name, err)
	}
	s.daemon, s.ended = cmd, make(chan struct{})
	go func(ended chan struct{}) { _ = cmd.Wait(); close(ended) }(s.ended)
	return nil
}

// scratch is the folder for what runs as another account.
func (s *site) scratch() string { return filepath.Join(s.w.plan.dir, s.name+"-scratch") }

// log is the file that the daemon writes to, beside its home.
func (s *site) log() string { return filepath.Join(s.w.plan.dir, s.name+".log") }

// alive says whether the daemon runs.
func (s *site) alive() bool {
	if s.daemon == nil {
		return false
	}
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// kill ends the daemon as a crash does.
func (s *site) kill() {
	if s.daemon != nil {
		_ = s.daemon.Process.Kill()
		<-s.ended
		s.daemon = nil
	}
}

// stop ends the daemon as a service manager does. One that does not end in time is a promise broken: its log says
// what it waited for.
func (s *site) stop(within time.Duration) {
	if s.daemon == nil {
		return
	}
	_ = s.daemon.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(within):
		s.w.out.breaks("the daemon of %s has not ended %v after it was told to", s.name, within)
		_ = s.daemon.Process.Signal(syscall.SIGQUIT)
		select {
		case <-s.ended:
		case <-time.After(time.Second):
		}
	}
	s.kill()
}

// sees returns once the site's directory lists so many sites.
func (s *site) sees(ctx context.Context, n int) error { return realsite.Sees(ctx, s.client, n) }

// pause waits.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// errorText is what a program that failed has said.
func errorText(err error) string {
	if e := new(exec.ExitError); errors.As(err, &e) {
		return string(e.Stderr)
	}
	return ""
}
