package rotated

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// number reads lines of these tests: a number, a blank and whatever.
func number(line []byte) uint64 {
	digits, _, _ := strings.Cut(string(line), " ")
	n, _ := strconv.ParseUint(digits, 10, 64)
	if want := some(n, n); string(want[0]) != string(line) {
		return 0
	}
	return n
}

func options(size int64, files int) Options { return Options{Size: size, Files: files, Number: number} }

// some returns lines from first to last.
func some(first, last uint64) (lines [][]byte) {
	for n := first; n <= last; n++ {
		lines = append(lines, fmt.Appendf(nil, "%d %s", n, strings.Repeat("x", int(n%40))))
	}
	return lines
}

func mustOpen(t *testing.T, dir string, o Options) *Log {
	t.Helper()
	g, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// numbers reads what is there, and wants whole lines only.
func numbers(t *testing.T, dir string) (all []uint64) {
	t.Helper()
	if err := Read(dir, func(line []byte) bool {
		if number(line) == 0 {
			t.Errorf("read %q", line)
		}
		all = append(all, number(line))
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// span returns the numbers from first to last.
func span(first, last uint64) (all []uint64) {
	for n := first; n <= last; n++ {
		all = append(all, n)
	}
	return all
}

func TestRotation(t *testing.T) {
	dir := t.TempDir()
	g := mustOpen(t, dir, options(1000, 3))
	for n := uint64(1); n <= 500; n += 7 {
		if err := g.Append(some(n, min(n+6, 500))); err != nil {
			t.Fatal(err)
		}
	}
	firsts, err := files(dir)
	if err != nil || len(firsts) != 3 {
		t.Fatalf("files %v, %v", firsts, err)
	}
	for _, first := range firsts[:2] {
		if info, err := os.Stat(filepath.Join(dir, name(first))); err != nil || info.Size() < 1000 || info.Size() > 1100 {
			t.Errorf("%v, %v", info, err)
		}
	}
	if got := numbers(t, dir); !slices.Equal(got, span(firsts[0], 500)) {
		t.Errorf("%d lines from %d on, want 500 to be the last: %v", len(got), firsts[0], got)
	}
	if g := mustOpen(t, dir, options(1000, 3)); g.Last() != 500 {
		t.Errorf("last %d", g.Last())
	}
}

// A newest file without a line says by its name which was the last.
func TestEmptyNewestFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name(42)), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	g := mustOpen(t, dir, options(1000, 3))
	if g.Last() != 41 {
		t.Errorf("last %d", g.Last())
	}
	if err := g.Append(some(30, 45)); err != nil || !slices.Equal(numbers(t, dir), span(42, 45)) {
		t.Errorf("%v %v", err, numbers(t, dir))
	}
}

// However the last write was cut off, and whatever a crash of the machine left behind it:
// the same lines, given again, are there once.
func TestCutTails(t *testing.T) {
	whole := []byte(nil)
	for _, line := range some(1, 12) {
		whole = append(append(whole, line...), '\n')
	}
	for _, cut := range append(span(0, 6), span(uint64(len(whole))-30, uint64(len(whole)))...) {
		for _, more := range []string{"", "\x00\x00\x00\x00", "no line\n", "\n\n"} {
			dir := t.TempDir()
			path := filepath.Join(dir, name(1))
			if err := os.WriteFile(path, append(slices.Clone(whole[:cut]), more...), 0o600); err != nil {
				t.Fatal(err)
			}
			g, err := Open(dir, options(1<<20, 2))
			if err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(path); err != nil || info.Size() != g.size {
				t.Fatalf("cut at %d, then %q: %d bytes are left, %d of them lines; %v", cut, more, info.Size(), g.size, err)
			}
			if err := g.Append(some(1, 14)); err != nil {
				t.Fatal(err)
			}
			g.Close()
			if got := numbers(t, dir); !slices.Equal(got, span(1, 14)) {
				t.Fatalf("cut at %d, then %q: %v", cut, more, got)
			}
		}
	}
}

var errKilled = errors.New("killed")

// Killed at every step of writing and rotating, with half of a write on the disk: who gives
// again what was not acknowledged has every line once, in order.
func TestKilledAtEveryStep(t *testing.T) {
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 1))
		dir := t.TempDir()
		acknowledged := uint64(0)
		for acknowledged < 200 {
			g, err := Open(dir, options(500, 4))
			if err != nil {
				t.Fatal(err)
			}
			if g.Last() < acknowledged {
				t.Fatalf("seed %d: %d acknowledged, %d there", seed, acknowledged, g.Last())
			}
			left := rng.IntN(12)
			g.step = func() error {
				if left--; left < 0 {
					return errKilled
				}
				return nil
			}
			for acknowledged < 200 {
				last := min(acknowledged+1+rng.Uint64N(20), 200)
				if err := g.Append(some(acknowledged+1, last)); err != nil {
					break
				}
				acknowledged = last
			}
			g.Close() // as the kernel does
		}
		got := numbers(t, dir)
		if firsts, _ := files(dir); len(firsts) > 4 || !slices.Equal(got, span(firsts[0], 200)) {
			t.Fatalf("seed %d: files %v, lines %v", seed, firsts, got)
		}
	}
}

// A full disk refuses half of a write. The log goes on when there is room, without having
// been opened again, and has every line once.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	g := mustOpen(t, dir, options(500, 100))
	full := false
	g.step = func() error {
		if full {
			return errors.New("no space left on device")
		}
		return nil
	}
	for n := uint64(1); n <= 90; n += 3 {
		full = n%2 == 0
		err := g.Append(some(n, n+2))
		if (err != nil) != full {
			t.Fatalf("full %v, error %v", full, err)
		}
		full = false
		if err := g.Append(some(n, n+2)); err != nil {
			t.Fatal(err)
		}
	}
	if got := numbers(t, dir); !slices.Equal(got, span(1, 90)) {
		t.Errorf("%v", got)
	}
}

// Files that somebody removed do not make numbers begin anew, and nothing is written to them.
func TestRemovedFiles(t *testing.T) {
	dir := t.TempDir()
	g := mustOpen(t, dir, options(1<<20, 2))
	if err := g.Append(some(1, 9)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, name(1))); err != nil {
		t.Fatal(err)
	}
	if err := g.Append(some(8, 11)); err != nil || !slices.Equal(numbers(t, dir), span(10, 11)) {
		t.Errorf("%v, %v", err, numbers(t, dir))
	}
}

// Fewer files are kept from the next start on.
func TestFewerFiles(t *testing.T) {
	dir := t.TempDir()
	if err := mustOpen(t, dir, options(100, 9)).Append(some(1, 60)); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, dir, options(100, 2))
	if firsts, err := files(dir); err != nil || len(firsts) != 2 {
		t.Errorf("%v, %v", firsts, err)
	}
}

func TestWhatIsNoLine(t *testing.T) {
	g := mustOpen(t, t.TempDir(), options(1<<20, 2))
	for _, line := range []string{"", "x", "1 a\n2 b", "1 " + strings.Repeat("x", lineMax)} {
		if err := g.Append([][]byte{[]byte(line)}); err == nil {
			t.Errorf("took %.20q", line)
		}
	}
}

// A listing ends when it is told to, and a folder that is not there has no lines.
func TestReadEnds(t *testing.T) {
	if err := Read(filepath.Join(t.TempDir(), "none"), func([]byte) bool { return true }); err != nil {
		t.Error(err)
	}
	dir := t.TempDir()
	if err := mustOpen(t, dir, options(100, 9)).Append(some(1, 40)); err != nil {
		t.Fatal(err)
	}
	seen := 0
	if err := Read(dir, func([]byte) bool { seen++; return seen < 30 }); err != nil || seen != 30 {
		t.Errorf("%d, %v", seen, err)
	}
}

// TestHalfALineIsNotRead: what is being written, or was cut short, is no line yet.
func TestHalfALineIsNotRead(t *testing.T) {
	dir := t.TempDir()
	if err := mustOpen(t, dir, options(1000, 9)).Append(some(1, 3)); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(dir, name(1)), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(some(4, 4)[0]); err != nil { // without its end
		t.Fatal(err)
	}
	if got := numbers(t, dir); !slices.Equal(got, span(1, 3)) {
		t.Errorf("read %v, want what is whole", got)
	}
}

// TestAfterAnErrorTheFileIsRead: nothing is written behind what may be half a line.
func TestAfterAnErrorTheFileIsRead(t *testing.T) {
	dir := t.TempDir()
	g := mustOpen(t, dir, options(1000, 9))
	for _, n := range []uint64{1, 4} {
		g.step = func() error { return nil }
		if err := g.Append(some(n, n)); err != nil {
			t.Fatal(err)
		}
		steps := 0
		g.step = func() error { // all is written, and not synced
			if steps++; steps == 2 {
				return errors.New("the disk")
			}
			return nil
		}
		if err := g.Append(some(n+1, n+2)); err == nil || g.file != nil {
			t.Errorf("after an error (%v) the log goes on with the file as it was", err)
		}
	}
}

// TestLinesAreSynced: lines that were written, and may not be on disk, are none.
func TestLinesAreSynced(t *testing.T) {
	g := mustOpen(t, t.TempDir(), options(1000, 9))
	if err := g.Append(some(1, 1)); err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0) // takes every byte and cannot be synced
	if err != nil {
		t.Fatal(err)
	}
	g.close()
	g.file = null
	if err := g.Append(some(2, 2)); err == nil || g.Last() != 1 {
		t.Errorf("up to %d, %v: lines count that were not synced", g.Last(), err)
	}
}
