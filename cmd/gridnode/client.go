package main

import (
	"fmt"
	"net/url"
	"os"
	"strings"

	"gridnode/node/api"
)

// client returns who asks the daemon that the flags name.
func (o *options) client() *api.Client {
	switch {
	case o.remote != "":
		return api.NewRemoteClient(o.remote, o.token)
	case o.socket != "":
		return api.NewSharedClient(o.socket)
	}
	return api.NewClient(o.home)
}

// tokenVariables say where the token for --remote is.
const (
	tokenVariable     = "GRIDNODE_TOKEN"
	tokenFileVariable = "GRIDNODE_TOKEN_FILE"
)

// resolveDaemon finds out which daemon is meant, unless it is that of the home.
func (o *options) resolveDaemon(homeGiven bool) error {
	if homeGiven && (o.remote != "" || o.socket != "") || o.remote != "" && o.socket != "" {
		return usagef("--home, --socket and --remote exclude each other: each names a daemon")
	}
	if homeGiven {
		return nil
	}
	if o.remote == "" && o.socket == "" {
		o.remote, o.socket = os.Getenv("GRIDNODE_REMOTE"), os.Getenv("GRIDNODE_SOCKET")
		if o.remote != "" && o.socket != "" {
			return usagef("GRIDNODE_REMOTE and GRIDNODE_SOCKET exclude each other: each names a daemon")
		}
	}
	if o.remote == "" {
		return nil
	}
	u, err := url.Parse(o.remote)
	if err != nil || u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" {
		return usagef("--remote: %q: want https://NAME:PORT", o.remote)
	}
	o.remote = "https://" + u.Host
	o.token = os.Getenv(tokenVariable)
	if path := os.Getenv(tokenFileVariable); o.token == "" && path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("%s: %w", tokenFileVariable, err)
		}
		o.token = strings.TrimSpace(string(text))
	}
	if o.token == "" {
		return usagef("--remote takes a token: set %s, or %s to the name of a file with it; an admin makes one with 'gridnode token create'", tokenVariable, tokenFileVariable)
	}
	return nil
}
