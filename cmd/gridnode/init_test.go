//go:build !client

package main

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
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
