package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestManualIsFound: wherever packages put program and manual, and beside one that was built.
func TestManualIsFound(t *testing.T) {
	for _, tt := range []struct{ program, manual string }{
		{"usr/bin/gridnode", "usr/share/doc/gridnode/html"},
		{"usr/libexec/gridnode/gridnoded", "usr/share/doc/gridnode/html"},
		{"opt/bin/gridnode", "opt/share/doc/gridnode/html"},
		{"src/bin/gridnode", "src/bin/docs"},
	} {
		root := t.TempDir()
		folders := manualFolders(filepath.Join(root, tt.program))
		if _, err := manualPage(folders, "index"); exitCode(err) != exitNotFound || !strings.Contains(err.Error(), "make docs") {
			t.Errorf("%s without a manual: %v", tt.program, err)
		}
		for _, name := range []string{"index.html", "howto/join.html"} {
			path := filepath.Join(root, tt.manual, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for page, want := range map[string]string{"index": "index.html", "howto/join": "howto/join.html", "howto/join.md": "howto/join.html", "howto/join.html": "howto/join.html"} {
			if path, err := manualPage(folders, page); err != nil || path != filepath.Join(root, tt.manual, want) {
				t.Errorf("%s, page %s: %s, %v", tt.program, page, path, err)
			}
		}
		for _, page := range []string{"nothing", "howto", "../html/index", ""} {
			if path, err := manualPage(folders, page); exitCode(err) != exitNotFound {
				t.Errorf("%s, page %q: %s, %v", tt.program, page, path, err)
			}
		}
	}
}
