package shim

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gridnode/node/sandbox"
)

// TestTaskOfAnotherAccount: it has that account's rights and nothing of root's, whether it
// is held to limits or not.
func TestTaskOfAnotherAccount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root starts tasks as other accounts")
	}
	account := &sandbox.Account{User: 710001, Group: 710002, Groups: []uint32{710003, 710004}}
	work, err := os.MkdirTemp("", "gridnode-account") // t.TempDir is closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(work) })
	if err := os.Chown(work, int(account.User), int(account.Group)); err != nil {
		t.Fatal(err)
	}
	for name, limits := range map[string]sandbox.Limits{"bare": {}, "limited": {Memory: 1 << 30, Processors: 1000, Processes: 1000, Files: 100}} {
		t.Run(name, func(t *testing.T) {
			s := newTestShim(t)
			secret := filepath.Join(s.home, "secret")
			if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			plan := &sandbox.Plan{Kind: sandbox.None, Account: account, Limits: limits}
			run := func(script string) (Ended, string) {
				spec := s.spec(script)
				spec.Dir, spec.Plan = work, plan
				e := s.run(spec)
				text, _ := os.ReadFile(spec.Stdout)
				errors, _ := os.ReadFile(spec.Stderr)
				if info, err := os.Stat(spec.Stdout); err != nil || info.Sys().(*syscall.Stat_t).Uid != account.User || info.Mode().Perm() != 0o600 {
					t.Errorf("output: %v, %v", info, err)
				}
				return e, string(text) + string(errors)
			}
			e, text := run("id -u; id -g; id -G; grep -E '^(Uid|Gid|CapEff|CapPrm|CapAmb)' /proc/self/status; pwd; echo x >mine && stat -c %u mine; echo again >>/dev/stdout")
			if e.ExitCode != 0 {
				t.Fatalf("%+v: %s", e, text)
			}
			for _, want := range []string{"710001\n710002\n710002 710003 710004\n", "Uid:\t710001\t710001\t710001\t710001", "Gid:\t710002\t710002\t710002\t710002", "CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "CapAmb:\t0000000000000000", work + "\n710001\n"} {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in %s", want, text)
				}
			}
			if e, text := run("cat " + secret); e.ExitCode == 0 {
				t.Errorf("it reads a file of root's: %s", text)
			}
			if e, text := run("kill -0 $PPID"); e.ExitCode == 0 {
				t.Errorf("it may signal its shim: %s", text)
			}
			// What root could run or enter, and the account not.
			spec := s.spec("true")
			spec.Args, spec.Dir, spec.Plan = []string{secret}, work, plan
			if e := s.run(spec); e.Cause != CauseStart || strings.Contains(e.Reason, "not executable") {
				t.Errorf("a file it may not see: %+v, which says whether it is there", e)
			}
			spec = s.spec("true")
			spec.Dir, spec.Plan = filepath.Join(s.home, "new"), plan
			if e := s.run(spec); e.Cause != CauseStart || !strings.Contains(e.Reason, "working directory") {
				t.Errorf("a directory it may not enter: %+v", e)
			}
			if _, err := os.Stat(spec.Dir); err == nil {
				t.Error("a directory was made on its behalf, by root")
			}
			// It can be ended.
			spec = s.spec("sleep 1000")
			spec.Dir, spec.Plan = work, plan
			s.start(spec)
			if err := s.client.Kill(spec.ID, "enough"); err != nil {
				t.Fatal(err)
			}
			if e := s.event(); e.Cause != CauseKill || e.Reason != "enough" {
				t.Errorf("it was ended: %+v", e)
			}
		})
	}
}
