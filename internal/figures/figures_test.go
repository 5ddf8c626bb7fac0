package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/golden anew")

// canned answers each kind of command with one output and remembers what was asked.
type canned struct {
	t     *testing.T
	asked []string
	lacks string // commands that have this are answered with errLogs
}

func (c *canned) tell(string) {}

func (c *canned) output(_ context.Context, command string) ([]byte, error) {
	c.t.Helper()
	c.asked = append(c.asked, command)
	if c.lacks != "" && strings.Contains(command, c.lacks) {
		return nil, errLogs
	}
	for _, kind := range []struct{ has, file string }{
		{"test/slurm/measure", "bench.txt"}, {"--seeds ", "campaign.json"}, {"testnet run", "run.json"}, {"testnet reproduce", "report.json"}, {"-live-report", "live.txt"}, {"testnet scale", "scale.json"},
		{"-bench", "bench.txt"}, {"test/flood", "flood.json"}, {"mutants -sample", "mutation.json"}, {"test/mutants", "mutants.json"}, {"test/campaign", "damaged.json"}, {"test/fuzz", "fuzz.json"}, {"go test", "log.txt"},
	} {
		if strings.Contains(command, kind.has) {
			return os.ReadFile("testdata/canned/" + kind.file)
		}
	}
	c.t.Fatalf("no canned output for %s", command)
	return nil, nil
}

// somewhere is a machine and a commit that do not change.
var somewhere = surroundings{
	commit: "0123456789ab", date: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC),
	cpu: "Processor 3000", cores: 2, memory: "24 GiB", system: "linux/amd64", golang: "go1.26.8",
}

// Canned results give the same pages, one for each kind of part.
func TestPagesAreStable(t *testing.T) {
	for _, name := range []string{"packing", "leases", "reproduction-grid-federation", "scale", "live-vs-virtual", "speed", "lookups", "floods", "mutants", "mutation", "fuzz", "campaign", "reliability"} {
		t.Run(name, func(t *testing.T) {
			chosen, err := choose(subjects(), []string{name})
			if err != nil {
				t.Fatal(err)
			}
			got, err := chosen[0].page(t.Context(), &canned{t: t}, somewhere)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", "golden", name+".md")
			if *rewrite {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("not as in %s (-rewrite, and read the difference):\n%s", golden, got)
			}
		})
	}
}

// Every subject gives a page that fits a terminal and has its commands.
func TestEverySubjectGivesAPage(t *testing.T) {
	names := map[string]bool{}
	for _, s := range subjects() {
		if names[s.name] || s.title == "" || s.intro == "" || s.takes == "" || len(s.parts) == 0 {
			t.Errorf("%q: name taken, or title, intro, time or parts are missing", s.name)
		}
		names[s.name] = true
		run := &canned{t: t}
		text, err := s.page(t.Context(), run, somewhere)
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
			continue
		}
		for _, complaint := range faults(s.name, text) {
			t.Errorf("%s: %s", s.name, complaint)
		}
		for _, command := range run.asked {
			if !asks(text, command) {
				t.Errorf("%s does not name the command %s", s.name, command)
			}
		}
	}
}

// Every page of docs/figures was written by this command, with the commands that it
// runs today.
func TestPagesWereWritten(t *testing.T) {
	const dir = "../../docs/figures"
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	for _, path := range all {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".md")
		for _, complaint := range faults(name, string(b)) {
			t.Errorf("%s: %s", path, complaint)
		}
		if name == "README" {
			continue
		}
		chosen, err := choose(subjects(), []string{name})
		if err != nil {
			t.Errorf("%s: nobody writes it: %v", path, err)
			continue
		}
		run := &canned{t: t}
		if _, err := chosen[0].page(t.Context(), run, somewhere); err != nil {
			t.Error(err)
		}
		for _, command := range run.asked {
			if !asks(string(b), command) {
				t.Errorf("%s is out of date (make figures SUBJECT=%s): it does not have %s", path, name, command)
			}
		}
	}
}

// faults returns what is wrong with the form of a page.
func faults(name, text string) (list []string) {
	if !strings.HasPrefix(text, written(name)+"\n") {
		list = append(list, "it does not begin with "+written(name))
	}
	for i, line := range strings.Split(text, "\n") {
		if n := utf8.RuneCountInString(line); n > widthMax {
			list = append(list, fmt.Sprintf("line %d has %d characters: %s", i+1, n, line))
		}
	}
	if name != "README" {
		for _, row := range []string{"| commit", "| date", "| machine", "| Go", "| seed", "| page written by"} {
			if !strings.Contains(text, "\n"+row) {
				list = append(list, "it has no row "+row)
			}
		}
	}
	return list
}

// asks reports whether a page names a command, whose flag for the form of the output it
// leaves out.
func asks(text, command string) bool {
	flat := strings.ReplaceAll(text, " \\\n    ", " ")
	return strings.Contains(flat, "\n"+strings.TrimSuffix(command, " -o json")+"\n")
}

// What fails is returned, and the other pages are written all the same.
func TestWriteGoesOnAfterAFailure(t *testing.T) {
	dir := t.TempDir()
	chosen, err := choose(subjects(), []string{"leases", "packing"})
	if err != nil {
		t.Fatal(err)
	}
	run := &canned{t: t, lacks: "logs/"}
	if err := write(t.Context(), dir, chosen, true, run, somewhere); !errors.Is(err, errLogs) {
		t.Errorf("got %v, want an error about the logs", err)
	}
	if err := write(t.Context(), dir, chosen, false, run, somewhere); err != nil {
		t.Errorf("a subject that nobody named: %v", err)
	}
	index, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]bool{"[packing](packing.md)": true, "[leases](leases.md)": false, "- leases:": true} {
		if strings.Contains(string(index), line) != want {
			t.Errorf("%q in the list: want %v:\n%s", line, want, index)
		}
	}
}

// A result without a key, and a benchmark that did not run, are errors and no dashes.
func TestWhatIsMissingIsAnError(t *testing.T) {
	for name, p := range map[string]part{
		"run":       runs{title: "x", heads: []string{"a"}, rows: product("x --y %s", list("1")), figures: []figure{value("x", "total.nothing", 0)}},
		"scale":     scale{groups: []group{{"x", "y", []figure{value("x", "nothing", 0)}}}},
		"benchmark": bench{title: "x", command: "go test x"},
		"log":       printed{title: "x", command: "go test -bench x"},
	} {
		if _, err := p.measure(t.Context(), &canned{t: t}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestDeviation(t *testing.T) {
	for _, tt := range []struct {
		unit            string
		published, here float64
		text, verdict   string
	}{
		{"s", 100, 105, "+5.0 %", "met"},
		{"s", 100, 105.1, "+5.1 %", "near"},
		{"s", 100, 89.9, "−10.1 %", "rough"},
		{"s", 100, 74.9, "−25.1 %", "departs"},
		{"%", 90, 95.1, "+5.1 points", "near"},
		{"%", 90, 89.99, "0.0 points", "met"},
		{"jobs", 0, 0, "0.0 %", "met"},
		{"jobs", 0, 1, "–", "departs"},
	} {
		m := paperMeasure{Unit: tt.unit}
		if text, verdict := m.deviation(tt.published, tt.here); text != tt.text || verdict != tt.verdict {
			t.Errorf("%v → %v %s: got %q, %q, want %q, %q", tt.published, tt.here, tt.unit, text, verdict, tt.text, tt.verdict)
		}
	}
}

// No table is wider than a line, whatever is in it, and no figure is lost.
func TestTablesFit(t *testing.T) {
	for columns := 2; columns < 30; columns++ {
		for _, size := range []int{1, 9, 40, 70} {
			row := []string{strings.Repeat("first ", size/6+1)}
			for i := range columns {
				row = append(row, strings.TrimSpace(strings.Repeat(fmt.Sprintf("w%d ", i), size/4+1)))
			}
			text := grid{row, row}.markdown()
			for line := range strings.Lines(text) {
				if n := utf8.RuneCountInString(strings.TrimSpace(line)); n > widthMax {
					t.Fatalf("%d columns of %d: a line of %d characters: %s", columns, size, n, line)
				}
			}
			for i := range columns {
				if !slices.Contains(strings.Fields(text), fmt.Sprintf("w%d", i)) {
					t.Fatalf("%d columns of %d: column %d is lost:\n%s", columns, size, i, text)
				}
			}
		}
	}
}
