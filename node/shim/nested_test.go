package shim

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"gridnode/grid"
)

// inner starts a shim as a task of s and returns it.
func (s *testShim) inner(grace string) (*testShim, Spec) {
	s.Helper()
	home := s.TempDir()
	spec := s.command("/proc/self/exe")
	spec.Env = append(spec.Env, "GRIDNODE_SHIM_TEST="+home, "GRIDNODE_SHIM_TEST_GRACE="+grace)
	s.start(spec)
	in := &testShim{TB: s.TB, home: home}
	s.until("the inner shim listens", func() bool {
		c, err := Dial(context.Background(), home)
		in.client = c
		return err == nil
	})
	s.Cleanup(in.client.Close)
	return in, spec
}

// TestShimWithinAShim: whoever ends a task that is itself a shim ends all that one's
// tasks, with whatever they started, although those are in sessions and have marks of
// their own.
func TestShimWithinAShim(t *testing.T) {
	s := newTestShim(t)
	keep := s.spec("sleep 1000") // so that no step relies on the last task's end
	s.start(keep)
	for _, tt := range []struct{ name, grace string }{
		{"the inner one ends in order", "20ms"},
		{"the inner one is killed before its tasks are", "10s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in, spec := s.inner(tt.grace)
			task := in.spec("trap '' TERM; " + tell + descendants[1].line + descendants[3].line + " while :; do sleep 0.1; done")
			in.start(task)
			pids := in.pids(task, 3)
			if err := s.client.Kill(spec.ID, "over"); err != nil {
				t.Fatal(err)
			}
			e := s.event()
			s.allGone(pids)
			if e.ID != spec.ID || e.Cause != CauseKill {
				t.Errorf("%+v", e)
			}
		})
	}
}

// TestDaemonOfAShimWithinDies: the limit of the inner shim holds whoever is alive.
func TestDaemonOfAShimWithinDies(t *testing.T) {
	s := newTestShim(t)
	in, spec := s.inner("10s")
	task := in.spec(tell + "sleep 1000")
	in.start(task)
	pids := in.pids(task, 1)
	if err := s.client.Extend(spec.ID, 50*grid.Millisecond); err != nil {
		t.Fatal(err)
	}
	in.client.Close()
	if e := s.event(); e.Cause != CauseLimit {
		t.Errorf("%+v, want its limit", e)
	}
	s.allGone(pids)
}

func TestExtend(t *testing.T) {
	s := newTestShim(t)
	spec := s.spec("read line < fifo; exit 3")
	if err := os.MkdirAll(spec.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	fifo(t, filepath.Join(spec.Dir, "fifo"))
	spec.Limit = grid.Hour
	s.start(spec)
	for _, span := range []grid.Time{0, 20 * grid.Millisecond} {
		if err := s.client.Extend(spec.ID, span); err != nil {
			t.Fatal(err)
		}
	}
	if e := s.event(); e.Cause != CauseLimit || e.End-e.Start < 20*grid.Millisecond {
		t.Errorf("%+v, want the limit of 20ms", e)
	}

	longer := s.spec("read line < fifo; exit 3")
	if err := os.MkdirAll(longer.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	fifo(t, filepath.Join(longer.Dir, "fifo"))
	longer.Limit = 300 * grid.Millisecond
	s.start(longer)
	if err := s.client.Extend(longer.ID, grid.Hour); err != nil {
		t.Fatal(err)
	}
	short := s.spec("sleep 1000") // ends after longer would have
	short.Limit = 400 * grid.Millisecond
	s.start(short)
	if e := s.event(); e.ID != short.ID {
		t.Fatalf("%+v ends first, although it was extended", e)
	}
	if err := os.WriteFile(filepath.Join(longer.Dir, "fifo"), []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	if e := s.event(); e.ID != longer.ID || e.ExitCode != 3 {
		t.Errorf("%+v, want exit code 3", e)
	}
	if err := s.client.Extend("unknown", 1); err != nil {
		t.Error(err)
	}
	if err := s.client.Extend("unknown", -1); err == nil {
		t.Error("a negative span is taken")
	}
}

func fifo(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}
