package access

import (
	"errors"
	"testing"
	"time"
)

func TestVisitors(t *testing.T) {
	var v Visitors
	now := time.Unix(1_000_000, 0)
	first, until := v.Create(now, "id of alpha", "alpha", time.Hour)
	if !until.Equal(now.Add(time.Hour)) {
		t.Errorf("good until %v", until)
	}
	who, err := v.Caller(now, first)
	if want := (Caller{Name: "@alpha", Role: Visitor, UID: VisitorUID, Token: who.Token, Site: "id of alpha"}); err != nil || who != want || who.Token == "" {
		t.Errorf("%+v, %v", who, err)
	}
	if _, err := v.Caller(now, "gridnode_other"); !errors.Is(err, ErrToken) {
		t.Errorf("another key: %v", err)
	}
	if _, err := v.Caller(until, first); !errors.Is(err, ErrExpired) {
		t.Errorf("a key that has ended: %v", err)
	}
	beta, _ := v.Create(now, "id of beta", "beta", time.Hour)
	for i := range visitorKeysMax {
		v.Create(now.Add(time.Duration(i+1)), "id of alpha", "alpha", time.Hour)
	}
	if _, err := v.Caller(now, first); !errors.Is(err, ErrToken) {
		t.Errorf("the oldest of too many keys: %v", err)
	}
	if _, err := v.Caller(now, beta); err != nil {
		t.Errorf("the key of another site: %v", err)
	}
	if len(v.byHash) != visitorKeysMax+1 {
		t.Errorf("%d keys are kept", len(v.byHash))
	}
	v.Create(now.Add(2*time.Hour), "id of alpha", "alpha", time.Hour)
	if len(v.byHash) != 1 {
		t.Errorf("%d keys are kept of which one is good", len(v.byHash))
	}
}

func TestVisitorsAskLess(t *testing.T) {
	s := NewShares()
	for range visitsMax {
		if _, err := s.Enter(t.Context(), VisitorUID); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Enter(t.Context(), VisitorUID); err == nil {
		t.Error("no bound on the requests of visitors")
	}
	if release, err := s.Enter(t.Context(), 1); err != nil {
		t.Errorf("a user beside them: %v", err)
	} else {
		release()
	}
}
