package content

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"gridnode/grid"
	"gridnode/internal/wire"
)

// giving is a Giver with a store and a lie for one chunk.
type giving struct {
	*Store
	lie map[Digest][]byte
}

func (g *giving) Read(d Digest, buf []byte) ([]byte, error) {
	if b, ok := g.lie[d]; ok {
		return b, nil
	}
	return g.Store.Read(d, buf)
}

func (g *giving) Results([]byte, uint32, *grid.Files) ([]byte, error) { return nil, ErrAbsent }
func (g *giving) DataSet(string) ([]byte, error)                      { return nil, ErrAbsent }

// cut is a connection that breaks after so many bytes have come.
type cut struct {
	net.Conn
	left int
}

func (c *cut) Read(b []byte) (int, error) {
	if c.left <= 0 {
		c.Conn.Close()
		return 0, io.ErrUnexpectedEOF
	}
	n, err := c.Conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}

// dial returns the end of a connection at whose other end from is served.
func dial(t *testing.T, from Giver, bytes int) *Peer {
	a, b := net.Pipe()
	go func() {
		_ = Serve(a, from)
		a.Close()
	}()
	t.Cleanup(func() { b.Close() })
	return NewPeer(&cut{b, bytes})
}

// TestTransferGoesOnWhereItWasCut: at every tenth of its length.
func TestTransferGoesOnWhereItWasCut(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "x", noise(20, 8<<20))
	tree, index := built(t, dir, &Wanted{Strict: true, Limits: all})
	from, to := newStore(t, 1<<30), newStore(t, 1<<30)
	for _, c := range tree.Chunks {
		b, _ := index.Chunk(c.Digest, nil)
		if _, err := from.Put(b); err != nil {
			t.Fatal(err)
		}
	}
	var came atomic.Int64
	take := func(_ Digest, b []byte) error {
		came.Add(int64(len(b)))
		_, err := to.Put(b)
		return err
	}
	tenth := int(tree.Size()) / 10
	for range 9 {
		missing, _ := to.Missing(tree.Chunks)
		if _, err := dial(t, &giving{Store: from}, tenth).Chunks(missing, take); err == nil {
			t.Fatal("the connection did not break")
		}
	}
	missing, _ := to.Missing(tree.Chunks)
	if absent, err := dial(t, &giving{Store: from}, 1<<30).Chunks(missing, take); err != nil || absent != 0 {
		t.Fatalf("%d absent, %v", absent, err)
	}
	if came.Load() != tree.Size() {
		t.Errorf("%d bytes were kept of %d: some came twice", came.Load(), tree.Size())
	}
	for _, c := range tree.Chunks {
		if _, err := to.Get(c.Digest); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSeveralRequests: what takes more than one comes as a whole, and what cannot be kept ends it.
func TestSeveralRequests(t *testing.T) {
	from, to := newStore(t, 1<<30), newStore(t, 1<<30)
	var chunks []Chunk
	for i := range 3*batch + 7 {
		d, err := from.Put(noise(uint64(100+i), 100+i))
		if err != nil {
			t.Fatal(err)
		}
		chunks = append(chunks, Chunk{d, int64(100 + i)})
	}
	gone := chunks[batch]
	from.remove(from.path(gone.Digest), gone.Size)
	absent, err := dial(t, &giving{Store: from}, 1<<30).Chunks(chunks, func(_ Digest, b []byte) error { _, err := to.Put(b); return err })
	if missing, _ := to.Missing(chunks); err != nil || absent != 1 || len(missing) != 1 || missing[0] != gone {
		t.Errorf("%d absent, %v; missing are %v", absent, err, missing)
	}
	full := errors.New("full")
	var n atomic.Int64
	_, err = dial(t, &giving{Store: from}, 1<<30).Chunks(chunks, func(Digest, []byte) error {
		if n.Add(1) > 20 {
			return full
		}
		return nil
	})
	if !errors.Is(err, full) || n.Load() > 20+keeping {
		t.Errorf("when there is no room any more: %v after %d", err, n.Load())
	}
}

// TestLiesAreSeen: nothing of a holder that gives something else is kept.
func TestLiesAreSeen(t *testing.T) {
	from := newStore(t, 1<<30)
	good := noise(30, 1000)
	d, err := from.Put(good)
	if err != nil {
		t.Fatal(err)
	}
	kept := func(Digest, []byte) error { t.Error("a lie was kept"); return nil }
	for name, lie := range map[string][]byte{"other bytes": noise(31, 1000), "shorter": good[:500], "longer": noise(30, 2000)} {
		liar := &giving{from, map[Digest][]byte{d: lie}}
		if _, err := dial(t, liar, 1<<20).Chunks([]Chunk{{d, 1000}}, kept); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	tree := []byte("no tree")
	name := Digest(sha256.Sum256([]byte("another")))
	if _, err := dial(t, &giving{from, map[Digest][]byte{name: tree}}, 1<<20).Tree(name); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("tree: %v", err)
	}
	if absent, err := dial(t, &giving{Store: from}, 1<<20).Chunks([]Chunk{{name, 10}}, kept); err != nil || absent != 1 {
		t.Errorf("what is not there: %d, %v", absent, err)
	}
	if _, err := dial(t, &giving{Store: from}, 1<<20).Results(make([]byte, 16), 1, &grid.Files{Out: []string{"*"}}); !errors.Is(err, ErrAbsent) {
		t.Errorf("results: %v", err)
	}
}

// broken is a Giver that cannot read one chunk.
type broken struct {
	*giving
	chunk Digest
}

var errBroken = errors.New("the disk is broken")

func (g *broken) Read(d Digest, buf []byte) ([]byte, error) {
	if d == g.chunk {
		return nil, errBroken
	}
	return g.giving.Read(d, buf)
}

// TestHolderThatCannotRead ends the stream, and what came before counts.
func TestHolderThatCannotRead(t *testing.T) {
	from := newStore(t, 1<<30)
	var chunks []Chunk
	for i := range 20 {
		b := noise(uint64(40+i), 1000)
		d, err := from.Put(b)
		if err != nil {
			t.Fatal(err)
		}
		chunks = append(chunks, Chunk{d, 1000})
	}
	a, b := net.Pipe()
	defer b.Close()
	said := make(chan error, 1)
	go func() {
		defer a.Close()
		said <- Serve(a, &broken{&giving{Store: from}, chunks[10].Digest})
	}()
	b.SetDeadline(time.Now().Add(time.Minute))
	kept := 0
	if _, err := NewPeer(b).Chunks(chunks, func(Digest, []byte) error { kept++; return nil }); err == nil || kept > 10 {
		t.Errorf("%d chunks came, %v", kept, err)
	}
	if err := <-said; !errors.Is(err, errBroken) {
		t.Errorf("the holder says %v", err)
	}
}

// TestMoreThanWasAskedForIsNotRead: a holder that announces more is left at once.
func TestMoreThanWasAskedForIsNotRead(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	came := make(chan int64)
	go func() {
		ask := make([]byte, 1<<10)
		_, _ = theirs.Read(ask)
		n, _ := io.Copy(theirs, io.MultiReader(bytes.NewReader(binary.AppendUvarint(nil, 64<<20)), io.LimitReader(zeroes{}, 64<<20)))
		came <- n
	}()
	_, err := NewPeer(ours).Chunks([]Chunk{{Digest{1}, 1000}}, func(Digest, []byte) error { return nil })
	ours.Close()
	if n := <-came; !errors.Is(err, wire.ErrMalformed) || n > 1<<20 {
		t.Errorf("%d bytes were read, %v", n, err)
	}
}

type zeroes struct{}

func (zeroes) Read(b []byte) (int, error) { clear(b); return len(b), nil }
