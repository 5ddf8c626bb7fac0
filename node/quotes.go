package node

import (
	"crypto/sha256"
	"sync"

	"gridnode/directory"
)

// verifiedMax bounds the quotes that verified remembers: those of a page for every
// cell of a large directory.
const verifiedMax = 4096

// verified remembers signed quotes whose signatures are good, so that a quote that
// comes with page after page is verified once. When it is full the quote that came
// first makes room. Safe for concurrent use.
type verified struct {
	mu     sync.Mutex
	quotes map[[sha256.Size]byte]*directory.Quote // by hash of the signed form
	order  [][sha256.Size]byte
	oldest int
}

// open returns what directory.OpenQuote returns. A quote is shared by all who open
// the same bytes: nobody may change it.
func (v *verified) open(sealed []byte) (*directory.Quote, error) {
	hash := sha256.Sum256(sealed)
	v.mu.Lock()
	q := v.quotes[hash]
	v.mu.Unlock()
	if q != nil {
		return q, nil
	}
	q, err := directory.OpenQuote(sealed)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.remember(hash, q)
	return q, nil
}

func (v *verified) remember(hash [sha256.Size]byte, q *directory.Quote) {
	if v.quotes == nil {
		v.quotes = make(map[[sha256.Size]byte]*directory.Quote)
	}
	if v.quotes[hash] != nil {
		return // somebody else was as quick
	}
	v.quotes[hash] = q
	if len(v.order) < verifiedMax {
		v.order = append(v.order, hash)
		return
	}
	delete(v.quotes, v.order[v.oldest])
	v.order[v.oldest] = hash
	v.oldest = (v.oldest + 1) % verifiedMax
}
