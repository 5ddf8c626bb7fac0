package slurm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// daemon is a process of a cluster, and what it started.
type daemon struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// stopMax is how long a daemon that was asked to end may take.
const stopMax = 5 * time.Second

// spawn starts a daemon of the cluster in the foreground of its own process group. It
// dies with this process. An empty namespace is this machine's network.
func (c *Cluster) spawn(namespace, name string, args ...string) (*daemon, error) {
	path, err := lookUp(name)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(c.Folder, name+".out"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(path, args...)
	if namespace != "" {
		cmd = exec.Command("ip", append([]string{"netns", "exec", namespace, path}, args...)...)
	}
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), c.Env()), log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	d := &daemon{cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // however it ends, it is over
		close(d.done)
	}()
	return d, nil
}

// stop ends a daemon: by SIGTERM and then SIGKILL, or at once.
func (d *daemon) stop(crash bool) {
	group := -d.cmd.Process.Pid
	if !crash {
		_ = syscall.Kill(group, syscall.SIGTERM) // gone already
		select {
		case <-d.done:
		case <-time.After(stopMax):
		}
	}
	_ = syscall.Kill(group, syscall.SIGKILL)
	<-d.done
}
