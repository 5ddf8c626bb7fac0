package metrics

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// CheckLoopback returns an error unless an address is of this machine only: nobody is asked
// who he is there.
func CheckLoopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q: want ADDRESS:PORT, e.g. 127.0.0.1:7533", address)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("%q: want an address of this machine only, such as 127.0.0.1: beyond it the numbers are read at api.listen, with a token", address)
	}
	return nil
}

// Server returns a server of the numbers and of what the daemon's health is, for everybody
// who reaches it.
func (m *Metrics) Server() *http.Server {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Metrics())
	mux.HandleFunc("GET /healthz", m.Alive)
	mux.HandleFunc("GET /readyz", m.Ready)
	return &http.Server{Handler: ofThisMachine(mux), ReadHeaderTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute}
}

// ofThisMachine refuses what a web page has had a browser ask for: by the name of somewhere
// else, or as a page says that it asks.
func ofThisMachine(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		ip := net.ParseIP(strings.Trim(host, "[]"))
		from := r.Header.Get("Sec-Fetch-Site")
		if host != "localhost" && (ip == nil || !ip.IsLoopback()) || from != "" && from != "none" || r.Header.Get("Origin") != "" {
			http.Error(w, "only programs of this machine are answered", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
