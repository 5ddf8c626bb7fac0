package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"gridnode/internal/atomicfile"
)

// Token lets its bearer speak as an account from elsewhere.
type Token struct {
	ID      string    `json:"id"` // for people: it is no secret
	User    string    `json:"user"`
	Role    string    `json:"role"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`

	// Hash is SHA-256 of the token's text. That has 256 random bits, so nothing slower is
	// needed: there is nothing to guess.
	Hash string `json:"hash"`
}

// TokenPrefix begins the text of every token, so that people and scanners of files know one.
const TokenPrefix = "gridnode_"

// tokensMax bounds the tokens of a site.
const tokensMax = 10_000

// Errors about tokens; test with errors.Is.
var (
	// ErrToken: no token of this site has that text. Ask an admin for one.
	ErrToken = errors.New("this token is not known here")
	// ErrExpired: it had its time.
	ErrExpired = errors.New("this token has expired")
	// ErrNoToken: no token has that ID.
	ErrNoToken = errors.New("no such token")
	// ErrTokens: there is no room for another one: revoke some.
	ErrTokens = fmt.Errorf("there are %d tokens: revoke some", tokensMax)
)

// Tokens is the tokens of a site, in a file. Safe for concurrent use.
type Tokens struct {
	path string

	mu     sync.Mutex
	byHash map[string]*Token
	uses   map[string]map[*use]bool // that are under way, by the token's ID
}

// use is something that its bearer does for as long as a token is good.
type use struct{ end context.CancelCauseFunc }

// OpenTokens reads the tokens of a file, which need not exist.
func OpenTokens(path string) (*Tokens, error) {
	t := &Tokens{path: path, byHash: make(map[string]*Token), uses: make(map[string]map[*use]bool)}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	var list []*Token
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("tokens: %s: %w: repair it, or remove it and make new tokens", path, err)
	}
	for _, token := range list {
		if _, err := ParseRole(token.Role); err != nil || token.User == "" || len(token.Hash) != 2*sha256.Size {
			return nil, fmt.Errorf("tokens: %s: token %q is not well-formed", path, token.ID)
		}
		t.byHash[token.Hash] = token
	}
	return t, nil
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// newSecret draws the text of a token, and an ID that is no secret.
func newSecret() (text, id string) {
	var secret [32]byte
	var name [6]byte
	_, _ = rand.Read(secret[:]) // never fails
	_, _ = rand.Read(name[:])
	return TokenPrefix + base64.RawURLEncoding.EncodeToString(secret[:]), hex.EncodeToString(name[:])
}

// Create makes a token and returns its text, which is nowhere else, once it is durable.
func (t *Tokens) Create(now time.Time, account string, role Role, span time.Duration) (text string, token Token, err error) {
	text, id := newSecret()
	token = Token{
		ID: id, User: account, Role: role.String(),
		Created: now.UTC().Truncate(time.Second), Expires: now.Add(span).UTC().Truncate(time.Second), Hash: hashOf(text),
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.byHash) >= tokensMax {
		return "", token, ErrTokens
	}
	t.byHash[token.Hash] = &token
	if err := t.save(); err != nil {
		delete(t.byHash, token.Hash)
		return "", token, err
	}
	return text, token, nil
}

// Prune forgets tokens that have expired. What is forgotten is off the disk with the next
// change.
func (t *Tokens) Prune(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for hash, token := range t.byHash {
		if !now.Before(token.Expires) {
			delete(t.byHash, hash)
		}
	}
}

// List returns the tokens, the oldest first.
func (t *Tokens) List() []Token {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.list()
}

func (t *Tokens) list() []Token {
	list := make([]Token, 0, len(t.byHash))
	for _, token := range t.byHash {
		list = append(list, *token)
	}
	slices.SortFunc(list, func(a, b Token) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return list
}

// Revoke forgets a token: from now on it is not known.
func (t *Tokens) Revoke(id string) (Token, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for hash, token := range t.byHash {
		if token.ID != id {
			continue
		}
		delete(t.byHash, hash)
		if err := t.save(); err != nil {
			t.byHash[hash] = token
			return *token, err
		}
		for u := range t.uses[id] {
			u.end(ErrToken)
		}
		return *token, nil
	}
	return Token{}, fmt.Errorf("%q: %w", id, ErrNoToken)
}

// Caller returns who bears a token. Names must know the account.
func (t *Tokens) Caller(now time.Time, text string) (Caller, error) {
	t.mu.Lock()
	token := t.byHash[hashOf(text)]
	t.mu.Unlock()
	switch {
	case token == nil:
		return Caller{}, ErrToken
	case !now.Before(token.Expires):
		return Caller{}, ErrExpired
	}
	account, err := Find(token.User)
	if err != nil {
		return Caller{}, fmt.Errorf("%w: %w", ErrToken, err)
	}
	role, err := ParseRole(token.Role)
	return Caller{Name: account.Name, UID: account.UID, Role: role, Token: token.ID}, err
}

// While returns a context that ends with ctx, and as soon as the token with a text is no longer
// good: then its cause is ErrToken or ErrExpired. end must be called.
func (t *Tokens) While(ctx context.Context, text string) (_ context.Context, end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	token := t.byHash[hashOf(text)]
	if token == nil { // it was revoked just now
		cancel(ErrToken)
		return ctx, func() {}
	}
	id := token.ID
	ctx, expire := context.WithDeadlineCause(ctx, token.Expires, ErrExpired)
	u := &use{cancel}
	if t.uses[id] == nil {
		t.uses[id] = make(map[*use]bool)
	}
	t.uses[id][u] = true
	return ctx, func() {
		expire()
		cancel(nil)
		t.mu.Lock()
		defer t.mu.Unlock()
		if delete(t.uses[id], u); len(t.uses[id]) == 0 {
			delete(t.uses, id)
		}
	}
}

// save replaces the file. A crash leaves the old or the new one.
func (t *Tokens) save() error {
	text, err := json.MarshalIndent(t.list(), "", "  ")
	if err != nil {
		return err
	}
	if err := atomicfile.Write(t.path, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	return nil
}
