// Package web is the page that a daemon gives to browsers. What is in dist is made of what is
// in page by `make web`, and is part of the program: nothing is loaded from elsewhere, and
// building the program needs none of the tools that make it.
//
// The page is a client of the local API like any other. Who serves it decides who may ask
// for what; see gridnode/node/api/server.
package web

import (
	"embed"
	"io/fs"
	"net/http"
)

//go:embed dist
var dist embed.FS

// policy is what a browser may do for the page: load what is served with it, and ask the
// server that it came from. Nobody may show it inside another page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Handler serves the files of the page.
func Handler() http.Handler {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the name is a constant
	}
	server := http.FileServerFS(files)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache") // another version of the program has other files
		server.ServeHTTP(w, r)
	})
}
