package probe

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gridnode/grid"
	"gridnode/node/sandbox"
	"gridnode/node/shim"
)

// Config says what is to be proved.
type Config struct {
	Program string       // that runs Main when its first argument is Verb
	Walls   sandbox.Kind // which walls
	Means   *sandbox.Means
	Shim    shim.Options // of the shim under which the probes run
}

// Result is how one attempt ended.
type Result struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"` // escape or abuse
	Does   string `json:"does"`
	Held   bool   `json:"held"`
	Detail string `json:"detail,omitempty"` // how it was stopped, what it reached, or why it was left out
	Left   bool   `json:"leftOut,omitempty"`
}

// limits of every probe: small, as the machine has other things to do.
var limits = sandbox.Limits{Memory: 192 << 20, Processes: 64, Processors: 1000, Disk: 16 << 20, Files: 128}

// probeMax bounds one probe.
const probeMax = 30 * time.Second

// runner has the baits and the shim.
type runner struct {
	config Config
	baits  baits
	plan   *sandbox.Plan
	client *shim.Client
	home   string // of the shim
	udp    net.PacketConn
	close  []func()
	number int
}

// outcome is what is seen of a probe from outside.
type outcome struct {
	ended   shim.Ended
	output  string
	errors  int64 // bytes of its standard error on the disk
	stopped bool  // by a limit, as it should be
}

// Run makes every attempt, and returns their results in order. An error says that nothing
// could be tried.
func Run(ctx context.Context, config Config) (results []Result, err error) {
	r := &runner{config: config}
	defer func() {
		for i := len(r.close) - 1; i >= 0; i-- {
			r.close[i]()
		}
	}()
	if err := r.lay(); err != nil {
		return nil, fmt.Errorf("lay baits: %w", err)
	}
	rule := sandbox.Rule{Walls: true, Read: []string{config.Program}, Limits: limits}
	if r.plan, err = config.Means.Plan(config.Walls, &rule); err != nil {
		return nil, err
	}
	if r.client, err = shim.Connect(ctx, r.home, config.Shim); err != nil {
		return nil, err
	}
	r.close = append(r.close, func() {
		r.client.Close()
		_ = sandbox.Sweep(r.home) // its shim was killed, and no other one clears away
	})
	for _, p := range probes() {
		if err := ctx.Err(); err != nil {
			return results, err
		}
		results = append(results, r.attempt(ctx, &p))
	}
	return append(results, r.orphaned(ctx)), nil
}

// attempt makes one.
func (r *runner) attempt(ctx context.Context, p *probe) Result {
	res := Result{Name: p.name, Kind: p.kind, Does: p.does}
	if res.Kind == "" {
		res.Kind = "escape"
	}
	if p.skip != nil {
		if why := p.skip(r); why != "" {
			res.Held, res.Left, res.Detail = true, true, why
			return res
		}
	}
	o, err := r.execute(ctx, p.name, p.span)
	if err != nil {
		res.Detail = err.Error()
		return res
	}
	var wrong string
	if p.after != nil {
		wrong = p.after(r, o)
	}
	last := strings.TrimSpace(o.output)
	last = last[strings.LastIndexByte(last, '\n')+1:]
	switch {
	case wrong != "":
		res.Detail = wrong
	case o.stopped:
		res.Held, res.Detail = true, o.ended.Reason
	case last == wordHeld && o.ended.ExitCode == 0:
		res.Held = true
	case strings.HasPrefix(last, wordEscaped):
		res.Detail = last
	default:
		res.Detail = fmt.Sprintf("exit code %d, %s: %s", o.ended.ExitCode, o.ended.Reason, last)
	}
	return res
}

// spec is a probe as a task.
func (r *runner) spec(name string, span time.Duration) shim.Spec {
	r.number++
	if span == 0 {
		span = probeMax
	}
	dir := filepath.Join(r.home, "probe"+strconv.Itoa(r.number))
	b := r.baits
	b.Folder = dir
	if r.plan.HasFolder() {
		b.Folder = sandbox.Folder
	}
	text, err := json.Marshal(&b)
	if err != nil {
		panic(err) // of plain fields only
	}
	return shim.Spec{
		ID: "probe." + strconv.Itoa(r.number), Args: []string{r.config.Program, Verb, name},
		Env: []string{"PATH=/usr/bin:/bin", "GOMAXPROCS=4", baitsEnv + "=" + string(text)},
		Dir: dir, Stdout: dir + ".out", Stderr: dir + ".err", Limit: grid.FromDuration(span), Plan: r.plan,
	}
}

// execute runs a probe to its end.
func (r *runner) execute(ctx context.Context, name string, span time.Duration) (*outcome, error) {
	spec := r.spec(name, span)
	if err := r.client.Start(spec); err != nil {
		return nil, err
	}
	late := time.NewTimer(2 * probeMax)
	defer late.Stop()
	for {
		select {
		case e, ok := <-r.client.Events():
			if !ok {
				return nil, r.client.Err()
			}
			_ = r.client.Ack(e.ID)
			if e.ID != spec.ID {
				continue // of one that was late
			}
			o := &outcome{ended: e}
			text, err := os.ReadFile(spec.Stdout)
			if err != nil {
				return nil, err
			}
			o.output = string(text)
			if info, err := os.Stat(spec.Stderr); err == nil {
				o.errors = info.Size()
			}
			if len(o.output) == 0 && o.errors > 0 && o.errors < 4096 {
				words, _ := os.ReadFile(spec.Stderr)
				o.output = string(words)
			}
			_ = os.Remove(spec.Stderr)
			return o, nil
		case <-late.C:
			return nil, errors.New("the probe did not end")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// leftMax is how long a process may take to be gone that was killed.
const leftMax = 3 * time.Second

// left says what a probe has left running.
func (r *runner) left() string {
	word := childName + ":stay:" + r.baits.Text
	for deadline := time.Now().Add(leftMax); ; {
		all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		found := ""
		for _, path := range all {
			if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte(word)) {
				found = filepath.Base(filepath.Dir(path))
			}
		}
		if found == "" {
			return ""
		}
		if time.Now().After(deadline) {
			if pid, err := strconv.Atoi(found); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			return "process " + found + " lives on"
		}
		<-time.After(10 * time.Millisecond)
	}
}

// orphaned kills the shim while a guest runs that has left its session: it dies, too.
func (r *runner) orphaned(ctx context.Context) Result {
	res := Result{Name: "shim-killed", Kind: abuse, Does: "live on when the shim is killed"}
	spec := r.spec(childName+":leave:"+r.baits.Text, 0)
	spec.Args = []string{"/bin/sh", "-c", `"$0" "$1" "$2"; sleep 20`, spec.Args[0], spec.Args[1], spec.Args[2]}
	if err := r.client.Start(spec); err != nil {
		res.Detail = err.Error()
		return res
	}
	select {
	case <-time.After(700 * time.Millisecond): // it has left
	case e := <-r.client.Events():
		res.Detail = "it ended: " + e.Reason
		return res
	case <-ctx.Done():
		res.Detail = ctx.Err().Error()
		return res
	}
	if err := syscall.Kill(r.client.PID(), syscall.SIGKILL); err != nil {
		res.Detail = err.Error()
		return res
	}
	res.Detail = r.left()
	res.Held = res.Detail == ""
	return res
}

// lay lays the baits.
func (r *runner) lay() error {
	r.baits.Text = "bait-" + strings.ToLower(rand.Text())
	r.baits.Limits = limits
	base, err := os.MkdirTemp("", "gridnode-probe")
	if err != nil {
		return err
	}
	r.close = append(r.close, func() { os.RemoveAll(base) })
	r.baits.Home, r.home = filepath.Join(base, "home"), filepath.Join(base, "shim")
	for _, dir := range []string{r.baits.Home, r.home} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	r.baits.Key = filepath.Join(r.baits.Home, "key")
	for path, at := range map[string]*string{r.baits.Key: nil, base + ".txt": &r.baits.Temp, filepath.Join("/dev/shm", filepath.Base(base)): &r.baits.Shared} {
		if err := os.WriteFile(path, []byte(r.baits.Text), 0o600); err != nil {
			return err
		}
		if at != nil {
			*at = path
			r.close = append(r.close, func() { os.Remove(path) })
			if err := os.Chmod(path, 0o644); err != nil { // not its mode shall save it
				return err
			}
		}
	}
	r.baits.Socket = filepath.Join(r.baits.Home, "api.sock")
	r.baits.Name = "gridnode-" + r.baits.Text
	for _, l := range []struct {
		network, address string
		at               *string
	}{{"unix", r.baits.Socket, nil}, {"unix", "\x00" + r.baits.Name, nil}, {"tcp", "127.0.0.1:0", &r.baits.TCP}} {
		listener, err := net.Listen(l.network, l.address)
		if err != nil {
			return err
		}
		r.close = append(r.close, func() { listener.Close() })
		if l.at != nil {
			*l.at = listener.Addr().String()
		}
	}
	if r.udp, err = net.ListenPacket("udp", "127.0.0.1:0"); err != nil {
		return err
	}
	r.close = append(r.close, func() { r.udp.Close() })
	r.baits.UDP = r.udp.LocalAddr().String()
	if id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o666); err == nil {
		r.baits.SHM = id
		r.close = append(r.close, func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	}
	daemon := exec.Command("/bin/sleep", "600")
	daemon.Args[0] = r.baits.Text
	daemon.Env = []string{secretEnv + "=" + r.baits.Text}
	if err := daemon.Start(); err != nil {
		return err
	}
	r.baits.PID = daemon.Process.Pid
	r.close = append(r.close, func() {
		_ = daemon.Process.Kill()
		_ = daemon.Wait()
	})
	return nil
}
