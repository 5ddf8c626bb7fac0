// Package openapi is what the API of a node says of itself to programs.
package openapi

import (
	_ "embed"
	"net/http"
)

// description is what the API says of itself to programs, in the form of OpenAPI 3.1. It is
// made of the server's routes, Operations and the types of package api:
// go test ./node/api/openapi -update.
//
//go:embed openapi.json
var description []byte

// Serve answers with the description.
func Serve(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(description) // whoever went away needs none
	return nil
}
