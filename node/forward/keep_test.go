package forward

import (
	"log/slog"
	"os"
	"slices"
	"testing"
)

// again replaces a site's forwarder, as a node does that starts anew.
func (s *site) again() {
	s.Close()
	s.Forwarder = New(s.self, s.net, s.dir, slog.New(slog.DiscardHandler))
	s.now.Store(s.Forwarder)
}

// kept returns how many groups a site keeps in files.
func kept(t *testing.T, s *site) int {
	t.Helper()
	files, err := os.ReadDir(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

func TestTasksConnectAnewAfterARestart(t *testing.T) {
	all := sites(t, 2)
	g := spread(all, 2)
	addresses := add(t, all, g)
	echo(t, addresses[0][0])
	echo(t, addresses[1][1])
	for _, s := range all {
		s.again()
	}
	for from, to := range map[int]int{0: 1, 1: 0} {
		if answer, err := ask(addresses[from][to], "hello"); answer != "olleh" {
			t.Errorf("task %d asked task %d: %q, %v", from, to, answer, err)
		}
	}
	if same := add(t, all, g); !slices.Equal(same[0], addresses[0]) || !slices.Equal(same[1], addresses[1]) {
		t.Errorf("they were told %v, and then %v", addresses, same)
	}
	for _, s := range all {
		s.Remove(g.ID)
		if n := kept(t, s); n != 0 {
			t.Errorf("%d groups are kept of none", n)
		}
		if s.again(); s.Len() != 0 {
			t.Error("a job that is over is forwarded for after a restart")
		}
	}
}

func TestWhatNobodyClaimsIsRemoved(t *testing.T) {
	all := sites(t, 1)
	s := all[0]
	for epoch := range uint32(3) {
		g := spread(all, 1)
		g.Task.Epoch = epoch
		if _, err := s.Add(g); err != nil {
			t.Fatal(err)
		}
	}
	s.again()
	claimed, added := spread(all, 1), spread(all, 1)
	claimed.Task.Epoch, added.Task.Epoch = 1, 2
	s.Claim(claimed.Task)
	add(t, all, added)
	s.removeUnclaimed()
	if s.Len() != 2 || kept(t, s) != 2 {
		t.Errorf("%d jobs are forwarded for and %d kept, want 2", s.Len(), kept(t, s))
	}
}

func TestWhatIsKeptIsChecked(t *testing.T) {
	all := sites(t, 1)
	s := all[0]
	add(t, all, spread(all, 2))
	files, err := os.ReadDir(s.dir)
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	path := s.dir + "/" + files[0].Name()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]struct{ path, text string }{
		"cut short":         {path, string(text[:len(text)/2])},
		"nothing":           {path, "{}"},
		"under other names": {s.dir + "/other.json", string(text)},
	} {
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := os.WriteFile(bad.path, []byte(bad.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if s.again(); s.Len() != 0 || kept(t, s) != 0 {
			t.Errorf("%s: %d jobs are forwarded for, %d files are kept", name, s.Len(), kept(t, s))
		}
	}
}
