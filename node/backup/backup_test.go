package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gridnode/node/site"
	"gridnode/node/store"
)

const siteID = "12D3KooWsite"

// newHome makes a home with a store, and returns a backup of it.
func newHome(t *testing.T, keys bool) []byte {
	t.Helper()
	home := t.TempDir()
	for name, text := range map[string]string{"key": "secret", "config.yaml": "site: x", "history/1.log": "a line\n", "log": "chatter"} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := store.Open(filepath.Join(home, StoreDir), store.Options{Site: siteID, Records: site.RecordsVersion, SpaceMin: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var b store.Batch
	b.Set("job/1", []byte("one"))
	if err := s.Commit(&b); err != nil {
		t.Fatal(err)
	}
	var to bytes.Buffer
	if err := Write(&to, home, s.Snapshot(), Manifest{Site: siteID, At: time.Unix(1, 0), Keys: keys}); err != nil {
		t.Fatal(err)
	}
	return to.Bytes()
}

// TestWhatIsInIt: a backup brings back records and settings, and keys if they are in it;
// what is no part of it stays away.
func TestWhatIsInIt(t *testing.T) {
	home := filepath.Join(t.TempDir(), "new", "home")
	if _, err := Restore(bytes.NewReader(newHome(t, true)), home); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"key": "secret", "config.yaml": "site: x", "history/1.log": "a line\n", "log": ""} {
		if text, _ := os.ReadFile(filepath.Join(home, name)); string(text) != want {
			t.Errorf("%s is %q, want %q", name, text, want)
		}
	}
	s, err := store.Open(filepath.Join(home, StoreDir), store.Options{Site: siteID, Records: site.RecordsVersion, SpaceMin: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if v, _, err := s.Get("job/1"); err != nil || string(v) != "one" {
		t.Errorf("the record is %q, %v", v, err)
	}
	if bytes.Contains(unpacked(t, newHome(t, false)), []byte("secret")) {
		t.Error("the key is in a backup without keys")
	}
}

// TestSettingsElsewhere: where the home of a package has a link to where the settings will lie,
// they are put there; what lies there stays.
func TestSettingsElsewhere(t *testing.T) {
	home, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "config.yaml")
	if err := os.Symlink(elsewhere, filepath.Join(home, "config.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(bytes.NewReader(newHome(t, true)), home); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(elsewhere); string(text) != "site: x" {
		t.Errorf("the settings are %q", text)
	}
	again := t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(again, "config.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(elsewhere, []byte("another's"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Restore(bytes.NewReader(newHome(t, true)), again)
	if text, _ := os.ReadFile(elsewhere); err == nil || string(text) != "another's" {
		t.Errorf("settings that were there are %q, %v", text, err)
	}
}

// TestOddBackups: what is no backup, or one of a later version, or has something else in it,
// changes nothing.
func TestOddBackups(t *testing.T) {
	good := newHome(t, true)
	manifest := fmt.Sprintf(`{"format":1,"site":%q}`, siteID)
	for name, text := range map[string][]byte{
		"text":           []byte("text"),
		"cut":            good[:len(good)/2],
		"no manifest":    packed(t, "key", "x"),
		"no records":     packed(t, manifestEntry, manifest, "key", "x"),
		"later version":  packed(t, manifestEntry, `{"format":2,"site":"x"}`, "key", "x"),
		"path":           packed(t, manifestEntry, manifest, "../key", "x"),
		"path in folder": packed(t, manifestEntry, manifest, "history/../../x", "x"),
		"other file":     packed(t, manifestEntry, manifest, "store/mirror/x", "x"),
		"twice":          packed(t, manifestEntry, manifest, "key", "x", "key", "y"),
	} {
		parent := t.TempDir()
		home := filepath.Join(parent, "home")
		if _, err := Restore(bytes.NewReader(text), home); err == nil || name != "twice" && name != "cut" && !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
			t.Errorf("%s leaves %v, %v", name, left, err)
		}
	}
}

// packed makes an archive of names and contents.
func packed(t *testing.T, entries ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := &writer{Writer: tar.NewWriter(z)}
	for i := 0; i < len(entries); i += 2 {
		if err := w.put(entries[i], bytes.NewReader([]byte(entries[i+1])), int64(len(entries[i+1]))); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func unpacked(t *testing.T, text []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(z); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
