package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const tree = "../.." // the root, seen from this folder

// TestPatchesApply keeps the patches good: each fits the tree as it is, and gives Go.
func TestPatchesApply(t *testing.T) {
	all, err := readMutants(filepath.Join(tree, patches))
	if err != nil {
		t.Fatal(err)
	}
	titles := map[string]string{}
	for _, m := range all {
		changed, err := m.apply(tree)
		if err != nil {
			t.Errorf("%s: %v", m.Name, err)
			continue
		}
		here := false
		for file, text := range changed {
			here = here || filepath.ToSlash(filepath.Dir(file)) == m.Room
			if _, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution); err != nil {
				t.Errorf("%s: no Go is left: %v", m.Name, err)
			}
			if strings.HasSuffix(file, "_test.go") {
				t.Errorf("%s: a slip of a test is none", m.Name)
			}
		}
		if !here {
			t.Errorf("%s: the patch changes nothing in %s, the folder it lies in: its unit tests are not asked", m.Name, m.Room)
		}
		if other := titles[m.Title]; other != "" {
			t.Errorf("%s and %s are both %q", m.Name, other, m.Title)
		}
		titles[m.Title] = m.Name
	}
}

// TestEveryRoomHasBugs: a room without any would look as if its tests saw everything.
func TestEveryRoomHasBugs(t *testing.T) {
	all, err := readMutants(filepath.Join(tree, patches))
	if err != nil {
		t.Fatal(err)
	}
	rooms := map[string]int{}
	for _, m := range all {
		rooms[m.Room]++
	}
	for _, room := range []string{
		"directory", "market", "market/bank", "lease", "coalloc", "coalloc/muscle", "node/pilot", "node/site", "node/store", "node/shim", "node/content",
		"node/member",
	} {
		if rooms[room] < 5 {
			t.Errorf("%s has %d planted bugs, want 5 or more", room, rooms[room])
		}
	}
	if len(all) < 60 {
		t.Errorf("%d planted bugs in all, want 60 or more", len(all))
	}
}

// TestChoose: a bug that two words name is planted once; a word that names none is an error.
func TestChoose(t *testing.T) {
	all := []*mutant{{Name: "market/a", Room: "market"}, {Name: "market/bank/b", Room: "market/bank"}, {Name: "lease/c", Room: "lease"}}
	chosen, err := choose(all, "market,market/bank,market/a")
	if err != nil || len(chosen) != 2 || chosen[0] != all[0] || chosen[1] != all[1] {
		t.Errorf("%d chosen, %v; want the two of the market", len(chosen), err)
	}
	if _, err := choose(all, "market,nowhere"); err == nil {
		t.Error("a word that names nothing is taken")
	}
}

// TestPatchThatDoesNotFit: whoever changes the code is told what to do.
func TestPatchThatDoesNotFit(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a/a.go", "package a\n\nvar x = 2\n")
	m := &mutant{Name: "a/slip", Room: "a", Title: "x is wrong", path: "patches/a/slip.patch", change: map[string][]hunk{
		"a/a.go": {{line: 3, old: []string{"var x = 1"}, new: []string{"var x = 3"}}},
	}}
	_, err := m.apply(dir)
	if err == nil || !strings.Contains(err.Error(), "git diff a/a.go") || !strings.Contains(err.Error(), "x is wrong") {
		t.Errorf("got %v, want what to do", err)
	}
	m.change = map[string][]hunk{"b/gone.go": nil}
	if _, err = m.apply(dir); err == nil || !strings.Contains(err.Error(), "another package") {
		t.Errorf("got %v, want what to do", err)
	}
}

func TestApplyHunks(t *testing.T) {
	const diff = "--- a/f.go\n+++ b/f.go\n@@ -2,3 +2,2 @@ func f\n a\n-b\n c\n@@ -9 +8,2 @@\n-x\n+y\n+z\n"
	change, err := parseDiff(diff)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"where it was", "1 a b c 5 6 7 8 x", "1 a c 5 6 7 8 y z"},
		{"lines were added before", "0 0 1 a b c 5 6 7 8 x", "0 0 1 a c 5 6 7 8 y z"},
		{"the nearest is meant", "x a b c 5 6 7 x x", "x a c 5 6 7 x y z"},
		{"not there", "1 a q c 5 6 7 8 x", ""},
		{"only one there", "1 a b c 5", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := applyHunks(strings.ReplaceAll(tt.text, " ", "\n"), change["f.go"])
			if got = strings.ReplaceAll(got, "\n", " "); got != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
	for _, bad := range []string{
		"", "--- a/f\n+++ b/f\n", "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", "@@ -1 +1 @@\n-a\n+b\n",
		"+++ b/f\n@@ -1,2 +1 @@\n-a\n", "+++ b/f\n@@ x @@\n", "+++ b/f\n@@ -1 +1 @@\n?a\n", "+++ b/f\n@@ -1 +1 @@\n-a\n-a\n",
	} {
		if got, err := parseDiff(bad); err == nil {
			t.Errorf("%q: got %v, want an error", bad, got)
		}
	}
}

// TestGarden plants bugs in a small module and has all ways look for them.
func TestGarden(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "go.mod", "module gridnode\n\ngo 1.24\n")
	write(t, dir, "sum/sum.go", "package sum\n\nfunc Two() int {\n\treturn 2\n}\n\nfunc Three() int {\n\treturn 3\n}\n\n"+
		"func Four() int {\n\treturn 4\n}\n\nfunc Five() int {\n\treturn 5\n}\n\nfunc Six() int {\n\treturn 6\n}\n")
	want := func(function, number string) string {
		return "{\n\tif sum." + function + "() != " + number + " {\n\t\tt.Fatal(\"no\")\n\t}\n}\n"
	}
	head := "package x\n\nimport (\n\t\"gridnode/sum\"\n\t\"testing\"\n)\n\n"
	write(t, dir, "sum/sum_test.go", strings.Replace(head, "package x", "package sum_test", 1)+"func TestTwo(t *testing.T) "+want("Two", "2"))
	write(t, dir, "sum/once_test.go", "package sum_test\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestFailsOnce(t *testing.T) {\n"+
		"\tif os.Mkdir(\"once\", 0o755) == nil {\n\t\tt.Fatal(\"only now\")\n\t}\n}\n")
	write(t, dir, "node/site/site.go", "package site\n\nimport _ \"gridnode/sum\"\n")
	write(t, dir, "node/site/transcript_test.go", strings.Replace(head, "package x", "package site", 1)+"func TestTranscripts(t *testing.T) "+want("Three", "3"))
	write(t, dir, "testnet/scenario/chaos/chaos.go", "package chaos\n\nimport _ \"gridnode/sum\"\n")
	write(t, dir, "cmd/gridnode/main.go", "package main\n\nimport _ \"gridnode/sum\"\n\nfunc main() {}\n")
	write(t, dir, "test/mutants/seeds/main.go", "package main\n\nimport (\n\t\"fmt\"\n\t\"gridnode/sum\"\n\t\"os\"\n)\n\nfunc main() {\n"+
		"\tfor _, seed := range os.Args[1:] {\n\t\tif seed == \"2\" || seed == \"5\" && sum.Four() != 4 {\n"+
		"\t\t\tseed += \" J-1 violated\"\n\t\t}\n\t\tfmt.Println(seed)\n\t}\n}\n")
	write(t, dir, "test/e2e/e2e_test.go", strings.Replace(head, "package x", "package e2e", 1)+"func TestFive(t *testing.T) "+want("Five", "5"))
	for i, function := range []string{"Two", "Three", "Four", "Five", "Six"} {
		number := string(rune('2' + i))
		write(t, dir, patches+"/sum/"+strings.ToLower(function)+".patch", function+" is wrong\n--- a/sum/sum.go\n+++ b/sum/sum.go\n@@ -"+
			[]string{"4", "8", "12", "16", "20"}[i]+" +4 @@\n-\treturn "+number+"\n+\treturn 9\n")
	}
	write(t, dir, patches+"/sum/typed.patch", "the compiler sees it\n--- a/sum/sum.go\n+++ b/sum/sum.go\n@@ -4 +4 @@\n-\treturn 2\n+\treturn x\n")
	all, err := readMutants(filepath.Join(dir, patches))
	if err != nil || len(all) != 6 {
		t.Fatalf("read %d, %v", len(all), err)
	}
	g := &garden{root: dir, dir: t.TempDir(), commit: "c0ffee", seeds: 6, patience: 2 * time.Minute, clean: map[string]bool{}, rapid: map[string]bool{}}
	if g.ways, err = waysOf("unit,transcript,chaos,end-to-end"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "out/mutants.jsonl")
	found, err := openResults(file)
	if err != nil {
		t.Fatal(err)
	}
	if g.bed, err = g.layBed(t.Context(), all[:4]); err != nil || len(g.bed.numbers) != 4 {
		t.Fatalf("%+v, %v: want four bugs planted together", g.bed, err)
	}
	for _, m := range all[:5] {
		if err := g.plant(t.Context(), m, found, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.plant(t.Context(), all[5], found, false); err == nil || !strings.Contains(err.Error(), "the compiler sees it") {
		t.Errorf("a patch that does not build: %v", err)
	}
	found.close()
	// What was found is there after a restart, even if the last line is torn, and is not looked for again.
	torn, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = torn.WriteString(`{"mutant":"sum/si`)
	_ = torn.Close()
	if found, err = openResults(file); err != nil {
		t.Fatal(err)
	}
	defer found.close()
	wants := map[string]string{"sum/two": "unit", "sum/three": "transcript", "sum/four": "chaos", "sum/five": "end-to-end", "sum/six": ""}
	rows := tabulate(all[:5], found, g.ways)
	for i, r := range rows {
		var by []string
		for _, w := range g.ways {
			if r.Ways[w.name].Seen {
				by = append(by, w.name)
			}
		}
		if got := strings.Join(by, ","); got != wants[r.Name] || (r.Seen == "yes") != (got != "") {
			t.Errorf("%s: seen by %q (%s), want %q", r.Name, got, r.Seen, wants[r.Name])
		}
		for way, x := range r.Ways { // as if it had said something else, which stays
			if x.Commit != "c0ffee" {
				t.Errorf("%s: planted for %s in the commit %q", r.Name, way, x.Commit)
			}
			x.By += ", remembered"
			found.all[[3]string{x.Mutant, x.Patch, way}] = x
		}
		if err := g.plant(t.Context(), all[i], found, false); err != nil {
			t.Errorf("%s again: %v", r.Name, err)
		}
		for way := range r.Ways {
			if x, _ := found.of(all[i], way); !strings.HasSuffix(x.By, "remembered") {
				t.Errorf("%s: %s looked again", r.Name, way)
			}
		}
	}
	var page strings.Builder
	for name, show := range formats {
		page.Reset()
		if err := show(&page, rows, g); err != nil || !strings.Contains(page.String(), "sum/two") {
			t.Errorf("%s: %v\n%s", name, err, page.String())
		}
	}
	if r, ok := found.of(all[slices.IndexFunc(all, func(m *mutant) bool { return m.Name == "sum/four" })], "chaos"); !ok || r.Seeds != 5 {
		t.Errorf("chaos: got %+v, want seed 5: seed 2 is violated without the bug, too", r)
	}
	if r, _ := found.of(all[slices.IndexFunc(all, func(m *mutant) bool { return m.Name == "sum/two" })], "unit"); !strings.HasPrefix(r.By, "TestTwo") {
		t.Errorf("unit: seen by %q, want TestTwo: the other one fails once, and not because of the bug", r.By)
	}
	if err := found.forget(all[:1]); err != nil {
		t.Fatal(err)
	}
	if _, known := found.of(all[0], "unit"); known {
		t.Error("forgotten, and still known")
	}
}

func TestFailure(t *testing.T) {
	for _, tt := range []struct{ out, words, name string }{
		{"--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/b (0.00s)\nFAIL\n", "TestA/b", "TestA"},
		{"panic: test timed out after 1s\n\trunning tests:\n\t\tTestA (1s)\n", "no end", ""},
		{"panic: boom\n", "panic: boom", ""},
		{"runtime: out of memory\nfatal error: out of memory\n", "fatal error: out of memory", ""},
		{"some output\nended by a signal", "no end", ""},
		{"FAIL\tx [build failed]\n", "failed", ""},
	} {
		if words, name := failure(tt.out); words != tt.words || name != tt.name {
			t.Errorf("%q: got %q, %q, want %q, %q", tt.out, words, name, tt.words, tt.name)
		}
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
