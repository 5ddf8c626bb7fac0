package checkout

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCommit(t *testing.T) {
	dir := t.TempDir()
	if commit, err := Commit(t.Context(), dir, "HEAD"); err == nil {
		t.Errorf("%s is no checkout, and at %q", dir, commit)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"init", "--quiet"}, {"add", "file"}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--message", "one"},
	} {
		if _, err := Git(t.Context(), dir, args...); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := Git(t.Context(), dir, "rev-parse", "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	if commit, err := Commit(t.Context(), dir, "HEAD"); err != nil || len(commit) != 12 || !strings.HasPrefix(whole, commit) {
		t.Errorf("the tree is at %q (%v), want the first twelve digits of %s", commit, err, whole)
	}
	if _, err := Commit(t.Context(), dir, "v1"); err == nil || !strings.Contains(err.Error(), "v1") {
		t.Errorf("a name that there is not: %v", err)
	}
}
