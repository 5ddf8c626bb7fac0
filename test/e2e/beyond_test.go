package e2e

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gridnode/test/slurm"
)

// timed is what a page of chaos says of how long it took.
var timed = regexp.MustCompile(`, \d+ a second of one processor`)

// untimed returns what a sweep has printed without what differs from call to call.
func untimed(t *testing.T, text string) string {
	t.Helper()
	if !strings.HasPrefix(text, "mode,") {
		return timed.ReplaceAllString(text, "")
	}
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			if head := rows[0][i]; !strings.HasPrefix(head, "Speed: ") || !strings.Contains(head, "second") {
				b.WriteString(cell + ",")
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// seeds is a sweep of chaos.
var seeds = []string{"testnet", "run", "chaos", "--swarm", "--sites", "3", "--hours", "0.2", "--seeds", "3", "--shrink", "0", "--failures", ""}

// checkBeyond has sweeps done there and here, and compares. unreachable are settings with which
// nothing can be handed over.
func checkBeyond(t *testing.T, s *site, on string, unreachable ...string) {
	sizes := []string{"testnet", "scale", "--steps", "2,3", "--site-hours", "48", "-o", "csv"}
	here := untimed(t, s.ok(seeds...))
	work := filepath.Join(t.TempDir(), "work")
	beyond := func(words []string, work string) []string {
		return append(slices.Clone(words), "--on", on, "--work", work)
	}

	// The directory is made ready even if nobody can be reached, and so there is a program in it
	// that can be made to fail.
	env := s.env
	s.env = append(slices.Clone(env), unreachable...)
	if r := s.run(beyond(seeds, work)...); r.code == 0 || strings.Count(r.stderr, "\n") != 1 {
		t.Fatalf("nobody can be reached: %v", r)
	}
	s.env = env
	whole := filepath.Join(work, "in", "gridnode")
	if err := os.Rename(whole, whole+"-whole"); err != nil {
		t.Fatal(err)
	}
	// Of what is brought along a script runs instead: it is killed once, and one part fails.
	mark := filepath.Join(t.TempDir(), "killed")
	script := "#!/bin/sh\nmkdir " + mark + " 2>/dev/null && kill -9 $$\n" +
		"case \" $*\" in *'--part 1/'*) echo it cannot be done >&2; exit 7;; esac\nexec ./gridnode-whole \"$@\"\n"
	if err := os.WriteFile(whole, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	r := s.run(beyond(seeds, work)...)
	if r.code != 1 || r.stdout != "" || !strings.Contains(r.stderr, "it is done again") || !strings.Contains(r.stderr, "1 of 3 runs have failed") ||
		!strings.Contains(r.stderr, "part 1, seed 2: ") || !strings.Contains(r.stderr, "exit code 7") {
		t.Fatalf("one part was killed, one fails: %v", r)
	}
	_, see, _ := strings.Cut(r.stderr, "exit code 7 (")
	see, _, _ = strings.Cut(see, ")")
	words, said := strings.Fields(see), ""
	if len(words) > 0 && words[0] == "gridnode" {
		r := s.code(0, words[1:]...)
		said = r.stdout + r.stderr
	} else if len(words) == 2 {
		text, _ := os.ReadFile(words[1])
		said = string(text)
	}
	if !strings.Contains(said, "it cannot be done") {
		t.Errorf("%q shows %q, want what the part has printed", see, said)
	}

	// Now it does not fail any more: what is missing is done, and nothing else.
	begun := filepath.Join(t.TempDir(), "begun")
	if err := os.WriteFile(whole, []byte("#!/bin/sh\necho x >>"+begun+"\nexec ./gridnode-whole \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := untimed(t, s.ok(beyond(seeds, work)...)); got != here {
		t.Errorf("beyond this machine the sweep gives\n%swant\n%s", got, here)
	}
	if text, _ := os.ReadFile(begun); string(text) != "x\n" {
		t.Errorf("one part was missing, %d were done", strings.Count(string(text), "x"))
	}
	if r := s.code(2, append(beyond(seeds, work), "--seed", "9")...); !strings.Contains(r.stderr, "has parts of 'gridnode testnet run chaos") {
		t.Errorf("of another sweep: %v", r)
	}
	wantSizes := untimed(t, s.ok(sizes...))
	if got := untimed(t, s.ok(beyond(sizes, filepath.Join(t.TempDir(), "scale"))...)); got != wantSizes {
		t.Errorf("beyond this machine the sweep gives\n%swant\n%s", got, wantSizes)
	}
}

// TestSweepOnFederation: the runs of a sweep as jobs of a site.
func TestSweepOnFederation(t *testing.T) {
	t.Parallel()
	s := newSite(t, "alpha").start()
	checkBeyond(t, s, "federation", "GRIDNODE_HOME="+t.TempDir())
}

// TestSweepOnSlurm: and as arrays of a cluster.
func TestSweepOnSlurm(t *testing.T) {
	t.Parallel()
	c := slurm.Start(t, slurm.Config{Name: "a", Processors: 2})
	s := newLoner(t, "alpha")
	s.env = []string{c.Env()}
	checkBeyond(t, s, "slurm", "PATH="+filepath.Dir(program))
}

// TestSweepsSayWhatIsWrong: each in a line.
func TestSweepsSayWhatIsWrong(t *testing.T) {
	s := newLoner(t, "alpha")
	full := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(full, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		line string
		code int
		says string
	}{
		{"--on moon --work x", 2, "want federation or slurm"},
		{"--on slurm", 2, "wants --work DIRECTORY"},
		{"--work x", 2, "--work goes with --on"},
		{"--on federation --work x --remote https://example.org:1", 2, "on this machine"},
		{"--on federation --work " + full, 2, "cannot be written to"},
		{"--on federation --work work", 3, "no daemon is running"},
		{"--on slurm --work work", 1, "there is no Slurm here"},
		{"--on slurm --work x --part-time never", 2, "--part-time"},
		{"--on slurm --work x --part-policy local", 2, "--part-policy"},
		{"--on slurm --work x --seeds 0", 2, "--seeds"},
		{"--part 3/2@x --part-out x", 2, "is no part of a sweep"},
	} {
		s.env = []string{"PATH=" + filepath.Dir(program), "GRIDNODE_TOKEN=x"}
		if r := s.run(append(slices.Clone(seeds), strings.Fields(tt.line)...)...); r.code != tt.code || !strings.Contains(r.stderr, tt.says) || r.stdout != "" {
			t.Errorf("%s: %v, want exit code %d and %q", tt.line, r, tt.code, tt.says)
		}
	}
}
