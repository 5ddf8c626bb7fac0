package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFilesTravel: what a job brings along is where it runs, what it leaves comes home, and an
// array moves what it shares once.
func TestFilesTravel(t *testing.T) {
	t.Parallel()
	sites := federation(t, []string{"home", "host"}, map[string][]string{"host": {"--foreign", "allow"}})
	home, host := sites[0], sites[1]
	dir, work := t.TempDir(), t.TempDir()
	put := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	want := func(name, text string) {
		t.Helper()
		if got, err := os.ReadFile(filepath.Join(work, name)); string(got) != text {
			t.Errorf("%s: %q, %v, want %q", name, got, err, text)
		}
	}
	data := put("project/data.csv", strings.Repeat("a line\n", 200_000))
	put("project/.gridnodeignore", "*.big\n")
	put("project/left.big", "x")
	script := put("analyse", "#!/bin/sh\n#GRID --workdir "+filepath.Dir(data)+"\nls\nmkdir out; wc -l <data.csv | tr -d ' ' >out/lines\necho secret >.hidden\necho $1 >word\n")

	// At a named site, by price, and at home it is the same.
	for _, how := range [][]string{{"--site", "host"}, {"--policy", "fastest", "--deadline", "1h", "--budget", "100"}, {"--policy", "local"}} {
		if err := os.RemoveAll(filepath.Join(work, "out")); err != nil {
			t.Fatal(err)
		}
		id := strings.TrimSpace(home.ok(append(append([]string{"submit", "-q", "-W", "-D", work}, how...), script, "hello")...))
		if out := home.ok("logs", id); out != "analyse\ndata.csv\n" {
			t.Errorf("%q: there was %q%s", how, out, host.logTail())
		}
		want("out/lines", "200000\n")
		want("word", "hello\n")
		if entries, _ := os.ReadDir(work); len(entries) != 2 {
			t.Errorf("%q: home came %v", how, entries)
		}
		if list := home.ok("ls", "--no-headers", id); strings.Count(list, "\n") != 3 || !strings.Contains(list, "out/lines") {
			t.Errorf("%q: ls says %q", how, list)
		}
		home.ok("get", id, "out/*", "--out-dir", filepath.Join(dir, id))
		if got, err := os.ReadFile(filepath.Join(dir, id, "out/lines")); string(got) != "200000\n" {
			t.Errorf("%q: got %q, %v", how, got, err)
		}
	}

	// What a job has written comes home also when it fails or its time is over, elsewhere than
	// its other files.
	elsewhere := filepath.Join(work, "elsewhere")
	home.code(3, "submit", "-q", "-W", "--site", "host", "-D", work, "--out", "*.part", "--out-dir", elsewhere, "--", "sh", "-c", "echo some >x.part; echo y >y; exit 3")
	home.code(137, "submit", "-q", "-W", "--site", "host", "-t", "10s", "-D", work, "--", "sh", "-c", "trap '' TERM; echo late >z.part; sleep 600")
	want("elsewhere/x.part", "some\n")
	want("z.part", "late\n")
	if _, err := os.Stat(filepath.Join(elsewhere, "y")); err == nil {
		t.Error("what nobody asked for came home")
	}

	// An array; standard input.
	big := put("shared.bin", strings.Repeat("0123456789abcdef", 1<<17))
	home.ok("submit", "-q", "-W", "--site", "host", "-D", work, "-a", "1-4", "--in", big+"=in/shared", "--", "sh", "-c", "wc -c <in/shared | tr -d ' ' >count.$GRIDNODE_ARRAY_TASK_ID")
	want("count.3", "2097152\n")
	if log, err := os.ReadFile(filepath.Join(host.home, "daemon.log")); err == nil && strings.Count(string(log), "files of a job are here") > 2 {
		t.Errorf("files moved more than once for each tree: %s", log)
	}
	for _, flags := range [][]string{{"--site", "host"}, {"--site", "host", "--in", "-"}, {"-D", work}} {
		r := home.runIn("b\na\n", append(append([]string{"submit", "-W"}, flags...), "--", "sh", "-c", "sort; echo oops >&2; exit 4")...)
		if r.code != 4 || r.stdout != "a\nb\n" || !strings.Contains(r.stderr, "oops\n") {
			t.Errorf("%q: standard input sorted: %v", flags, r)
		}
	}

	// What cannot be brought is said at once.
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "project/link")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ path, said string }{{filepath.Join(dir, "project"), "leads out"}, {filepath.Join(dir, "nothing"), "no such file"}, {"/dev/null", "neither"}, {data + "=../x", "part"}, {dir + "/*.none", "matches"}} {
		if r := home.code(2, "submit", "--in", tt.path, "--", "true"); !strings.Contains(r.stderr, tt.said) {
			t.Errorf("--in %s: %q", tt.path, r.stderr)
		}
	}

	bomb := put("bomb", "")
	if err := os.Truncate(bomb, 1<<40); err != nil {
		t.Fatal(err)
	}
	if r := home.code(5, "submit", "--in", bomb, "--", "true"); !strings.Contains(r.stderr, "files.job") {
		t.Errorf("a tebibyte of nothing: %q", r.stderr)
	}

	// Both daemons die while it runs: what it leaves comes home all the same, once.
	begun, release := newGate(t), newGate(t)
	id := strings.TrimSpace(home.ok("submit", "-q", "--site", "host", "-D", work, "--in", data, "--", "sh", "-c", "echo begun >"+string(begun)+"; read x <"+string(release)+"; cp data.csv copy"))
	begun.await(t)
	home.kill()
	host.kill()
	release.open(t)
	host.start()
	home.start()
	home.ok("wait", id)
	home.ok("get", id, "--out-dir", filepath.Join(dir, "after"))
	want("copy", strings.Repeat("a line\n", 200_000))
}
