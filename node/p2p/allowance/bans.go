package allowance

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// How long a ban lasts: the first so long, each further one twice as long as the one
// before, up to a most. For each span without one the last is forgotten.
const (
	banFirst       = time.Minute
	banMost        = time.Hour
	banForgotten   = time.Hour
	addressMost    = 10 * time.Minute // of an address: others may be behind it
	addressPeers   = 4                // peers of one address that are banned before it is
	bansMax        = 4096
	bansAddressMax = 1024
)

// Ban is that nothing is made of connections of a peer, or of an address.
type Ban struct {
	Peer    string // empty: of an address
	Address string // where it was banned from; may be empty
	Until   time.Time
	Why     string
	Times   int // bans that are not forgotten, this one with them
	Refused int64
}

// Bans are those under way and those not forgotten. Safe for concurrent use.
type Bans struct {
	mu        sync.Mutex
	peers     map[string]*banned
	addresses map[string]*banned
}

type banned struct {
	Ban
	at    time.Time // of the last ban
	peers []string  // of an address: its banned ones
}

// NewBans returns none.
func NewBans() *Bans {
	return &Bans{peers: make(map[string]*banned), addresses: make(map[string]*banned)}
}

// Peer bans a peer. also is the address that is banned with it, as it was not its first;
// empty if none is.
func (b *Bans) Peer(now time.Time, peer, address, why string) (ban Ban, also string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := entry(b.peers, peer, bansMax, now)
	p.Peer, p.Address = peer, address
	p.again(now, why, banMost)
	if address == "" {
		return p.Ban, ""
	}
	a := entry(b.addresses, address, bansAddressMax, now)
	a.Address = address
	a.forget(now)
	if !slices.Contains(a.peers, peer) {
		a.peers = append(a.peers, peer)
	}
	a.at = now
	if len(a.peers) < addressPeers {
		return p.Ban, ""
	}
	a.peers = nil
	a.again(now, "several of its peers were banned", addressMost)
	return p.Ban, address
}

// Address bans an address.
func (b *Bans) Address(now time.Time, address, why string) Ban {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := entry(b.addresses, address, bansAddressMax, now)
	a.Address = address
	a.again(now, why, addressMost)
	return a.Ban
}

// again bans once more. While a ban is under way it goes on.
func (r *banned) again(now time.Time, why string, most time.Duration) {
	if now.Before(r.Until) {
		return
	}
	r.forget(now)
	r.Times++
	span := most
	if r.Times < 16 {
		span = min(banFirst<<(r.Times-1), most)
	}
	r.at, r.Until, r.Why, r.Refused = now, now.Add(span), why, 0
}

// forget lets time without a ban count.
func (r *banned) forget(now time.Time) {
	from := later(r.at, r.Until)
	spans := int(now.Sub(from) / banForgotten)
	if spans <= 0 {
		return
	}
	r.Times = max(0, r.Times-spans)
	r.peers = nil
	r.at = from.Add(time.Duration(spans) * banForgotten)
}

// entry returns what has been noted under a key. What is noted anew may take the room of another one.
func entry(of map[string]*banned, key string, most int, now time.Time) *banned {
	r := of[key]
	if r == nil {
		room(of, most, now)
		r = &banned{}
		of[key] = r
	}
	return r
}

// room makes room for one more: of those that are forgotten, or else of the one that ends
// first.
func room(of map[string]*banned, most int, now time.Time) {
	if len(of) < most {
		return
	}
	first := ""
	for key, r := range of {
		if r.forget(now); r.Times == 0 && len(r.peers) == 0 {
			delete(of, key)
		} else if first == "" || r.Until.Before(of[first].Until) || r.Until.Equal(of[first].Until) && key < first {
			first = key
		}
	}
	if len(of) >= most {
		delete(of, first)
	}
}

// Bars reports whether a peer is banned, and counts that it came.
func (b *Bans) Bars(now time.Time, peer string) bool { return b.bars(now, b.peers, peer) }

// BarsAddress reports whether an address is banned, and counts that somebody came.
func (b *Bans) BarsAddress(now time.Time, address string) bool {
	return b.bars(now, b.addresses, address)
}

func (b *Bans) bars(now time.Time, of map[string]*banned, key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := of[key]
	if r == nil || !now.Before(r.Until) {
		return false
	}
	r.Refused++
	return true
}

// Lift ends the ban of a peer and forgets earlier ones, with those of its address; or
// the ban of an address. It reports whether there was one.
func (b *Bans) Lift(what string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, a := b.peers[what], b.addresses[what]
	if p != nil {
		delete(b.addresses, p.Address)
	}
	delete(b.peers, what)
	delete(b.addresses, what)
	return p != nil || a != nil && a.Times > 0
}

// List returns the bans under way, ordered by end.
func (b *Bans) List(now time.Time) []Ban {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []Ban
	for _, of := range []map[string]*banned{b.peers, b.addresses} {
		for _, r := range of {
			if now.Before(r.Until) {
				list = append(list, r.Ban)
			}
		}
	}
	slices.SortFunc(list, func(a, b Ban) int {
		return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.Address, b.Address))
	})
	return list
}
