package kept

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name, text string
		at         int64
	}{
		{"empty", "", 0},
		{"short", "some lines\n", 0},
		{"a note where it would not be true", "some lines" + Note(11), 0},
		{"a note and more", "some lines" + Note(10) + "x", 0},
		{"cut", "some lines" + Note(10), 10},
		{"only a note", Note(0), 0},
	} {
		write(tt.text)
		if got := At(path); got != tt.at {
			t.Errorf("%s: cut at %d, want %d", tt.name, got, tt.at)
		}
	}
	for _, tt := range []struct{ name, text string }{
		{"longer", strings.Repeat("x", 20)},
		{"longer than the note", strings.Repeat("x", 2000)},
		{"cut before", strings.Repeat("x", 10) + Note(10)},
		{"cut before, and gone on", strings.Repeat("x", 10) + Note(10) + "more"},
		{"cut higher", strings.Repeat("x", 30) + Note(30)},
	} {
		write(tt.text)
		if err := Cut(path, 10); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if want := strings.Repeat("x", 10) + Note(10); err != nil || string(text) != want || At(path) != 10 {
			t.Errorf("%s: %q, %v, cut at %d; want %q", tt.name, text, err, At(path), want)
		}
		if int64(len(text)) > Most(10) {
			t.Errorf("%s: %d bytes, want %d at most", tt.name, len(text), Most(10))
		}
	}
	if int64(len(Note(Highest))) > noteMax {
		t.Errorf("a note of %d bytes", len(Note(Highest)))
	}
	// What a job has put in its log's place stays whole.
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("what is mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(path), os.Symlink(other, path)); err != nil {
		t.Fatal(err)
	}
	if err := Cut(path, 4); err == nil {
		t.Error("a link was followed")
	}
	if text, _ := os.ReadFile(other); string(text) != "what is mine" {
		t.Errorf("%q behind a link", text)
	}
	if err := Cut(filepath.Dir(path), 4); err == nil {
		t.Error("a directory was cut")
	}
}
