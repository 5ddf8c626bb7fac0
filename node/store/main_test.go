package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// The test binary is its own child: as the checker of Options.Check and as a
// writer to be killed.
func TestMain(m *testing.M) {
	switch os.Getenv("GRIDNODE_STORE_TEST") {
	case "check":
		os.Exit(Check(os.Args[len(os.Args)-1]))
	case "write":
		writeForEver(os.Args[len(os.Args)-1])
	}
	// Badger leaves these two behind when it fails half-way through opening damaged
	// files, which the tests here make it do.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/dgraph-io/badger/v4.(*DB).monitorCache"),
		goleak.IgnoreAnyFunction("github.com/dgraph-io/ristretto/v2/z.(*AllocatorPool).freeupAllocators"))
}

var checkCommand = []string{"/usr/bin/env", "GRIDNODE_STORE_TEST=check", os.Args[0]}

const testSite = "12D3KooWsite"

// testOptions are those of every store that a test opens and expects to be sound.
func testOptions(t testing.TB) Options {
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	return Options{Site: testSite, Federation: "test", SpaceMin: -1, Log: func(format string, args ...any) {
		select {
		case <-ended: // a goroutine that Badger left behind
		default:
			t.Logf(format, args...)
		}
	}}
}

func checkedOptions(t testing.TB) Options {
	o := testOptions(t)
	o.Check = checkCommand
	return o
}

func openTest(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir, testOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeTest(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// commit stores value under each key; a nil value deletes.
func commit(t testing.TB, s *Store, changes ...string) {
	t.Helper()
	var b Batch
	for i := 0; i < len(changes); i += 2 {
		if changes[i+1] == "" {
			b.Delete(changes[i])
		} else {
			b.Set(changes[i], []byte(changes[i+1]))
		}
	}
	if err := s.Commit(&b); err != nil {
		t.Fatal(err)
	}
}

// content returns everything under prefix, in order.
func content(t testing.TB, s *Store, prefix string) (keys []string, all map[string]string) {
	t.Helper()
	all = make(map[string]string)
	records, failed := s.All(prefix)
	for key, value := range records {
		keys = append(keys, key)
		all[key] = string(value)
	}
	if err := failed(); err != nil {
		t.Fatal(err)
	}
	return keys, all
}

func expect(t testing.TB, s *Store, want map[string]string) {
	t.Helper()
	_, got := content(t, s, "")
	for key, value := range want {
		if got[key] != value {
			t.Errorf("record %q is %.40q, want %.40q", key, got[key], value)
		}
	}
	for key := range got {
		if _, known := want[key]; !known {
			t.Errorf("record %q is back", key)
		}
	}
}

// memoryDir is a directory in memory where there is one, for tests that open a
// store a hundred times and are not about the disk.
func memoryDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "gridnode-store-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// crash copies an open store's directory: what a killed process leaves behind. A
// kill is one instant, a copy is not: if Badger wrote a table meanwhile, the copy of
// its manifest may name files that the walk had passed already, so it begins again.
func crash(t testing.TB, dir string) string {
	t.Helper()
	for {
		to := filepath.Join(memoryDir(t), "store")
		before := files(t, dir)
		copyFiles(t, dir, to)
		if maps.Equal(before, files(t, dir)) {
			return to
		}
	}
}

// files returns the size and time of last change of every file under dir.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return ignoreMissing(err)
		}
		info, err := d.Info()
		if err == nil {
			found[path] = fmt.Sprint(info.Size(), info.ModTime().UnixNano())
		}
		return ignoreMissing(err)
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// copyFiles copies the directory dir to a new one, to.
func copyFiles(t testing.TB, dir, to string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return ignoreMissing(err)
		}
		target := filepath.Join(to, strings.TrimPrefix(path, dir))
		if d.IsDir() {
			return os.Mkdir(target, 0o700)
		}
		from, err := os.Open(path)
		if err != nil {
			return ignoreMissing(err)
		}
		defer from.Close()
		copy, err := os.Create(target)
		if err != nil {
			return err
		}
		_, err = io.Copy(copy, from)
		return errors.Join(err, copy.Close())
	})
	if err != nil {
		t.Fatal(err)
	}
}

// ignoreMissing returns err unless it says that a file is not there any more:
// Badger has just removed it.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// writeForEver commits one batch after the other and says so, until it is killed.
// Batch n holds records of n and deletes those of n-3.
func writeForEver(dir string) {
	s, err := Open(dir, Options{Site: testSite, Federation: "test", SpaceMin: -1})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var b Batch
	for n := 1; ; n++ {
		b.Reset()
		for i := range 3 {
			b.Set(fmt.Sprintf("job/%d/%d", n, i), []byte(strconv.Itoa(n)))
			b.Delete(fmt.Sprintf("job/%d/%d", n-3, i))
		}
		b.Set("last", []byte(strconv.Itoa(n)))
		if err := s.Commit(&b); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(n)
	}
}
