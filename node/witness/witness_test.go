package witness

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"gridnode/grid"
	"gridnode/internal/wire"
)

// conn is a stream in memory.
type conn struct{ net.Conn }

func (conn) CloseWrite() error { return nil }
func (c conn) Reset() error    { return c.Close() }

// player is a site with a teller; all players reach each other.
type player struct {
	*Teller
	key   crypto.PrivKey
	id    grid.SiteID
	batch atomic.Uint64
	gone  atomic.Bool
}

func newPlayers(t *testing.T, n int) (all []*player) {
	t.Helper()
	find := func(id grid.SiteID) *player {
		for _, p := range all {
			if p.id == id && !p.gone.Load() {
				return p
			}
		}
		return nil
	}
	for i := range n {
		key, _, err := crypto.GenerateEd25519Key(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		id, err := peer.IDFromPrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		p := &player{key: key, id: grid.SiteID(id.String())}
		all = append(all, p)
		p.start(t, filepath.Join(t.TempDir(), fmt.Sprint(i)), func() (ids []grid.SiteID) {
			for _, other := range all {
				if other != p && !other.gone.Load() {
					ids = append(ids, other.id)
				}
			}
			return ids
		}, find)
	}
	return all
}

func (p *player) start(t *testing.T, path string, peers func() []grid.SiteID, find func(grid.SiteID) *player) {
	t.Helper()
	book, err := OpenBook(path)
	if err != nil {
		t.Fatal(err)
	}
	dial := func(to grid.SiteID, serve func(*player, Stream)) (Stream, error) {
		other := find(to)
		if other == nil {
			return nil, errors.New("no way")
		}
		a, b := net.Pipe()
		go serve(other, conn{b})
		return conn{a}, nil
	}
	p.Teller = New(Config{
		Key: p.key, Self: p.id, Federation: "f", Book: book, Log: slog.New(slog.DiscardHandler),
		Batch: func() uint64 { return p.batch.Load() }, Peers: peers,
		Open: func(_ context.Context, to grid.SiteID) (Stream, error) {
			return dial(to, func(o *player, s Stream) { _ = o.ServeTell(p.id, s) })
		},
		Call: func(_ context.Context, to grid.SiteID, talk func(Stream) error) error {
			s, err := dial(to, func(o *player, s Stream) { _ = o.ServeAsk(p.id, s) })
			if err != nil {
				return err
			}
			return talk(s)
		},
	})
}

// TestOlder: a site whose store is behind what it has told learns of it when it asks and when
// it tells, from any one of its witnesses; one that went on, or is alone, does not.
func TestOlder(t *testing.T) {
	all := newPlayers(t, 4)
	a := all[0]
	if err := a.Ask(t.Context()); err != nil {
		t.Errorf("a new site: %v", err)
	}
	a.batch.Store(7)
	a.Close(t.Context())
	reopened, err := OpenBook(a.cfg.Book.path)
	if err != nil || len(reopened.witnesses()) != 3 {
		t.Errorf("the book has the witnesses %v, %v", reopened.witnesses(), err)
	}
	for _, tt := range []struct {
		batch uint64
		older bool
	}{{7, false}, {8, false}, {1 << 40, false}, {6, true}, {0, true}} {
		a.batch.Store(tt.batch)
		a.told.Store(never)
		if err := a.Ask(t.Context()); errors.Is(err, ErrOlder) != tt.older {
			t.Errorf("a store with batch %d asks: %v", tt.batch, err)
		}
		if tt.batch > 7 {
			continue // it would tell that
		}
		if err := a.Tell(t.Context()); errors.Is(err, ErrOlder) != tt.older {
			t.Errorf("a store with batch %d tells: %v", tt.batch, err)
		}
	}
	all[1].gone.Store(true)
	all[2].gone.Store(true)
	if err := a.Ask(t.Context()); !errors.Is(err, ErrOlder) {
		t.Errorf("with one witness left: %v", err)
	}
	all[3].gone.Store(true)
	if err := a.Ask(t.Context()); err != nil {
		t.Errorf("alone: %v", err)
	}
}

// TestForged: what others say of a site proves nothing, and changes nothing.
func TestForged(t *testing.T) {
	all := newPlayers(t, 2)
	a, b := all[0], all[1]
	seal := func(key crypto.PrivKey, w Word) []byte {
		sealed, err := w.seal(key)
		if err != nil {
			t.Fatal(err)
		}
		return sealed
	}
	good := seal(a.key, Word{"f", 3, time.Now()})
	tell := func(sealed []byte) error {
		mine, theirs := net.Pipe()
		done := make(chan error, 1)
		go func() { done <- b.ServeTell(a.id, conn{theirs}) }()
		go func() { _ = wire.WriteFrame(conn{mine}, sealed) }()
		go func() { _, _ = receive(conn{mine}) }()
		return <-done
	}
	if err := tell(good); err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(good)
	flipped[len(flipped)-1] ^= 1
	for name, sealed := range map[string][]byte{
		"signed by another": seal(b.key, Word{"f", 9, time.Now()}), "flipped": flipped, "of another federation": seal(a.key, Word{"g", 9, time.Now()}),
		"empty": {}, "long": make([]byte, wordMax+1), "noise": []byte("noise"),
	} {
		if err := tell(sealed); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %v, want it malformed", name, err)
		}
		if got := b.cfg.Book.of(a.id); !bytes.Equal(got, good) {
			t.Errorf("%s has changed the word", name)
		}
		if err := a.judge(b.id, sealed); err != nil {
			t.Errorf("%s is believed: %v", name, err)
		}
	}
	if err := tell(seal(a.key, Word{"f", 2, time.Now()})); err != nil || !bytes.Equal(b.cfg.Book.of(a.id), good) {
		t.Errorf("an older word: %v, or it has replaced the newer one", err)
	}
}

// TestBookIsBounded: who was told longest ago makes room.
func TestBookIsBounded(t *testing.T) {
	b, err := OpenBook(filepath.Join(t.TempDir(), "book"))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Unix(0, 0)
	for i := range wordsMax + 10 {
		b.keep(grid.SiteID(fmt.Sprint(i)), []byte{1}, Word{Batch: 1}, start.Add(time.Duration(i)))
	}
	if len(b.kept.Words) != wordsMax || b.of("9") != nil || b.of("10") == nil {
		t.Errorf("the book has %d words", len(b.kept.Words))
	}
}
