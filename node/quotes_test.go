package node

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"google.golang.org/protobuf/proto"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// sealedQuote returns a signed quote.
func sealedQuote(t testing.TB) []byte {
	t.Helper()
	key, public, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id, err := peer.IDFromPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := proto.Marshal(&wirepb.Quote{Site: id.String(), Processors: 4, Speed: 1, Bandwidth: 1, Sequence: 1, Lifetime: int64(grid.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := wire.Seal(key, directory.Domain, payload)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

// A good quote is verified once; whatever differs by a bit is not taken for it, and
// what is bad is not remembered.
func TestQuotesAreVerifiedOnce(t *testing.T) {
	var v verified
	sealed := sealedQuote(t)
	first, err := v.open(sealed)
	if err != nil || first.Processors != 4 {
		t.Fatalf("opened as %+v, %v", first, err)
	}
	if again, err := v.open(append([]byte(nil), sealed...)); err != nil || again != first {
		t.Errorf("the same bytes were verified again: %v", err)
	}
	for i := range sealed {
		forged := append([]byte(nil), sealed...)
		forged[i] ^= 1
		if q, err := v.open(forged); err == nil && q.Processors != 4 || err != nil && !errors.Is(err, wire.ErrMalformed) {
			t.Fatalf("bit in byte %d: %+v, %v", i, q, err)
		}
	}
	if _, err := v.open([]byte("noise")); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("noise: %v", err)
	}
	if v.quotes[sha256.Sum256([]byte("noise"))] != nil {
		t.Error("noise is remembered")
	}
}

func TestVerifiedQuotesAreBounded(t *testing.T) {
	var v verified
	q := &directory.Quote{}
	key := func(i int) (hash [sha256.Size]byte) {
		binary.BigEndian.PutUint64(hash[:], uint64(i))
		return hash
	}
	for i := range verifiedMax + 10 {
		v.remember(key(i), q)
		v.remember(key(i), q)
	}
	if len(v.quotes) != verifiedMax || len(v.order) != verifiedMax || v.quotes[key(9)] != nil || v.quotes[key(10)] == nil {
		t.Errorf("remembers %d quotes, %d in order, the tenth %v", len(v.quotes), len(v.order), v.quotes[key(9)])
	}
}

// BenchmarkOpenQuote is a quote that comes again, and one that is new.
func BenchmarkOpenQuote(b *testing.B) {
	sealed := sealedQuote(b)
	b.Run("again", func(b *testing.B) {
		var v verified
		for b.Loop() {
			if _, err := v.open(sealed); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			if _, err := directory.OpenQuote(sealed); err != nil {
				b.Fatal(err)
			}
		}
	})
}
