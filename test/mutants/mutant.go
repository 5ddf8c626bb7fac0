package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// patches is the folder of the bugs, seen from the root of the module: ROOM/NAME.patch, where
// ROOM is the folder of the package that has the bug.
const patches = "test/mutants/patches"

// mutant is one bug: a patch that makes a slip of the code, or a change that was drawn.
type mutant struct {
	Name  string `json:"name"`  // ROOM/NAME
	Room  string `json:"room"`  // folder of the package, seen from the root
	Title string `json:"title"` // the first line of the file: what the code does wrong

	digest string            // of the file or the change, 16 hexadecimal digits
	path   string            // of the file, seen from the root of the module
	drawn  *place            // of what is changed in a sample; nil: there is a patch
	change map[string][]hunk // by file, seen from the root
}

// readMutants returns the bugs below dir in the order of their names.
func readMutants(dir string) (all []*mutant, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".patch") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		m := &mutant{Name: filepath.ToSlash(strings.TrimSuffix(name, ".patch")), path: patches + "/" + filepath.ToSlash(name)}
		m.Room = filepath.ToSlash(filepath.Dir(m.Name))
		sum := sha256.Sum256(text)
		m.digest = hex.EncodeToString(sum[:8])
		title, diff, _ := strings.Cut(string(text), "\n")
		m.Title = strings.TrimSpace(title)
		if m.Title == "" || strings.HasPrefix(m.Title, "---") {
			return fmt.Errorf("%s: the first line is to say what goes wrong", path)
		}
		if m.change, err = parseDiff(diff); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, m)
		return nil
	})
	return all, err
}

// apply returns the changed files of the tree at root, by their paths seen from it. Nothing is
// written. The error says what to do when a patch no longer fits.
func (m *mutant) apply(root string) (map[string][]byte, error) {
	changed := map[string][]byte{}
	for file, hunks := range m.change {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			return nil, fmt.Errorf("%w\n%s", err, m.mend(file))
		}
		after, err := applyHunks(string(text), hunks)
		if err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", file, err, m.mend(file))
		}
		changed[file] = []byte(after)
	}
	return changed, nil
}

// mend says how to make a patch again.
func (m *mutant) mend(file string) string {
	return fmt.Sprintf("The patch %s no longer fits. Its slip: %q.\n"+
		"Make the slip by hand where that code is now, and then the patch of it:\n"+
		"  (head -n 1 %[1]s; git diff %[3]s) > /tmp/new && mv /tmp/new %[1]s && git checkout %[3]s\n"+
		"If the code moved to another package, move the patch to the folder of that. If there is nothing left that could\n"+
		"slip in this way, plant another slip in the same room instead.",
		m.path, m.Title, file)
}
