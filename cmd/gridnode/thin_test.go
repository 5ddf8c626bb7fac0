package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The client takes the daemon's place on compute nodes only if it is of the same build.
func TestThinProgramIsOfTheSameBuild(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "gridnode")
	says := func(b *build) {
		text, err := json.Marshal(b)
		if err == nil {
			err = os.WriteFile(path, []byte("#!/bin/sh\ncat <<'EOT'\n"+string(text)+"\nEOT\n"), 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	mine := &build{Version: "1.2.3", Revision: "abc", Go: "go1"}
	if sameBuild(t.Context(), path, mine) {
		t.Error("a program that is not there is of the same build")
	}
	says(mine)
	if !sameBuild(t.Context(), path, mine) {
		t.Error("the same build is another one")
	}
	for _, other := range []build{{Version: "1.2.4", Revision: "abc", Go: "go1"}, {Version: "1.2.3", Revision: "abd", Go: "go1"}, {Version: "1.2.3", Revision: "abc", Go: "go1", Modified: true}} {
		says(&other)
		if sameBuild(t.Context(), path, mine) {
			t.Errorf("%+v is of the same build as %+v", other, *mine)
		}
	}
	old := filepath.Join(dir, "old")
	if err := os.WriteFile(old, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !madeTogether(path, old) {
		t.Error("what was written a moment ago was not written together")
	}
	if err := os.Chtimes(old, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if madeTogether(path, old) || madeTogether(path, filepath.Join(dir, "none")) {
		t.Error("what is old, or not there, was written together with what is new")
	}
}
