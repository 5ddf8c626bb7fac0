package node

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/libp2p/go-libp2p/core/network"

	"gridnode/coalloc/dataset"
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
	"gridnode/node/content"
	"gridnode/node/run"
)

// dataHosts are three hosts that run nothing; the first copies up to 1000 bytes.
func dataHosts(t *testing.T) []*Host {
	hosts := team(t, 1, 1, 1)
	hosts[0].bring.most = 1000
	return hosts
}

// TestLyingHolders: whatever a holder sends, there is a whole copy or none.
func TestLyingHolders(t *testing.T) {
	t.Parallel()
	hosts := dataHosts(t)
	asker, liar := hosts[0], hosts[1]
	name, size, err := run.DigestOf(t.Context(), strings.NewReader("content"))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var lie []byte // what it answers
	asked := 0
	liar.net.Handle(dataProtocol, func(_ grid.SiteID, s network.Stream) error {
		mu.Lock()
		defer mu.Unlock()
		asked++
		var request wirepb.ContentRequest
		if err := wire.ReadProto(bufio.NewReader(s), &request); err != nil {
			return err
		}
		_, err := s.Write(lie)
		return err
	})
	things := func(list ...[]byte) (b []byte) {
		for _, one := range list {
			b = append(binary.AppendUvarint(b, uint64(len(one))), one...)
		}
		return b
	}
	tree := func(size int64, why string, names ...string) []byte {
		l := &content.Tree{Why: why}
		for _, name := range names {
			l.Entries = append(l.Entries, content.Entry{Name: name, Kind: content.File, Size: size})
			l.Chunks = append(l.Chunks, content.Chunk{Digest: sha256.Sum256([]byte("content")), Size: size})
		}
		text, _, err := l.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	good := tree(size, "", dataFile)
	path := filepath.Join(t.TempDir(), "copy")
	for _, tt := range []struct {
		name string
		lie  []byte
		word string
	}{
		{"nothing", nil, "EOF"},
		{"absent", things(nil), "not here"},
		{"no tree", things([]byte("content")), "tree"},
		{"another size", things(tree(size+1, "", dataFile)), "was said to be"},
		{"no file", things(tree(size, "")), "not here"},
		{"two files", things(tree(size, "", "a", "b")), "was said to be"},
		{"a file outside", things(tree(size, "", "../a")), "has a part"},
		{"too little", things(good, []byte("conten")), "another digest"},
		{"too much", things(good, []byte("content, and more")), "at most 7"},
		{"no chunk", things(good, nil), "does not have 1 of 1"},
		{"half a chunk", things(good, []byte("content"))[:len(good)+5], "broke"},
		{"other content", things(good, []byte("c0ntent")), "another digest"},
		{"a refusal", things(tree(0, strings.Repeat("no ", 100))), "refuses"},
		{"a long refusal", things(tree(0, strings.Repeat("no ", 10_000))), "tree"},
	} {
		mu.Lock()
		lie = tt.lie
		mu.Unlock()
		err := asker.bring.fetch(t.Context(), liar.ID(), name, size, path)
		if err == nil || !strings.Contains(err.Error(), tt.word) || len(err.Error()) > 1000 {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.word)
		}
		if left, _ := filepath.Glob(path + "*"); len(left) != 0 {
			t.Errorf("%s: %v is left", tt.name, left)
		}
	}
	addData(t, liar, name, "content", true) // it is asked, and answers as above
	addData(t, hosts[2], name, "content", true)
	awaitHolders(t, asker, name, 2)
	asked = 0
	paths, err := asker.bring.inputs(t.Context(), []grid.DataSet{{Name: name, Size: grid.SizeUnknown}}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(paths[0]); string(text) != "content" {
		t.Errorf("copied is %q, %v", text, err)
	}
}

// TestFetchRefusals: sets that are not shared, have changed or are not held are not given
// away, and what is larger than this site copies is not copied. Where a file is nobody
// learns.
func TestFetchRefusals(t *testing.T) {
	t.Parallel()
	hosts := dataHosts(t)
	asker, holder := hosts[0], hosts[1]
	addData(t, holder, "closed", "text", false)
	changed := addData(t, holder, "changed", "text", true)
	addData(t, holder, "large", strings.Repeat("x", 1001), true)
	addData(t, holder, "one", strings.Repeat("x", 600), true)
	addData(t, holder, "two", strings.Repeat("y", 600), true)
	addData(t, holder, "empty", "", true)
	write(t, changed, "texts")
	for name, word := range map[string]string{"closed": "not shared", "changed": "not there any more", "none": "not held"} {
		path := filepath.Join(t.TempDir(), "copy")
		err := asker.bring.fetch(t.Context(), holder.ID(), name, 4, path)
		if err == nil || !strings.Contains(err.Error(), word) || strings.Contains(err.Error(), filepath.Dir(changed)) {
			t.Errorf("%s: %v, want %q", name, err, word)
		}
	}
	for _, text := range []string{"", "-", strings.Repeat("x", 300)} {
		before := holder.net.Counter().Malformed
		if err := asker.bring.fetch(t.Context(), holder.ID(), text, 4, filepath.Join(t.TempDir(), "copy")); err == nil {
			t.Errorf("%q is given", text)
		}
		until(t, "it is counted as malformed", func() bool { return holder.net.Counter().Malformed > before })
	}
	for _, tt := range []struct {
		names []string
		word  string
	}{
		{[]string{"large"}, "at most 1000"}, {[]string{"one", "two"}, "at most 1000"}, {[]string{"one", "closed"}, "lets others copy"},
	} {
		var sets []grid.DataSet
		for _, name := range tt.names {
			awaitHolders(t, asker, name, 1)
			sets = append(sets, grid.DataSet{Name: name, Size: grid.SizeUnknown})
		}
		if _, err := asker.bring.inputs(t.Context(), sets, t.TempDir()); err == nil || !strings.Contains(err.Error(), tt.word) {
			t.Errorf("%v: %v, want %q", tt.names, err, tt.word)
		}
	}
	awaitHolders(t, asker, "empty", 1)
	if paths, err := asker.bring.inputs(t.Context(), []grid.DataSet{{Name: "empty", Size: 0}}, t.TempDir()); err != nil || len(paths) != 1 {
		t.Errorf("an empty file: %v, %v", paths, err)
	}
	dir := t.TempDir()
	var wg sync.WaitGroup // many tasks that want the same copy at the same time
	for range 8 {
		wg.Go(func() {
			if paths, err := asker.bring.inputs(t.Context(), []grid.DataSet{{Name: "one", Size: 600}}, dir); err != nil || len(paths) != 1 {
				t.Errorf("%v, %v", paths, err)
			}
		})
	}
	wg.Wait()
	if files, _ := os.ReadDir(dir); len(files) != 1 || !strings.HasSuffix(files[0].Name(), "-one") {
		t.Errorf("files %v, want one copy", files)
	}
}

// TestDataSetsLargerThanTheCache are copied where they are wanted, and the cache stays as it is.
func TestDataSetsLargerThanTheCache(t *testing.T) {
	t.Parallel()
	hosts := dataHosts(t)
	asker, holder := hosts[0], hosts[1]
	f := asker.filer
	var err error
	if f.store, err = content.OpenStore(t.TempDir(), 1<<20, 0, f.needed); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 3<<20)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(text)
	text = append(text, text...) // each chunk at two places, or nearly
	asker.bring.most = 1 << 30
	name, size, err := run.DigestOf(t.Context(), bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	addData(t, holder, name, string(text), true)
	awaitHolders(t, asker, name, 1)
	dir := t.TempDir()
	paths, err := asker.bring.inputs(t.Context(), []grid.DataSet{{Name: name, Size: size}}, dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(paths[0]); !bytes.Equal(got, text) {
		t.Errorf("copied are %d bytes, %v", len(got), err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 || f.store.Bytes() > 1<<20 {
		t.Errorf("there are %v, and %d bytes are kept", files, f.store.Bytes())
	}

	// What an attempt has left is used by the next: nobody is asked for it.
	source := content.Source{
		Entry: content.Entry{Name: dataFile, Kind: content.File, Size: size},
		Open:  func() (*os.File, error) { return os.Open(paths[0]) },
	}
	info, err := os.Stat(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	source.Modified = info.ModTime().UnixNano()
	tree, err := content.Build(t.Context(), []content.Source{source})
	if err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(dir, "again")
	write(t, again+run.PartSuffix, string(text)+"of one that was longer")
	if err := f.pour(nil, tree, name, again); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(again); !bytes.Equal(got, text) {
		t.Errorf("of what was there %d bytes are left, %v", len(got), err)
	}
	write(t, again+run.PartSuffix, string(text))
	if err := f.pour(nil, tree, grid.DigestPrefix+strings.Repeat("0", 64), again); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("of another digest: %v", err)
	}
}

// TestMeasure: what a path is as a data set.
func TestMeasure(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	write(t, file, "text")
	write(t, filepath.Join(dir, "other"), "more")
	digest, _, err := run.DigestOf(t.Context(), strings.NewReader("text"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, path string
		want       dataset.Set // without path and time
		word       string
	}{
		{"x", file, dataset.Set{DataSet: grid.DataSet{Name: "x", Size: 4}}, ""},
		{"", file, dataset.Set{DataSet: grid.DataSet{Name: digest, Size: 4}}, ""},
		{digest, file, dataset.Set{DataSet: grid.DataSet{Name: digest, Size: 4}}, ""},
		{"x", dir, dataset.Set{DataSet: grid.DataSet{Name: "x", Size: 8}, Folder: true}, ""},
		{"", dir, dataset.Set{}, "give a name"},
		{grid.DigestPrefix + strings.Repeat("0", 64), file, dataset.Set{}, "has the digest " + digest},
		{"x", filepath.Join(dir, "none"), dataset.Set{}, "no such file"},
		{"x", "/dev/null", dataset.Set{}, "neither a file nor a directory"},
	} {
		got, err := run.Measure(t.Context(), tt.name, tt.path)
		if tt.word != "" {
			if err == nil || !strings.Contains(err.Error(), tt.word) {
				t.Errorf("%q, %s: %v, want %q", tt.name, tt.path, err, tt.word)
			}
			continue
		}
		if err != nil || got.Path != tt.path || intact(&got) != nil || (got.Modified != 0) == got.Folder {
			t.Errorf("%q, %s: %+v, %v", tt.name, tt.path, got, err)
		}
		got.Path, got.Modified = "", 0
		if got != tt.want {
			t.Errorf("%q, %s: %+v, want %+v", tt.name, tt.path, got, tt.want)
		}
	}
}

// TestCopyNames: no two data sets have copies of one name, and none leads elsewhere.
func TestCopyNames(t *testing.T) {
	var seen []string
	for _, name := range []string{"a", "b/a", "b:a", "a/", "x/..", "a..", "sha256:" + strings.Repeat("0", 64)} {
		got := copyName(name)
		if slices.Contains(seen, got) || filepath.Base(got) != got || strings.HasSuffix(got, run.PartSuffix) {
			t.Errorf("%s: %s", name, got)
		}
		seen = append(seen, got)
	}
}
