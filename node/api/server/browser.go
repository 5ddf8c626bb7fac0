package server

import (
	"mime"
	"net"
	"net/http"
	"strings"

	"gridnode/node/api"
)

// fromProgram returns an error for a request that a web page may have had a browser make: a
// page must not act for whoever looks at it. Our own page has a door of its own, so none has a
// reason to ask here. A browser says where a request comes from (Origin, Sec-Fetch-Site), asks by the name
// that a page gave it (Host, which a page may have lead anywhere), and does not send JSON to
// others without being allowed to.
func (p *porter) fromProgram(r *http.Request) error {
	if door := doorOf(r.Context()); door != nil {
		return door.fromPage(r)
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "none" || r.Header.Get("Origin") != "" {
		return errorf(api.CodeDenied, "requests of web pages are not answered")
	}
	if !p.hostKnown(r) {
		return errorf(api.CodeDenied, "this is not %q: ask by a name that the certificate has, or through the socket as 'localhost'", r.Host)
	}
	return nil
}

// inJSON returns an error for a request that changes something and is not JSON.
func inJSON(r *http.Request) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return errorf(api.CodeUsage, "Content-Type: %q, want application/json", r.Header.Get("Content-Type"))
	}
	return nil
}

// hostKnown reports whether a request names this server: at the socket as programs do, at
// the port by a name of the certificate.
func (p *porter) hostKnown(r *http.Request) bool {
	host := hostOf(r)
	if askerOf(r.Context()).Name != "" {
		return host == "localhost" || host == "gridnode"
	}
	return p.cfg.Hosts != nil && p.cfg.Hosts(host)
}

// hostOf returns the name that a request is for, without port.
func hostOf(r *http.Request) string {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}
