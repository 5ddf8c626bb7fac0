package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// chunks returns how many chunks and trees a site keeps.
func (s *site) chunks() (n int) {
	_ = filepath.WalkDir(filepath.Join(s.home, "content"), func(_ string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir():
		case len(d.Name()) == 64:
			n++
		case filepath.Ext(d.Name()) == ".index": // of a pack
			if info, err := d.Info(); err == nil {
				n += int(info.Size()) / 48
			}
		}
		return nil
	})
	return n
}

// random writes a file that nobody has yet.
func random(t *testing.T, path string, seed byte, size int) []byte {
	t.Helper()
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

// soon waits until something is so, looking often.
func (s *site) soon(what string, is func() bool) {
	s.Helper()
	for deadline := time.Now().Add(2 * patience); !is(); {
		if time.Now().After(deadline) {
			s.Fatalf("waited in vain until %s%s", what, s.logTail())
		}
		<-time.After(2 * time.Millisecond)
	}
}

// TestKilledInTransfer: whoever dies at whatever step of moving files, the job runs once with
// what it brings along, and what it leaves is at home once and whole.
func TestKilledInTransfer(t *testing.T) {
	t.Parallel()
	sites := federation(t, []string{"home", "host", "holder"}, map[string][]string{"host": {"--foreign", "allow"}, "holder": {"--foreign", "allow"}})
	home, host, holder := sites[0], sites[1], sites[2]
	dir := t.TempDir()
	for i, tt := range []struct {
		step    string
		size    int
		victims []*site
	}{
		{"before", 3 << 20, []*site{host}},
		{"before", 3 << 20, []*site{home}},
		{"chunks", 16 << 20, []*site{host}},
		{"chunks", 16 << 20, []*site{home}},
		{"chunks", 34 << 20, []*site{holder}},
		{"before", 34 << 20, []*site{holder}},
		{"running", 3 << 20, []*site{home, host}},
		{"running", 3 << 20, []*site{host}},
		{"results", 16 << 20, []*site{host}},
		{"results", 16 << 20, []*site{home}},
		{"gathering", 3 << 20, []*site{home}},
		{"gathering", 3 << 20, []*site{host}},
	} {
		name := fmt.Sprint(i, " ", tt.step)
		for _, v := range tt.victims {
			name += " " + v.name()
		}
		t.Log(name)
		work := filepath.Join(dir, fmt.Sprint("work", i))
		if err := os.Mkdir(work, 0o700); err != nil {
			t.Fatal(err)
		}
		input := filepath.Join(dir, fmt.Sprint("input", i))
		text := random(t, input, byte(i), tt.size)
		begun, over := filepath.Join(dir, fmt.Sprint("begun", i)), filepath.Join(dir, fmt.Sprint("over", i))
		for _, path := range []string{begun, over} {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			open(t, path, 0o666)
		}
		release := newGate(t)
		hold, rest := tt.step == "running" || tt.step == "gathering", "tr a b <in >out; echo over >"+over
		if hold {
			rest = "read x <" + string(release) + "; " + rest
		}
		if tt.victims[0] == holder { // it has what host needs, and says so
			home.ok("submit", "-q", "-W", "--site", "holder", "-D", work, "--in", input+"=in", "--", "true")
		}
		atHost, atHome := host.chunks(), 0
		id := strings.TrimSpace(home.ok("submit", "-q", "--site", "host", "-D", work, "--in", input+"=in", "--", "sh", "-c", "echo begun >>"+begun+"; "+rest))
		written := func(path string) func() bool {
			return func() bool { text, _ := os.ReadFile(path); return len(text) > 0 }
		}
		switch tt.step {
		case "chunks":
			host.soon("some chunks have come", func() bool { return host.chunks() > atHost+4 })
		case "running", "gathering":
			host.soon("it runs", written(begun))
		case "results":
			atHome = home.chunks()
			home.soon("some chunks have come, or all", func() bool {
				_, err := os.Stat(filepath.Join(work, "out"))
				return err == nil || home.chunks() > atHome+4
			})
		}
		for _, v := range tt.victims {
			v.kill()
		}
		if hold {
			release.open(t)
		}
		if tt.step == "gathering" { // it is over before its home is there again
			host.soon("it is over", written(over))
		}
		for _, v := range tt.victims {
			v.start()
		}
		home.ok("wait", id)
		home.ok("get", id, "--out-dir", filepath.Join(dir, fmt.Sprint("again", i)))
		want := bytes.ReplaceAll(text, []byte("a"), []byte("b"))
		for _, path := range []string{filepath.Join(work, "out"), filepath.Join(dir, fmt.Sprint("again", i), "out")} {
			if got, err := os.ReadFile(path); !bytes.Equal(got, want) {
				t.Errorf("%s: %d bytes are home, %v, want %d%s", name, len(got), err, len(want), host.logTail())
			}
		}
		if text, _ := os.ReadFile(begun); string(text) != "begun\n" {
			t.Errorf("%s: it ran %d times", name, strings.Count(string(text), "\n"))
		}
		if entries, _ := os.ReadDir(work); len(entries) != 1 {
			t.Errorf("%s: home came %v", name, entries)
		}
	}
}

// TestSpreadFiles: each task of a spread job has what it brings along, and what each leaves
// comes home, also if home is not there when the job ends.
func TestSpreadFiles(t *testing.T) {
	t.Parallel()
	hill := newSite(t, "hill", "--processors", "8").set("leases.lend", "allow", "leases.term", "40s").start()
	vale := newSite(t, "vale", "--processors", "3", "--join", hill.addr).
		set("leases.term", "40s", "delegation.policy", "s-strd", "delegation.links", "sibling:"+hill.id).start()
	vale.sees(2)
	full := strings.TrimSpace(vale.ok("submit", "-n", "1", "-t", "1h", "--", "sleep", "1000"))
	vale.eventually("a processor is taken", func() bool { return vale.status(full).State == "running" })
	dir, work := t.TempDir(), t.TempDir()
	input := filepath.Join(dir, "input")
	text := random(t, input, 99, 3<<20)
	flag := filepath.Join(dir, "go")
	open(t, dir, 0o711)
	id := strings.TrimSpace(vale.ok("submit", "-q", "--spread", "-n", "3", "-t", "1h", "-D", work, "--in", input+"=in", "--out", "*.dat", "--", "sh", "-c",
		fmt.Sprintf("echo begun; while [ ! -e %s ]; do sleep 0.1; done; cp in $GRIDNODE_SITE.dat; echo no >other", flag)))
	vale.eventually("its tasks run", func() bool { return strings.Count(vale.ok("logs", id), "begun") == 3 })
	vale.kill()
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	vale.start()
	vale.ok("wait", id)
	vale.eventually("they are home", func() bool { return strings.Count(vale.ok("ls", "--no-headers", id), ".dat") == 3 })
	vale.ok("get", id, "--out-dir", filepath.Join(dir, "again"))
	for rank, site := range []string{"vale", "vale", "hill"} {
		for _, at := range []string{work, filepath.Join(dir, "again")} {
			path := filepath.Join(at, fmt.Sprint("rank-", rank), site+".dat")
			if got, err := os.ReadFile(path); !bytes.Equal(got, text) {
				t.Errorf("%s has %d bytes, %v", path, len(got), err)
			}
		}
	}
	if found, _ := filepath.Glob(filepath.Join(work, "*", "*")); len(found) != 3 {
		t.Errorf("home came %v", found)
	}
}
