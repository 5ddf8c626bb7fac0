package main

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const repository = "../.."

// made renders the manual of this tree and returns its files by name.
func made(t *testing.T) map[string]string {
	t.Helper()
	b, err := read(repository)
	if err != nil {
		t.Fatal(err)
	}
	files, err := b.render()
	if err != nil {
		t.Fatal(err)
	}
	site := make(map[string]string)
	for _, f := range files {
		if site[f.name] != "" {
			t.Errorf("%s is there twice", f.name)
		}
		site[f.name] = string(f.text)
	}
	return site
}

var leads = regexp.MustCompile(`(?:href|src)="([^"]*)"`)

// deadEnds returns the links of a page that lead nowhere, and whatever it would have a
// browser load from elsewhere.
func deadEnds(name string, site map[string]string) (list []string) {
	for _, m := range leads.FindAllStringSubmatch(site[name], -1) {
		switch {
		case strings.HasPrefix(m[1], "data:"), strings.HasPrefix(m[1], "https://") && strings.HasPrefix(m[0], "href"):
			continue
		case strings.Contains(m[1], "://"):
			list = append(list, m[1]+" is loaded from elsewhere")
			continue
		}
		file, id, _ := strings.Cut(m[1], "#")
		to := name
		if file != "" {
			to = path.Join(path.Dir(name), file)
		}
		text, found := site[to]
		if !found {
			list = append(list, m[1]+": there is no "+to)
			continue
		}
		if id != "" && !strings.Contains(text, ` id="`+id+`"`) {
			list = append(list, m[1]+": "+to+" has no such heading")
		}
	}
	return list
}

// TestSiteHoldsTogether: every link of every page leads to a file of the site and to a heading
// of it, and nothing is loaded from elsewhere.
func TestSiteHoldsTogether(t *testing.T) {
	site := made(t)
	pages := 0
	for name := range site {
		if !strings.HasSuffix(name, ".html") {
			continue
		}
		pages++
		for _, complaint := range deadEnds(name, site) {
			t.Errorf("%s: %s", name, complaint)
		}
	}
	if pages < 30 {
		t.Errorf("only %d pages", pages)
	}
	for name, want := range map[string][]string{
		"index.html":              {"How-to guides", "Reference", "Explanation"},
		"tutorial/two-sites.html": {`<span class="prompt">alpha$ </span><b>gridnode sites</b>`, `<p class="kind">Tutorial</p>`, `rel="next"`},
		"cli.html":                {`<h2 id="submit">`, "<table>", `aria-current="page"`},
		searchFile:                {`"cli.html#drain"`, "const parts = ["},
	} {
		for _, words := range want {
			if !strings.Contains(site[name], words) {
				t.Errorf("%s has no %s", name, words)
			}
		}
	}
	if strings.Contains(site["tutorial/two-sites.html"], "keep TOKEN") {
		t.Error("how a block is tried is told to readers")
	}

	broken := map[string]string{"a.html": `<a href="b.html#x">`, "b.html": `<h2 id="y">`}
	if len(deadEnds("a.html", broken)) == 0 || len(deadEnds("c.html", map[string]string{"c.html": `<script src="https://example.org/x.js">`})) == 0 {
		t.Error("dead ends are not seen")
	}
}

// TestSiteIsReproducible: the same sources give the same bytes.
func TestSiteIsReproducible(t *testing.T) {
	one, two := made(t), made(t)
	if len(one) != len(two) {
		t.Errorf("%d files, then %d", len(one), len(two))
	}
	for name, text := range one {
		if two[name] != text {
			t.Errorf("%s differs", name)
		}
	}
}

// TestOutputIsReplaced: what was made before is replaced, what is somebody else's is not.
func TestOutputIsReplaced(t *testing.T) {
	out := filepath.Join(t.TempDir(), "docs")
	if err := run(repository, out); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(out, "old.html")
	if err := os.WriteFile(old, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(repository, out); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("a page that is not made any more is still there")
	}
	mine := t.TempDir()
	if err := os.WriteFile(filepath.Join(mine, "thesis.tex"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(repository, mine); err == nil {
		t.Error("a folder with other files is taken")
	}
	if _, err := os.Stat(filepath.Join(mine, "thesis.tex")); err != nil {
		t.Error(err)
	}
}

// TestAnchors: headings are named as where the sources are read.
func TestAnchors(t *testing.T) {
	a := &anchors{taken: map[string]bool{}}
	for _, tt := range [][2]string{{"What a lease costs", "what-a-lease-costs"}, {"`--in` and `--out`", "--in-and---out"}, {"The log", "the-log"}, {"The log", "the-log-1"}} {
		if got := string(a.Generate([]byte(tt[0]), 0)); got != tt[1] {
			t.Errorf("%q: %s, want %s", tt[0], got, tt[1])
		}
	}
}
