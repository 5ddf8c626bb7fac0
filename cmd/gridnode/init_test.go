//go:build !client

package main

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"gridnode/node/member"
)

// TestInitWithoutAnInvitation: an empty --join, as of a variable that is not set, makes no
// site of its own, and leaves nothing behind.
func TestInitWithoutAnInvitation(t *testing.T) {
	for _, empty := range []string{"", " "} {
		home := filepath.Join(t.TempDir(), "home")
		root := newRoot()
		root.SetArgs([]string{"init", "--home", home, "--join", empty})
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		if err := root.Execute(); err == nil || !strings.Contains(err.Error(), "--join: it is empty") {
			t.Errorf("--join %q: %v", empty, err)
		}
		if left, _ := filepath.Glob(filepath.Join(home, "*")); len(left) > 0 {
			t.Errorf("--join %q leaves %q", empty, left)
		}
	}
}

// TestInitAsSomebodyElse: an invitation is for one name in one federation, and a flag that says
// another is not passed over.
func TestInitAsSomebodyElse(t *testing.T) {
	token := &member.Token{Federation: "campus", Name: "hill", Addresses: []string{"/ip4/192.0.2.1/tcp/7531/p2p/12D3KooWNRxLwsW1DtFA75eMqr3NthHmKmUmTtL6MrRK2vPnbrom"}}
	for _, tt := range []struct{ flag, value, want string }{
		{"--site", "valley", "the invitation is for hill"},
		{"--federation", "town", "the invitation is for campus"},
	} {
		home := filepath.Join(t.TempDir(), "home")
		root := newRoot()
		root.SetArgs([]string{"init", "--home", home, "--join", token.String(), tt.flag, tt.value})
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) || exitCode(err) != exitUsage {
			t.Errorf("%s %s: %v, want %q", tt.flag, tt.value, err, tt.want)
		}
		if left, _ := filepath.Glob(filepath.Join(home, "*")); len(left) > 0 {
			t.Errorf("%s %s leaves %q", tt.flag, tt.value, left)
		}
	}
}
