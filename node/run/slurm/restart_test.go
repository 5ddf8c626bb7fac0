package slurm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gridnode/node/shim"
)

// A controller that lost what it had not saved gives numbers again: they are passed over.
func TestNumbersArePassedOver(t *testing.T) {
	dir := t.TempDir()
	counter := filepath.Join(dir, "counter")
	script := "#!/bin/sh\nn=$(cat " + counter + "); n=$((n+1)); echo $n >" + counter + "\necho \"sbatch: Job $n to start at 2026-11-22T17:00:00 using 1 processors on nodes n1 in partition main\" >&2\n"
	if err := os.WriteFile(filepath.Join(dir, "sbatch"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for _, tt := range []struct {
		was, want string
		highest   int64
	}{{"3", "7\n", 7}, {"7", "8\n", 7}, {"9", "10\n", 7}, {"3", "4\n", 5000}, {"3", "3", 0}} {
		if err := os.WriteFile(counter, []byte(tt.was), 0o600); err != nil {
			t.Fatal(err)
		}
		e := &Engine{ctx: t.Context(), commands: newCommands(), highest: tt.highest}
		e.passNumbers()
		e.passNumbers() // once is enough
		if got, _ := os.ReadFile(counter); string(got) != tt.want && string(got) != tt.want+"\n" {
			t.Errorf("at %s, with %d given: it came to %q, want %q", tt.was, tt.highest, got, tt.want)
		}
	}
}

// What a shim touches counts as alive, by the clock of its file system.
func TestAliveIsWhatIsTouched(t *testing.T) {
	o := orders{t.TempDir()}
	if o.alive("x") {
		t.Error("what has not begun is alive")
	}
	path := o.path("x", ".gone.7")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !o.alive("x") {
		t.Error("what was touched a moment ago is dead")
	}
	past := time.Now().Add(-silentMax - shim.Beat)
	if err := os.Chtimes(path, past, past); err != nil {
		t.Fatal(err)
	}
	if o.alive("x") {
		t.Error("what was not touched for long is alive")
	}
	if left, _ := filepath.Glob(filepath.Join(o.dir, ".clock*")); len(left) > 0 {
		t.Errorf("it left %q", left)
	}
}

// A controller whose clock differs is an error that says by how much.
func TestClocksAreCompared(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for ahead, want := range map[time.Duration]string{0: "", 2 * time.Second: "", 2 * time.Minute: "ahead", -2 * time.Minute: "behind"} {
		text := "Configuration data as of " + time.Now().Add(ahead).UTC().Format("2006-01-02T15:04:05") + "\nAccountingStorageBackupHost = (null)\n"
		if err := os.WriteFile(filepath.Join(dir, "scontrol"), []byte("#!/bin/sh\ncat <<'EOT'\n"+text+"EOT\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		err := (&Engine{commands: newCommands()}).clocks(t.Context())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v ahead: %v", ahead, err)
		}
	}
}
