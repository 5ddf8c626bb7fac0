package access

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	tokens, err := OpenTokens(path)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	text, token, err := tokens.Create(start, "root", Operator, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := tokens.Create(start.Add(time.Second), "4321", User, time.Hour)
	if err != nil || other == text {
		t.Fatal(err, "or the same text twice")
	}
	info, err := os.Stat(path)
	stored, _ := os.ReadFile(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	if strings.Contains(string(stored), strings.TrimPrefix(text, TokenPrefix)) {
		t.Error("the file has the token itself")
	}
	again, err := OpenTokens(path) // as after a restart
	if err != nil {
		t.Fatal(err)
	}
	c, err := again.Caller(start.Add(time.Hour-time.Second), text)
	if err != nil || c.Name != "root" || c.UID != 0 || c.Role != Operator || c.Token != token.ID {
		t.Errorf("bearer: %+v, %v", c, err)
	}
	if c, err := again.Caller(start, other); err != nil || c.Name != "4321" || c.UID != 4321 {
		t.Errorf("bearer of a number: %+v, %v", c, err)
	}
	if _, err := again.Caller(start.Add(time.Hour), text); !errors.Is(err, ErrExpired) {
		t.Errorf("after its time: %v", err)
	}
	for _, wrong := range []string{"", text[:len(text)-1], text + "x", TokenPrefix, token.ID, token.Hash} {
		if _, err := again.Caller(start, wrong); !errors.Is(err, ErrToken) {
			t.Errorf("token %q: %v", wrong, err)
		}
	}
	if list := again.List(); len(list) != 2 || list[0].ID != token.ID {
		t.Errorf("list: %+v", list)
	}
	if _, err := again.Revoke("nothing"); !errors.Is(err, ErrNoToken) {
		t.Errorf("revoke of an unknown one: %v", err)
	}
	if _, err := again.Revoke(token.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := again.Caller(start, text); !errors.Is(err, ErrToken) {
		t.Errorf("revoked: %v", err)
	}
	last, err := OpenTokens(path)
	if err != nil || len(last.List()) != 1 {
		t.Errorf("after a restart: %+v, %v", last, err)
	}
	if err := os.WriteFile(path, []byte(`[{"id":"x","user":"","role":"admin","hash":"00"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenTokens(path); err == nil {
		t.Error("a malformed token was read")
	}
}

// TestTokenIsUsedWhileGood: what a bearer does ends when the token does, and not before.
func TestTokenIsUsedWhileGood(t *testing.T) {
	tokens, err := OpenTokens(filepath.Join(t.TempDir(), "tokens.json"))
	if err != nil {
		t.Fatal(err)
	}
	text, token, err := tokens.Create(time.Now(), "root", User, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := tokens.Create(time.Now(), "root", User, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	old, _, err := tokens.Create(time.Now().Add(-time.Hour), "root", User, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	over, end := tokens.While(t.Context(), text)
	end()
	one, endOne := tokens.While(t.Context(), text)
	two, endTwo := tokens.While(t.Context(), other)
	if over.Err() == nil || errors.Is(context.Cause(over), ErrToken) || one.Err() != nil || two.Err() != nil {
		t.Errorf("before: %v, %v, %v", context.Cause(over), one.Err(), two.Err())
	}
	if _, err := tokens.Revoke(token.ID); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(context.Cause(one), ErrToken) || two.Err() != nil {
		t.Errorf("when one was revoked: %v, %v", context.Cause(one), two.Err())
	}
	late, endLate := tokens.While(t.Context(), text)
	expired, endExpired := tokens.While(t.Context(), old)
	<-expired.Done()
	if !errors.Is(context.Cause(late), ErrToken) || !errors.Is(context.Cause(expired), ErrExpired) {
		t.Errorf("too late: %v, %v", context.Cause(late), context.Cause(expired))
	}
	for _, end := range []func(){endOne, endTwo, endLate, endExpired} {
		end()
	}
	if len(tokens.uses) != 0 {
		t.Errorf("left behind: %v", tokens.uses)
	}
}
