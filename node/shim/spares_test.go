package shim

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// late returns a task whose outputs are made late, in the directory of all.
func (s *testShim) late(script string) Spec {
	spec := s.spec(script)
	base := filepath.Join(s.home, "jobs", spec.ID)
	spec.Stdout, spec.Stderr = base+".stdout", base+".stderr"
	spec.Outputs = OutputsLate
	return spec
}

// missing fails the test unless nothing is at the paths.
func missing(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, want none", path, err)
		}
	}
}

func reads(t *testing.T, path, want string) {
	t.Helper()
	if text, err := os.ReadFile(path); err != nil || string(text) != want {
		t.Errorf("%s: %q, %v; want %q", path, text, err, want)
	}
}

// A task that writes nothing has no files, and says so; of what others write nothing is lost.
func TestOutputsLate(t *testing.T) {
	s := newTestShim(t)
	for range 3 {
		spec := s.late("exit 3")
		if e := s.run(spec); !e.Silent || e.ExitCode != 3 {
			t.Errorf("%+v, want a silent end", e)
		}
		missing(t, spec.Stdout, spec.Stderr)
	}
	spec := s.late("echo out")
	if e := s.run(spec); e.Silent {
		t.Errorf("%+v, which has written", e)
	}
	reads(t, spec.Stdout, "out\n")
	missing(t, spec.Stderr)
	spec = s.late("echo err >&2")
	if e := s.run(spec); e.Silent {
		t.Errorf("%+v, which has written", e)
	}
	reads(t, spec.Stdout, "") // as long as it is there the output is
	reads(t, spec.Stderr, "err\n")
	spec = s.late("echo out; echo err >&2")
	spec.Stderr = spec.Stdout
	s.run(spec)
	reads(t, spec.Stdout, "out\nerr\n")
	if e := s.run(s.spec("exit 0")); e.Silent {
		t.Errorf("%+v: nobody asked for that", e)
	}
	told := s.spec("exit 0")
	told.Outputs = OutputsTold
	if e := s.run(told); !e.Silent {
		t.Errorf("%+v, want a silent end", e)
	}
	reads(t, told.Stdout, "")
}

// What a task writes is there while it runs, and the spares are few.
func TestOutputsLateAreThereAtOnce(t *testing.T) {
	s := newTestShim(t)
	spec := s.late("echo begun; exec sleep 1000")
	s.start(spec)
	s.until("what it wrote is there", func() bool {
		text, err := os.ReadFile(spec.Stdout)
		return err == nil && string(text) == "begun\n"
	})
	for range 20 {
		s.run(s.late("exit 0"))
	}
	entries, err := os.ReadDir(filepath.Join(filepath.Dir(spec.Stdout), SpareDir))
	if err != nil || len(entries) > 4 {
		t.Errorf("%d spares, %v; want 2 for each of two tasks at most", len(entries), err)
	}
	if err := s.client.Kill(spec.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	if e := s.event(); e.Silent {
		t.Errorf("%+v, which has written", e)
	}
}

// A file that somebody has open still is nobody else's.
func TestSparesAreOpenOnce(t *testing.T) {
	s := newTestShim(t)
	handed := filepath.Join(t.TempDir(), "handed")
	s.run(s.late("readlink /proc/$$/fd/1 /proc/$$/fd/2 >" + handed))
	text, err := os.ReadFile(handed)
	if err != nil {
		t.Fatal(err)
	}
	var others []*os.File
	for _, path := range strings.Fields(string(text)) {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		others = append(others, file)
	}
	spec := s.late("echo out; echo err >&2")
	s.run(spec)
	for _, file := range others {
		if _, err := file.WriteString("another's"); err != nil {
			t.Fatal(err)
		}
	}
	reads(t, spec.Stdout, "out\n")
	reads(t, spec.Stderr, "err\n")
}

// A file that a task has changed is nobody else's.
func TestSparesArePristine(t *testing.T) {
	s := newTestShim(t)
	for _, change := range []string{"chmod 644 /proc/self/fd/1", "ln $(readlink /proc/self/fd/1) kept", "rm $(readlink /proc/self/fd/1)"} {
		s.run(s.late(change))
		spec := s.late("echo out; echo err >&2")
		s.run(spec)
		reads(t, spec.Stdout, "out\n")
		reads(t, spec.Stderr, "err\n")
		if info, err := os.Stat(spec.Stdout); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("after %s: %v, %v", change, info.Mode(), err)
		}
	}
}
