package node

import (
	"bufio"
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
	hosts := dataHosts(t)
	asker, liar := hosts[0], hosts[1]
	name, size, err := run.DigestOf(t.Context(), strings.NewReader("content"))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var lie []*wirepb.FetchChunk
	asked := 0
	liar.net.Handle(fetchProtocol, func(from grid.SiteID, s network.Stream) error {
		mu.Lock()
		defer mu.Unlock()
		asked++
		var request wirepb.FetchRequest
		if err := wire.ReadProto(bufio.NewReader(s), &request); err != nil {
			return err
		}
		for _, chunk := range lie {
			if err := wire.WriteProto(s, chunk); err != nil {
				return err
			}
		}
		return nil
	})
	data := func(text string) *wirepb.FetchChunk { return &wirepb.FetchChunk{Data: []byte(text)} }
	whole := &wirepb.FetchChunk{Held: true, Size: size}
	path := filepath.Join(t.TempDir(), "copy")
	for _, tt := range []struct {
		name string
		lie  []*wirepb.FetchChunk
		word string
	}{
		{"nothing", nil, "EOF"},
		{"another size", []*wirepb.FetchChunk{{Held: true, Size: size + 1}, data("content.")}, "was said to have"},
		{"no size", []*wirepb.FetchChunk{data("content")}, "was said to have"},
		{"too little", []*wirepb.FetchChunk{whole, data("conten")}, "after 6 of 7"},
		{"too much", []*wirepb.FetchChunk{whole, data("content, and more")}, "7 are to come"},
		{"empty chunks", []*wirepb.FetchChunk{whole, whole}, "chunk of 0 bytes"},
		{"other content", []*wirepb.FetchChunk{whole, data("c0ntent")}, "has the digest"},
		{"a long refusal", []*wirepb.FetchChunk{{Refused: []byte(strings.Repeat("no ", 10_000))}}, "refuses"},
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

// FuzzFetchRequest: any bytes are a request with a proper name, or none.
func FuzzFetchRequest(f *testing.F) {
	f.Add([]byte("\x03\x0a\x01x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var request wirepb.FetchRequest
		if err := wire.ReadProto(bufio.NewReader(strings.NewReader(string(b))), &request); err != nil {
			return
		}
		if err := grid.CheckDataName(request.Name); err == nil && filepath.Base(copyName(request.Name)) != copyName(request.Name) {
			t.Fatalf("%q leads to %s", request.Name, copyName(request.Name))
		}
	})
}
