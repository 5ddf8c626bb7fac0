package access

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Bounds of what one account may ask at a time.
const (
	// inFlightMax is how many requests of one account are under way, those that wait for
	// jobs included.
	inFlightMax = 1024
	// rateMax is how many requests of one account begin in a second; rateBurst is how many
	// do at once. Faster ones wait.
	rateMax   = 1000
	rateBurst = 2000
	// vainCost is how many others a submission costs for which there was no room: it was
	// decoded and brought to the loop for nothing. Ten a second of one account are enough to
	// see when there is room again.
	vainCost = 100
	// visitsMax is all three for all visitors together: they ask every five seconds.
	visitsMax = 100
)

// Shares divides what comes before the host's loop between accounts: who asks for much waits
// behind himself. The loop itself divides its time (node.AsUser). Safe for concurrent use.
type Shares struct {
	mu    sync.Mutex
	users map[uint32]*share
}

// share is what one account has.
type share struct {
	inFlight, most int
	rate           *rate.Limiter
}

// NewShares returns the shares of one daemon.
func NewShares() *Shares { return &Shares{users: make(map[uint32]*share)} }

// of returns the share of an account. The caller holds s.mu.
func (s *Shares) of(uid uint32) *share {
	u := s.users[uid]
	if u == nil {
		if len(s.users) >= knownMax {
			s.sweep()
		}
		u = &share{most: inFlightMax, rate: rate.NewLimiter(rateMax, rateBurst)}
		if uid == VisitorUID {
			u = &share{most: visitsMax, rate: rate.NewLimiter(visitsMax, visitsMax)}
		}
		s.users[uid] = u
	}
	return u
}

// sweep forgets shares that are as new ones would be. The caller holds s.mu.
func (s *Shares) sweep() {
	for uid, u := range s.users {
		if u.inFlight == 0 && u.rate.Tokens() >= float64(u.rate.Burst()) {
			delete(s.users, uid)
		}
	}
}

// Enter begins a request of an account. It waits while the account asks too fast, and
// returns an error if too many of its requests are under way. release ends it.
func (s *Shares) Enter(ctx context.Context, uid uint32) (release func(), err error) {
	s.mu.Lock()
	u := s.of(uid)
	if u.inFlight >= u.most {
		s.mu.Unlock()
		return nil, fmt.Errorf("%d requests of this account are under way: wait for some of them", u.most)
	}
	u.inFlight++
	s.mu.Unlock()
	release = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		u.inFlight--
	}
	if err := u.rate.Wait(ctx); err != nil {
		release()
		return nil, fmt.Errorf("more than %d requests of this account in a second: %w", int(u.rate.Limit()), err)
	}
	return release, nil
}

// InVain charges an account for a submission for which there was no room: whoever goes on
// waits.
func (s *Shares) InVain(uid uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(uid).rate.ReserveN(time.Now(), vainCost)
}
