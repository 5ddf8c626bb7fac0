package main

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"

	"gridnode/grid"
	"gridnode/node/api"
	"gridnode/node/member"
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
	port, err := freePort()
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
	if err := d.enrol(home, name); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(d.home, "daemon.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	d.cmd = d.run(context.Background(), program, "start")
	d.cmd.Stderr = log
	ready, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(ready).ReadString('\n')
	words := strings.Fields(line)
	if err != nil || len(words) != 3 {
		d.stop()
		text, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("the daemon of %s said %q (%w)\n%s", name, line, err, text)
	}
	d.id, d.addr, d.client = words[1], words[2], api.NewClient(d.home)
	return d, nil
}

// enrol writes the certificates that make the home's key a member's.
func (d *daemon) enrol(home *member.Household, name string) error {
	text, err := os.ReadFile(filepath.Join(d.home, "key"))
	if err != nil {
		return err
	}
	key, err := crypto.UnmarshalPrivateKey(text)
	if err != nil {
		return err
	}
	public, err := key.GetPublic().Raw()
	if err != nil {
		return err
	}
	proof, err := certify(home, public, name)
	if err != nil {
		return err
	}
	certificates, err := member.Proof(proof).Certificates()
	if err != nil {
		return err
	}
	var chain []byte
	for _, c := range certificates {
		chain = append(chain, member.PEM(c.Raw)...)
	}
	if err := os.WriteFile(filepath.Join(d.home, "member.pem"), chain, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.home, "federation.pem"), home.Federation.PEM(), 0o600)
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

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// floodersProcess starts the process that floods, which gets what processor time is left (the
// kernel's policy idle): it shares the machine with those it floods, and is not to win by that.
func floodersProcess(ctx context.Context, o order) (*exec.Cmd, *json.Decoder, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, "chrt", "--idle", "0", self)
	cmd.Env = append(os.Environ(), floodersEnv+"=1")
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(text)), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	return cmd, json.NewDecoder(out), cmd.Start()
}
