package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gridnode/grid"
	"gridnode/node/api"
	"gridnode/node/member"
	"gridnode/test/realsite"
)

// household returns the federation of all who take part: its root key follows from a
// seed, so that flooders in another process are members, too.
func household(seed []byte) (*member.Household, error) {
	begin := grid.Time(time.Now().Truncate(24 * time.Hour).Add(-24 * time.Hour).UnixMicro())
	return member.NewHousehold(rand.Reader, ed25519.NewKeyFromSeed(seed), "flood", begin, 30*grid.Day)
}

// certify makes a key that of a member.
func certify(h *member.Household, public []byte, name string) ([]byte, error) {
	proof, err := h.Admit(public, name, "", member.All)
	return proof, err
}

// daemon is a site whose daemon this program has started.
type daemon struct {
	home, id, addr string
	cmd            *exec.Cmd
	client         *api.Client
}

// start makes a site that is a member, and starts its daemon on loopback.
func start(ctx context.Context, program, dir, name string, home *member.Household, join string) (*daemon, error) {
	d := &daemon{home: filepath.Join(dir, name)}
	if err := os.Mkdir(d.home, 0o700); err != nil {
		return nil, err
	}
	port, err := realsite.FreePort()
	if err != nil {
		return nil, err
	}
	args := []string{"init", "--site", name, "--listen", fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", port), "--speed", "1000", "--federation", "flood", "--foreign", "allow", "--price", "0.000001"}
	if join != "" {
		args = append(args, "--join", join)
	}
	if out, err := d.run(ctx, program, args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("init %s: %w: %s", name, err, out)
	}
	if err := realsite.Enrol(d.home, home, name); err != nil {
		return nil, err
	}
	cmd := d.run(context.Background(), program, "start")
	ready, err := realsite.Start(cmd, filepath.Join(d.home, "daemon.log"))
	if err != nil {
		return nil, fmt.Errorf("site %s: %w", name, err)
	}
	d.cmd, d.id, d.addr, d.client = cmd, ready.Site, ready.Address, api.NewClient(d.home)
	return d, nil
}

func (d *daemon) run(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + d.home, "GRIDNODE_HOME=" + d.home, "GRIDNODE_USERS_ROOT=allow", "GRIDNODE_SANDBOX_WALLS=none", "GRIDNODE_GUESTS_ACCOUNT=nobody",
		"GRIDNODE_API_SOCKET=" + d.socket(), "GRIDNODE_API_MODE=0666", "GRIDNODE_USERS_USERS=*"}
	cmd.Dir = d.home
	return cmd
}

// socket is where other accounts of the machine get at the daemon.
func (d *daemon) socket() string {
	return filepath.Join(filepath.Dir(d.home), "doors", filepath.Base(d.home)+".sock")
}

func (d *daemon) stop() {
	if d != nil && d.cmd != nil && d.cmd.Process != nil {
		_ = d.cmd.Process.Signal(syscall.SIGTERM)
		done := make(chan struct{})
		go func() { _ = d.cmd.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			_ = d.cmd.Process.Kill()
		}
	}
}

// memory returns what the daemon's process has in memory, in bytes.
func (d *daemon) memory() int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.ParseInt(fields[0], 10, 64)
	return kib << 10
}

// spare is in front of the command of a process that gets what processor time is left (the kernel's
// policy idle): it shares the machine with those it floods, and is not to win by that.
var spare = []string{"chrt", "--idle", "0"}

// floodersProcess starts the process that floods.
func (w *world) floodersProcess(ctx context.Context, o order) (*exec.Cmd, *json.Decoder, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, nil, err
	}
	line := append(slices.Clone(w.before), self)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Env = append(os.Environ(), floodersEnv+"=1")
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(text)), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	return cmd, json.NewDecoder(out), cmd.Start()
}
