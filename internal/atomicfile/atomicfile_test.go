package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// is checks what a file is, and that nothing else lies beside it.
func is(t *testing.T, path, text string, mode fs.FileMode, beside ...string) {
	t.Helper()
	got, err := os.ReadFile(path)
	info, failed := os.Lstat(path)
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	if string(got) != text || info.Mode() != mode {
		t.Errorf("%s: %q, %v, want %q, %v", path, got, info.Mode(), text, mode)
	}
	list, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(list) != 1+len(beside) {
		t.Errorf("%v (%v) lie there, want %q and %q", list, err, path, beside)
	}
}

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, tt := range []struct {
		text string
		mode fs.FileMode
	}{{"one", 0o644}, {"", 0o600}, {"another\n", 0o640}} {
		if err := Write(path, []byte(tt.text), tt.mode); err != nil {
			t.Fatal(err)
		}
		is(t, path, tt.text, tt.mode)
	}
	if err := Write(filepath.Join(path, "below"), nil, 0o600); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("below a file: %v", err)
	}
}

// TestWriteReplacesLinks: who may write into the folder cannot have another file written.
func TestWriteReplacesLinks(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "file"), filepath.Join(dir, "other")
	if err := errors.Join(os.WriteFile(other, []byte("keep"), 0o600), os.Symlink(other, path), Write(path, []byte("text"), 0o644)); err != nil {
		t.Fatal(err)
	}
	is(t, path, "text", 0o644, other)
	is(t, other, "keep", 0o600, path)
}

func TestRewrite(t *testing.T) {
	home, etc := t.TempDir(), t.TempDir()
	link, path := filepath.Join(home, "config"), filepath.Join(etc, "site")
	if err := errors.Join(os.Symlink(path, link), Rewrite(link, []byte("first"))); err != nil { // leads nowhere yet
		t.Fatal(err)
	}
	is(t, path, "first", 0o600)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	root := os.Geteuid() == 0
	if root {
		if err := os.Chown(path, 1234, 2345); err != nil {
			t.Fatal(err)
		}
	}
	relative := filepath.Join(home, "again")
	if err := errors.Join(os.Symlink("config", relative), Rewrite(relative, []byte("second"))); err != nil {
		t.Fatal(err)
	}
	is(t, path, "second", 0o640)
	if target, err := os.Readlink(link); err != nil || target != path {
		t.Errorf("the link leads to %q, %v", target, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && root && (s.Uid != 1234 || s.Gid != 2345) {
		t.Errorf("it belongs to %d:%d", s.Uid, s.Gid)
	}
	ring := filepath.Join(t.TempDir(), "ring")
	if err := errors.Join(os.Symlink(ring, ring)); err != nil {
		t.Fatal(err)
	}
	if err := Rewrite(ring, nil); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a link to itself: %v", err)
	}
}

// TestFillFails: the old file stays, and nothing is left of the new one.
func TestFillFails(t *testing.T) {
	path, failure := filepath.Join(t.TempDir(), "file"), errors.New("no more")
	err := Write(path, []byte("old"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	err = Fill(path, 0o644, func(file *os.File) error { _, err := file.WriteString("ne"); return errors.Join(err, failure) })
	if !errors.Is(err, failure) {
		t.Error(err)
	}
	is(t, path, "old", 0o600)
}

// TestWritersAtOnce: one text wins, whole, and a reader always finds one.
func TestWritersAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	text := func(i int) string { return strings.Repeat(string(rune('a'+i)), 1+1000*i) }
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if err := Write(path, []byte(text(i)), 0o600); err != nil {
				t.Error(err)
			}
			got, err := os.ReadFile(path)
			if err != nil || len(got) == 0 || string(got) != text(int(got[0]-'a')) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
	all.Wait()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	is(t, path, text(int(got[0]-'a')), 0o600)
}

// TestSync: what is there is made durable, and what cannot be is said.
func TestSync(t *testing.T) {
	home := t.TempDir()
	file := filepath.Join(home, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(Sync(file, file, filepath.Join(home, "gone"), filepath.Join(home, "none", "gone")), SyncTree(home)); err != nil {
		t.Error(err)
	}
	if Sync(filepath.Join(file, "below")) == nil || SyncTree(filepath.Join(home, "gone")) == nil {
		t.Error("what cannot be flushed is not said")
	}
}

// TestPlace: files have their names in order, what was there is replaced, and those that are not
// there are left out.
func TestPlace(t *testing.T) {
	home := t.TempDir()
	one, two, none := filepath.Join(home, "one"), filepath.Join(home, "two"), filepath.Join(home, "none")
	if err := errors.Join(os.WriteFile(one+".part", []byte("1"), 0o600), os.WriteFile(two+".part", []byte("2"), 0o600), os.WriteFile(two, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := Place(".part", one, none, two); err != nil {
		t.Fatal(err)
	}
	is(t, one, "1", 0o600, two)
	is(t, two, "2", 0o600, one)
	if err := errors.Join(os.WriteFile(one+".part", nil, 0o600), os.Mkdir(none, 0o700), os.WriteFile(none+".part", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := Place(".part", none, one); err == nil {
		t.Error("a file has the name of a directory")
	}
	is(t, one, "1", 0o600, two, one+".part", none, none+".part")
}
