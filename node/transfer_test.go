package node

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"gridnode/coalloc/dataset"
	"gridnode/grid"
	"gridnode/node/content"
)

// BenchmarkTransfer measures the rate at which the files of a job come from its home, and beside
// it what a stream of libp2p between the same nodes carries, and a plain connection.
func BenchmarkTransfer(b *testing.B) {
	const size = 512 << 20
	home := benchHost(b, 1, 2, nil)
	far := benchHost(b, 2, 2, home.Addrs())
	awaitQuotes(b, far, 2)
	d := fileAt(b, home, size)
	b.Run("files", func(b *testing.B) {
		dir := b.TempDir()
		bring := func() {
			if err := far.filer.bring(b.Context(), home.ID(), d); err != nil {
				b.Fatal(err)
			}
		}
		empty := func() {
			if err := os.RemoveAll(dir); err != nil { // its memory is used again: a virtual machine pays for what it never had
				b.Fatal(err)
			}
			store, err := content.OpenStore(dir, 2*size, 0, far.filer.needed)
			if err != nil {
				b.Fatal(err)
			}
			far.filer.store = store
		}
		empty()
		bring()
		b.SetBytes(size)
		var spent time.Duration
		for b.Loop() {
			b.StopTimer()
			empty()
			before := processorTime()
			b.StartTimer()
			bring()
			spent += processorTime() - before
		}
		b.ReportMetric(float64(spent)/float64(size)/float64(b.N), "cpu-ns/B")
	})
	b.Run("memory", func(b *testing.B) {
		defer debug.SetGCPercent(debug.SetGCPercent(5)) // what is not used any more is soon not there
		most := uint64(0)
		for b.Loop() {
			store, err := content.OpenStore(b.TempDir(), 2*size, 0, far.filer.needed)
			if err != nil {
				b.Fatal(err)
			}
			far.filer.store = store
			runtime.GC()
			before, done := heap(), make(chan error, 1)
			go func() { done <- far.filer.bring(b.Context(), home.ID(), d) }()
			for over := false; !over; {
				select {
				case err := <-done:
					if over = true; err != nil {
						b.Fatal(err)
					}
				case <-time.After(time.Millisecond):
				}
				most = max(most, max(heap(), before)-before)
			}
		}
		b.ReportMetric(float64(most)/(1<<20), "MiB-both-ends")
	})
	chunk := make([]byte, 256<<10)
	pour := func(w io.Writer) {
		for sent := 0; sent < size; sent += len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	const bare = "/gridnode/bench/1.0.0"
	home.net.Handle(bare, func(_ grid.SiteID, s network.Stream) error { pour(s); return nil })
	b.Run("stream", func(b *testing.B) {
		b.SetBytes(size)
		defer perByte(b, size)()
		for b.Loop() {
			s, err := far.net.Open(b.Context(), home.ID(), bare)
			if err != nil {
				b.Fatal(err)
			}
			s.SetDeadline(time.Now().Add(time.Minute))
			swallow(b, s, size)
			s.Close()
		}
	})
	b.Run("tcp", func(b *testing.B) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		defer l.Close()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				pour(c)
				c.Close()
			}
		}()
		b.SetBytes(size)
		defer perByte(b, size)()
		for b.Loop() {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			swallow(b, c, size)
			c.Close()
		}
	})
}

// heap returns the bytes of what is allocated.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// TestFilesFromElsewhere: what a job brings along comes from a site that has it, and from its
// home if that site has given it up.
func TestFilesFromElsewhere(t *testing.T) {
	t.Parallel()
	hosts := team(t, 1, 1, 1, 1)
	home, first, second, third := hosts[0], hosts[1], hosts[2], hosts[3]
	d := fileAt(t, home, elsewhereMin+1)
	if err := first.filer.bring(t.Context(), home.ID(), d); err != nil {
		t.Fatal(err)
	}
	forget := func(h *Host) (back func()) {
		t.Helper()
		dir := filepath.Join(h.cfg.Home, contentDir)
		away := filepath.Join(t.TempDir(), "away")
		if err := os.Rename(dir, away); err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := os.Rename(away, dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	awaitHolders(t, second, dataset.TreeName(d.String()), 1)
	back := forget(home)
	if err := second.filer.bring(t.Context(), home.ID(), d); err != nil {
		t.Errorf("its home has it no more, and another site does: %v", err)
	}
	back()
	if again := fileAt(t, home, elsewhereMin+1); again != d { // what it has missed meanwhile it gives up
		t.Fatalf("the same file is %s, was %s", again, d)
	}
	awaitHolders(t, third, dataset.TreeName(d.String()), 2)
	forget(first)
	forget(second)
	if err := third.filer.bring(t.Context(), home.ID(), d); err != nil {
		t.Errorf("those who have announced it have given it up: %v", err)
	}
}

// lyingStream is one on which a byte of each piece of some size is another than was written.
type lyingStream struct{ network.Stream }

func (s lyingStream) Write(b []byte) (int, error) {
	b = slices.Clone(b)
	if len(b) > 1<<10 {
		b[len(b)/2] ^= 1
	}
	return s.Stream.Write(b)
}

// TestLiarAmongHolders: nothing of what a site lies about is kept, and the next one is asked.
func TestLiarAmongHolders(t *testing.T) {
	t.Parallel()
	hosts := team(t, 1, 1, 1)
	home, liar, far := hosts[0], hosts[1], hosts[2]
	d := fileAt(t, home, elsewhereMin+2)
	if err := liar.filer.bring(t.Context(), home.ID(), d); err != nil {
		t.Fatal(err)
	}
	var lies, truths atomic.Int64
	liar.net.Handle(contentProtocol, func(from grid.SiteID, s network.Stream) error {
		lies.Add(1)
		return liar.filer.serve(from, lyingStream{s})
	})
	home.net.Handle(contentProtocol, func(from grid.SiteID, s network.Stream) error {
		truths.Add(1)
		return home.filer.serve(from, s)
	})
	awaitHolders(t, far, dataset.TreeName(d.String()), 1)
	if err := far.filer.bring(t.Context(), home.ID(), d); err != nil {
		t.Fatal(err)
	}
	if lies.Load() == 0 || truths.Load() == 0 {
		t.Errorf("the liar was asked %d times, home %d", lies.Load(), truths.Load())
	}
	tree, err := far.filer.store.Tree(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range tree.Chunks {
		if b, err := far.filer.store.Read(c.Digest, nil); err != nil || sha256.Sum256(b) != c.Digest {
			t.Errorf("a part of %d bytes is kept otherwise: %v", c.Size, err)
		}
	}
}

// TestTornFilesAreGotAgain: what a crash has left torn of a job's files shows when they are laid
// out, and comes anew.
func TestTornFilesAreGotAgain(t *testing.T) {
	t.Parallel()
	hosts := team(t, 1, 1)
	home, far := hosts[0], hosts[1]
	d := fileAt(t, home, 3<<20)
	if err := far.filer.bring(t.Context(), home.ID(), d); err != nil {
		t.Fatal(err)
	}
	tree, err := far.filer.store.Tree(d)
	if err != nil {
		t.Fatal(err)
	}
	tear := func(h *Host, torn []content.Chunk) {
		t.Helper()
		for _, c := range torn {
			scratch(t, h, c)
		}
	}
	tear(far, tree.Chunks[len(tree.Chunks)/2:])
	job := testJob(home, 1, 0)
	job.Command = &grid.Command{Args: []string{"true"}, Files: &grid.Files{Tree: d.String(), Size: tree.Size()}}
	task := &grid.Task{ID: grid.TaskID{Job: job.ID, Epoch: 1}, Job: job}
	if err := far.filer.stage(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	dir, _, err := far.files.Staged(task, 0, far.cfg.Accounts)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "file")); err != nil || info.Size() != 3<<20 {
		t.Errorf("the file is not there: %v", err)
	}
	tear(home, tree.Chunks[:1])
	if err := home.filer.stage(t.Context(), task); err == nil || !strings.Contains(err.Error(), "submit the job again") {
		t.Errorf("where nobody else has them: %v", err)
	}
}

// TestJobsBringNoMoreThanIsKept: what has no room here is refused before it is moved.
func TestJobsBringNoMoreThanIsKept(t *testing.T) {
	for _, tt := range []struct{ cache, job, want int64 }{{64 << 20, 0, 64 << 20}, {64 << 20, 1 << 20, 1 << 20}, {0, 1 << 40, CacheDefault}} {
		h := &Host{cfg: HostConfig{Home: t.TempDir(), Files: FilesConfig{Cache: tt.cache, Job: tt.job}}}
		var err error
		if h.filer, err = newFiler(h); err != nil {
			t.Fatal(err)
		}
		if got := h.FilesMax(); got != tt.want {
			t.Errorf("a job may bring %d bytes where %d are kept, want %d", got, tt.cache, tt.want)
		}
	}
}

// TestWhatCannotBeKeptEndsATransfer: that a disk is full, or broken, is not the fault of the line.
func TestWhatCannotBeKeptEndsATransfer(t *testing.T) {
	t.Parallel()
	hosts := team(t, 1, 1)
	home, far := hosts[0], hosts[1]
	d := fileAt(t, home, 3<<20)
	text, err := home.filer.store.Get(d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := far.filer.store.Put(text); err != nil {
		t.Fatal(err)
	}
	small, err := content.OpenStore(filepath.Join(far.cfg.Home, "small"), 2<<20, 0, far.filer.needed)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		spoil func()
		is    error
	}{
		{"nowhere to write", func() {
			for _, name := range []string{"new", "packs"} {
				dir := filepath.Join(far.cfg.Home, contentDir, name)
				if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)); err != nil {
					t.Fatal(err)
				}
			}
		}, content.ErrWrite},
		{"too small", func() { far.filer.store = small }, content.ErrRoom},
	} {
		tt.spoil()
		var asked atomic.Int64
		home.net.Handle(contentProtocol, func(from grid.SiteID, s network.Stream) error {
			if asked.Add(1) > 1 && tt.is == content.ErrWrite {
				t.Errorf("%s: home is asked again", tt.name)
			}
			return home.filer.serve(from, s)
		})
		if err := far.filer.bring(t.Context(), home.ID(), d); !errors.Is(err, tt.is) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.is)
		}
	}
}

// scratch has a chunk in a host's packs be zeros.
func scratch(t *testing.T, h *Host, c content.Chunk) {
	t.Helper()
	indexes, _ := filepath.Glob(filepath.Join(h.cfg.Home, contentDir, "packs", "*.index"))
	for _, index := range indexes {
		text, err := os.ReadFile(index)
		if err != nil {
			t.Fatal(err)
		}
		at := bytes.Index(text, c.Digest[:])
		if at < 0 {
			continue
		}
		file, err := os.OpenFile(strings.TrimSuffix(index, ".index")+".pack", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.WriteAt(make([]byte, c.Size), int64(binary.BigEndian.Uint64(text[at+len(c.Digest):]))); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("chunk %s is in none of %d packs", c.Digest, len(indexes))
}

// TestOneSiteDoesNotTakeAllStreams on which files are given.
func TestOneSiteDoesNotTakeAllStreams(t *testing.T) {
	f := &filer{h: &Host{ctx: t.Context()}, served: make(map[grid.SiteID]int)}
	begin := func(from grid.SiteID) (end func() error, broken bool) {
		s := &idleStream{c: make(chan []byte)}
		done := make(chan error, 1)
		go func() { done <- f.serve(from, s) }()
		select {
		case <-done:
			return nil, true
		case s.c <- nil: // it is read from
			return func() error { close(s.c); return <-done }, false
		}
	}
	var ends []func() error
	for i := range servesEach + 1 {
		end, broken := begin("greedy")
		if broken != (i == servesEach) {
			t.Fatalf("stream %d: refused %t", i, broken)
		}
		if end != nil {
			ends = append(ends, end)
		}
	}
	end, broken := begin("other")
	if broken {
		t.Fatal("another site is refused")
	}
	for _, end := range append(ends, end) {
		if err := end(); err != nil {
			t.Error(err)
		}
	}
	if f.serving != 0 || len(f.served) != 0 {
		t.Errorf("%d streams are served, %v", f.serving, f.served)
	}
}

// idleStream is a stream on which nothing comes until its channel is closed.
type idleStream struct {
	network.Stream
	c chan []byte
}

func (s *idleStream) Read([]byte) (int, error) {
	for range s.c {
	}
	return 0, io.EOF
}

func (*idleStream) SetDeadline(time.Time) error { return nil }
func (*idleStream) Reset() error                { return nil }

// perByte reports the processor time of this process for each byte when what it returns is
// called: of both ends, and not of what else the machine does.
func perByte(b *testing.B, size int64) func() {
	before := processorTime()
	return func() {
		b.ReportMetric(float64(processorTime()-before)/float64(size)/float64(b.N), "cpu-ns/B")
	}
}

// swallow reads so many bytes.
func swallow(b *testing.B, r io.Reader, size int) {
	b.Helper()
	buffer := make([]byte, 256<<10)
	for left := size; left > 0; {
		n, err := r.Read(buffer)
		if left -= n; err != nil && left > 0 {
			b.Fatal(err)
		}
	}
}

// fileAt puts a file of random bytes into the store of a host, as the tree that is returned.
func fileAt(b testing.TB, h *Host, size int64) content.Digest {
	b.Helper()
	path := filepath.Join(b.TempDir(), "file")
	file, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.CopyN(file, rand.NewChaCha8([32]byte{1, byte(size)}), size); err != nil {
		b.Fatal(err)
	}
	file.Close()
	if err := os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)); err != nil { // the same each time
		b.Fatal(err)
	}
	all := []content.Source{{
		Entry: content.Entry{Name: "file", Kind: content.File, Mode: 0o644, Size: size, Modified: time.Unix(1, 0).UnixNano()},
		Open:  func() (*os.File, error) { return os.Open(path) },
	}}
	tree, err := content.Build(context.Background(), all)
	if err != nil {
		b.Fatal(err)
	}
	index := content.NewIndex(tree, all)
	var chunk []byte
	for _, c := range tree.Chunks {
		if chunk, err = index.Chunk(c.Digest, chunk); err != nil {
			b.Fatal(err)
		}
		if _, err := h.filer.store.Put(chunk); err != nil {
			b.Fatal(err)
		}
	}
	text, d, err := tree.Encode()
	if err != nil {
		b.Fatal(err)
	}
	if _, err := h.filer.store.Put(text); err != nil {
		b.Fatal(err)
	}
	return d
}
