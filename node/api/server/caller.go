package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"gridnode/grid"
	"gridnode/node"
	"gridnode/node/access"
	"gridnode/node/api"
	"gridnode/node/api/server/peer"
	"gridnode/node/site"
)

type callerKey struct{}

// asker is who makes a request and how far it reaches.
type asker struct {
	access.Caller
	reach access.Reach
}

// porter lets requests in: who asks, how far he reaches, and how much at a time.
type porter struct {
	cfg      *Config
	shares   *access.Shares
	visitors *access.Visitors                                            // of the page
	welcome  func(context.Context, grid.SiteID) (name string, err error) // node.Visits.Welcome
}

// withPeer remembers who is at the other end of a connection through the socket.
func (p *porter) withPeer(ctx context.Context, conn net.Conn) context.Context {
	who, err := peer.Of(conn)
	if err != nil {
		return ctx
	}
	return withAsker(ctx, asker{Caller: p.cfg.People.Local(who)})
}

// withAsker remembers who makes a request, also where users wait for the host's loop.
func withAsker(ctx context.Context, who asker) context.Context {
	return node.AsUser(context.WithValue(ctx, callerKey{}, who), who.Name)
}

// askerOf returns who makes a request; nobody if that is not known.
func askerOf(ctx context.Context) asker {
	who, _ := ctx.Value(callerKey{}).(asker)
	return who
}

func userOf(ctx context.Context) string { return askerOf(ctx).Name }

// admitted lets a request through to its handler if its caller may make the call. It is the
// only way to a handler.
func (p *porter) admitted(pattern string, next http.Handler) http.Handler {
	call, listed := access.Calls[pattern]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := p.fromProgram(r)
		if err == nil {
			r, err = p.identified(r)
		}
		if err == nil && listed { // else there is no such call, which whoever is known here may learn
			r, err = p.allowed(r, call)
		}
		if err != nil {
			writeError(w, err)
			return
		}
		if tokens, text := p.bearer(r); tokens != nil { // what goes on goes on for as long as the token is good
			ctx, end := tokens.While(r.Context(), text)
			defer end()
			r = r.WithContext(ctx)
		}
		release, err := p.shares.Enter(r.Context(), askerOf(r.Context()).UID)
		if err != nil {
			writeError(w, errorf(api.CodeBusy, "%v", err))
			return
		}
		defer release()
		next.ServeHTTP(w, r)
	})
}

// identified returns the request with who makes it.
func (p *porter) identified(r *http.Request) (*http.Request, error) {
	who := askerOf(r.Context())
	if who.Name != "" {
		if who.Role == access.Stranger {
			return r, errorf(api.CodeDenied, "account %s is no user here: an admin adds it to users.users", who.Name)
		}
		return r, nil
	}
	if caller, err := p.visitor(r); err == nil {
		return r.WithContext(withAsker(r.Context(), asker{Caller: caller})), nil
	} else if !errors.Is(err, access.ErrToken) {
		return r, errorf(api.CodeUnknown, "%v: ask your own site for another key, with 'gridnode web --at'", err)
	}
	tokens, text := p.bearer(r)
	if tokens == nil {
		return r, errorf(api.CodeUnknown, "no token: send 'Authorization: Bearer TOKEN'; an admin makes one with 'gridnode token create'")
	}
	caller, err := tokens.Caller(time.Now(), text)
	if err != nil {
		return r, errorf(api.CodeUnknown, "%v: ask an admin for another one", err)
	}
	return r.WithContext(withAsker(r.Context(), asker{Caller: caller})), nil
}

// visitor returns the visitor who makes a request: for as long as his key is good and his site
// may look. The error is access.ErrToken if he is none.
func (p *porter) visitor(r *http.Request) (access.Caller, error) {
	if doorOf(r.Context()) == nil {
		return access.Caller{}, access.ErrToken
	}
	caller, err := p.visitors.Caller(time.Now(), bearerText(r))
	if err != nil {
		return caller, err
	}
	if _, err := p.welcome(r.Context(), grid.SiteID(caller.Site)); err != nil {
		return caller, fmt.Errorf("site %s: %w", caller.Name, err)
	}
	return caller, nil
}

// bearerText returns the text that a request bears, empty if it bears none.
func bearerText(r *http.Request) string {
	text, bears := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !bears {
		return ""
	}
	return text
}

// bearer returns the text that a request bears, and among which tokens to look for it; nil if
// it needs or bears none.
func (p *porter) bearer(r *http.Request) (*access.Tokens, string) {
	who, text := askerOf(r.Context()), bearerText(r)
	if text == "" || who.Name != "" && who.Token == "" { // it came through the socket
		return nil, ""
	}
	if who.Role == access.Visitor { // nothing that he may ask for goes on
		return nil, ""
	}
	if doorOf(r.Context()) != nil {
		if _, err := p.cfg.Pages.Caller(time.Now(), text); err == nil || p.cfg.Tokens == nil {
			return p.cfg.Pages, text
		}
	}
	return p.cfg.Tokens, text
}

// because returns why a request has failed: that its token is no longer good, if that has ended it.
func because(r *http.Request, err error) error {
	if cause := context.Cause(r.Context()); errors.Is(cause, access.ErrToken) || errors.Is(cause, access.ErrExpired) {
		return errorf(api.CodeUnknown, "%v: ask an admin for another one", cause)
	}
	return err
}

// allowed returns the request with how far it reaches, or why it does not.
func (p *porter) allowed(r *http.Request, call access.Call) (*http.Request, error) {
	who := askerOf(r.Context())
	who.reach = call.Of(who.Role)
	if err := inJSON(r); err != nil {
		return r, err
	}
	switch {
	case call.Local && who.Token != "":
		return r, errorf(api.CodeDenied, "this can be asked for only at the site itself, not with a token")
	case who.reach == access.No:
		return r, errorf(api.CodeDenied, "%s is %v here, and this takes %v: ask an admin", who.Name, who.Role, call.Least())
	}
	return r.WithContext(withAsker(r.Context(), who)), nil
}

// sight returns what an asker sees of a job.
func (a *Server) sight(who asker, v *site.View) access.Sight {
	switch {
	case who.reach == access.Yes, mine(who, v):
		return access.Full
	}
	return a.cfg.People.See
}

// mine reports whether a job is the asker's own. Accounts of other sites are others, whatever
// they are called.
func mine(who asker, v *site.View) bool { return !v.Foreign && v.Job.User == who.Name }

// ofAsker returns an error unless the call may be about all of these jobs.
func (a *Server) ofAsker(ctx context.Context, ids []grid.JobID) (failure error) {
	who := askerOf(ctx)
	if who.reach == access.Yes {
		return nil
	}
	err := a.host.Do(ctx, func(s *site.Site) {
		for _, id := range ids {
			v, known := s.Glance(id)
			if known && !mine(who, &v) && !(v.Foreign && who.Role > access.User) { // of those the handlers say who owns them
				failure = errorf(api.CodeDenied, "job %s belongs to another user", id)
			}
		}
	})
	return errors.Join(err, failure)
}

// briefOf returns what users see of others' jobs: that something runs.
func briefOf(j api.Job) api.Job {
	return api.Job{
		ID: j.ID, State: j.State, Foreign: j.Foreign, Site: j.Site, SiteName: j.SiteName,
		Processors: j.Processors, Tasks: j.Tasks, Submitted: j.Submitted, Start: j.Start, End: j.End, Brief: true,
	}
}
