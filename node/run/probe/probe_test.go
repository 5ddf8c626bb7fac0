package probe

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"gridnode/node/sandbox"
	"gridnode/node/shim"
)

const (
	shimEnv  = "GRIDNODE_PROBE_TEST_SHIM"
	plainEnv = "GRIDNODE_PROBE_TEST_PLAIN" // this is the test again, as a plain user
)

var underRace bool // see race_test.go

// The test binary is the shim and the guest, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == Verb {
		os.Exit(Main(os.Args[2]))
	}
	if home := os.Getenv(shimEnv); home != "" {
		os.Exit(shim.Main(home))
	}
	os.Exit(m.Run())
}

// TestWallsHold makes every attempt against every kind of walls that this machine has.
func TestWallsHold(t *testing.T) {
	if underRace {
		t.Skip("nothing to find for the race detector")
	}
	means := sandbox.Find()
	for _, kind := range []sandbox.Kind{sandbox.Bubblewrap, sandbox.Landlock} {
		t.Run(string(kind), func(t *testing.T) {
			if _, err := means.Walls(kind); err != nil {
				t.Skipf("left out: %v", err)
			}
			holds(t, means, kind)
		})
	}
}

func holds(t *testing.T, means *sandbox.Means, kind sandbox.Kind) {
	results, err := Run(t.Context(), Config{
		Program: os.Args[0], Walls: kind, Means: means,
		Shim: shim.Options{Command: []string{"/proc/self/exe"}, Env: []string{shimEnv + "=" + shim.HomeWord}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(results) < 40 {
		t.Errorf("only %d attempts", len(results))
	}
	for _, r := range results {
		switch {
		case !r.Held:
			t.Errorf("%s (%s): %s", r.Name, r.Does, r.Detail)
		case r.Left:
			t.Logf("%s is left out: %s", r.Name, r.Detail)
		}
	}
}

// TestWallsHoldForPlainUser is the same as an account without rights, if this one is root.
func TestWallsHoldForPlainUser(t *testing.T) {
	if os.Getenv(plainEnv) != "" {
		TestWallsHold(t)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("this is a plain user already")
	}
	if testing.Short() || underRace {
		t.Skip("short")
	}
	dir, err := os.MkdirTemp("", "plain")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	const plain = 61234
	if err := os.Chown(dir, plain, plain); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "probe.test")
	if err := copyFile(os.Args[0], program); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run", "^TestWallsHoldForPlainUser$", "-test.v")
	cmd.Env = []string{"PATH=/usr/bin:/bin", "TMPDIR=" + dir, plainEnv + "=1"}
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: plain, Gid: plain}}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) }
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	return out.Close()
}
