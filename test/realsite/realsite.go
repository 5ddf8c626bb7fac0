// Package realsite starts daemons of real sites for tests and measurements that run the program
// itself: a port to listen at, the certificates of a member, the start, and what is waited for. What sites there
// are, and what is done with them, is for each of those to say.
package realsite

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"

	"gridnode/node/member"
)

// Ports that sites are given: below those that the system gives away itself, for connections that
// begin here, too.
const (
	portFirst = 10_000
	portCount = 20_000
)

var given struct {
	mu   sync.Mutex
	port map[int]bool
}

// FreePort returns a port of loopback that nobody listens at, and returns it no other time in this
// process: a site that is down for a while finds its port free when it starts again. It may be
// called concurrently.
func FreePort() (int, error) {
	given.mu.Lock()
	defer given.mu.Unlock()
	if given.port == nil {
		given.port = map[int]bool{}
	}
	for range 1000 {
		port := portFirst + rand.IntN(portCount) // other processes of this machine draw, too
		if given.port[port] {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		given.port[port] = true
		return port, l.Close()
	}
	return 0, errors.New("no port is free")
}

// Enrol makes the site whose home is a folder that 'gridnode init' has made a member, as
// 'gridnode federation install' does.
func Enrol(home string, h *member.Household, name string) error {
	text, err := os.ReadFile(filepath.Join(home, "key"))
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
	proof, err := h.Admit(public, name, "", member.All)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(home, "member.pem"), member.PEM(proof), 0o600),
		os.WriteFile(filepath.Join(home, "federation.pem"), h.Federation.PEM(), 0o600))
}

// startMost is how long a daemon may take to be ready, on a machine that does much else.
const startMost = 5 * time.Minute

// Ready is what a daemon says of itself when it is ready.
type Ready struct {
	Site    string // ID
	Address string // to be joined at
}

// Refusal is why a daemon did not start: what it said instead of being ready, and its log.
type Refusal struct {
	Said string
	Err  error
	Log  string // its last lines, empty if there are none
}

// Error says it, with the log.
func (r *Refusal) Error() string {
	return fmt.Sprintf("the daemon said %q (%v)\n%s", r.Said, r.Err, r.Log)
}

// Unwrap returns what came of reading what it said.
func (r *Refusal) Unwrap() error { return r.Err }

// Start starts a daemon, whose standard error is appended to the file log, and returns once it is
// ready. If it is not within minutes it is killed and waited for, and the error is a *Refusal;
// otherwise the caller waits for cmd.
func Start(cmd *exec.Cmd, log string) (Ready, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return Ready{}, err
	}
	defer f.Close()
	cmd.Stderr = f
	out, err := cmd.StdoutPipe()
	if err != nil {
		return Ready{}, err
	}
	if err := cmd.Start(); err != nil {
		return Ready{}, err
	}
	guard := time.AfterFunc(startMost, func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	guard.Stop()
	words := strings.Fields(line)
	if err != nil || len(words) != 3 {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return Ready{}, &Refusal{Said: line, Err: err, Log: Tail(log)}
	}
	return Ready{Site: words[1], Address: words[2]}, nil
}

// tailMost is how much of a log is shown, in bytes.
const tailMost = 1500

// Tail returns the last lines of a log, empty if there is none.
func Tail(log string) string {
	text, _ := os.ReadFile(log)
	return string(text[max(len(text)-tailMost, 0):])
}
