package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// release is a run for tests that builds from root.
func release(root string) *dist {
	return &dist{root: root, version: "1.2.3", revision: "0123456789abcdef", date: time.Unix(1_700_000_000, 0).UTC()}
}

// TestSameBytesInAnotherFolder builds the client, which is small, of two copies of its sources:
// nothing in it says where it was built. `make dist-twice` does so with everything.
func TestSameBytesInAnotherFolder(t *testing.T) {
	var built [2][]byte
	for i, name := range []string{"a", "another/and/deeper"} {
		root := filepath.Join(t.TempDir(), name)
		for _, dir := range clientFolders(t) {
			copyFiles(t, filepath.Join("../..", dir), filepath.Join(root, dir))
		}
		program := filepath.Join(root, "program")
		if err := release(root).build(program, runtime.GOARCH, "client"); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(program)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte(root)) {
			t.Errorf("the program says that it was built in %s", root)
		}
		built[i] = text
	}
	if !bytes.Equal(built[0], built[1]) {
		t.Errorf("two builds differ: %d and %d bytes", len(built[0]), len(built[1]))
	}
}

// clientFolders returns the folders that the client is built of, below the repository.
func clientFolders(t *testing.T) []string {
	t.Helper()
	said, err := release("../..").command("go", "list", "-deps", "-tags=client", "-f", "{{with .Module}}{{if .Main}}{{$.ImportPath}}{{end}}{{end}}", "./cmd/gridnode").Output()
	if err != nil {
		t.Fatal(err)
	}
	folders := []string{"."}
	for path := range strings.FieldsSeq(string(said)) {
		folders = append(folders, strings.TrimPrefix(path, "gridnode/"))
	}
	return folders
}

// copyFiles copies what of a folder a program is built of.
func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || strings.HasSuffix(name, "_test.go") || !strings.HasSuffix(name, ".go") && name != "go.mod" && name != "go.sum" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestSameStage: what packages are made of has the same names, modes, dates and bytes,
// whenever, where and with whatever umask it is laid out.
func TestSameStage(t *testing.T) {
	var staged [2]string
	for i, mask := range []int{0o022, 0o077} {
		staged[i] = stageWith(t, mask)
	}
	if staged[0] != staged[1] {
		t.Errorf("two stages differ:\n%s\n%s", staged[0], staged[1])
	}
	for _, want := range []string{"-rwxr-xr-x 1700000000 root/usr/bin/gridnode ", "-rwxr-xr-x 1700000000 root/usr/libexec/gridnode/gridnoded ", "drwxr-xr-x 1700000000 root/usr/share/man/man1 ",
		"-rw-r--r-- 1700000000 root/usr/share/doc/gridnode/html/howto/join.html "} {
		if !strings.Contains(staged[0], want) {
			t.Errorf("no %q in\n%s", want, staged[0])
		}
	}
}

// stageWith lays out the files of a package around programs that are none, and lists them.
func stageWith(t *testing.T, mask int) string {
	t.Helper()
	defer syscall.Umask(syscall.Umask(mask))
	dir := t.TempDir()
	pages, stage, binary := filepath.Join(dir, "pages"), filepath.Join(dir, "stage"), filepath.Join(dir, "gridnode")
	for _, name := range []string{binary, binary + ".cdx.json", binary + ".licences.txt", binary + "-client", pages + "/bash", pages + "/fish", pages + "/zsh", pages + "/gridnode.1", pages + "/html/howto/join.html", stage + "/x"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(filepath.Base(name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(stage + "/x"); err != nil {
		t.Fatal(err)
	}
	if err := release("../..").stage(stage, binary, binary+"-client", pages); err != nil {
		t.Fatal(err)
	}
	var list strings.Builder
	err := filepath.WalkDir(stage, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == stage {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		var text []byte
		if !e.IsDir() {
			if text, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		name, _ := filepath.Rel(stage, path)
		fmt.Fprintf(&list, "%v %d %s %x\n", info.Mode(), info.ModTime().Unix(), name, sha256.Sum256(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list.String()
}
