package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gridnode/node/kept"
)

// TestKeep: what was cut elsewhere has one note: that of the lower bound.
func TestKeep(t *testing.T) {
	const bound = 1000
	text := strings.Repeat("x", 5000)
	for _, tt := range []struct {
		name, text string
		want       int64 // cut there; 0: whole
	}{
		{"short", text[:bound], 0},
		{"too long", text[:bound+1], bound},
		{"much too long", text, bound},
		{"cut lower", text[:500] + kept.Note(500), 500},
		{"cut here", text[:bound] + kept.Note(bound), bound},
		{"cut a little higher", text[:bound+10] + kept.Note(bound+10), bound},
		{"cut higher", text[:4000] + kept.Note(4000), bound},
	} {
		k := Keep{Path: filepath.Join(t.TempDir(), "log"), Bound: bound}
		for rest := tt.text; rest != ""; { // in pieces, as it comes
			n := min(len(rest), 333)
			if took, err := k.Write([]byte(rest[:n])); err != nil || took != n {
				t.Fatal(took, err)
			}
			if info, err := os.Stat(k.Path + PartSuffix); err != nil || info.Size() > kept.Most(bound) {
				t.Fatalf("%s: the disk has %v, %v", tt.name, info, err)
			}
			rest = rest[n:]
		}
		if err := Done(&k); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(k.Path)
		want := tt.text
		if tt.want == bound {
			want = text[:bound] + kept.Note(bound)
		}
		if err != nil || string(got) != want || kept.At(k.Path) != tt.want {
			t.Errorf("%s: %d bytes, %v, cut at %d; want %d bytes", tt.name, len(got), err, kept.At(k.Path), len(want))
		}
	}
}

// TestKeepDiscarded: nothing is left of what was not fetched to its end.
func TestKeepDiscarded(t *testing.T) {
	k := Keep{Path: filepath.Join(t.TempDir(), "log")}
	if _, err := k.Write([]byte("some")); err != nil {
		t.Fatal(err)
	}
	k.Discard()
	if left, err := os.ReadDir(filepath.Dir(k.Path)); err != nil || len(left) > 0 {
		t.Errorf("%v are left (%v)", left, err)
	}
}
