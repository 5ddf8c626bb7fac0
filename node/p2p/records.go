package p2p

import (
	"context"
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/simplelru"
	"github.com/ipfs/go-datastore"
	"github.com/ipfs/go-datastore/query"
)

// providerRecords is where this node keeps provider records of others for the DHT:
// /providers/KEY/PEER, in memory, as they are put there again before they expire. It
// bounds what anybody can make it keep, which kad-dht's own stores do not: a record
// beyond the bounds is dropped without a word. Safe for concurrent use.
type providerRecords struct {
	mu    sync.Mutex
	keys  map[string]map[string][]byte // by /providers/KEY, by PEER
	peers map[string]int               // records of each
	count int
}

func newProviderRecords() *providerRecords {
	return &providerRecords{keys: make(map[string]map[string][]byte), peers: make(map[string]int)}
}

// split takes a record's key apart into whose it is and what it is about.
func split(key string) (about, peer string) {
	i := strings.LastIndexByte(key, '/')
	return key[:i], key[i+1:]
}

// Put implements datastore.Datastore.
func (r *providerRecords) Put(_ context.Context, key datastore.Key, value []byte) error {
	about, peer := split(key.String())
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.keys[about]
	if _, known := of[peer]; !known {
		if r.count >= recordsMax || r.peers[peer] >= recordsPeerMax || len(of) >= recordsKeyMax {
			return nil
		}
		if of == nil {
			of = make(map[string][]byte)
			r.keys[about] = of
		}
		r.count++
		r.peers[peer]++
	}
	of[peer] = value
	return nil
}

// Delete implements datastore.Datastore.
func (r *providerRecords) Delete(_ context.Context, key datastore.Key) error {
	about, peer := split(key.String())
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.keys[about][peer]; !known {
		return nil
	}
	delete(r.keys[about], peer)
	if len(r.keys[about]) == 0 {
		delete(r.keys, about)
	}
	if r.peers[peer]--; r.peers[peer] == 0 {
		delete(r.peers, peer)
	}
	r.count--
	return nil
}

// Get implements datastore.Datastore.
func (r *providerRecords) Get(_ context.Context, key datastore.Key) ([]byte, error) {
	about, peer := split(key.String())
	r.mu.Lock()
	defer r.mu.Unlock()
	if value, known := r.keys[about][peer]; known {
		return value, nil
	}
	return nil, datastore.ErrNotFound
}

// Has implements datastore.Datastore.
func (r *providerRecords) Has(ctx context.Context, key datastore.Key) (bool, error) {
	_, err := r.Get(ctx, key)
	return err == nil, nil
}

// GetSize implements datastore.Datastore.
func (r *providerRecords) GetSize(ctx context.Context, key datastore.Key) (int, error) {
	value, err := r.Get(ctx, key)
	if err != nil {
		return -1, err
	}
	return len(value), nil
}

// Query implements datastore.Datastore. The DHT asks for the records of one key, and now
// and then for all.
func (r *providerRecords) Query(_ context.Context, q query.Query) (query.Results, error) {
	var entries []query.Entry
	r.mu.Lock()
	defer r.mu.Unlock()
	take := func(about string, of map[string][]byte) {
		for peer, value := range of {
			entries = append(entries, query.Entry{Key: about + "/" + peer, Value: value, Size: len(value)})
		}
	}
	if of, one := r.keys[strings.TrimSuffix(q.Prefix, "/")]; one {
		take(strings.TrimSuffix(q.Prefix, "/"), of)
	} else if strings.Count(strings.Trim(q.Prefix, "/"), "/") == 0 { // not of one key of which there are none
		for about, of := range r.keys {
			take(about, of)
		}
	}
	return query.NaiveQueryApply(q, query.ResultsWithEntries(q, entries)), nil
}

// Batch implements datastore.Batching.
func (r *providerRecords) Batch(context.Context) (datastore.Batch, error) {
	return datastore.NewBasicBatch(r), nil
}

// Sync implements datastore.Datastore.
func (r *providerRecords) Sync(context.Context, datastore.Key) error { return nil }

// Close implements datastore.Datastore.
func (r *providerRecords) Close() error { return nil }

// noCache keeps the DHT from keeping records a second time, without bounds.
type noCache struct{}

var _ simplelru.LRUCache = noCache{}

func (noCache) Add(any, any) bool                { return false }
func (noCache) Get(any) (any, bool)              { return nil, false }
func (noCache) Contains(any) bool                { return false }
func (noCache) Peek(any) (any, bool)             { return nil, false }
func (noCache) Remove(any) bool                  { return false }
func (noCache) RemoveOldest() (a, b any, _ bool) { return nil, nil, false }
func (noCache) GetOldest() (a, b any, _ bool)    { return nil, nil, false }
func (noCache) Keys() []any                      { return nil }
func (noCache) Len() int                         { return 0 }
func (noCache) Purge()                           {}
func (noCache) Resize(int) int                   { return 0 }
