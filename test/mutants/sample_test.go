package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// sampled is a small core, and sampledTest its tests: of all but Deaf and Loop.
const (
	sampled = `package lease

import "strings"

type Book struct{ free, most int }

func (b *Book) Fits(n int) bool { return n > 0 && b.free >= n }

func (b *Book) Take(n int) {
	if !b.Fits(n) {
		panic("does not fit" + strings.Repeat("!", n+1))
	}
	b.free -= n
	b.most = max(b.most, n)
}

func (b *Book) Name() string { return "book" + strings.Repeat("!", b.most) }

func Deaf(n int) int { return n * 2 }

func Loop(n int) (sum int) {
	for i := 0; i < n; i++ {
		sum += i
	}
	return sum
}
`
	sampledTest = `package lease

import "testing"

func TestTake(t *testing.T) {
	b := &Book{free: 3}
	if b.Take(2); b.free != 1 || b.most != 2 || b.Fits(2) || !b.Fits(1) || b.Fits(0) || b.Name() != "book!!" {
		t.Fatal(b)
	}
}

func TestLoop(t *testing.T) { Loop(3) }
`
)

// sampleGarden lays a module that has one core.
func sampleGarden(t *testing.T) *garden {
	dir := t.TempDir()
	write(t, dir, "go.mod", "module gridnode\n\ngo 1.24\n")
	write(t, dir, "lease/book.go", sampled)
	write(t, dir, "lease/book_test.go", sampledTest)
	g := &garden{root: dir, dir: t.TempDir(), seeds: 1, patience: 2 * time.Minute, clean: map[string]bool{}, rapid: map[string]bool{}}
	var err error
	if g.ways, err = waysOf("package"); err != nil {
		t.Fatal(err)
	}
	return g
}

// TestDraw: what can be changed is, what is drawn compiles, and a sample is kept by what comes to the code.
func TestDraw(t *testing.T) {
	g := sampleGarden(t)
	all, err := g.draw(t.Context(), cores, 1, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range all {
		got = append(got, strings.TrimPrefix(m.Name, "lease/book.go:")+" "+m.Title)
	}
	want := []string{
		"Book.Fits:boundary:1 book.go:7: n > 0 becomes n >= 0",
		"Book.Fits:boundary:2 book.go:7: b.free >= n becomes b.free > n",
		"Book.Fits:logic:1 book.go:7: n > 0 && b.free >= n becomes n > 0 || b.free >= n",
		"Book.Fits:negation:1 book.go:7: n > 0 becomes n <= 0",
		"Book.Fits:negation:2 book.go:7: b.free >= n becomes b.free < n",
		"Book.Name:result:1 book.go:17: return \"book\" + strings.Repeat(\"!\", b.most) becomes return \"\"",
		"Book.Take:arithmetic:1 book.go:13: b.free -= n becomes b.free += n",
		"Book.Take:bound:1 book.go:14: max(b.most, n) becomes min(b.most, n)",
		"Book.Take:condition:1 book.go:10: !b.Fits(n) becomes !(!b.Fits(n))",
		"Book.Take:removal:1 book.go:14: without b.most = max(b.most, n)",
		"Deaf:arithmetic:1 book.go:19: n * 2 becomes n / 2",
		"Deaf:result:1 book.go:19: return n * 2 becomes return 0",
		"Loop:arithmetic:1 book.go:22: i++ becomes i--",
		"Loop:arithmetic:2 book.go:23: sum += i becomes sum -= i",
		"Loop:boundary:1 book.go:22: i < n becomes i <= n",
		"Loop:negation:1 book.go:22: i < n becomes i >= n",
		"Loop:result:1 book.go:25: return sum becomes return 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	names := func(seed uint64, size int) (names []string) {
		some, err := g.draw(t.Context(), cores, seed, size)
		if err != nil || len(some) != size {
			t.Fatalf("%d of %d drawn: %v", len(some), size, err)
		}
		for _, m := range some {
			names = append(names, m.Name)
		}
		return names
	}
	five, eight := names(1, 5), names(1, 8)
	for _, name := range five {
		if !slices.Contains(eight, name) {
			t.Errorf("%s is in a sample and not in a larger one", name)
		}
	}
	if slices.Equal(five, names(2, 5)) {
		t.Error("another seed draws the same")
	}
	write(t, g.root, "lease/book.go", strings.Replace(sampled, "func Deaf", "// Deaf is not tested.\n\nfunc Deaf", 1))
	if !slices.Equal(five, names(1, 5)) {
		t.Error("lines that moved are drawn anew")
	}
}

// board is filled before the program begins, by a function that nothing calls by its name.
const (
	board = `package lease

type part interface{ enter(map[string]bool) }

var known = fill((*Book)(nil))

func fill(p part) map[string]bool {
	m := map[string]bool{}
	p.enter(m)
	return m
}

func (*Book) enter(m map[string]bool) { m["book"] = true }
`
	boardTest = `package lease

import "testing"

func TestKnown(t *testing.T) {
	if !known["book"] {
		t.Fatal("it is not known")
	}
}
`
)

// TestFoldersBesidesTheCores: a sample is drawn from folders that are no core if they are named, once each.
func TestFoldersBesidesTheCores(t *testing.T) {
	g := sampleGarden(t)
	write(t, g.root, "node/shelf/shelf.go", "package shelf\n\nfunc Full(n int) bool { return n > 3 }\n")
	folders := g.folders("lease,lease/book.go:Book.Take:bound:1,node/shelf,node/none")
	if want := append(slices.Clone(cores), "node/shelf"); !slices.Equal(folders, want) {
		t.Fatalf("drawn from %q, want %q", folders, want)
	}
	all, err := g.draw(t.Context(), folders, 1, 1000)
	if err != nil || !slices.ContainsFunc(all, func(m *mutant) bool { return m.Room == "node/shelf" }) {
		t.Errorf("%d changes (%v): want some of the folder", len(all), err)
	}
}

// TestSampleIsLookedFor: what the tests see, what they do not, what they do not execute, and what does not end;
// and what is executed before the program begins.
func TestSampleIsLookedFor(t *testing.T) {
	g := sampleGarden(t)
	write(t, g.root, "lease/board.go", board)
	write(t, g.root, "lease/board_test.go", boardTest)
	all, err := g.draw(t.Context(), cores, 1, 1000)
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := choose(all, "lease/book.go:Book.Take:bound:1,lease/book.go:Loop:arithmetic:2,lease/book.go:Deaf:arithmetic:1,lease/book.go:Loop:arithmetic:1,lease/board.go:Book.enter:removal:1")
	if err != nil {
		t.Fatal(err)
	}
	found, err := openResults(filepath.Join(g.dir, "found.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer found.close()
	if g.bed, err = g.layBed(t.Context(), chosen); err != nil || len(g.bed.numbers) != len(chosen) {
		t.Fatalf("%+v, %v: want all planted together", g.bed, err)
	}
	g.covers = map[string]*coverage{}
	c, err := g.cover(t.Context(), "lease")
	if err != nil {
		t.Fatal(err)
	}
	c.processor = -(10 - 1) * time.Second / timesMost // a second is enough here
	if err := g.plantEach(t.Context(), chosen, found, false); err != nil {
		t.Fatal(err)
	}
	want := []string{"1 s", "no", "not executed", "no end", "1 s"}
	for i, r := range tabulate(chosen, found, g.ways) {
		got := cell(r, "package")
		if r.Ways["package"].Seen {
			if got = "1 s"; r.Ways["package"].By == noEnd {
				got = noEnd
			}
		}
		if got != want[i] {
			t.Errorf("%s: got %q (%+v), want %q", r.Title, got, r.Ways, want[i])
		}
	}
}
