package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	rootFolder = "../.."
	lineMax    = 120 // characters of a line
	figures    = "docs/figures"
	contents   = "docs/README.md"
)

// manual returns the texts of all pages by their paths below the root.
func manual(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	read := func(path string) {
		text, err := os.ReadFile(filepath.Join(rootFolder, path))
		if err != nil {
			t.Fatal(err)
		}
		pages[path] = string(text)
	}
	for _, path := range []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md"} {
		read(path)
	}
	err := fs.WalkDir(os.DirFS(rootFolder), "docs", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			read(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 15 {
		t.Fatalf("saw only %d pages", len(pages))
	}
	return pages
}

// A line fits a terminal, table cells and examples included.
func TestPagesFitATerminal(t *testing.T) {
	for path, text := range manual(t) {
		for _, complaint := range wide(text) {
			t.Errorf("%s:%s", path, complaint)
		}
	}
}

func wide(text string) (complaints []string) {
	for i, line := range strings.Split(text, "\n") {
		if n := utf8.RuneCountInString(line); n > lineMax {
			complaints = append(complaints, fmt.Sprintf("%d: %d characters, want at most %d", i+1, n, lineMax))
		}
	}
	return complaints
}

// notebook is what belongs into a figure or a commit, and not into a page that
// explains: days, what somebody wanted, how busy a machine was.
var notebook = []*regexp.Regexp{
	regexp.MustCompile(`\b20\d\d-\d\d-\d\d\b`), // an instant of RFC 3339 goes on with a T
	regexp.MustCompile(`(?i)\|\s*wanted\s*\||\bwhat was wanted\b|\bwanted:? \d`),
	regexp.MustCompile(`(?i)\bload average\b`),
	regexp.MustCompile(`(?i)\bbefore (that|this) (change|commit)\b`),
	regexp.MustCompile(`(?i)\bnothing else running\b`),
}

// Pages explain; what was measured, and when, stands in docs/figures.
func TestPagesAreNoNotebook(t *testing.T) {
	for path, text := range manual(t) {
		if strings.HasPrefix(path, figures+"/") {
			continue
		}
		for _, complaint := range notes(text) {
			t.Errorf("%s:%s", path, complaint)
		}
	}
}

func notes(text string) (complaints []string) {
	for i, line := range strings.Split(text, "\n") {
		for _, r := range notebook {
			if found := r.FindString(line); found != "" {
				complaints = append(complaints, fmt.Sprintf("%d: %q belongs into docs/figures or a commit", i+1, found))
			}
		}
	}
	return complaints
}

// Every link leads to a file, and to a heading of it.
func TestLinksLeadSomewhere(t *testing.T) {
	pages := manual(t)
	for path, text := range pages {
		for _, complaint := range dead(path, text, pages) {
			t.Errorf("%s: %s", path, complaint)
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func dead(path, text string, pages map[string]string) (complaints []string) {
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		file, anchor, _ := strings.Cut(m[1], "#")
		if strings.Contains(file, "://") {
			continue
		}
		to := path
		if file != "" {
			to = filepath.Join(filepath.Dir(path), file)
		}
		target, page := pages[to]
		if _, err := os.Stat(filepath.Join(rootFolder, to)); !page && err != nil {
			complaints = append(complaints, fmt.Sprintf("%s: there is no %s", m[1], to))
			continue
		}
		if anchor != "" && !slices.Contains(anchors(target), anchor) {
			complaints = append(complaints, fmt.Sprintf("%s: %s has no such heading", m[1], to))
		}
	}
	return complaints
}

// notInAnchors is what the anchor of a heading leaves out.
var notInAnchors = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// anchors returns those of the headings of a page.
func anchors(text string) (list []string) {
	code := false
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		title := strings.TrimLeft(line, "#")
		if code || title == line || !strings.HasPrefix(title, " ") {
			continue
		}
		title = notInAnchors.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
		list = append(list, strings.ReplaceAll(title, " ", "-"))
	}
	return list
}

// What stands between backticks and begins with a folder of the repository is a path
// below its root; so is every name of a file of Go.
func TestPathsOfPagesExist(t *testing.T) {
	for path, text := range manual(t) {
		for _, complaint := range astray(text) {
			t.Errorf("%s:%s", path, complaint)
		}
	}
}

var (
	ticked = regexp.MustCompile("`([^`]+)`")
	inside = regexp.MustCompile(`^[\w.*{},-]+(/[\w.*{},-]+)*(/…|/)?$`)
)

// astray leaves out what is a command, an address or a program of its own, and what is built.
func astray(text string) (complaints []string) {
	code := false
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		if code {
			continue
		}
		for _, m := range ticked.FindAllStringSubmatch(line, -1) {
			first, _, folder := strings.Cut(m[1], "/")
			info, err := os.Stat(filepath.Join(rootFolder, first))
			known := folder && err == nil && info.IsDir() && first != "bin" && first != "dist"
			if !inside.MatchString(m[1]) || !known && !strings.HasSuffix(m[1], ".go") {
				continue
			}
			name := strings.TrimSuffix(strings.TrimSuffix(m[1], "…"), "/")
			if found, err := filepath.Glob(filepath.Join(rootFolder, name)); err != nil || len(found) == 0 {
				complaints = append(complaints, fmt.Sprintf("%d: there is no %s", i+1, m[1]))
			}
		}
	}
	return complaints
}

// The contents list every page once, those of figures together.
func TestContentsListAllPages(t *testing.T) {
	pages := manual(t)
	for path := range pages {
		if strings.HasPrefix(path, figures+"/") && path != figures+"/README.md" || path == contents {
			continue
		}
		name, err := filepath.Rel(filepath.Dir(contents), path)
		if err != nil {
			t.Fatal(err)
		}
		_, listed, _ := strings.Cut(pages[contents], "\n## ") // below the first heading
		if n := strings.Count(listed, "]("+name+")"); n != 1 {
			t.Errorf("%s lists %s %d times, want it once", contents, path, n)
		}
	}
}

// The checks above see what they are for.
func TestFaultsOfPagesAreSeen(t *testing.T) {
	pages := map[string]string{"docs/a.md": "# One two\n```\n# no heading\n```\n"} // and what is on disk
	for _, tt := range []struct {
		text string
		want bool
		of   func(string) []string
	}{
		{strings.Repeat("ä", lineMax), false, wide},
		{strings.Repeat("ä", lineMax+1), true, wide},
		{"measured on 2031-05-06", true, notes},
		{"`2031-05-06T12:00:00Z`", false, notes},
		{"| what | wanted |", true, notes},
		{"`market/bank/ledger.go`, `testnet/reproduce/…`, `internal/wire/wirepb/*.proto` and `GET /v1/jobs`", false, astray},
		{"`market/bank/nobody.go`", true, astray},
		{"`testnet/nowhere`", true, astray},
		{"`ledger.go`", true, astray},
	} {
		if got := tt.of(tt.text); (len(got) > 0) != tt.want {
			t.Errorf("%.40q: %v, want a complaint: %v", tt.text, got, tt.want)
		}
	}
	for target, want := range map[string]bool{
		"cli.md": false, "#one-two": false, "#no-heading": true, "nowhere.md": true, "../README.md": false, "https://example.org/x": false,
	} {
		if got := dead("docs/a.md", "see [x]("+target+")", pages); (len(got) > 0) != want {
			t.Errorf("link to %s: %v, want a complaint: %v", target, got, want)
		}
	}
}

// The glossary is sorted, explains no word twice, and names packages that exist.
func TestGlossary(t *testing.T) {
	last := ""
	words := 0
	for line := range strings.Lines(manual(t)["docs/glossary.md"]) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], "-") || strings.TrimSpace(cells[1]) == "word" {
			continue
		}
		word, folder := strings.ToLower(strings.TrimSpace(cells[1])), strings.Trim(cells[3], " `")
		if word <= last {
			t.Errorf("%q does not come after %q", word, last)
		}
		if info, err := os.Stat(filepath.Join(rootFolder, folder)); err != nil || !info.IsDir() {
			t.Errorf("%s: there is no package %s", word, folder)
		}
		last = word
		words++
	}
	if words < 50 {
		t.Errorf("saw only %d words", words)
	}
}
