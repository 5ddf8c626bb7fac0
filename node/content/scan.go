package content

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"

	"gridnode/internal/atomicfile"
)

// Limits bounds what a scan finds.
type Limits struct {
	Entries int   // at most EntriesMax
	Size    int64 // bytes of all files, at most SizeMax; a file counts with what it seems to have, holes and all
}

// Wanted says which entries a scan takes.
type Wanted struct {
	Out    []string // patterns of names; nil: whatever is new or changed and not hidden
	Before *Tree    // what was there at first; nil: nothing
	Ignore *Ignore  // nil: nothing is ignored
	Limits Limits
	// Strict: what cannot be taken is an error. Else it is left out, and counted.
	Strict bool
}

// Scan finds what is below a directory. It follows no links and opens nothing. The second
// result is how many files were left out, and the third the first of them with the reason. It fails
// while no descriptor is left to look at a folder.
func Scan(ctx context.Context, root *os.Root, w *Wanted) (sources []Source, left int64, why string, err error) {
	s := &scan{root: root, Wanted: w, ctx: ctx, folders: make(map[string]Source)}
	if err := s.walk("."); err != nil {
		return nil, 0, "", err
	}
	return s.sources, s.left, s.why, nil
}

// seenMax bounds what is looked at, whether it is taken or not.
const seenMax = 16 * EntriesMax

// scan is one under way.
type scan struct {
	*Wanted
	ctx     context.Context
	root    *os.Root
	sources []Source
	folders map[string]Source // that are not among the sources yet
	size    int64
	seen    int
	left    int64
	why     string
}

// refuse leaves an entry out, or returns why it cannot be taken. That no descriptor is left says nothing
// of the entry.
func (s *scan) refuse(name string, err error) error {
	if s.Strict || atomicfile.NoDescriptors(err) {
		return fmt.Errorf("%s: %w", name, err)
	}
	if s.left++; s.left == 1 {
		s.why = fmt.Sprintf("%.200s: %.200v", strings.ToValidUTF8(name, "?"), err)
	}
	return nil
}

func (s *scan) walk(dir string) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	folder, err := s.root.Open(dir)
	if err != nil {
		return s.refuse(dir, err)
	}
	entries, err := folder.ReadDir(seenMax + 1)
	folder.Close()
	if err != nil && len(entries) == 0 && !errors.Is(err, io.EOF) {
		return s.refuse(dir, err)
	}
	for _, d := range entries {
		name := path.Join(dir, d.Name())
		if s.Ignore.Ignores(name, d.IsDir()) {
			continue
		}
		if err := s.see(name); err != nil {
			return err
		}
		if s.seen++; s.seen > seenMax {
			return s.refuse(name, fmt.Errorf("%w: more than %d files and folders", ErrMany, seenMax))
		}
	}
	return nil
}

// see takes one entry, and what is below it.
func (s *scan) see(name string) error {
	info, err := s.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it went
	}
	if err != nil {
		return s.refuse(name, err)
	}
	if err := CheckName(name); err != nil {
		return s.refuse(name, err)
	}
	e := Source{Entry: Entry{Name: name, Mode: info.Mode().Perm()}}
	switch {
	case info.IsDir():
		e.Kind = Folder
		if !s.Takes(&e.Entry) {
			s.folders[name] = e
		} else if err := s.enter(e); err != nil {
			return err
		}
		return s.walk(name)
	case info.Mode()&fs.ModeSymlink != 0:
		e.Kind = Link
		e.Mode = 0
		if e.Target, err = s.root.Readlink(name); err != nil {
			return s.refuse(name, err)
		}
	case info.Mode().IsRegular():
		e.Kind, e.Size, e.Modified = File, info.Size(), info.ModTime().UnixNano()
		e.Open = func() (*os.File, error) { return openFile(s.root, name) }
	default:
		if !s.takesName(name) {
			return nil
		}
		return s.refuse(name, errors.New("it is neither a file nor a folder nor a link"))
	}
	if !s.Takes(&e.Entry) {
		return nil
	}
	if err := e.check(); err != nil {
		return s.refuse(name, err)
	}
	if s.size+e.Size > s.Limits.Size {
		return s.refuse(name, fmt.Errorf("%w: with its %d bytes it is more than %d in all", ErrSize, e.Size, s.Limits.Size))
	}
	s.size += e.Size
	return s.enter(e)
}

// enter takes an entry, and the folders that it lies in, unless there are too many.
func (s *scan) enter(e Source) error {
	if len(s.sources)+strings.Count(e.Name, "/") >= s.Limits.Entries {
		return s.refuse(e.Name, fmt.Errorf("%w: more than %d files and folders: pack them into an archive", ErrMany, s.Limits.Entries))
	}
	for dir := path.Dir(e.Name); dir != "."; dir = path.Dir(dir) {
		if folder, waits := s.folders[dir]; waits {
			delete(s.folders, dir)
			s.sources = append(s.sources, folder)
		}
	}
	s.sources = append(s.sources, e)
	return nil
}

// Takes reports whether an entry is wanted.
func (s *Wanted) Takes(e *Entry) bool {
	if !s.takesName(e.Name) {
		return false
	}
	if s.Out != nil {
		return true
	}
	if s.Before == nil {
		return true
	}
	was, ok := s.Before.Find(e.Name)
	if !ok {
		return true
	}
	return was.Kind != e.Kind || e.Kind == Link && was.Target != e.Target || e.Kind == File && (was.Size != e.Size || was.Modified != e.Modified)
}

func (s *Wanted) takesName(name string) bool {
	if s.Strict && s.Out == nil {
		return true
	}
	if s.Out == nil {
		return !hidden(name)
	}
	for _, pattern := range s.Out {
		for at := name; at != "."; at = path.Dir(at) { // a folder means what is in it
			if ok, err := doublestar.Match(pattern, at); ok && err == nil {
				return true
			}
		}
	}
	return false
}

// hidden reports whether a part of a name begins with a dot.
func hidden(name string) bool { return name[0] == '.' || strings.Contains(name, "/.") }

// CheckPattern returns an error unless a pattern is one of names below a directory.
func CheckPattern(pattern string) error {
	if !doublestar.ValidatePattern(pattern) {
		return fmt.Errorf("%q is not a pattern: want a name with *, ?, [a-z], {a,b} or ** for folders", pattern)
	}
	if err := CheckName(strings.TrimSuffix(pattern, "/")); err != nil {
		return fmt.Errorf("%q: want names below the job's directory", pattern)
	}
	return nil
}

// openFile opens a file to read it, and nothing that only looks like one.
func openFile(root *os.Root, name string) (*os.File, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
			err = failed.Err
		}
		return nil, fmt.Errorf("%s cannot be read: %w", name, err)
	}
	info, err := file.Stat()
	if err == nil {
		var there fs.FileInfo // a Root follows links that lead to what is below it, whatever flags say
		if there, err = root.Lstat(name); err == nil && (!info.Mode().IsRegular() || !os.SameFile(info, there)) {
			err = fmt.Errorf("%s: %w: it is no file any more", name, ErrChanged)
		}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
