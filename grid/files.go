package grid

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// Files is what a job brings along and what of it is brought home.
//
// What it brings is a tree: files by their content, kept at its home, from where sites that
// run it get what they do not have yet. It lies in the job's scratch directory when it starts.
// What is new or changed there when it is over is brought home.
type Files struct {
	Tree  string // SHA-256 of the tree, 64 lower-case hexadecimal digits; empty: it brings nothing
	Size  int64  // bytes of the tree's files, to be moved where it runs elsewhere; at most FilesMax
	Count int64  // of files in it
	Stdin string // name in the tree of its standard input; empty: nothing

	Out  []string // patterns of what is brought home; none: whatever is new or changed and not hidden
	Dir  string   // directory at home that it is brought to, absolute; empty: the job's working directory
	Drop bool     // nothing is brought home
}

// FilesMax bounds the bytes that a job brings along.
const FilesMax = 1 << 40

// Bounds of Files.
const (
	patternsMax = 64
	patternMax  = 1024
)

// Apart reports whether the job runs in its scratch directory at its home, too: what it reads
// and writes is the same wherever it runs. One that brings nothing but its standard input does
// not.
func (f *Files) Apart() bool {
	return f != nil && (f.Tree != "" && !f.justStdin() || len(f.Out) > 0 || f.Dir != "")
}

// justStdin reports whether all that the job brings is its standard input.
func (f *Files) justStdin() bool { return f.Stdin != "" && f.Count == 1 }

// Apart is that of the job's files.
func (j *Job) Apart() bool { return j.Command != nil && j.Command.Files.Apart() }

// Tree returns the tree that the job brings along, and the bytes of its files; empty if it
// brings nothing.
func (j *Job) Tree() (digest string, size int64) {
	if j.Command == nil || j.Command.Files == nil {
		return "", 0
	}
	return j.Command.Files.Tree, j.Command.Files.Size
}

// moving is the traffic of bringing a tree to a site, in bits.
func moving(size int64) int64 { return 8 * size }

// Away returns the job as other sites than its home see it: with the moving of what it brings
// along, which takes its time there. It is the job itself if it brings nothing.
func (j *Job) Away() *Job {
	_, size := j.Tree()
	if size == 0 {
		return j
	}
	away := *j
	away.Work.Traffic = min(away.Work.Traffic, math.MaxInt64-moving(size)) + moving(size)
	return &away
}

// SeenFrom returns the job as a site sees it.
func (j *Job) SeenFrom(site SiteID) *Job {
	if site == j.Home {
		return j
	}
	return j.Away()
}

// MovingAt returns how long bringing its files to a site takes, of the job's estimate there.
func (j *Job) MovingAt(r Rating) Time {
	_, size := j.Tree()
	return Work{Traffic: moving(size)}.At(r)
}

// Keeps reports whether what the job leaves in its scratch directory at a site is kept, to be
// brought home.
func (j *Job) Keeps(site SiteID) bool {
	c := j.Command
	return c != nil && (c.Files == nil || !c.Files.Drop) && (j.Home != site || j.Apart())
}

// Check returns an error that says what is out of bounds.
func (f *Files) Check() error {
	if f == nil {
		return nil
	}
	switch {
	case f.Tree == "" && (f.Size != 0 || f.Count != 0 || f.Stdin != ""):
		return errors.New("files without a tree")
	case f.Tree != "" && !isDigest(f.Tree):
		return fmt.Errorf("tree %.80q, want 64 hexadecimal digits", f.Tree)
	case f.Size < 0 || f.Size > FilesMax || f.Count < 0:
		return fmt.Errorf("%d files of %d bytes, at most %d", f.Count, f.Size, int64(FilesMax))
	case len(f.Out) > patternsMax:
		return fmt.Errorf("%d patterns of files, at most %d", len(f.Out), patternsMax)
	case f.Dir != "" && !strings.HasPrefix(f.Dir, "/"), len(f.Dir) > patternMax, len(f.Stdin) > patternMax:
		return fmt.Errorf("files for directory %.80q", f.Dir)
	}
	for _, pattern := range append(f.Out[:len(f.Out):len(f.Out)], f.Dir, f.Stdin) {
		if len(pattern) > patternMax || strings.ContainsRune(pattern, 0) {
			return fmt.Errorf("pattern %.80q", pattern)
		}
	}
	return nil
}

// isDigest reports whether text is a SHA-256 in hexadecimal digits.
func isDigest(text string) bool {
	return len(text) == 64 && strings.Trim(text, "0123456789abcdef") == ""
}
