package shim

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// stillShim is a shim without a loop and a daemon.
func stillShim(t *testing.T) *shim {
	t.Helper()
	s := &shim{
		config: Config{Home: t.TempDir(), Grace: time.Hour, journalMax: journalMax}, inbox: make(chan func(), 8), quit: make(chan struct{}),
		tasks: make(map[string]*task), sessions: make(map[int]*task), sides: make(map[int]*side),
		orphans: make(map[int]*orphan), results: make(map[string]*Ended),
	}
	var err error
	if s.records, _, err = openRecords(s.config.Home); err != nil {
		t.Fatal(err)
	}
	if err := s.renew(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		close(s.quit)
		s.records.journal.Close()
	})
	return s
}

// TestEndsWaitForWhatWasWritten: an end is noted once what its task wrote is on disk, one flush
// serves all that ended during the one before, and who wrote nothing waits for none.
func TestEndsWaitForWhatWasWritten(t *testing.T) {
	s := stillShim(t)
	home := s.config.Home
	begun, done := make(chan []string), make(chan error)
	var trees []string
	s.settling.flush = func(files ...string) error { begun <- files; return <-done }
	s.settling.tree = func(dir string) error { trees = append(trees, dir); return nil }
	s.tasks["running"] = &task{id: "running"}
	end := func(id, output, result string) {
		t.Helper()
		dir := filepath.Join(home, id)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		spec := &Spec{ID: id, Dir: dir, Stdout: dir + ".stdout", Stderr: dir + ".stderr"}
		for path, text := range map[string]string{spec.Stdout: output, filepath.Join(dir, "result"): result} {
			if text == "" {
				continue
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		x := &task{id: id, empty: true, spec: spec, out: newOutput(spec, time.Now()), end: Ended{ID: id}}
		for _, path := range []string{spec.Stdout, spec.Stderr} {
			file, err := os.OpenFile(path, os.O_CREATE, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			file.Close()
		}
		s.tasks[id] = x
		s.finish(x)
	}
	noted := func(want ...string) {
		t.Helper()
		var got []string
		for id := range s.results {
			got = append(got, id)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Fatalf("the ends of %v are noted, want %v", got, want)
		}
	}

	end("output", "hello\n", "")
	if files := <-begun; !slices.Equal(files, []string{filepath.Join(home, "output.stdout"), filepath.Join(home, "output.stderr")}) {
		t.Fatalf("flushed are %v, want the output", files)
	}
	end("silent", "", "")
	end("result", "", "42\n") // is its user's
	end("empty"+ScratchSuffix, "", "")
	noted("empty"+ScratchSuffix, "result", "silent")
	end("both", "hello\n", "42\n")
	end("another", "hello\n", "")
	done <- nil
	(<-s.inbox)()
	noted("empty"+ScratchSuffix, "output", "result", "silent")
	if files := <-begun; len(files) != 4 {
		t.Fatalf("flushed are %v, want the output of both at once", files)
	}
	done <- nil
	(<-s.inbox)()
	noted("another", "both", "empty"+ScratchSuffix, "output", "result", "silent")
	if len(trees) > 0 {
		t.Errorf("flushed are %v, which are their user's, or empty", trees)
	}
	end("left"+ScratchSuffix, "", "42\n")
	<-begun
	noted("another", "both", "empty"+ScratchSuffix, "output", "result", "silent")
	done <- nil
	(<-s.inbox)()
	noted("another", "both", "empty"+ScratchSuffix, "left"+ScratchSuffix, "output", "result", "silent")
	if !slices.Equal(trees, []string{filepath.Join(home, "left"+ScratchSuffix)}) {
		t.Errorf("flushed are %v, want what is left in a directory of its own", trees)
	}
	if s.settling.busy || len(s.tasks) != 1 {
		t.Errorf("flushing %v, %d tasks left, want only the one that runs", s.settling.busy, len(s.tasks))
	}
}

// TestTooFewDescriptors: a task that cannot begin as no file can be opened any more has not failed.
func TestTooFewDescriptors(t *testing.T) {
	s := stillShim(t)
	s.ways = newWays(t.Context(), nil)
	spec := func(id string) *Spec {
		dir := filepath.Join(s.config.Home, id)
		return &Spec{ID: id, Args: []string{"true"}, Dir: dir, Stdout: dir + ".stdout", Stderr: dir + ".stderr"}
	}
	files, gang, terminal, other := spec("files"), spec("gang"), spec("terminal"), spec("other")
	gang.Peers = &Peers{Gang: "gang", Addresses: []string{"127.0.0.1:1", "127.0.0.1:2"}}
	terminal.Terminal = true
	other.Stdout = filepath.Join(s.config.Home, "none", "stdout")
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	for _, x := range []*Spec{files, gang, terminal} {
		s.startTask(x)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	s.startTask(other)
	for x, want := range map[*Spec]Cause{files: CauseLost, gang: CauseLost, terminal: CauseLost, other: CauseStart} {
		if e := s.results[x.ID]; e == nil || e.Cause != want || e.ExitCode != exitNoStart {
			t.Errorf("%s: %+v, want cause %v", x.ID, e, want)
		}
	}
}
