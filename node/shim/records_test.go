package shim

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"gridnode/node/store/journal"
)

// journalOf makes a home whose journal was written by add.
func journalOf(t *testing.T, add func(r *records) error) (home string) {
	t.Helper()
	home = t.TempDir()
	r := &records{home: home, boot: "boot", token: "token"}
	if _, err := r.renew(func(func(string, known)) {}); err != nil {
		t.Fatal(err)
	}
	if err := add(r); err != nil {
		t.Fatal(err)
	}
	r.journal.Close()
	return home
}

func TestRecords(t *testing.T) {
	fill := func(r *records) error {
		for _, err := range []error{
			r.intent("ended", 10), r.started("ended", 100, 11), r.ended(&Ended{ID: "ended", ExitCode: 3, Start: 11, End: 12}),
			r.intent("acked", 20), r.started("acked", 101, 21), r.ended(&Ended{ID: "acked", Start: 21, End: 22}), r.acked("acked"),
			r.intent("runs", 30), r.started("runs", 102, 31),
			r.intent("begins", 40),
		} {
			if err != nil {
				return err
			}
		}
		return nil
	}
	check := func(t *testing.T, home string) {
		t.Helper()
		r, p, err := openRecords(home)
		if err != nil {
			t.Fatal(err)
		}
		if r.token != "token" || p.boot != "boot" || len(p.tasks) != 3 {
			t.Fatalf("token %q, boot %q, %d tasks", r.token, p.boot, len(p.tasks))
		}
		if e := p.tasks["ended"].ended; e == nil || e.ExitCode != 3 {
			t.Errorf("ended: %+v", e)
		}
		if k := p.tasks["runs"]; k.ended != nil || k.pid != 102 || k.start != 31 {
			t.Errorf("runs: %+v", k)
		}
		if k := p.tasks["begins"]; k.ended != nil || k.pid != 0 || k.start != 40 {
			t.Errorf("begins: %+v", k)
		}
	}
	home := journalOf(t, fill)
	check(t, home)
	t.Run("renewed", func(t *testing.T) {
		r, p, err := openRecords(home)
		if err != nil {
			t.Fatal(err)
		}
		r.boot = "boot"
		if _, err := r.renew(func(yield func(string, known)) {
			for id, k := range p.tasks {
				yield(id, *k)
			}
		}); err != nil {
			t.Fatal(err)
		}
		r.journal.Close()
		check(t, home)
	})
	t.Run("torn", func(t *testing.T) {
		home := journalOf(t, fill)
		path := filepath.Join(home, journalName)
		file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.WriteString("gjl1 torn record"); err != nil {
			t.Fatal(err)
		}
		check(t, home)
		if _, err := os.Stat(path + ".damaged"); err == nil {
			t.Error("a torn record was taken for damage")
		}
	})
	t.Run("damaged", func(t *testing.T) {
		home := journalOf(t, fill)
		path := filepath.Join(home, journalName)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[bytes.Index(b, []byte("acked"))] ^= 1
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		r, p, err := openRecords(home)
		if err != nil || r.token != "token" || len(p.tasks) != 1 || p.tasks["ended"].ended == nil {
			t.Errorf("%v, token %q, tasks %v; want what is before the damage", err, r.token, p.tasks)
		}
		if _, err := os.Stat(path + ".damaged"); err != nil {
			t.Errorf("the damaged journal was not kept: %v", err)
		}
	})
	t.Run("new", func(t *testing.T) {
		r, p, err := openRecords(t.TempDir())
		if err != nil || len(r.token) != 16 || len(p.tasks) != 0 {
			t.Errorf("%v, token %q, tasks %v", err, r.token, p.tasks)
		}
	})
}

// A journal that has grown is renewed with what still counts, and a shim killed at
// any time after that knows it.
func TestJournalIsRenewed(t *testing.T) {
	s := newTestShim(t, "GRIDNODE_SHIM_TEST_JOURNAL=2000")
	running := s.spec(tell + "sleep 1000")
	s.start(running)
	s.pids(running, 1)
	waiting := make(map[string]bool)
	for i := range 60 {
		spec := s.command("true")
		s.start(spec)
		e := s.event()
		if i%20 == 0 {
			waiting[e.ID] = true
		} else if err := s.client.Ack(e.ID); err != nil {
			t.Fatal(err)
		}
	}
	s.client.Close() // everything has reached it
	tail, err := journal.Read(filepath.Join(s.home, journalName), func(int64, []byte) error { return nil })
	if err != nil || tail.Size > 4000 {
		t.Errorf("journal of %d bytes, %v", tail.Size, err)
	}
	syscall.Kill(s.client.PID(), syscall.SIGKILL)
	s.connect()
	for range len(waiting) + 1 {
		e := s.event()
		if e.ID == running.ID && e.Cause != CauseLost || e.ID != running.ID && (e.Cause != CauseExit || !waiting[e.ID]) {
			t.Errorf("%+v", e)
		}
		delete(waiting, e.ID)
	}
	if len(waiting) > 0 || len(s.client.Adopt()) != 4 {
		t.Errorf("%v were forgotten, %v is known", waiting, s.client.Adopt())
	}
}

// A journal that cannot be written to is replaced; if that cannot be done either, no
// task is started, as nobody would find it again.
func TestBrokenJournal(t *testing.T) {
	home := t.TempDir()
	s := &shim{
		config:  Config{Home: home, journalMax: journalMax},
		records: &records{home: home, boot: "boot", token: "token"},
		tasks:   map[string]*task{"runs": {id: "runs", pid: 1 << 30, start: 5}},
		results: make(map[string]*Ended), inbox: make(chan func()), quit: make(chan struct{}),
	}
	if err := s.renew(); err != nil {
		t.Fatal(err)
	}
	s.records.journal.Close() // every write fails from here on
	s.record(&Ended{ID: "ended", ExitCode: 3})
	_, p, err := openRecords(home)
	if err != nil || p.tasks["runs"] == nil || p.tasks["ended"].ended == nil {
		t.Errorf("%v, tasks %v: want both", err, p.tasks)
	}
	s.records.journal.Close()
	if err := os.RemoveAll(home); err != nil {
		t.Fatal(err)
	}
	s.startTask(&Spec{ID: "new", Args: []string{"true"}, Dir: "/", Stdout: "/dev/null", Stderr: "/dev/null"})
	if e := s.results["new"]; e == nil || e.Cause != CauseStart || e.ExitCode != exitNoStart || s.tasks["new"] != nil {
		t.Errorf("start without a journal: %+v", e)
	}
}
