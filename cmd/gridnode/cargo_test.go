package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gridnode/node/api"
	"gridnode/node/content"
)

// handedTo is a daemon that takes files of jobs.
type handedTo struct {
	mu    sync.Mutex
	has   map[string]bool
	bytes int
	tree  *content.Tree
	full  bool
}

func (d *handedTo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b, _ := io.ReadAll(r.Body)
	switch r.URL.Path {
	case "/v1/content/missing":
		var list api.ContentReply
		var missing api.ContentReply
		_ = json.Unmarshal(b, &list)
		for _, c := range list.Chunks {
			if !d.has[c] {
				missing.Chunks = append(missing.Chunks, c)
			}
		}
		_ = json.NewEncoder(w).Encode(missing)
	case "/v1/content":
		if d.full {
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"code":"limit","message":"no room"}`)
			return
		}
		d.bytes += len(b)
		digest := digestOf(b)
		d.has[digest] = true
		_ = json.NewEncoder(w).Encode(api.ContentReply{Chunks: []string{digest}})
	case "/v1/trees":
		d.tree, _ = content.DecodeTree(b)
		_ = json.NewEncoder(w).Encode(api.JobFiles{Tree: digestOf(b)})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func digestOf(b []byte) string { return content.Digest(sha256.Sum256(b)).String() }

// TestWhatAJobBringsIsReadOnce: files are handed over as they are read, but what the daemon has.
func TestWhatAJobBringsIsReadOnce(t *testing.T) {
	daemon := &handedTo{has: make(map[string]bool)}
	server := httptest.NewServer(daemon)
	defer server.Close()
	client := api.NewRemoteClient(server.URL, "token")
	dir := t.TempDir()
	random := rand.NewChaCha8([32]byte{1})
	const size = 5<<20 + 17
	for _, name := range []string{"one", "two"} {
		b := make([]byte, size)
		if name == "one" {
			random.Read(b)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pack := func() (*luggage, map[string]int) {
		t.Helper()
		opened := make(map[string]int)
		var l luggage
		l.in = []string{dir + "/one=one", dir + "/two=two"}
		if err := l.pack(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		for i := range l.sources {
			open, name := l.sources[i].Open, l.sources[i].Name
			l.sources[i].Open = func() (*os.File, error) { opened[name]++; return open() }
		}
		return &l, opened
	}
	l, opened := pack()
	name, err := l.tree(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	if opened["one"] != 1 || opened["two"] != 1 {
		t.Errorf("files were opened %v times", opened)
	}
	if daemon.tree == nil || daemon.tree.Size() != 2*size || name == "" {
		t.Fatalf("tree %q, %+v", name, daemon.tree)
	}
	for _, c := range daemon.tree.Chunks {
		if !daemon.has[c.Digest.String()] {
			t.Errorf("chunk %s was not handed over", c.Digest)
		}
	}
	if daemon.bytes >= size+size/2 { // the zeros are few chunks
		t.Errorf("%d bytes were handed over", daemon.bytes)
	}
	before := daemon.bytes
	l, _ = pack()
	if again, err := l.tree(t.Context(), client); err != nil || again != name || daemon.bytes != before {
		t.Errorf("again: %q, want %q; %d bytes more; %v", again, name, daemon.bytes-before, err)
	}
	daemon.full, daemon.has = true, make(map[string]bool)
	l, _ = pack()
	if _, err := l.tree(t.Context(), client); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("a daemon that is full: %v", err)
	}
}
