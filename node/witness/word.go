package witness

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"

	"gridnode/grid"
	"gridnode/internal/wire"
)

// Domain is what words are signed under.
const Domain = "witness"

// ErrOlder is wrapped by what Ask and Run return for a store that its own site has told to
// be further.
var ErrOlder = errors.New("this home is an older copy of the site's")

// Bounds of words.
const (
	wordMax       = 1 << 10 // bytes of one that is sealed
	federationMax = 256
)

// Word is what a site says of its store.
type Word struct {
	Federation string
	Batch      uint64    // that the store has, durably
	At         time.Time // by the site's clock
}

// seal signs a word.
func (w Word) seal(key crypto.PrivKey) ([]byte, error) {
	b := binary.BigEndian.AppendUint64(nil, w.Batch)
	b = binary.BigEndian.AppendUint64(b, uint64(w.At.Unix()))
	return wire.Seal(key, Domain, append(b, w.Federation...))
}

// open returns a word of a site. The error wraps wire.ErrMalformed.
func open(sealed []byte, of grid.SiteID) (w Word, err error) {
	if len(sealed) > wordMax {
		return w, wire.Malformed("word of %d bytes", len(sealed))
	}
	b, signer, err := wire.Open(Domain, sealed)
	switch {
	case err != nil:
		return w, err
	case signer != of:
		return w, wire.Malformed("word of %s, signed by %s", of, signer)
	case len(b) < 16 || len(b) > 16+federationMax:
		return w, wire.Malformed("word with %d bytes", len(b))
	}
	return Word{string(b[16:]), binary.BigEndian.Uint64(b), time.Unix(int64(binary.BigEndian.Uint64(b[8:])), 0)}, nil
}
