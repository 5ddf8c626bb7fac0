package node

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/node/kept"
	"gridnode/node/run"
	"gridnode/node/site"
)

// TestLogsSayThatTheyAreCut: of a job here, of one on a leased processor, and of one with
// components, whose outputs are one; and nothing is said of what is whole.
func TestLogsSayThatTheyAreCut(t *testing.T) {
	hosts := teamAs(t, func(i int, cfg *HostConfig) {
		if i == 0 {
			cfg.Files.Log = 4096 // of what comes from elsewhere: the engine here has the default
		}
	}, 1, 2)
	home := hosts[0]
	lines := "i=0; while [ $i -lt %; do echo a line of some length $i; i=$((i+1)); done"
	whole, long := strings.Replace(lines, "%", "10 ]", 1), strings.Replace(lines, "%", "400 ]", 1)
	blocker := scriptJob(home, 1, "sleep 1000")
	submitJob(t, home, blocker)
	if a := borrowFrom(t, home, hosts[1], 1, grid.Hour); a.Err != nil {
		t.Fatal(a.Err)
	}
	for _, tt := range []struct {
		name string
		job  *grid.Job
		cut  bool
	}{
		{"leased, whole", scriptJob(home, 2, whole), false},
		{"leased, cut", scriptJob(home, 3, long), true},
		{"components, each of which fits", dividedJob(hosts, 4, strings.Replace(lines, "%", "100 ]", 1), 1, 1), true},
	} {
		if tt.job.Coallocate != nil {
			cancel1(t, home, blocker)
		}
		submitJob(t, home, tt.job)
		until(t, "it is over", func() bool { return stateOf(t, home, tt.job).State.Terminal() })
		v := stateOf(t, home, tt.job)
		text := readOutput(t, home, tt.job, run.Stdout)
		note := kept.Note(4096)
		cut := OutputCut(home, &v)
		switch {
		case v.State != site.Done:
			t.Fatalf("%s: %v: %s", tt.name, v.State, v.Reason)
		case tt.cut && (!strings.HasSuffix(text, note) || len(text) != 4096+len(note) || len(cut) != 1 || cut[0] != run.Stdout):
			t.Errorf("%s: %d bytes that end with %q, cut: %v", tt.name, len(text), text[max(len(text)-100, 0):], cut)
		case !tt.cut && (strings.Contains(text, "gridnode:") || cut != nil || len(text) == 0):
			t.Errorf("%s: %d bytes, cut: %v", tt.name, len(text), cut)
		}
	}
}

// TestOutputThatIsShort: of an output that was cut short on its disk what is there is handed out, and then
// said how much is missing; nothing is said of one that is whole.
func TestOutputThatIsShort(t *testing.T) {
	home := team(t, 1)[0]
	job := shellJob(home, 1, "echo to be read; echo trouble >&2")
	submitJob(t, home, job)
	v := awaitState(t, home, job.ID, site.Done)
	read := func(want string) error {
		t.Helper()
		r, err := home.Output(t.Context(), job.ID, run.Stdout, false)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		text, err := io.ReadAll(r)
		if string(text) != want {
			t.Errorf("the output is %q, want %q", text, want)
		}
		return err
	}
	if err := read("to be read\n"); err != nil || OutputMissing(home, &v) != [2]int64{} {
		t.Fatalf("of the whole output %v are missing, and %v", OutputMissing(home, &v), err)
	}
	path := home.files.Task(home.ID(), grid.TaskID{Job: job.ID, Epoch: v.Epoch}) + run.Stdout.Suffix()
	if err := os.Truncate(path, 5); err != nil {
		t.Fatal(err)
	}
	if err := read("to be"); !errors.Is(err, run.ErrOutputShort) || !strings.Contains(err.Error(), "output is missing 6 bytes") {
		t.Errorf("of an output cut short: %v", err)
	}
	if missing := OutputMissing(home, &v); missing != [2]int64{6, 0} {
		t.Errorf("%v bytes are missing, want 6 of standard output", missing)
	}
}
