package server

import (
	"cmp"
	"errors"
	"net/http"
	"time"

	"gridnode/grid"
	"gridnode/node/access"
	"gridnode/node/api"
)

// Spans of tokens.
const (
	tokenSpan    = 30 * grid.Day
	tokenSpanMax = 366 * grid.Day
)

// tokens answers what is asked of tokens.
type tokens struct{ *Server }

func tokenOf(t *access.Token, now time.Time) api.Token {
	return api.Token{
		ID: t.ID, User: t.User, Role: t.Role, Created: api.InstantOf(t.Created), Expires: api.InstantOf(t.Expires),
		Expired: !now.Before(t.Expires),
	}
}

func (a tokens) create(w http.ResponseWriter, r *http.Request) error {
	var request api.TokenRequest
	if err := readJSON(r, &request); err != nil {
		return err
	}
	role, err := access.ParseRole(request.Role)
	if err != nil {
		return errorf(api.CodeUsage, "role: %v", err)
	}
	account, err := access.Find(request.User)
	if err != nil {
		return errorf(api.CodeUsage, "user: %v", err)
	}
	span := grid.Time(cmp.Or(request.Expires, api.Seconds(tokenSpan)))
	if span < grid.Minute || span > tokenSpanMax {
		return errorf(api.CodeUsage, "expires: %v: want 1m to %v", span, tokenSpanMax)
	}
	now := time.Now()
	text, token, err := a.cfg.Tokens.Create(now, account.Name, role, span.Duration())
	if errors.Is(err, access.ErrTokens) {
		return errorf(api.CodeRefused, "%v", err)
	}
	if err != nil {
		return err
	}
	a.cfg.Logger.Info("token made", "token", token.ID, "user", token.User, "role", token.Role, "by", userOf(r.Context()))
	reply := tokenOf(&token, now)
	reply.Secret = text
	return writeJSON(w, reply)
}

func (a tokens) list(w http.ResponseWriter, _ *http.Request) error {
	reply := api.TokensReply{Tokens: []api.Token{}}
	now := time.Now()
	for _, t := range a.cfg.Tokens.List() {
		reply.Tokens = append(reply.Tokens, tokenOf(&t, now))
	}
	return writeJSON(w, reply)
}

func (a tokens) revoke(w http.ResponseWriter, r *http.Request) error {
	var request api.TokenRevokeRequest
	if err := readJSON(r, &request); err != nil {
		return err
	}
	token, err := a.cfg.Tokens.Revoke(request.ID)
	if errors.Is(err, access.ErrNoToken) {
		return errorf(api.CodeNotFound, "%v", err)
	}
	if err != nil {
		return err
	}
	a.cfg.Logger.Info("token revoked", "token", token.ID, "user", token.User, "by", userOf(r.Context()))
	return writeJSON(w, tokenOf(&token, time.Now()))
}

// needed answers that there are no tokens where no file was given for them.
func (a tokens) needed(serve func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if a.cfg.Tokens == nil {
			return errorf(api.CodeRefused, "this daemon keeps no tokens")
		}
		return serve(w, r)
	}
}
