package access

import (
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// VisitorUID is the account of all visitors: none of this machine's.
const VisitorUID = math.MaxUint32

// visitorKeysMax bounds the keys of one site. Another one takes the place of its oldest.
const visitorKeysMax = 16

// Visitors are the keys of people of other sites who look at the page of this one: members
// have asked for them. They are in memory only. The zero value is ready. Safe for concurrent
// use.
type Visitors struct {
	mu     sync.Mutex
	byHash map[string]*visitor
}

// visitor is who bears one key.
type visitor struct {
	Caller
	created, expires time.Time
}

// Create makes a key for somebody of a site, and returns its text, which is nowhere else.
func (v *Visitors) Create(now time.Time, site, name string, span time.Duration) (text string, expires time.Time) {
	text, id := newSecret()
	made := &visitor{
		Caller:  Caller{Name: "@" + name, Role: Visitor, UID: VisitorUID, Token: id, Site: site}, // no account is called so
		created: now, expires: now.Add(span),
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	var own []string
	for hash, k := range v.byHash {
		switch {
		case !now.Before(k.expires):
			delete(v.byHash, hash)
		case k.Site == site:
			own = append(own, hash)
		}
	}
	if len(own) >= visitorKeysMax {
		slices.SortFunc(own, func(a, b string) int {
			if c := v.byHash[a].created.Compare(v.byHash[b].created); c != 0 {
				return c
			}
			return strings.Compare(a, b)
		})
		delete(v.byHash, own[0])
	}
	if v.byHash == nil {
		v.byHash = make(map[string]*visitor)
	}
	v.byHash[hashOf(text)] = made
	return text, made.expires
}

// Caller returns who bears a key. Whether his site may still look, the asker has to see to.
func (v *Visitors) Caller(now time.Time, text string) (Caller, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch k := v.byHash[hashOf(text)]; {
	case k == nil:
		return Caller{}, ErrToken
	case !now.Before(k.expires):
		return Caller{}, ErrExpired
	default:
		return k.Caller, nil
	}
}
