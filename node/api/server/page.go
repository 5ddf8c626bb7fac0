package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"gridnode/grid"
	"gridnode/node"
	"gridnode/node/api"
	"gridnode/node/api/server/peer"
	"gridnode/node/visit"
	"gridnode/node/web"
)

// pageSpan is how long a page may act for who has opened it.
const pageSpan = 12 * grid.Hour

// page is the way of people who look: the same calls as at the other ways, for a page that
// this server itself has given to the browser. The page bears a key that is told to it behind
// the # of its address, which browsers do not send, and that it sends with each request;
// nothing of it is in a cookie, so no other page can have it sent.
type page struct {
	*Server
	server http.Server

	mu   sync.Mutex
	base string // of its address; empty: not open yet
}

// pageDoor is one listener of pages.
type pageDoor struct {
	hosts func(string) bool
	base  string
}

type doorKey struct{}

// doorOf returns the door that a request came through, nil if it is not one of pages.
func doorOf(ctx context.Context) *pageDoor {
	d, _ := ctx.Value(doorKey{}).(*pageDoor)
	return d
}

func newPage(a *Server) *page { return &page{Server: a} }

// loopbackHost reports whether a host is this machine, as a page on it is asked for. Other
// names may be led here by whoever owns them.
func loopbackHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// ServePage answers browsers on a listener of TCP until Close. Without a certificate it must
// be a loopback address, as what is said there is not encrypted; with one, name is what it is
// called there, or empty. Config.Pages must be there.
func (a *Server) ServePage(listener net.Listener, name string, config *tls.Config) error {
	host, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	at := net.JoinHostPort(cmp.Or(name, host), port)
	d := &pageDoor{hosts: loopbackHost, base: "http://" + at}
	if config != nil {
		d.hosts, d.base = a.cfg.Hosts, "https://"+at
		listener = tls.NewListener(listener, config)
	}
	return a.page.serve(peer.Count(listener), d)
}

func (p *page) serve(listener net.Listener, d *pageDoor) error {
	if p.cfg.Pages == nil || d.hosts == nil {
		return errors.New("page: no keys, or no name of its own")
	}
	p.mu.Lock()
	p.base = d.base
	p.server.Handler, p.server.ReadHeaderTimeout, p.server.IdleTimeout = p.through(d), 10*time.Second, time.Minute
	p.server.ErrorLog = p.Server.server.ErrorLog
	p.mu.Unlock()
	return serve(&p.server, listener)
}

func (p *page) close() error { return p.server.Close() }

// through answers what comes through a door: calls of the API, and the page itself.
func (p *page) through(d *pageDoor) http.Handler {
	calls, files := p.handler(), web.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(context.WithValue(r.Context(), doorKey{}, d))
		if strings.HasPrefix(r.URL.Path, "/v1/") {
			calls.ServeHTTP(w, r)
			return
		}
		if !d.hosts(hostOf(r)) {
			http.Error(w, "this page has another name", http.StatusMisdirectedRequest)
			return
		}
		files.ServeHTTP(w, r)
	})
}

// fromPage returns an error for a request that no page of this server makes.
func (d *pageDoor) fromPage(r *http.Request) error {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return errorf(api.CodeDenied, "requests of other pages are not answered")
	}
	if origin, err := url.Parse(r.Header.Get("Origin")); err != nil || origin.Host != "" && origin.Host != r.Host {
		return errorf(api.CodeDenied, "requests of other pages are not answered")
	}
	if !d.hosts(hostOf(r)) {
		return errorf(api.CodeDenied, "this is not %q", r.Host)
	}
	return nil
}

// open answers POST /v1/pages: the address of the page, with a key for who asks; or that of
// another site's, to which this one vouches for him.
func (p *page) open(w http.ResponseWriter, r *http.Request) error {
	var request api.PageRequest
	if err := readJSON(r, &request); err != nil {
		return err
	}
	if request.Site != "" {
		return p.openThere(w, r, request.Site)
	}
	if p.cfg.Pages == nil {
		return errorf(api.CodeRefused, "this daemon has no page")
	}
	base, err := p.opened()
	if err != nil {
		return errorf(api.CodeRefused, "%v", err)
	}
	who, now := askerOf(r.Context()), time.Now()
	p.cfg.Pages.Prune(now)
	key, token, err := p.cfg.Pages.Create(now, who.Name, who.Role, pageSpan.Duration())
	if err != nil {
		return err
	}
	p.cfg.Logger.Info("page opened", "user", token.User, "role", token.Role, "until", token.Expires)
	return writeJSON(w, api.PageReply{URL: base + "/#key=" + key, Expires: api.InstantOf(token.Expires)})
}

// openThere has another site show its page to who asks.
func (p *page) openThere(w http.ResponseWriter, r *http.Request, site string) error {
	to, err := p.siteNamed(r.Context(), site)
	if err != nil {
		return err
	}
	ticket, err := node.VisitsOf(p.host).Ask(r.Context(), to, userOf(r.Context()))
	switch {
	case errors.Is(err, visit.ErrRefused):
		return errorf(api.CodeRefused, "%s does not show its page: %v", site, err)
	case err != nil:
		return errorf(api.CodeRefused, "%s does not show its page to members (web.members there), or cannot be reached: %v", site, err)
	}
	return writeJSON(w, api.PageReply{URL: ticket.URL, Expires: api.InstantOf(time.Now().Add(ticket.Span.Duration()))})
}

// welcome makes a ticket for somebody of another member's.
func (p *page) welcome(from grid.SiteID, name, user string) (*visit.Ticket, error) {
	p.mu.Lock()
	base := p.base
	p.mu.Unlock()
	if !strings.HasPrefix(base, "https://") {
		return nil, errors.New("there is no page that others can reach")
	}
	key, until := p.porter.visitors.Create(time.Now(), string(from), name, pageSpan.Duration())
	p.cfg.Logger.Info("page opened for a visitor", "site", name, "user", user, "until", until)
	return &visit.Ticket{URL: base + "/#key=" + key, Span: pageSpan}, nil
}

// opened returns the address of the page, which is on a free port of this machine if none was
// set.
func (p *page) opened() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.base != "" {
		return p.base, nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	p.base = "http://" + listener.Addr().String()
	go func() {
		if err := p.ServePage(listener, "", nil); err != nil {
			p.cfg.Logger.Warn("the page is not served any more", "err", err)
		}
	}()
	return p.base, nil
}
