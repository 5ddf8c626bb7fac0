package access

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestRequestsOfOneAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewShares()
		var held []func()
		for range inFlightMax {
			release, err := s.Enter(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, release)
		}
		if _, err := s.Enter(t.Context(), 1); err == nil {
			t.Error("no bound on the requests under way")
		}
		if release, err := s.Enter(t.Context(), 2); err != nil {
			t.Errorf("another account: %v", err)
		} else {
			release()
		}
		for _, release := range held {
			release()
		}
		begun := time.Now()
		for range rateBurst + rateMax {
			release, err := s.Enter(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			release()
		}
		if took := time.Since(begun); took < time.Second || took > 3*time.Second {
			t.Errorf("%d requests took %v", rateBurst+rateMax, took)
		}
		time.Sleep(time.Minute)
		for uid := range uint32(3 * knownMax) {
			time.Sleep(time.Second) // as long as it takes to be as new
			if release, err := s.Enter(t.Context(), 10+uid); err != nil {
				t.Fatal(err)
			} else {
				release()
			}
		}
		if len(s.users) > knownMax {
			t.Errorf("%d accounts are remembered, want at most %d", len(s.users), knownMax)
		}
	})
}

// TestWhoGivesUpWaiting holds no place: an account may ask as much afterwards.
func TestWhoGivesUpWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewShares()
		gone, end := context.WithCancel(t.Context())
		end()
		for range 2 * inFlightMax {
			if _, err := s.Enter(gone, 1); err == nil {
				t.Fatal("who has gone away is let in")
			}
		}
		if release, err := s.Enter(t.Context(), 1); err != nil {
			t.Error(err)
		} else if release(); s.users[1].inFlight != 0 {
			t.Errorf("%d requests are under way", s.users[1].inFlight)
		}
	})
}

// TestVainSubmissions: an account whose submissions find no room has few a second, and then
// is as any other.
func TestVainSubmissions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewShares()
		vain := func(uid uint32, n int) time.Duration {
			begun := time.Now()
			for range n {
				release, err := s.Enter(t.Context(), uid)
				if err != nil {
					t.Fatal(err)
				}
				s.InVain(uid)
				release()
			}
			return time.Since(begun)
		}
		burst := rateBurst / vainCost
		if took := vain(1, burst); took > 100*time.Millisecond {
			t.Errorf("the first %d took %v", burst, took)
		}
		if took := vain(1, 100); took < 9*time.Second || took > 12*time.Second {
			t.Errorf("100 more took %v, want ten seconds", took)
		}
		if took := vain(2, 1); took > 0 {
			t.Errorf("another account waits for %v", took)
		}
		time.Sleep(time.Minute)
		if took := vain(1, 1); took > 0 {
			t.Errorf("it waits for %v after a minute", took)
		}
	})
}
