package e2e

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gridnode/node/sandbox"
)

// shellLine is a line of a block that is a command: the block is then one of a shell, and every
// line of it is tried or left out for a reason.
var shellLine = regexp.MustCompile(`^([a-z]*\$ +)?([A-Z_]+=\S* +)?(gridnode|make|go|curl|apt|git|install|jaeger|firefox|ssh|sbatch|snakemake|import gridnode)\b`)

// ofShell reports whether a block is to be tried.
func (b block) ofShell() bool {
	return b.language == "console" || (b.language == "" || b.language == "sh" || b.language == "python") && !strings.HasPrefix(b.info, "file ") &&
		slices.ContainsFunc(b.text, shellLine.MatchString)
}

// lines returns the commands of a block of a page that shows what may be said and not what is
// answered. If it has prompts, what has none was printed.
func (b block) lines() (list []step) {
	if b.language == "python" {
		return []step{{line: b.line, command: "python3 - <<'END'\n" + strings.Join(b.text, "\n") + "\nEND"}}
	}
	prompts := slices.ContainsFunc(b.text, prompt.MatchString)
	goesOn := false
	for i, line := range b.text {
		s := step{line: b.line + i, command: line}
		if m := prompt.FindStringSubmatch(line); m != nil {
			s.shell, s.command = m[1], strings.TrimSpace(m[2])
		} else if prompts || strings.HasPrefix(line, "#") || line == "" {
			continue
		}
		if last := len(list) - 1; goesOn {
			list[last].command += "\n" + line
		} else {
			list = append(list, s)
		}
		goesOn = strings.HasSuffix(line, `\`)
	}
	return list
}

// trial says how the commands of a block are tried, where they cannot stand alone.
type trial struct {
	before string   // typed first; every line that begins with a prompt into a shell of its own
	words  []string // what is replaced in the block, and by what
	codes  []string // beginnings of commands, and the exit codes that are as good as 0
	soon   bool     // commands are repeated until they can be done
	after  string
}

// commands runs lines that are not of the page.
func (r *reading) commands(at block, text string) {
	r.Helper()
	if text != "" {
		for _, s := range (block{line: at.line, text: strings.Split(strings.TrimSpace(text), "\n")}).lines() {
			s.line = at.line
			r.try(s, false)
		}
	}
}

// leftOutFor returns why a command of a page is not tried, empty if it is.
func leftOutFor(page, command string, seen map[string]bool) string {
	for of, list := range leftOut {
		if of != page && (!strings.HasSuffix(of, "/") || !strings.HasPrefix(page, of)) {
			continue
		}
		for i := 0; i < len(list); i += 2 {
			if strings.HasPrefix(command, list[i]) {
				seen[of+": "+list[i]] = true
				return list[i+1]
			}
		}
	}
	return ""
}

// TestReference tries every command that the README and the pages of reference and explanation
// show, in one federation of two sites. What they print is theirs to change: that a command does
// what it is shown for is what tests of it look at. TestManual and TestSlurmPage do the
// other pages.
func TestReference(t *testing.T) {
	t.Parallel()
	if _, err := sandbox.Find().Walls(sandbox.Auto); err != nil {
		t.Skipf("left out: %v", err)
	}
	dir, err := os.MkdirTemp("", "shown") // a socket's path has to be short
	if err == nil {
		err = os.Chmod(dir, 0o755) // guests' accounts pass through
	}
	if err != nil {
		t.Fatal(err)
	}
	r := &reading{T: t, path: "the federation", dir: dir, shells: map[string]*console{}, ports: map[string]string{}, kept: map[string]string{}}
	defer r.close()
	r.commands(block{}, beforeReference)
	left, used := map[string]bool{}, map[string]bool{}
	for _, page := range referencePages(t) {
		text, err := os.ReadFile("../../" + page)
		if err != nil {
			t.Fatal(err)
		}
		r.path = page
		for _, b := range blocksOf(string(text)) {
			if b.ofShell() && (page != packagePage || b.language != "console") { // those are TestPackagePage's
				r.reference(page, b, left, used)
			}
		}
	}
	r.path = "the federation"
	r.commands(block{}, afterReference)
	for page, list := range leftOut {
		for i := 0; i < len(list); i += 2 {
			if !left[page+": "+list[i]] {
				t.Errorf("%s has no command %q that were to be left out", page, list[i])
			}
		}
	}
	for first := range trials {
		if !used[first] {
			t.Errorf("no block begins with %q", first)
		}
	}
}

// referencePages returns the pages that neither TestManual nor TestSlurmPage tries.
func referencePages(t *testing.T) []string {
	list := []string{"README.md", "CONTRIBUTING.md"}
	for _, pattern := range []string{"docs/*.md", "docs/figures/*.md"} {
		found, err := filepath.Glob("../../" + pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no pages at %s: %v", pattern, err)
		}
		for _, path := range found {
			if page := strings.TrimPrefix(path, "../../"); page != slurmPage {
				list = append(list, page)
			}
		}
	}
	return list
}

// reference tries a block.
func (r *reading) reference(page string, b block, left, used map[string]bool) {
	r.Helper()
	var first string
	for key := range trials {
		if at, line, _ := strings.Cut(key, ": "); at == page && strings.HasPrefix(b.text[0], line) {
			first = key
			used[key] = true
		}
	}
	tr := trials[first]
	var list []step
	for _, s := range b.lines() {
		if leftOutFor(page, s.command, left) == "" {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		return
	}
	r.commands(b, tr.before)
	for _, s := range list {
		for i := 0; i < len(tr.codes); i += 2 {
			if strings.HasPrefix(s.command, tr.codes[i]) {
				s.wantCode = "0 or " + tr.codes[i+1]
			}
		}
		s.shell = cmp.Or(shellsOf[s.shell], s.shell)
		if s.shell == "physics" {
			s.shell = ""
		}
		s.command = strings.NewReplacer(slices.Concat(tr.words, wordsOfReference)...).Replace(s.command + "\n")
		if _, complaint := r.attempt(s, tr.soon); complaint != "" {
			r.Error(complaint)
		}
	}
	r.commands(b, tr.after)
}
