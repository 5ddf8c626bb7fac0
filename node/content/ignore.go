package content

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// IgnoreFile is the file of a folder that says what of it is not brought along.
const IgnoreFile = ".gridnodeignore"

// Ignore says what of a folder is left out, as the lines of an IgnoreFile do: a pattern each,
// of names at any depth if it has no slash but at its end, else of paths from the folder on.
// A slash at the end means folders only, a ! at the start that it is not left out after all, a
// # a comment. The last line that matches counts. nil leaves out nothing.
type Ignore struct{ lines []ignoreLine }

type ignoreLine struct {
	pattern string
	folders bool
	keep    bool
}

const (
	ignoreLines = 10_000
	ignoreBytes = 1 << 20
)

// ReadIgnore reads the lines of an IgnoreFile.
func ReadIgnore(r io.Reader) (*Ignore, error) {
	ignore := &Ignore{}
	lines := bufio.NewScanner(io.LimitReader(r, ignoreBytes))
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		if len(ignore.lines) >= ignoreLines {
			return nil, fmt.Errorf("%s: more than %d lines", IgnoreFile, ignoreLines)
		}
		var l ignoreLine
		text, l.keep = strings.CutPrefix(text, "!")
		text, l.folders = strings.CutSuffix(text, "/")
		if !strings.Contains(text, "/") {
			text = "**/" + text
		}
		if l.pattern = strings.TrimPrefix(text, "/"); !doublestar.ValidatePattern(l.pattern) {
			return nil, fmt.Errorf("%s:%d: %q is not a pattern", IgnoreFile, n, text)
		}
		ignore.lines = append(ignore.lines, l)
	}
	return ignore, lines.Err()
}

// Ignores reports whether an entry is left out. What is in a folder that is left out is not
// asked about.
func (i *Ignore) Ignores(name string, folder bool) bool {
	if i == nil {
		return false
	}
	for n := len(i.lines) - 1; n >= 0; n-- {
		l := &i.lines[n]
		if l.folders && !folder {
			continue
		}
		if ok, _ := doublestar.Match(l.pattern, path.Clean(name)); ok {
			return !l.keep
		}
	}
	return false
}
